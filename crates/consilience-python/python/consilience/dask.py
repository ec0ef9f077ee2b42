"""Shards on a Dask cluster: partitions stay on their workers between rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _consilience, _data
from ._errors import InputError
from .engines import Shard, pickled


def _shard(table: Any, study: str, index: int, models: Sequence[Any], shards: int) -> Shard:
    return Shard.of_table(study, table, index, models, shards)


def _same(shard: Shard) -> Shard:
    return shard


def _told(shard: Shard) -> tuple[int, int, str]:
    return (*shard.counts, shard.warnings)


def _answer(shard: Shard, question: bytes) -> bytes:
    return shard.answer(question)


class Engine:
    """Shards on the workers of a ``distributed.Client``.

    A Dask DataFrame's partitions are the shards; they are made where they are computed, and never come here. A shard of a
    worker that dies is made again elsewhere, by Dask. `kernel = "portable"` is taken unless another is asked for, since
    workers may have CPUs of different kinds; `mixed=False` says that they do not."""

    def __init__(self, client: Any, *, mixed: bool = True) -> None:
        if not callable(getattr(client, "submit", None)) or not hasattr(client, "scheduler"):
            raise InputError(f"a Dask engine takes a distributed.Client, not {type(client).__name__}")
        self.client, self.mixed = client, mixed
        self._shards: list[Any] = []

    def takes(self, data: Any) -> bool:
        """Whether these are data of Dask's own."""
        return hasattr(data, "to_delayed") and hasattr(data, "npartitions")

    def load(self, study: str, data: Any, models: Sequence[Any]) -> tuple[list[str], list[tuple[int, int, str]]]:
        """Makes shards of a DataFrame's partitions: its columns, and of each the rows that count and do not, and its warnings."""
        import dask

        names = [str(name) for name in data.columns]
        used = set(_consilience.columns_used(study, names))
        _data.text_alone(data.columns, used, "data")
        parts = data[[name for name in names if name in used]].to_delayed()
        make = dask.delayed(_shard, pure=False)
        self._shards = self.client.compute([make(part, study, i, models, len(parts)) for i, part in enumerate(parts)])
        return names, self.client.gather([self.client.submit(_told, s, pure=False) for s in self._shards])

    def place(self, shards: list[Shard]) -> None:
        # Dask tries for long to send what it cannot pickle; here it fails at once.
        for shard in shards[:1]:
            pickled(shard)
        self._shards = [self.client.submit(_same, shard, pure=False) for shard in shards]

    def ask(self, question: bytes, stopped: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
        import distributed

        futures = {self.client.submit(_answer, shard, question, pure=False): i for i, shard in enumerate(self._shards)}
        pending = list(futures)
        try:
            while pending:
                try:
                    done = distributed.wait(pending, timeout=0.2, return_when="FIRST_COMPLETED").done
                except (TimeoutError, distributed.TimeoutError):
                    done = set()
                for future in done:
                    yield futures[future], future.result()
                pending = [future for future in pending if future not in done]
                if stopped():
                    raise KeyboardInterrupt
        finally:
            self.client.cancel(pending)

    def clear(self) -> None:
        self._shards = []
