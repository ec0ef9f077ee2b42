"""Whether models of one's own are sums over rows: what is refused, and what is not."""

import collections
import math

import numpy as np
import pytest

import consilience as cs
from conftest import OneByOne

PRIORS = {"a": "normal(0, 1)", "b": "normal(0, 1)"}


def test_what_is_no_sum_is_refused(study, frame, shards, logistic):
    values, _ = logistic

    def centring(thetas, data):
        return values(thetas, {**data, "x": data["x"] - data["x"].mean()})

    own = cs.Model("centred", PRIORS, centring)
    with pytest.raises(cs.InputError, match="model `centred`: its log likelihood is no sum over rows.*centre"):
        cs.compare([own], shards)
    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.compare({**study, "model": [*study["model"], own]}, frame)
    # Whoever knows better says so.
    cs.compare([cs.Model("centred", PRIORS, centring, check=False)], shards)


def gaussian(thetas, y):
    return (-0.5 * (y - thetas[:, :1]) ** 2 - 0.5 * math.log(2 * math.pi)).sum(1)


MEAN = {"mean": "normal(0, 1)"}


@pytest.mark.parametrize("rows", [60, 10_000, 1_000_000])
def test_large_shards_are_no_excuse(rows):
    """A defect of a fraction of a nat is found whatever the shard's size is, and wherever the data are."""
    for seed in range(20 if rows <= 10_000 else 4):
        y = np.random.default_rng(seed).normal(70, 1, rows)
        for wrong, priors in [
            (lambda t, d: gaussian(t, d - d.mean()), MEAN),
            (lambda t, d: gaussian(t, d - d.mean()), {"mean": "normal(70, 10)"}),
            (lambda t, d: gaussian(t, d / d.std()), MEAN),
            (lambda t, d: gaussian(t, d - d.max()), MEAN),
            # A prior inside, of 0.92 nats.
            (lambda t, d: gaussian(t, d) - 0.5 * math.log(2 * math.pi), MEAN),
            (lambda t, d: gaussian(t, d) - 0.5 * math.log(2 * math.pi), {"mean": "normal(70, 10)"}),
            # An outcome of which the next row knows.
            (lambda t, d: gaussian(t, d - 0.1 * np.roll(d, 1)), MEAN),
        ]:
            with pytest.raises(cs.InputError, match="no sum over rows"):
                cs.Model("m", priors, wrong).check([y, y], 2)
            # In single precision, where sums of numbers of 10⁵ are worth no hundredth, if priors are not that far off.
            in_single = cs.Model("m", priors, lambda t, d: wrong(t.astype("float32"), d[:, 0]))
            if priors is not MEAN:
                with pytest.raises(cs.InputError, match="no sum over rows"):
                    in_single.check([np.stack([y, y], axis=1).astype("float32")], 1)


def test_what_few_rows_do_not_show():
    """What is rare, and what only many rows have."""
    n = 200_000
    rng = np.random.default_rng(3)
    rare = np.zeros(n)
    rare[rng.integers(n, size=40)] = 1
    data = {"y": rng.normal(size=n), "rare": rare}

    def centring(thetas, data):
        return gaussian(thetas, data["y"] - 2 * (data["rare"] - data["rare"].mean()))

    def first(thetas, data):
        return gaussian(thetas, data["y"][:1000])

    for wrong in (centring, first):
        with pytest.raises(cs.InputError, match="no sum over rows"):
            cs.Model("m", MEAN, wrong).check([data, data], 2)


@pytest.mark.parametrize("rows", [3, 49, 200, 1_000_000])
def test_what_is_a_sum_is_not_refused(rows):
    """Whatever rounding does: large numbers, single precision, sums that cancel."""
    rng = np.random.default_rng(rows)
    far = np.round(rng.normal(1.7e9, 1e5, rows))
    near = rng.normal(1, 2, rows)
    single = near.astype("float32")
    at_far = {"mean": "normal(1.7e9, 1e6)", "log_s": "normal(11, 1)"}
    here = {"mean": "normal(0, 3)", "log_s": "normal(0, 3)"}

    def plain(t, d):
        return (-0.5 * ((d - t[:, :1]) / np.exp(t[:, 1:])) ** 2 - t[:, 1:] - 0.5 * math.log(2 * math.pi)).sum(1)

    def by_sums(t, d):
        """What is left of numbers of 10¹⁸."""
        squares = (d * d).sum() - 2 * t[:, 0] * d.sum() + len(d) * t[:, 0] ** 2
        return -0.5 * squares / np.exp(2 * t[:, 1]) - len(d) * t[:, 1]

    def in_single(t, d):
        return plain(t.astype("float32"), d).astype("float32")

    def one_by_one(t, d):
        """Added up without care."""
        return np.cumsum(-0.5 * ((d - t[:, :1].astype("float32")) / np.exp(t[:, 1:].astype("float32"))) ** 2 - 1e3, axis=1)[:, -1]

    cases = [(plain, far, at_far), (plain, near, here), (plain, near, {"mean": "normal(0, 1e3)", "log_s": "normal(0, 10)"}),
             (by_sums, far, at_far), (by_sums, near, here), (in_single, single, here), (in_single, near, here)]
    if rows <= 200:
        cases.append((one_by_one, single, here))
    for function, data, priors in cases:
        with np.errstate(over="ignore", divide="ignore"):
            cs.Model("m", priors, function).check([data, data], 2)


