"""Whether a log likelihood is a sum over rows, tested on rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _consilience
from ._errors import InputError
from ._rows import joined, length, numbers, take, what_are_rows

# A centre or a constant inside is worth some nats however many rows there are, and rounding grows with them: so it is few rows that
# tell. Where it cannot be computed on so few, more are tried.
_FEW, _MORE = 50, (500, 5000)
# How many rows extremes are looked for in, and in how many columns.
_SEEN, _COLUMNS = 100_000, 6
# Points tried at a time (JAX compiles for every number of them), and how far from the priors' centres, in their widths.
_POINTS, _REACH = 8, (0.01, 0.3, 1.0)
# Of how many shards.
_TRIES = 3
# What rounding may make of sums, relative to their size: of few rows, of halves of a shard, and at most, in double and in single
# precision.
_ROUNDING = {False: (1e-8, 1e-6, 1e-6), True: (3e-5, 1e-3, 1e-4)}


class SumTest:
    """Tests one model's log likelihood on the shards that it is shown, the first that can be cut."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.done = not model._check
        self._seen, self._tries, self._single = 0, 0, None
        self._why = "its shards are not tables, arrays, dicts or tuples of columns, or lists of rows, so that their rows cannot be told"
        self._centre, self._width = _places(model)

    def see(self, data: Any) -> None:
        """Looks at the next shard. An error if the model is no sum over its rows."""
        if self._seen == 0:
            # Whatever it is, it returns what it should.
            self.model._values(self._near(np.random.default_rng(20), 0.3)[:3], data)
        self._seen += 1
        if not self.done and self._tries < _TRIES:
            # The points are ours, and what overflows there is nobody's concern.
            with np.errstate(all="ignore"):
                self._try(data)

    def finish(self, shards: int) -> None:
        """An error if it could not be tested on any of so many shards. Of one alone nothing depends on how rows are split."""
        if not self.done and shards > 1:
            raise InputError(
                f"model `{self.model.name}`: whether its log likelihood is a sum over rows cannot be tested: {self._why}. If you "
                "are sure that it is one, pass check=False to the model; if it is not, results would depend on the split and be "
                "wrong"
            )

    def _try(self, data: Any) -> None:
        rows = length(data)
        if rows is None or rows < 1:
            if rows == 0:
                self._why = "its shards have no rows"
        elif rows > 1:
            self._tries += 1
            self.done = self._on_rows(data, rows)
        elif self._single is None:
            self._single = data
            self._why = "its shards have only one row that could be told"
        else:
            self._tries += 1
            pair = (self._single, data)
            each = (np.array([0]), np.array([1]))

            def get(some: np.ndarray) -> Any:
                return pair[some[0]] if len(some) == 1 else joined(*(pair[i] for i in some))

            self.done = _Cuts(self, get, "two shards", "").hold(np.arange(2), [each], False)

    def _on_rows(self, data: Any, rows: int) -> bool:
        """Whether it could be tested on the rows of a shard."""
        rng = np.random.default_rng(21)
        cuts = _Cuts(self, lambda some: take(data, some), "two parts of a shard", what_are_rows(data))
        for some in _samples(data, rows, rng):
            columns = numbers(data, some)
            single = any(column.dtype.itemsize < 8 for column in columns if column.dtype.kind == "f")
            if cuts.hold(some, _ways(some, columns, rng), single):
                # A function may look at so many rows and no more.
                return rows == len(some) or cuts.halve(data, rng.permutation(rows))
        return False

    def _near(self, rng: np.random.Generator, reach: float) -> np.ndarray:
        """Points around the centres of the priors."""
        return self._centre + reach * self._width * rng.standard_normal((_POINTS, self.model.dim))


