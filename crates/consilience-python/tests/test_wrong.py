"""Wrong inputs: what is said of them, and where."""

import copy

import numpy as np
import pandas as pd
import pytest

import consilience as cs


def changed(study, *path_and_value):
    *path, last, value = path_and_value
    study = copy.deepcopy(study)
    inner = study
    for key in path:
        inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key]
    inner[last] = value
    return study


STUDIES = [
    (("split", "shards", "x"), r"study\['split'\]\['shards'\]: .*integer, not a text"),
    (("split", "shards", 0), r"study\['split'\]\['shards'\]"),
    (("split", "shards", None), r"study\['split'\]\['shards'\] is None; leave the key out"),
    (("split", "by", "randon"), r"study\['split'\]\['by'\]"),
    (("split", "by", "column:nothing"), r"study\['split'\]\['by'\]: .*`nothing`"),
    (("split", "colour", 1), r"study\['split'\]\['colour'\]"),
    (("colour", 1), r"study\['colour'\]"),
    (("split", "shards", 10**7), r"study\['split'\]\['shards'\]"),
    (("model", 1, "family", "logit"), r"study\['model'\]\[1\]\['family'\]: .*write .logistic."),
    (("model", 1, "family", "gaussian"), r"study\['model'\]\[1\]\['formula'\]: .*cannot be compared"),
    (("model", 1, "formula", "late ~"), r"study\['model'\]\[1\]\['formula'\]"),
    (("model", 1, "formula", "late ~ xx"), r"study\['model'\]\[1\]\['formula'\]: .*there is no column `xx`"),
    (("model", 1, "formula", "x ~ z"), r"study\['model'\]\[1\]\['formula'\]: .*left side"),
    (("model", 1, "formula", 7), r"study\['model'\]\[1\]\['formula'\]: .*formula"),
    (("model", 1, "name", "with groups"), r"study\['model'\]\[1\]"),
    (("model", 1, "probability", -1.0), r"study\['model'\]\[1\]\['probability'\]"),
    (("model", 1, {"formula": "late ~ x"}), r"study\['model'\]\[1\]: `model.family` is missing"),
    (("model", 1, "late ~ x"), r"study\['model'\]\[1\] is of type str; a model is a dict"),
    (("model", []), r"study\['model'\]: .*empty list"),
    (("prior", "default", "normal(0)"), r"study\['prior'\]\['default'\]: .*argument"),
    (("prior", "default", "normal(0, -1)"), r"study\['prior'\]\['default'\]: .*positive"),
    (("model", 0, "prior", {"parameters": {"nothing": "normal(0, 1)"}}), r"study\['model'\]\[0\]\['prior'\].*nothing"),
    (("evidence", "combine", "exactly"), r"study\['evidence'\]\['combine'\]: .*did you mean `exact`"),
    (("evidence", "draws", 1.5), r"study\['evidence'\]\['draws'\]"),
    (("evidence", {1, 2}), r"study\['evidence'\] is of type set"),
    (("data", "weights", "nothing"), r"study\['data'\]\['weights'\]: .*`nothing`"),
    ((3, "x"), r"study has the key 3, which is no text"),
]


@pytest.mark.parametrize("change, message", STUDIES)
def test_studies(study, frame, change, message):
    with pytest.raises(cs.InputError, match=message) as raised:
        cs.compare(changed(study, *change), frame)
    assert isinstance(raised.value, ValueError)


def used_up(frame):
    import pyarrow as pa

    reader = pa.Table.from_pandas(frame.drop(columns="mixed"), preserve_index=False).to_reader()
    reader.read_all()
    return reader


TABLES = [
    (lambda f: {"late": [0, 1], "x": [1.0, 2.0]}, "data is a dict; make a table of it first"),
    (lambda f: f["x"], "data is a single column|no table"),
    (lambda f: f.to_numpy(), "data is an array without names of columns"),
    (lambda f: 3, "data is of type int, which is no table"),
    (lambda f: [], "there are no tables"),
    (lambda f: [f, "a.csv"], r"data\[1\] is a path among tables"),
    (lambda f: [f, {"late": [0]}], r"data\[1\] is a dict"),
    (lambda f: f.iloc[:0], "no rows"),
    (lambda f: f.drop(columns="group"), "there is no column `group`"),
    (lambda f: f.assign(x=np.inf), "row 1, column `x`: `inf`"),
    (lambda f: f.assign(x=np.nan), "no row is complete"),
    (lambda f: f.assign(x=[1, "a"] * 600), "data cannot be exported to Arrow"),
    (lambda f: f.assign(x=pd.Timestamp("2020-01-01")), "column `x`: the type"),
    (lambda f: f.rename(columns={"z": 5}), "there is no column `z`"),
    (lambda f: pd.concat([f, f[["x"]]], axis=1), "two columns named `x`"),
    (lambda f: f.iloc[:3], "4 shards are more than the 2 rows"),
    (lambda f: [f, f], r"study\['split'\]\['shards'\]: 2 tables are given"),
    (used_up, "no rows.*a reader can be read once: is it used up"),
    (lambda f: "nothing-there-*.csv", "nothing-there"),
]