def test_points_are_where_the_priors_are():
    """A likelihood that is finite near its priors alone."""
    y = np.random.default_rng(5).normal(1e4, 1, 300)

    def narrow(thetas, data):
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(thetas[:, 0] - 1e4) < 50, gaussian(thetas, data), -np.inf)

    cs.Model("m", {"mean": "normal(10000, 10)"}, narrow).check([y, y], 2)
    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.Model("m", {"mean": "normal(10000, 10)"}, lambda t, d: narrow(t, d) + 0.01).check([y, y], 2)


def test_functions_that_need_many_rows():
    """All levels of a factor, which few rows need not have."""
    import pandas as pd

    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"y": rng.normal(size=4000), "level": rng.choice([f"level {i}" for i in range(40)], 4000)})
    priors = {f"b{i}": "normal(0, 1)" for i in range(40)}

    def fair(thetas, data):
        return -0.5 * ((data["y"].to_numpy() - thetas @ pd.get_dummies(data["level"]).to_numpy(float).T) ** 2).sum(1)

    def centring(thetas, data):
        return fair(thetas, data.assign(y=data["y"] - data["y"].mean()))

    cs.Model("m", priors, fair).check([frame, frame], 2)
    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.Model("m", priors, centring).check([frame, frame], 2)


def test_which_members_are_rows():
    """A grid longer than the rows is taken for them, and the error says so."""
    x = np.random.default_rng(7).normal(size=30)

    def on_a_grid(thetas, data):
        return gaussian(thetas, data["x"]) + len(data["x"]) * np.interp(thetas[:, 0], data["grid"], data["grid"])

    long = {"x": x, "grid": np.linspace(-5, 5, 200)}
    with pytest.raises(cs.InputError, match=r"taken for rows: `grid`, the longest, of 200; taken for what all rows share: `x` \(of 30\)"):
        cs.Model("m", MEAN, on_a_grid).check([long, long], 2)
    short = {"x": x, "grid": np.linspace(-5, 5, 7)}
    cs.Model("m", MEAN, on_a_grid).check([short, short], 2)


class Bunch(dict):
    """As scikit-learn's."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Attributes(dict):
    """Values that are attributes too."""

    def __init__(self, **values):
        super().__init__(**values)
        self.__dict__.update(values)


class Itself(dict):
    """Its own attributes."""

    def __init__(self, **values):
        super().__init__(**values)
        self.__dict__ = self


@pytest.mark.parametrize("kind", [Bunch, Attributes, Itself])
@pytest.mark.parametrize("rows", [1, 30, 300])
def test_dicts_that_are_read_by_attributes(kind, rows):
    rng = np.random.default_rng(8)
    shards = [kind(y=rng.normal(size=rows), power=2) for _ in range(2)]
    before = [shard.y.copy() for shard in shards]
    cs.Model("m", MEAN, lambda t, d: gaussian(t, d.y ** d.power)).check(shards, 2)
    with pytest.raises(cs.InputError, match="no sum over rows"):
        cs.Model("m", MEAN, lambda t, d: gaussian(t, d.y - d.y.mean())).check(shards, 2)
    assert all((shard.y == y).all() and (shard["y"] == y).all() for shard, y in zip(shards, before))


Pair = collections.namedtuple("Pair", "x y")


def forms(x, y):
    """The same rows in many forms, and how a function gets x and y out of each."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    table = pd.DataFrame({"x": x, "y": y})
    columns = (lambda d: np.asarray(d["x"], float), lambda d: np.asarray(d["y"], float))
    first_and_second = (lambda d: np.asarray(d[0], float), lambda d: np.asarray(d[1], float))
    of_rows = (lambda d: np.array([row[0] for row in d]), lambda d: np.array([row[1] for row in d]))
    named_rows = (lambda d: np.array([row["x"] for row in d]), lambda d: np.array([row["y"] for row in d]))
    return {
        "a dict of arrays": ({"x": x, "y": y, "knots": np.zeros(0), "what": "text"}, columns),
        "a dict of lists": ({"x": x.tolist(), "y": y.tolist(), "power": 2}, columns),
        "a dict of tuples": ({"x": tuple(x), "y": tuple(y)}, columns),
        "a dict of series": ({"x": table["x"], "y": pl.Series(y)}, columns),
        "pandas": (table.set_index(np.arange(len(x)) * 7), columns),
        "polars": (pl.DataFrame({"x": x, "y": y}), columns),
        "pyarrow": (pa.table({"x": x, "y": y}), columns),
        "a batch": (pa.table({"x": x, "y": y}).to_batches()[0], columns),
        "a tuple of arrays": ((x, y), first_and_second),
        "a tuple of lists": ((x.tolist(), y.tolist()), first_and_second),
        "a named tuple": (Pair(x, y), first_and_second),
        "a list of pairs": (list(zip(x.tolist(), y.tolist())), of_rows),
        "a list of dicts": ([{"x": a, "y": b} for a, b in zip(x, y)], named_rows),
        "a list of arrays": ([np.array([a, b]) for a, b in zip(x, y)], of_rows),
        "an array": (np.stack([x, y], axis=1), (lambda d: d[:, 0], lambda d: d[:, 1])),
    }


