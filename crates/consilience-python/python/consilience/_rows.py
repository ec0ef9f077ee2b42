"""Rows of a shard, whatever holds them: counted, cut into halves, put together."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def rows_of(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A shard's columns as arrays."""
    return {name: np.frombuffer(column) if isinstance(column, bytes) else np.array(column, dtype=object)
            for name, column in columns.items()}


def length(data: Any) -> int | None:
    """How many rows data have; None if that cannot be told.

    In a dict, a tuple or a list of arrays the longest members are columns, and shorter ones are what all rows share."""
    if _has_columns(data):
        return max((n for n in map(_size, _members(data)) if n is not None), default=None)
    # A tuple of single things is none of rows.
    return None if isinstance(data, tuple) else _size(data)


def take(data: Any, rows: np.ndarray) -> Any:
    """These rows of data."""
    n = length(data)
    return _each(data, lambda value: _pick(value, rows) if _size(value) == n else value) if _has_columns(data) else _pick(data, rows)


def numbers(data: Any, rows: np.ndarray) -> list[np.ndarray]:
    """What these rows have in the columns of numbers that are not all the same: an array each, as far as they can be told."""
    n = length(data)
    values = [v for v in _members(data) if _size(v) == n] if _has_columns(data) else [data]
    columns = [column for value in values for column in _columns(_pick(value, rows))]
    return [c for c in columns if c.dtype.kind in "biuf" and len(c) == len(rows) and (c != c[0]).any()]


def what_are_rows(data: Any) -> str:
    """Which members were taken for the rows, where that is not plain; nothing where it is."""
    if not _has_columns(data):
        return ""
    n = length(data)
    keys = list(data) if isinstance(data, Mapping) else range(len(data))
    sizes = [(f"`{key}`", _size(value)) for key, value in zip(keys, _members(data))]
    rows = [name for name, size in sizes if size == n]
    shared = [f"{name} (of {size})" for name, size in sizes if size not in (n, None)]
    if not shared:
        return ""
    return (f" (taken for rows: {_named(rows)}, the longest, of {n}; taken for what all rows share: {_named(shared)}. What is longer "
            "than the rows is no part of a shard: let the function bring it)")


def _named(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _columns(value: Any) -> list[np.ndarray]:
    """The columns of a table, an array or a list of rows."""
    names = getattr(value, "column_names", None)
    if names is None:
        names = getattr(value, "columns", None)
    try:
        if names is not None and not callable(names):
            found = [np.asarray(value[name]) for name in names]
        elif _is_sequence(value) and isinstance(value[0], Mapping):
            found = [np.asarray([row[key] for row in value]) for key in value[0]]
        else:
            found = [np.asarray(value)]
        return [column for array in found for column in np.reshape(array, (len(array), -1)).T]
    except Exception:
        # Whoever cannot be looked at is not: this only says where to cut.
        return []


def joined(one: Any, other: Any) -> Any:
    """The rows of both."""
    if not _has_columns(one):
        return _paste(one, other)
    n, rest = length(one), iter(_matching(one, other))

    def both(value: Any) -> Any:
        more = next(rest)
        return _paste(value, more) if _size(value) == n else value

    return _each(one, both)


def _has_columns(data: Any) -> bool:
    """Whether its members are columns. A list is one of rows, unless it is of arrays that are longer than it is."""
    if isinstance(data, Mapping):
        return True
    if isinstance(data, tuple):
        return any(_size(value) is not None for value in data)
    if isinstance(data, list) and data and all(_is_array(value) for value in data):
        return len(data) <= max(_size(value) or 0 for value in data)
    return False


def _members(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, Mapping) else list(data)


def _matching(one: Any, other: Any) -> list[Any]:
    return [other[key] for key in one] if isinstance(one, Mapping) else list(other)


def _each(data: Any, change: Any) -> Any:
    """The same with every member changed."""
    if isinstance(data, Mapping):
        return _alike(data, {key: change(value) for key, value in data.items()})
    changed = [change(value) for value in data]
    if hasattr(data, "_make"):
        return data._make(changed)
    return tuple(changed) if isinstance(data, tuple) else changed


def _alike(data: Mapping, changed: dict) -> Any:
    """A dict of the same kind with other values: there are those that are read by attributes."""
    if type(data) is dict:
        return changed
    try:
        other = copy.copy(data)
        own = getattr(other, "__dict__", {})
        for key, value in changed.items():
            # Some have their values as attributes too.
            if isinstance(key, str) and own.get(key) is data[key]:
                own[key] = value
            other[key] = value
        return other
    except Exception:
        # One that cannot be copied or changed.
        return changed


def _is_array(value: Any) -> bool:
    return not _is_sequence(value) and _size(value) is not None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)) and not hasattr(value, "shape")


def _size(value: Any) -> int | None:
    """How long a column or a table is; None of a single thing."""
    if hasattr(value, "num_rows"):
        return int(value.num_rows)
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    # The second are pyarrow's columns.
    if _is_sequence(value) or (callable(getattr(value, "take", None)) and hasattr(value, "__len__")):
        return len(value)
    return None


def _pick(value: Any, rows: np.ndarray) -> Any:
    if hasattr(value, "iloc"):
        return value.iloc[rows]
    if _is_sequence(value):
        some = [value[i] for i in rows]
        return tuple(some) if isinstance(value, tuple) else some
    if type(value).__module__.split(".")[0] == "pyarrow":
        return value.take(rows)
    return value[rows]


def _paste(one: Any, other: Any) -> Any:
    module = type(one).__module__.split(".")[0]
    if _is_sequence(one):
        both = [*one, *other]
        return tuple(both) if isinstance(one, tuple) else both
    if module == "pandas":
        import pandas
        return pandas.concat([one, other])
    if module == "polars":
        import polars
        return polars.concat([one, other])
    if module == "pyarrow" and hasattr(one, "num_rows"):
        import pyarrow
        return pyarrow.concat_tables([one, other]) if isinstance(one, pyarrow.Table) else pyarrow.concat_batches([one, other])
    return np.concatenate([np.asarray(one), np.asarray(other)])
