"""What can be made of a result."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import consilience as cs


@pytest.fixture(scope="module")
def result(study, frame):
    return cs.compare(study, frame, posterior=True, prior_scale=[0.5, 2], leave_one_out=True)


def test_tables(result):
    table = result.to_pandas()
    assert list(table.index) == ["with groups", "without"]
    assert table["probability"].sum() == pytest.approx(1)
    assert table.loc["without", "log_evidence"] == result.log_evidence["without"]
    other = result.to_polars()
    assert other["log_evidence"].to_list() == table["log_evidence"].to_list()
    assert result.best == table["probability"].idxmax() == max(result.probabilities, key=result.probabilities.get)
    parameters = result.parameters("without")
    assert list(parameters.index) == [("without", "(Intercept)"), ("without", "x")]
    assert 0.4 < parameters.loc[("without", "x"), "mean"] < 0.8
    assert len(result.parameters()) == 7
    with pytest.raises(cs.InputError, match="there is no model `none`"):
        result.parameters("none")


def test_words(result):
    text = repr(result)
    assert "1,188 rows in 4 shards" in text and "0 (best)" in text
    # The most probable model first, though the study names it last.
    lines = text.splitlines()
    assert lines[2].split("  ")[0] == "model" and "odds" in lines[2] and "prior" not in lines[2]
    assert [line.split("  ")[0] for line in lines[3:5]] == ["without", "with groups"]
    best, next_one = result.models[1], result.models[0]
    assert next_one["log_odds"]["value"] < 0
    odds = float(lines[4].split("1:")[1].split()[0])
    assert odds == pytest.approx(best["probability"] / next_one["probability"], rel=0.05)
    # And what it comes to, as the program says it.
    said = result.json["best"]["sentence"]
    assert "is favoured" in said and said in " ".join(lines)
    assert "truly comes first" in text or "errors are too small to change that" in text
    assert max(map(len, lines)) <= 80
    page = result._repr_html_()
    assert page.startswith("<table>") and "<b>without</b>" in page
    assert page.index("without") < page.index("with groups") and f"<p>{said}" in page and "1:" in page
    # There is room for odds where names are short.
    long = repr(cs.Comparison(result._text.replace("with groups", "with groups " * 3)))
    assert "odds" not in long.splitlines()[2] and "0 (best)" in long
    tricky = cs.Comparison(result._text.replace("with groups", "<script>"))
    assert "<script>" not in tricky._repr_html_()


def test_words_of_other_comparisons(study, frame):
    # Prior probabilities that differ have a column, and put a model first.
    held = copy.deepcopy(study)
    held["model"][0]["probability"], held["model"][1]["probability"] = 1e9, 1
    text = repr(cs.compare(held, frame))
    assert "prior " in text.splitlines()[2] and text.splitlines()[3].startswith("with groups")
    assert "prior odds of 1e9 to 1" in " ".join(text.splitlines())
    # One model has nothing to be compared with, and what is not to be trusted has no odds to speak of.
    alone = repr(cs.compare({**study, "model": study["model"][1:]}, frame))
    assert len(alone.splitlines()) == 4
    with pytest.warns(cs.UnreliableWarning):
        bad = cs.compare({**study, "split": {"shards": 60}, "evidence": {"combine": "normal"}}, frame)
    assert "not to be trusted as they stand" in " ".join(repr(bad).splitlines()) and "truly" not in repr(bad)


def test_the_programs_words(study, parquet, run_program, study_file):
    """The same models in the same order with the same numbers and sentence."""
    shown = run_program("compare", study_file(study), "--quiet").splitlines()
    result = cs.compare(study, parquet)
    ours = repr(result).splitlines()
    for line, theirs in zip(ours[3:5], shown[3:5]):
        assert all(cell.strip() in theirs for cell in line.split("  "))
    assert ours[5:] == shown[5 : 5 + len(ours[5:])]


def test_arviz(result):
    found = result.to_arviz("without")
    posterior = found.posterior
    assert dict(posterior.sizes)["chain"] == 4
    assert posterior.attrs["log_evidence"] == result.log_evidence["without"]
    row = result.parameters("without").loc[("without", "x")]
    assert float(posterior["x"].mean()) == pytest.approx(row["mean"], abs=5 * row["sd"] / 50)
    with pytest.raises(cs.InputError, match="posterior=True"):
        cs.Comparison(result._text).to_arviz()
    assert isinstance(result.draws()["x"], np.ndarray)


def test_pictures_and_pages(result, tmp_path):
    assert {"probabilities", "evidence", "parameters", "prior-scale", "leave-one-out"} <= set(result.kinds)
    for kind in result.kinds:
        assert result.plot(kind)._repr_svg_().startswith("<svg")
    result.plot().save(tmp_path / "a.svg")
    result.plot("parameters", model="without", width=500).save(tmp_path / "a.png")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(cs.InputError, match="probabilities"):
        result.plot("nothing")
    with pytest.raises(cs.InputError, match=".svg or .png"):
        result.plot().save(tmp_path / "a.gif")
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "late ~ x + z + group" in page and "<svg" in page
    result.save(tmp_path / "result.json")
    assert cs.Comparison((tmp_path / "result.json").read_text()).json == result.json


def test_pickles(result):
    again = pickle.loads(pickle.dumps(result))
    assert again == result and again.draws()["x"].tolist() == result.draws()["x"].tolist()
    error = pickle.loads(pickle.dumps(cs.InputError("what", line=3, reason="why")))
    assert (str(error), error.line, error.reason) == ("what", 3, "why")


def test_unreliable_results_warn_once(study, frame):
    # Shards of 20 rows are far from normal.
    study = {**study, "split": {"shards": 60}, "evidence": {"combine": "normal"}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = cs.compare(study, frame)
    own = [w for w in caught if issubclass(w.category, cs.UnreliableWarning)]
    assert len(own) == 1 and not result.reliable
    assert "is not to be trusted" in str(own[0].message) and own[0].filename == __file__
    assert sum(w["level"] == "unreliable" for w in result.warnings) > 1
    with pytest.raises(cs.UnreliableError) as raised:
        cs.compare(study, frame, strict=True)
    assert raised.value.result == result


def test_select(frame, tmp_path):
    study = {"select": {"outcome": "late", "family": "logistic", "candidates": "x + z + group"}, "split": {"shards": 3}}
    found = cs.select(study, frame, models=["x"])
    assert found.inclusion["x"] > 0.99 > 0.6 > found.inclusion["z"]
    assert found.to_pandas()["probability"].sum() <= 1 + 1e-9
    assert found.json["named"][0]["terms"] == ["x"]
    assert "x" in repr(found) and found._repr_html_().startswith("<table>")
    assert found.plot("inclusion").svg.startswith("<svg")
    with pytest.raises(cs.InputError, match="names its models"):
        cs.select({"model": [{"formula": "late ~ x", "family": "logistic"}]}, frame)
    with pytest.raises(cs.InputError, match="select"):
        cs.compare(study, frame)


def test_sweep_and_simulate(study, parquet, tmp_path):
    found = cs.sweep(study, parquet, shards=[1, 3], repeats=2, out=tmp_path / "kept", draws=500)
    table = found.to_pandas()
    assert set(table["shards"]) == {1, 3} and {"mean", "rmse", "method"} <= set(table.columns)
    assert list(table["model"][:2]) == ["with groups", "without"] and len(table) == 2 * len(found.json["groups"])
    assert cs.sweep(study, parquet, shards=[1, 3], repeats=2, out=tmp_path / "kept", draws=500) == found
    with pytest.raises(cs.InputError, match="which is no table"):
        cs.sweep(study, object(), shards=[1])
    cs.simulate("toy", tmp_path / "toy.csv", 50, seed=3)
    assert len((tmp_path / "toy.csv").read_text().splitlines()) == 51
    with pytest.raises(cs.InputError, match="cannot be simulated"):
        cs.simulate("weather", tmp_path / "a.csv", 5)
