"""`compare`, `select`, `sweep` and `simulate`."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _consilience, _data
from ._errors import InputError, UnreliableError, UnreliableWarning
from ._progress import Progress
from ._result import Comparison, Selection, Sweep
from ._study import Study, _plain


def _threads(threads: int | None) -> int:
    if threads is None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return count or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError(f"threads={threads!r}: give a whole number from 1 on")
    return threads


def _memory() -> int | None:
    """The bytes of this machine's memory, or those that a control group leaves of them."""
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        pass
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            found.append(int(file.read()))
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def _bytes(memory: Any) -> int | None:
    """`"2GiB"`, `"500MB"` or a number of bytes."""
    if memory is None or (isinstance(memory, int) and not isinstance(memory, bool)):
        return memory
    units = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30,
             "tib": 2**40}
    if isinstance(memory, str):
        number = memory.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = memory.strip()[len(number):].lower()
        try:
            return int(float(number) * units[unit])
        except (ValueError, KeyError, OverflowError):
            pass
    raise InputError(f"memory={memory!r}: a number and a unit are needed, such as \"2GiB\" or \"500MB\"")


def _task(study: Study, instead: dict[str, Any], data: Any, threads: int | None, memory: Any = None) -> dict[str, Any]:
    files = _data.paths(data)
    if files is not None:
        instead = {**instead, "data": files}
    return {"study": study.task(instead), "threads": _threads(threads), "machine": _memory(), "memory": _bytes(memory),
            "scratch": tempfile.gettempdir()}


def _judged(result: Any, strict: bool) -> Any:
    """The result; a warning, or an error, if it is not to be trusted."""
    words = result.unreliable()
    if words is not None:
        if strict:
            raise UnreliableError(words, result)
        warnings.warn(words, UnreliableWarning, stacklevel=3)
    return result


def compare(
    study: Any,
    data: Any = None,
    *,
    models: Sequence[Any] = (),
    engine: Any = None,
    posterior: bool = False,
    prior_scale: Sequence[float] = (),
    leave_one_out: bool = False,
    shard_details: bool = False,
    strict: bool = False,
    progress: bool | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    shards: int | None = None,
    by: str | None = None,
    sizes: str | None = None,
    share: str | None = None,
    split_seed: int | None = None,
    seed: int | None = None,
    local: str | None = None,
    combine: str | None = None,
    draws: int | None = None,
    warmup: int | None = None,
    chains: int | None = None,
    se_target: float | None = None,
    rounds: int | None = None,
    kernel: str | None = None,
) -> Comparison:
    """Compares the models of a study by their evidences.

    `study` is the path of a study file, TOML text, a dict with the same keys, or a list of models. `data` is a table (pandas,
    polars, pyarrow, DuckDB: anything with the Arrow PyCapsule interface), which is split as the study says; a list of tables,
    which are the shards; one or several paths; or nothing, if the study names its data.

    `models` are models of your own (:class:`Model`) beside the study's. `engine` has the shards elsewhere
    (:class:`Executor`, ``consilience.dask.Engine``). `posterior` keeps draws, for ``to_arviz``. From `shards` on, arguments
    stand in the place of what the study says.
    """
    with_own = Study(study, models)
    instead = {"shards": shards, "by": by, "sizes": sizes, "share": share, "split_seed": split_seed, "seed": seed,
               "local": local, "combine": combine, "draws": draws, "warmup": warmup, "chains": chains,
               "se_target": se_target, "rounds": rounds, "kernel": kernel}
    if engine is not None and kernel is None and getattr(engine, "mixed", False):
        # Workers may have CPUs of different kinds, and bits must not depend on which one answers.
        instead["kernel"] = "portable"
    task = _task(with_own, instead, data, threads, memory)
    scales = _scales(prior_scale)
    task["extras"] = {"prior_scales": scales, "leave_one_out": bool(leave_one_out), "posterior": bool(posterior),
                      "shard_details": bool(shard_details)}
    task["own_only"] = with_own.own_only
    own_only = with_own.own_only
    own = with_own.own
    for what, asked in (("prior_scale", scales), ("leave_one_out", bool(leave_one_out))):
        joint = [model.name for model in own if model._log_prior is not None]
        if asked and joint:
            raise InputError(
                f"model `{joint[0]}` has a joint log prior (its own one, if it is of NumPyro or PyMC), with which `{what}` does not work: "
                "such a prior cannot be scaled, nor kept whole without a shard; give `priors` per parameter in its place"
            )
    with with_own.named(), _data.once(data), Progress(progress) as bar:
        if engine is not None:
            from .engines import prepared
            found = prepared(engine, with_own, task, data)
            task |= {"names": found.names, "partition": found.partition, "said": found.said}
            with found as carrier:
                json_text, kept = _consilience.compare(json.dumps(task), None, [m.parts(None) for m in own], found.shards,
                                                       carrier, bar.callback())
        elif own_only:
            pieces = _shards_of(data)
            for model in own:
                model.check(pieces, len(pieces))
            parts = [m.parts(pieces) for m in own]
            json_text, kept = _consilience.compare(json.dumps(task), None, parts, len(pieces), None, bar.callback())
        else:
            capsules = _data.capsules(with_own, task["study"], data)
            parts = [m.parts(None) for m in own]
            json_text, kept = _consilience.compare(json.dumps(task), capsules, parts, 0, None, bar.callback())
    return _judged(Comparison(json_text, with_own.written(), dict(kept)), strict)


