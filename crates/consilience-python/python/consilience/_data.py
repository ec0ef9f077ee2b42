"""Data as paths or tables: whatever has the Arrow PyCapsule interface."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from . import _consilience
from ._errors import InputError

_TABLES = "give a table (pandas, polars, pyarrow, DuckDB, …), a list of tables as shards, or paths"


def is_path(data: Any) -> bool:
    """Whether this names a file."""
    return isinstance(data, (str, os.PathLike))


def paths(data: Any) -> list[str] | None:
    """The paths that these data are, or None."""
    if is_path(data):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(is_path(one) for one in data):
        return [os.fspath(one) for one in data]
    return None


def is_shards(data: Any) -> bool:
    """Whether there is a table per shard."""
    return isinstance(data, (list, tuple))


def refuse(data: Any, what: str) -> None:
    """An error for what looks like a table and is none."""
    name, module = type(data).__name__, type(data).__module__.split(".")[0]
    if name == "LazyFrame":
        raise InputError(f"{what} is a LazyFrame, which has no rows yet; call .collect() first")
    if name == "Series":
        raise InputError(f"{what} is a single column; give a table")
    if module == "dask" or module == "dask_expr":
        raise InputError(f"{what} is a Dask collection; give engine=consilience.dask.Engine(client), or call .compute() first")
    if isinstance(data, Mapping):
        raise InputError(f"{what} is a dict; make a table of it first, such as pandas.DataFrame({what}) or pyarrow.table({what})")
    if name == "ndarray":
        raise InputError(f"{what} is an array without names of columns; make a table of it, such as pandas.DataFrame(array, "
                         "columns=[…])")
    if isinstance(data, (list, tuple)):
        raise InputError(f"{what} is a list, and tables stand in one list; {_TABLES}")
    raise InputError(f"{what} is of type {name}, which is no table: it lacks __arrow_c_stream__; {_TABLES}")


def names(table: Any, what: str) -> list[str]:
    """The names of a table's columns."""
    if not hasattr(table, "__arrow_c_stream__") or type(table).__name__ == "Series":
        refuse(table, what)
    schema = getattr(table, "schema", None)
    if schema is not None and hasattr(schema, "names") and not callable(schema.names):
        return [str(name) for name in schema.names]
    columns = getattr(table, "columns", None)
    if columns is not None and not callable(columns):
        # One that is no text is refused later, if it is used.
        return [str(name) for name in columns]
    raise InputError(f"{what} is of type {type(table).__name__}, which does not say what its columns are called; "
                     "make a pyarrow table of it")


def text_alone(columns: Any, used: set[str], what: str) -> None:
    """Refuses a column in use whose name is no text."""
    for name in columns:
        if not isinstance(name, str) and str(name) in used:
            raise InputError(f"{what} has a column named {name!r}, and names of columns are text; rename it")


def select(table: Any, columns: list[str], all_columns: list[str], what: str) -> Any:
    """These columns alone: an unused one may have values that nobody can export."""
    twice = {name for name in columns if all_columns.count(name) > 1}
    if twice:
        raise InputError(f"{what} has two columns named `{sorted(twice)[0]}`; rename one")
    wanted = set(columns)
    module = type(table).__module__.split(".")[0]
    if module == "pandas":
        text_alone(table.columns, wanted, what)
    # In the table's own order.
    columns = [name for name in all_columns if name in wanted]
    if module == "pandas":
        # The index is not a column.
        return table[columns].reset_index(drop=True)
    if module == "polars":
        return table.select(columns)
    if module == "pyarrow" and hasattr(table, "select"):
        return table.select(columns)
    if "duckdb" in module and hasattr(table, "project"):
        return table.project(", ".join('"' + name.replace('"', '""') + '"' for name in columns))
    return table


def capsule(table: Any, what: str) -> Any:
    """The capsule with a table's stream."""
    try:
        return table.__arrow_c_stream__()
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise InputError(f"{what} cannot be exported to Arrow: {_first_line(error)}; see whether a column that the study uses "
                         "has values of mixed types") from error


def _first_line(error: BaseException) -> str:
    lines = " ".join(str(part) for part in error.args).strip().splitlines() or [type(error).__name__]
    return lines[0]


@contextlib.contextmanager
def once(data: Any):
    """A reader gives its rows once; an error about rows that are not there says so."""
    try:
        yield
    except InputError as error:
        several = data if isinstance(data, (list, tuple)) else [data]
        if "no rows" in str(error) and any(hasattr(one, "read_next_batch") for one in several):
            raise InputError(f"{error} (a reader can be read once: is it used up?)") from None
        raise


def capsules(study: Any, task: dict, data: Any) -> tuple[bool, list[Any]] | None:
    """What the compiled part takes: whether it is one table, and the tables. None where the data are files."""
    if data is None or paths(data) is not None:
        return None
    if isinstance(data, (list, tuple)):
        if not data:
            raise InputError("there are no tables; give one per shard")
        mixed = [i for i, one in enumerate(data) if is_path(one)]
        if mixed:
            raise InputError(f"data[{mixed[0]}] is a path among tables; give paths or tables")
        named = [(f"data[{i}]", one) for i, one in enumerate(data)]
    else:
        named = [("data", data)]
    text = json.dumps(task)
    out = []
    for what, table in named:
        all_columns = names(table, what)
        if not out:
            with study.named():
                used = _consilience.columns_used(text, all_columns)
        out.append(capsule(select(table, used, all_columns, what), what))
    return len(named) == 1 and not isinstance(data, (list, tuple)), out
