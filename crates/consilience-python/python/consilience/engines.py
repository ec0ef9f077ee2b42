"""Shards elsewhere: one seam, `answer(question) -> answer` in bytes, on a shard that can be pickled."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _consilience, _data
from ._errors import InputError
from ._rows import length, rows_of
from .models import Model


class Shard:
    """One shard: rows, and likelihoods of your own on them. It can be pickled, and answers questions wherever it is.

    An engine of your own has a method ``ask(question, stopped)``, which yields ``(shard.index, shard.answer(question))`` for
    every shard, in any order, and a method ``place(shards)``, which is called first with the list of shards.
    """

    def __init__(self, index: int, rows: bytes | None, models: Sequence[Model] = (), piece: Any = None,
                 shards: int | None = None, counts: tuple[int, int] = (0, 0), warnings: str = "[]") -> None:
        # Warnings are those that its rows gave rise to, as JSON.
        self.index, self.counts, self.warnings = index, counts, warnings
        self._rows, self._models, self._piece, self._shards = rows, list(models), piece, shards
        self._native: Any = None
        # Whether models of one's own are tested here: if nobody else has the rows, on the first shard.
        self._tests, self._all = False, 2

    @classmethod
    def of_table(cls, study: str, table: Any, index: int, models: Sequence[Model] = (), shards: int = 2) -> Shard:
        """The rows of a table that count in a study (JSON, as the engines hand it on), one of so many."""
        what = f"shard {index}"
        all_columns = _data.names(table, what)
        used = _consilience.columns_used(study, all_columns)
        capsule = _data.capsule(_data.select(table, used, all_columns, what), what)
        rows, count, dropped, warnings = _consilience.Shard.rows_of(study, capsule)
        shard = cls(index, rows, models, counts=(count, dropped), warnings=warnings)
        shard._tests, shard._all = index == 0, shards
        return shard

    def answer(self, question: bytes, threads: int = 1) -> bytes:
        """What it answers to a question."""
        if self._native is None:
            self._native = self._made()
        return self._native.answer(question, threads)

    def _own_data(self) -> Any:
        """Its rows as models of your own get them."""
        return self._piece if self._rows is None else rows_of(_consilience.Shard(self.index, self._rows).columns())

    def _made(self) -> Any:
        plain = _consilience.Shard(self.index, self._rows)
        if not self._models:
            return plain
        data = self._piece if self._rows is None else rows_of(plain.columns())
        taught = []
        for model in self._models:
            if self._tests and self.counts[0] > 1:
                model.check([data], self._all)
            bound = model.bind(data, self._shards)
            taught.append((model.name, model.dim, float(plain.rows) if self._rows is not None else bound.rows, bound))
        return _consilience.Shard(self.index, self._rows, taught)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None}


class Placed:
    """Shards that an engine has, and what is known of their rows."""

    def __init__(self, engine: Any, names: list[str], partition: dict[str, Any], shards: int, said: list[str]) -> None:
        self.engine, self.names, self.partition, self.shards = engine, names, partition, shards
        self.said = [json.loads(warnings) for warnings in said]

    def __enter__(self) -> Any:
        return self.engine

    def __exit__(self, *_: object) -> None:
        clear = getattr(self.engine, "clear", None)
        if clear is not None:
            clear()


def prepared(engine: Any, study: Any, task: dict[str, Any], data: Any) -> Placed:
    """Gives an engine its shards. One of its own finds them, by `load`, in data of its own: it hands back the names of all columns,
    and of each shard the rows that count and do not, and its warnings, if it keeps them."""
    for method in ("ask", "place"):
        if not callable(getattr(engine, method, None)):
            raise InputError(f"the engine is of type {type(engine).__name__}, which has no method `{method}`; give consilience."
                             "Executor(executor), consilience.dask.Engine(client) or an engine of your own")
    own, text = study.own, json.dumps(task["study"])
    takes = getattr(engine, "takes", None)
    if not study.own_only and takes is not None and takes(data):
        # The data stay where they are.
        names, found = engine.load(text, data, own)
        counts = [tuple(one)[:2] for one in found]
        said = [one[2] if len(one) > 2 else "[]" for one in found]
        if len(counts) > 1 and counts[0][0] < 2:
            for model in own:
                if model._check:
                    raise InputError(f"model `{model.name}`: whether its log likelihood is a sum over rows is tested on the first shard, "
                                     f"which has {counts[0][0]} of them; split the data otherwise, or pass check=False to the model")
        return Placed(engine, names, _given(counts), len(counts), said)
    if study.own_only:
        from ._run import _shards_of
        pieces = _shards_of(data)
        shards = [Shard(i, None, own, piece, len(pieces)) for i, piece in enumerate(pieces)]
        names, partition, said = [], _given([(length(piece) or 0, 0) for piece in pieces]), []
    elif isinstance(data, (list, tuple)) and _data.paths(data) is None:
        if not data:
            raise InputError("there are no tables; give one per shard")
        names = _data.names(data[0], "data[0]")
        shards = [Shard.of_table(text, table, i, own) for i, table in enumerate(data)]
        partition, said = _given([shard.counts for shard in shards]), [shard.warnings for shard in shards]
    else:
        capsules = _data.capsules(study, task["study"], data)
        rows, found, names, warnings = _consilience.split(json.dumps(task), capsules)
        shards = [Shard(i, bytes(own_rows), own) for i, own_rows in enumerate(rows)]
        partition, said = json.loads(found), [warnings]
    for model in own:
        model.check((shard._own_data() for shard in shards), len(shards))
    for shard in shards:
        shard._tests = False
    engine.place(shards)
    return Placed(engine, names, partition, len(shards), said)


def _given(counts: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return json.loads(_consilience.given([rows for rows, _ in counts], sum(dropped for _, dropped in counts)))


def pickled(shard: Shard) -> bytes:
    """A shard's pickle; an error that says what is to be done where it has none."""
    try:
        try:
            import cloudpickle
        except ImportError:
            return pickle.dumps(shard)
        return cloudpickle.dumps(shard)
    except Exception as error:
        raise InputError(f"shard {shard.index} cannot be sent to another process: {error}; models' functions must be ones that "
                         "pickle takes, such as functions of a module (or install cloudpickle)") from error