def log_likelihood(
    study: Any,
    data: Any,
    points: Any,
    *,
    model: str | None = None,
    models: Sequence[Any] = (),
    threads: int | None = None,
    memory: int | str | None = None,
) -> np.ndarray:
    """The log likelihood of all rows at points of a model's parameters: every constant in it, and no prior.

    `study`, `data` and `models` are as in :func:`compare`. `points` is a dict of parameters with a value for each point, as
    ``result.draws("a model")`` is, or a table with a column for each parameter; or an array [K, d] with the parameters in the
    model's order. `model` names the model, if
    there are several. So a model of your own can be held against a built-in one at the same points."""
    with_own = Study(study, models)
    names = _columns_of(points)
    if names is not None:
        if not names:
            raise InputError("there are no points; give a dict or a table of parameters and their values, or an array [K, d]")
        columns = [np.atleast_1d(_numbers(points[name], f"points[{name!r}]")) for name in names]
        if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
            raise InputError("points have parameters with different numbers of values; give each a value for every point")
        thetas = np.stack(columns, axis=1)
    else:
        thetas = _numbers(points, "points")
        if thetas.ndim != 2:
            raise InputError(f"points are an array of shape {thetas.shape}; give one of K rows, a point each, and d columns, a parameter "
                             "each, or a dict or a table of parameters")
    if not np.isfinite(thetas).all():
        raise InputError("points have values that are not finite")
    task = _task(with_own, {}, data, threads, memory)
    task["own_only"] = with_own.own_only
    with with_own.named(), _data.once(data):
        pieces = _shards_of(data) if with_own.own_only else None
        capsules = None if with_own.own_only else _data.capsules(with_own, task["study"], data)
        parts = [m.parts(pieces, prior=False) for m in with_own.own]
        found = _consilience.log_likelihood(json.dumps(task), capsules, parts, len(pieces or ()), model, (thetas.shape[1], names),
                                            np.ascontiguousarray(thetas).tobytes())
    return np.frombuffer(found).copy()


def _columns_of(points: Any) -> list[Any] | None:
    """The parameters that points name; None if they go by their order."""
    if isinstance(points, Mapping):
        return list(points)
    if type(points).__name__ == "LazyFrame":
        _data.refuse(points, "points")
    names = getattr(points, "column_names", None)
    if names is None:
        names = getattr(points, "columns", None)
    if names is None:
        # An array of records.
        names = getattr(getattr(points, "dtype", None), "names", None)
    if names is None or callable(names):
        return None
    names = list(names)
    if names and all(isinstance(name, (int, np.integer)) for name in names):
        # Numbers are what columns are called that nobody named.
        return None
    if len(set(names)) < len(names):
        raise InputError("points have two columns of the same name; rename one")
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise InputError(f"points have a column named {wrong[0]!r}, and names of parameters are text")
    return names


