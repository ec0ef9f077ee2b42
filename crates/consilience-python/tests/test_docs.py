"""The tutorial and the notebook run."""

import contextlib
import importlib.util
import io
import os
import re
import shutil

import pytest

import consilience as cs

HEAVY = {"jax", "numpyro", "pymc", "ray", "pyspark"}


def blocks(text):
    """Blocks of Python with what they need and the line that they begin on."""
    for found in re.finditer(r"^```python *(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield found[1], found[2], text[: found.start()].count("\n") + 1


@pytest.mark.filterwarnings("ignore::consilience.UnreliableWarning")
@pytest.mark.parametrize("heavy", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_the_tutorial(root, tmp_path, monkeypatch, heavy):
    page = (root / "docs/python.md").read_text()
    for folder in ("examples", "data"):
        os.symlink(root / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    space, run, out = {"__name__": "tutorial"}, 0, io.StringIO()
    for needs, code, line in blocks(page):
        if needs in HEAVY:
            if not heavy or importlib.util.find_spec(needs) is None:
                continue
            if needs == "pyspark" and shutil.which("java") is None:
                assert os.environ.get("CI") != "true", "Spark needs Java"
                continue
        elif needs and importlib.util.find_spec(needs) is None:
            continue
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * line + code, "docs/python.md", "exec"), space)
        run += 1
    assert run >= 11
    printed = out.getvalue()
    # What the page shows is what comes out.
    shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for text in shown:
        for expected in text.strip().splitlines():
            assert expected.split("…")[0].strip() in printed, expected
    assert "no sum over rows" in printed
    assert (tmp_path / "report.html").exists()


def test_the_readmes_block(root, tmp_path, monkeypatch):
    [(_, code, _)] = blocks((root / "README.md").read_text())
    for folder in ("examples", "data"):
        os.symlink(root / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    exec(code, {})


def test_the_notebook(root, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(root / "examples/flights.ipynb", as_version=4)
    shutil.copytree(root / "data", tmp_path / "data")
    (tmp_path / "examples").mkdir()
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3",
                                     resources={"metadata": {"path": str(tmp_path / "examples")}})
    client.execute()
    kinds = {kind for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
             for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds


def test_what_is_there_is_named():
    for name in cs.__all__:
        if name not in ("dask", "ray"):
            assert hasattr(cs, name)
    assert cs.__doc__ and cs.compare.__doc__
    with pytest.raises(AttributeError):
        cs.nothing