@pytest.mark.parametrize("make, message", TABLES)
def test_tables(study, frame, make, message):
    with pytest.raises(cs.InputError, match=message):
        cs.compare(study, make(frame))


def test_names_that_are_no_text(study, frame):
    """They matter where they are used."""
    named = frame.rename(columns={"count": 0, "mixed": ("a", 1)})
    assert cs.compare(study, named) == cs.compare(study, frame)
    assert cs.compare({**study, "split": {}}, [named, frame]).json["partition"]["shards"] == 2
    for using in ({**study, "data": {"weights": "0"}}, changed(study, "model", 1, "formula", "late ~ .")):
        with pytest.raises(cs.InputError, match="data has a column named 0, and names of columns are text; rename it"):
            cs.compare(using, named)


def test_a_shard_without_a_column(study, frame):
    unsplit = {key: value for key, value in study.items() if key != "split"}
    with pytest.raises(cs.InputError, match="shard 1: there is no column `group`"):
        cs.compare(unsplit, [frame, frame.drop(columns="group")])


def test_a_lazy_frame(study, frame):
    import polars as pl

    with pytest.raises(cs.InputError, match=r"LazyFrame, which has no rows yet; call .collect\(\) first"):
        cs.compare(study, pl.LazyFrame({"late": [0, 1], "x": [1.0, 2.0]}))


ARGUMENTS = [
    ({"combine": "exat"}, "the argument `combine`"),
    ({"threads": 0}, "threads=0"),
    ({"memory": "much"}, "memory='much'"),
    ({"memory": 1000}, "too little to work in"),
    ({"seed": -1}, "the argument `seed`"),
    ({"shards": 0}, "`shards`"),
    ({"prior_scale": [-1]}, "cannot be multiplied by -1"),
    ({"leave_one_out": True, "combine": "normal"}, "leaving shards out is for"),
    ({"engine": 3}, "the engine is of type int"),
    ({"models": [cs.Model("m", {"a": "normal(0, 1)"}, lambda t, d: t)]}, "`log_likelihood` returned an array of shape"),
    ({"models": [cs.Model("m", {"a": "norma(0, 1)"}, lambda t, d: -t[:, 0] ** 2)]}, "model `m`, prior of `a`: there is no prior"),
]


@pytest.mark.parametrize("arguments, message", ARGUMENTS)
def test_arguments(study, frame, arguments, message):
    with pytest.raises(cs.InputError, match=message):
        cs.compare(study, frame, **arguments)


def test_studies_of_no_kind(frame):
    with pytest.raises(cs.InputError, match="the study is of type int"):
        cs.compare(3, frame)
    with pytest.raises(cs.InputError, match="nothing.toml: there is no such file"):
        cs.compare("nothing.toml")
    with pytest.raises(cs.InputError, match="line 2: "):
        cs.compare("[split]\nshards = 'x'\n", frame)
    with pytest.raises(cs.InputError, match="not valid TOML"):
        cs.compare("[split\n", frame)
    for priors in ({}, None, {"a": 3}, {1: "normal(0, 1)"}):
        with pytest.raises(cs.InputError, match="model `m`"):
            cs.Model("m", priors, len)
    with pytest.raises(cs.InputError, match="`log_likelihood` is no function"):
        cs.Model("m", {"a": "normal(0, 1)"}, 3)


def test_files_that_cannot_be_read(study, tmp_path):
    with pytest.raises(FileNotFoundError):
        cs.simulate("toy", tmp_path / "nowhere" / "toy.csv", 5)
    locked = tmp_path / "study.toml"
    locked.write_text("[data]\n")
    locked.chmod(0)
    try:
        locked.read_text()
    except PermissionError:
        with pytest.raises(PermissionError):
            cs.compare(locked)