def _scales(prior_scale: Any) -> list[float]:
    """Factors as a list, whatever holds them; a single one is a list of one."""
    try:
        if np.ndim(prior_scale) == 0 and not hasattr(prior_scale, "__iter__"):
            return [float(prior_scale)]
        return [float(factor) for factor in prior_scale]
    except (TypeError, ValueError):
        raise InputError(f"prior_scale={prior_scale!r}: give a list of factors, such as [0.5, 2]") from None


def _numbers(value: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} is of type {type(value).__name__}, which is no array of numbers") from None


def _shards_of(data: Any) -> list[Any]:
    """The shards that models of one's own are on: the elements of a list, or all of it."""
    if data is None:
        raise InputError("there are no data; give a list of shards, each as the models' functions take it")
    if isinstance(data, list):
        if not data:
            raise InputError("there are no shards; give at least one")
        return data
    return [data]


def select(
    study: Any,
    data: Any = None,
    *,
    models: Sequence[str] = (),
    method: str | None = None,
    top: int | None = None,
    strict: bool = False,
    progress: bool | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    shards: int | None = None,
    by: str | None = None,
    split_seed: int | None = None,
    seed: int | None = None,
    draws: int | None = None,
) -> Selection:
    """Chooses among all models that a study with `select` has. `models` names some of them by their terms, ``"x1 + x2"``,
    whose evidences are told too."""
    read = Study(study)
    instead = {"shards": shards, "by": by, "split_seed": split_seed, "seed": seed, "draws": draws}
    task = _task(read, instead, data, threads, memory)
    task |= {"named": list(models), "method": method, "top": top}
    with read.named(), _data.once(data), Progress(progress) as bar:
        capsules = _data.capsules(read, task["study"], data)
        json_text = _consilience.select(json.dumps(task), capsules, bar.callback())
    return _judged(Selection(json_text, read.written()), strict)


def sweep(
    study: Any,
    data: Any = None,
    *,
    shards: Sequence[int],
    repeats: int = 10,
    by: Sequence[str] = ("random",),
    combine: Sequence[str] = ("normal", "exact"),
    votes: bool = False,
    reference: Sequence[float] | None = None,
    out: str | os.PathLike | None = None,
    progress: bool | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    seed: int | None = None,
    local: str | None = None,
    draws: int | None = None,
) -> Sweep:
    """Splits the data of a study into several numbers of shards, many times, and says how far the combinations are off.

    `data` is one table, one or several paths, or nothing, as in :func:`compare`; a list of tables is refused, since a sweep
    splits by itself. With `out`, partitions are kept in that folder and not computed twice."""
    read = Study(study)
    if _data.is_shards(data) and _data.paths(data) is None:
        raise InputError("data is a list of tables, which are shards already, and a sweep splits by itself; give one table with "
                         "all rows (pandas.concat(data), polars.concat(data), pyarrow.concat_tables(data))")
    task = _task(read, {"seed": seed, "local": local, "draws": draws}, data, threads, memory)
    task["sweep"] = {"shards": _plain(list(shards), "shards"), "repeats": repeats, "by": list(by), "combine": list(combine),
                     "votes": votes, "reference": None if reference is None else [float(x) for x in reference],
                     "out": None if out is None else os.fspath(out)}
    with read.named(), _data.once(data), Progress(progress) as bar:
        capsules = _data.capsules(read, task["study"], data)
        json_text = _consilience.sweep(json.dumps(task), capsules, bar.callback())
    return Sweep(json_text, read.written())


def simulate(what: str, path: str | os.PathLike, rows: int, *, seed: int = 1, loci: int = 100,
             threads: int | None = None) -> None:
    """Writes simulated data (`higgs`, `alleles`, `toy` or `rjmcmc`) to a file that ends in .parquet, .csv or .csv.gz."""
    _consilience.simulate(what, rows, seed, loci, os.fspath(path), _threads(threads))
