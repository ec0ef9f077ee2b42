"""Shards on a Ray cluster: an actor each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ._errors import InputError
from .engines import Shard, pickled


class Engine:
    """Shards as Ray actors, after ``ray.init()``."""

    def __init__(self, *, mixed: bool = True, **options: Any) -> None:
        import ray

        if not ray.is_initialized():
            raise InputError("Ray has not begun; call ray.init() first")
        self.mixed, self._options = mixed, {"num_cpus": 1, **options}
        self._actors: list[Any] = []

    def place(self, shards: list[Shard]) -> None:
        import ray

        class Holder:
            def __init__(self, shard: Shard) -> None:
                self.shard = shard

            def answer(self, question: bytes) -> bytes:
                return self.shard.answer(question)

        pickled(shards[0])
        remote = ray.remote(Holder)
        self._actors = [remote.options(**self._options).remote(shard) for shard in shards]

    def ask(self, question: bytes, stopped: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
        import ray

        asked = ray.put(question)
        pending = {actor.answer.remote(asked): i for i, actor in enumerate(self._actors)}
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1, timeout=0.2)
            for reference in done:
                yield pending.pop(reference), ray.get(reference)
            if stopped():
                raise KeyboardInterrupt

    def clear(self) -> None:
        import ray

        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
