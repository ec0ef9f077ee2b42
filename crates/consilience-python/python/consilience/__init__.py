"""Bayesian model choice on data that is split over workers, machines or institutions.

>>> import consilience as cs
>>> cs.compare("study.toml")                                            # a file, as the program does
>>> cs.compare({"split": {"shards": 10},
...             "model": [{"formula": "late ~ carrier", "family": "logistic"},
...                       {"formula": "late ~ 1", "family": "logistic"}]}, df)

docs/python.md is a tutorial.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._consilience import __version__
from ._errors import InputError, NumericError, UnreliableError, UnreliableWarning
from ._result import Comparison, Figure, Result, Selection, Sweep
from ._run import compare, log_likelihood, select, simulate, sweep
from .engines import Executor, Shard
from .models import Model

__all__ = [
    "Comparison", "Executor", "Figure", "InputError", "Model", "NumericError", "Result", "Selection", "Shard", "Sweep",
    "UnreliableError", "UnreliableWarning", "__version__", "compare", "dask", "log_likelihood", "ray", "select", "simulate", "sweep",
]


def __getattr__(name: str) -> Any:
    # These need libraries that not everybody has.
    if name in ("dask", "ray"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