class _Cuts:
    """Rows of a shard, however one gets them, cut in two: the parts and their union."""

    def __init__(self, test: SumTest, get: Callable[[np.ndarray], Any], what: str, note: str) -> None:
        self.test, self.model, self.get, self.what, self.note = test, test.model, get, what, note
        self.points, self.rounding, self.single = np.empty((0, 0)), 0.0, False

    def hold(self, some: np.ndarray, ways: list[tuple[np.ndarray, np.ndarray]], single: bool) -> bool:
        """Whether it could be tested on some rows, cut in these ways. An error if it is no sum."""
        rng = np.random.default_rng(22)
        try:
            whole = self.get(some)
            self.points = self._points(whole)
            if not len(self.points):
                self.test._why = "it is finite at none of the points around its priors, and around 0, that were tried" + self.note
                return False
            total = self._values(whole)
            # The order of rows, and points that hardly differ, show what rounding does. They are not believed beyond bounds, for
            # order may be what counts.
            moved = [self.model._values(self.points * (1 + ulp * 2.0**-52), self.get(rng.permutation(some))) for ulp in (-2, 1, 3)]
        except Exception as error:
            return self._raised(error)
        in_double = bool((total.astype(np.float32) != total).any())
        noise = np.nan_to_num(np.abs(np.array(moved) - total) / (1 + np.abs(total)), nan=0.0, posinf=0.0).max()
        # Of data in single precision something may be summed in it, and the result be of doubles all the same.
        self.single = single or not in_double
        least, _, most = _ROUNDING[self.single]
        self.rounding = min(least + 30 * noise, most)
        for number, way in enumerate(ways):
            try:
                parts = [self._values(self.get(part)) for part in way]
            except Exception as error:
                if number == 0:
                    return self._raised(error)
                # Such a part may lack what the function needs, such as a level of a factor.
                continue
            self._judge(total, *parts, self.rounding, way)
        return True

    def halve(self, data: Any, order: np.ndarray) -> bool:
        """The same of all rows, cut into random halves: at few points, for rows are many."""
        half = len(order) // 2
        way = (np.sort(order[:half]), np.sort(order[half:]))
        self.points = self.points[:3]
        try:
            total = self._values(data)
            finite = np.isfinite(total)
            if not finite.any():
                return True
            self.points = self.points[finite]
            parts = [self._values(self.get(part)) for part in way]
        except Exception as error:
            return self._raised(error)
        self._judge(total[finite], *parts, _ROUNDING[self.single][1] + 10 * self.rounding, way)
        return True

    def _values(self, data: Any) -> np.ndarray:
        return self.model._values(self.points, data)

    def _raised(self, error: Exception) -> bool:
        self.test._why = f"on {self.what} it raises {type(error).__name__}: {error}{self.note}"
        return False

    def _points(self, data: Any) -> np.ndarray:
        """Points at which it is finite, as far as there are any: first one where it is large, so that rounding hides little."""
        rng = np.random.default_rng(23)
        around = [self.test._near(rng, reach) for reach in _REACH]
        # Vague priors may have their centre where nothing is finite.
        for batch in (around, [(some - self.test._centre) / self.test._width for some in around]):
            tried = np.concatenate(batch)
            values = np.concatenate([self.model._values(some, data) for some in batch])
            tried, values = tried[np.isfinite(values)], values[np.isfinite(values)]
            if len(tried):
                break
        else:
            return tried
        best, top = tried[np.argmax(values)], values.max()
        for reach in (0.3, 0.1, 0.03):
            around = best + self.test._near(rng, reach) - self.test._centre
            found = np.nan_to_num(self.model._values(around, data), nan=-np.inf, posinf=-np.inf)
            if found.max() > top:
                best, top = around[np.argmax(found)], found.max()
        others = tried[rng.permutation(len(tried))[: _POINTS - 1]]
        return np.concatenate([best[None, :], others])

    def _judge(self, total: np.ndarray, one: np.ndarray, other: np.ndarray, rounding: float,
               way: tuple[np.ndarray, np.ndarray]) -> None:
        """An error where the parts do not make up the whole."""
        for t, a, b, within in zip(total, one, other, rounding * (1 + np.abs(one) + np.abs(other))):
            # A part that is no number makes the sum none.
            if not (np.isfinite(a + b) and abs(t - a - b) <= within):
                raise InputError(
                    f"model `{self.model.name}`: its log likelihood is no sum over rows: on {self.what}, of {len(way[0])} and "
                    f"{len(way[1])} rows, it is {a:.9g} and {b:.9g}, and on all of these {t:.9g}, not {a + b:.9g}{self.note}. "
                    "Shards see their own rows alone, so that it would be another model on every split. Does it centre, scale or rank "
                    "the data inside? Do that before. Is there a prior or a constant in it that belongs to no row? Take it out"
                )


def _places(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where the priors of a model's parameters are centred, and how wide they are."""
    found = []
    for parameter in model.parameters:
        try:
            found.append(_consilience.prior_place(model.priors[parameter]))
        except InputError as error:
            raise InputError(f"model `{model.name}`, prior of `{parameter}`: {error}") from None
    return np.array([centre for centre, _ in found]), np.array([width for _, width in found])


def _samples(data: Any, rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Few rows of a shard; then more and more of them, for functions that cannot do with few."""
    if rows <= _FEW:
        yield np.arange(rows)
        return
    # Among them the extremes: what happens in few rows of many counts too.
    seen = np.sort(rng.choice(rows, min(rows, _SEEN), replace=False, shuffle=False))
    extremes = [seen[end(column)] for column in numbers(data, seen)[:_COLUMNS] for end in (np.argmin, np.argmax)]
    filling = rng.choice(rows, _FEW, replace=False)
    yield np.sort(list(dict.fromkeys([*extremes, *filling]))[:_FEW])
    yield np.sort(filling)
    for many in (*(n for n in _MORE if n < rows), rows):
        yield np.sort(rng.choice(rows, many, replace=False))


def _ways(some: np.ndarray, columns: list[np.ndarray], rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows cut in two unevenly: at random, and by the order of each column, so that the parts have other centres than all of them."""
    few = max(1, round(0.3 * len(some)))
    orders = [rng.permutation(len(some)), *(np.argsort(column, kind="stable") for column in columns[:_COLUMNS])]
    return [(some[np.sort(order[:few])], some[np.sort(order[few:])]) for order in orders]