KINDS = list(forms(np.zeros(3), np.zeros(3)))


@pytest.mark.parametrize("rows", [[12, 9], [1, 9], [1, 1, 1]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_over_rows_of_every_form(kind, rows):
    """A model that centres is refused, and one that does not is not, whatever holds the rows and however few they are."""
    rng = np.random.default_rng(11)
    pieces = [forms(rng.normal(2, 1, n), rng.normal(1, 2, n))[kind] for n in rows]
    x, y = pieces[0][1]

    def fair(thetas, data):
        return -0.5 * ((y(data) - thetas[:, :1] - thetas[:, 1:] * x(data)) ** 2).sum(1)

    def centring(thetas, data):
        return -0.5 * ((y(data) - thetas[:, :1] - thetas[:, 1:] * (x(data) - x(data).mean())) ** 2).sum(1)

    shards = [data for data, _ in pieces]
    if kind == "a list of arrays" and max(rows) == 1:
        # It could be one of two columns.
        with pytest.raises(cs.InputError, match="cannot be tested: on two parts"):
            cs.compare([cs.Model("m", PRIORS, fair)], shards)
        return
    cs.Model("m", PRIORS, fair).check(shards, len(shards))
    with pytest.raises(cs.InputError, match="no sum over rows: on two"):
        cs.compare([cs.Model("m", PRIORS, centring)], shards)
    with pytest.raises(cs.InputError, match="no sum over rows: on two"):
        cs.compare([cs.Model("m", PRIORS, centring)], shards, engine=OneByOne())


def test_what_cannot_be_tested_is_refused(study, frame):
    """Shards whose rows nobody can tell, or on whose halves the likelihood fails."""
    import pandas as pd

    class Rows:
        def __init__(self, y):
            self.y = y

    def of_object(thetas, data):
        return -0.5 * ((data.y - thetas) ** 2).sum(1)

    def of_sums(thetas, data):
        n, total, squares = data
        return -0.5 * (squares - 2 * thetas[:, 0] * total + n * thetas[:, 0] ** 2)

    prior = {"a": "normal(0, 1)"}
    y = np.random.default_rng(2).normal(size=20)
    sums = np.array([20.0, y.sum(), (y**2).sum()])
    for function, shards, why in [
        (of_object, [Rows(y), Rows(y)], "cannot be tested: its shards are not tables"),
        (of_sums, [tuple(sums), tuple(sums)], "cannot be tested: its shards are not tables"),
        (of_sums, [sums, sums], "cannot be tested: on two parts of a shard it raises ValueError"),
        (lambda t, d: np.where(t[:, 0] > 40, -d.sum(), -np.inf), [y, y], "cannot be tested: it is finite at none"),
    ]:
        for engine in (None, OneByOne()):
            with pytest.raises(cs.InputError, match=why + ".*pass check=False"):
                cs.compare([cs.Model("m", prior, function)], shards, engine=engine)
        # On one shard nothing depends on it.
        cs.Model("m", prior, function).check(shards[:1], 1)
    for function, shard in ((of_object, Rows(y)), (of_sums, sums)):
        sure = cs.compare([cs.Model("m", prior, function, check=False)], [shard, shard])
        assert sure.se["m"] < 0.05
    # Beside a formula the first shard may have one row.
    rows = frame[["late", "x"]].dropna()
    rows = pd.concat([rows[rows["late"] == 0][:1], rows[rows["late"] == 1][:40]])
    unsplit = {"model": [{"name": "ours", "formula": "late ~ x", "family": "logistic"}], "prior": study["prior"]}

    def centring(thetas, data):
        return -0.5 * ((data["late"] - thetas[:, :1] * (data["x"] - data["x"].mean())) ** 2).sum(1)

    for parts in ([rows[:1], rows[1:40]], [rows[i : i + 1] for i in range(3)]):
        for engine in (None, OneByOne()):
            with pytest.raises(cs.InputError, match="no sum over rows"):
                cs.compare(unsplit, parts, models=[cs.Model("m", prior, centring)], engine=engine)
