"""Whether a log likelihood is a sum over rows, tested on rows that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import InputError
from ._rows import joined, length, take

# How far from the origin points are tried, until the likelihood is finite at one of them; and of how many shards.
_REACH = (0.3, 0.01, 3.0)
_TRIES = 3


class SumTest:
    """Tests one model's log likelihood on the shards that it is shown, the first that can be cut."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.done = not model._check
        self._seen, self._tries, self._single = 0, 0, None
        self._why = "its shards are not tables, arrays, dicts or tuples of columns, or lists of rows, so that their rows cannot be told"

    def see(self, data: Any) -> None:
        """Looks at the next shard. An error if the model is no sum over its rows."""
        points = np.random.default_rng(20).standard_normal((3, self.model.dim))
        if self._seen == 0:
            # Whatever it is, it returns what it should.
            self.model._values(_REACH[0] * points, data)
        self._seen += 1
        if not self.done and self._tries < _TRIES:
            self._try(points, data)

    def finish(self, shards: int) -> None:
        """An error if it could not be tested on any of so many shards. Of one alone nothing depends on how rows are split."""
        if not self.done and shards > 1:
            raise InputError(
                f"model `{self.model.name}`: whether its log likelihood is a sum over rows cannot be tested: {self._why}. If you "
                "are sure that it is one, pass check=False to the model; if it is not, results would depend on the split and be "
                "wrong"
            )

    def _try(self, points: np.ndarray, data: Any) -> None:
        rows = length(data)
        if rows is None or rows < 1:
            if rows == 0:
                self._why = "its shards have no rows"
            return
        if rows > 1:
            order = np.random.default_rng(21).permutation(rows)
            halves = (np.sort(order[: rows // 2]), np.sort(order[rows // 2 :]))
            self._compare(points, lambda: [take(data, half) for half in halves], lambda _: data, "two halves of a shard")
        elif self._single is None:
            self._single = data
            self._why = "its shards have only one row that could be told"
        else:
            other = self._single
            self._compare(points, lambda: [other, data], lambda parts: joined(*parts), "two shards of one row")

    def _compare(self, points: np.ndarray, parts: Any, whole: Any, what: str) -> None:
        """On parts and on their union."""
        self._tries += 1
        try:
            pieces = parts()
            everything = whole(pieces)
            for reach in _REACH:
                all_rows, *each = (self.model._values(reach * points, data) for data in (everything, *pieces))
                finite = np.isfinite(all_rows)
                if finite.any():
                    break
        except Exception as error:
            self._why = f"on {what} it raises {type(error).__name__}: {error}"
            return
        if not finite.any():
            self._why = "it is finite at none of the points near 0 that were tried"
            return
        for total, a, b in zip(all_rows[finite], *(values[finite] for values in each)):
            # A part that is no number makes the sum none.
            if not abs(total - a - b) <= 1e-6 * (1.0 + abs(a) + abs(b)):
                raise InputError(
                    f"model `{self.model.name}`: its log likelihood is no sum over rows: on {what} it is {a:.6g} and "
                    f"{b:.6g}, and on all of it {total:.6g}, not {a + b:.6g}. Shards see their own rows alone, so that it would "
                    "be another model on every split. Does it centre, scale or rank the data inside? Do that before"
                )
        self.done = True