class Executor:
    """Shards on any ``concurrent.futures.Executor``: threads, processes, ``mpi4py.futures``, …"""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise InputError(f"an executor has a method `submit`, and {type(executor).__name__} has none")
        self._executor = executor
        self._calls: list[tuple[int, Callable[[bytes], bytes]]] = []

    def place(self, shards: list[Shard]) -> None:
        here = isinstance(self._executor, concurrent.futures.ThreadPoolExecutor)
        self._calls = [(s.index, s.answer if here else _Sent(pickled(s))) for s in shards]

    def ask(self, question: bytes, stopped: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
        futures = {self._executor.submit(call, question): index for index, call in self._calls}
        pending = set(futures)
        try:
            while pending:
                done, pending = concurrent.futures.wait(pending, 0.1, concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    yield futures[future], future.result()
                if stopped():
                    raise KeyboardInterrupt
        finally:
            for future in pending:
                future.cancel()

    def clear(self) -> None:
        self._calls = []


class _Sent:
    """A shard on its way to another process, which keeps it: a question later it need not be made again."""

    _kept: dict[str, Shard] = {}

    def __init__(self, pickle_of: bytes) -> None:
        self.pickle = pickle_of
        self.name = hashlib.sha256(pickle_of).hexdigest()

    def __call__(self, question: bytes) -> bytes:
        shard = _Sent._kept.get(self.name)
        if shard is None:
            shard = pickle.loads(self.pickle)
            while len(_Sent._kept) >= 64:
                _Sent._kept.pop(next(iter(_Sent._kept)))
            _Sent._kept[self.name] = shard
        return shard.answer(question)
