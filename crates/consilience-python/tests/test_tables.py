"""Every kind of table has the bits of the file, and so has every engine."""

import concurrent.futures
import json
import os
import signal
import sys

import pytest

import consilience as cs


def models(result):
    """All that rests on the rows: as text, in which equal numbers have equal bits."""
    return json.dumps(result.json["models"])


@pytest.fixture(scope="module")
def expected(study, parquet):
    return cs.compare(study, parquet)


def test_the_programs_bits(study, parquet, program, study_file, frame):
    """Through `exact`, and through NUTS on every shard."""
    for evidence in ({}, {"local": "nuts+warp3", "combine": "normal", "draws": 400, "warmup": 200}):
        own = {**study, "data": {"path": str(parquet)}, "evidence": evidence}
        file = study_file(study, evidence)
        by_program = program("compare", file, "--json", "--quiet")
        for result in (cs.compare(file), cs.compare(str(file)), cs.compare(file.read_text()), cs.compare(own),
                       cs.compare({**study, "evidence": evidence}, frame)):
            assert result.json["models"] == by_program["models"]
            assert result.json["partition"] == by_program["partition"]


def test_tables_of_every_library(expected, study, frame):
    import duckdb
    import polars as pl
    import pyarrow as pa

    written = frame.drop(columns="mixed")
    arrow = pa.Table.from_pandas(written, preserve_index=False)
    tables = {
        "pandas": frame,
        "pandas, categories": frame.assign(group=frame["group"].astype("category")),
        "polars": pl.from_arrow(arrow),
        # NaN is no null there.
        "polars with NaN": pl.from_arrow(arrow).with_columns(pl.col("x").fill_null(float("nan"))),
        "pyarrow": arrow,
        "pyarrow, a batch": arrow.combine_chunks().to_batches()[0],
        "a reader": arrow.to_reader(max_chunksize=100),
        "duckdb": duckdb.sql("select * from arrow"),
    }
    for name, table in tables.items():
        assert models(cs.compare(study, table)) == models(expected), name


def test_sweeps_of_tables(study, parquet, frame, program, study_file, tmp_path):
    """A table is swept as the file with its rows is, and as the program does."""
    import duckdb
    import polars as pl
    import pyarrow as pa

    arrow = pa.Table.from_pandas(frame.drop(columns="mixed"), preserve_index=False)
    how = {"shards": [1, 3], "repeats": 2, "by": ["random", "outcome"], "draws": 200, "local": "importance", "votes": True}

    def numbers(document):
        """All of it but what it took."""
        return {key: value for key, value in document.items() if key not in ("times", "seconds")}

    of_file = cs.sweep(study, parquet, **how)
    tables = {
        "pandas": frame,
        "polars": pl.from_arrow(arrow),
        "pyarrow": arrow,
        "a reader": arrow.to_reader(max_chunksize=100),
        "duckdb": duckdb.sql("select * from arrow"),
    }
    for name, table in tables.items():
        assert numbers(cs.sweep(study, table, **how).json) == numbers(of_file.json), name
    by_program = program("sweep", study_file(study), "--json", "--quiet", "--shards", "1,3", "--repeats", 2, "--by", "random,outcome",
                         "--combine", "normal,exact", "--draws", 200, "--local", "importance")
    for key in ("cells", "groups", "reference"):
        assert by_program[key] == of_file.json[key], key

    # What is kept belongs to these rows.
    out = tmp_path / "kept"
    first = cs.sweep(study, frame, shards=[1, 3], repeats=1, draws=200, local="importance", out=out)
    kept = sorted(path.stat().st_mtime_ns for path in (out / "cells").iterdir())
    assert cs.sweep(study, arrow, shards=[1, 3], repeats=1, draws=200, local="importance", out=out) == first
    assert sorted(path.stat().st_mtime_ns for path in (out / "cells").iterdir()) == kept
    with pytest.raises(cs.InputError, match="another sweep"):
        cs.sweep(study, frame.assign(x=frame["x"] + 1), shards=[1, 3], repeats=1, draws=200, local="importance", out=out)
    for shards in ([frame, frame], [frame], (arrow,)):
        with pytest.raises(cs.InputError, match="a sweep splits by itself; give one table"):
            cs.sweep(study, shards, shards=[1])


def test_threads_do_not_count(expected, study, frame):
    for threads in (1, 3):
        assert models(cs.compare(study, frame, threads=threads)) == models(expected)
    assert models(cs.compare(study, frame, memory="1GiB")) == models(expected)


def test_a_table_per_shard(study, frame):
    parts = [frame.iloc[i * 400 : (i + 1) * 400] for i in range(3)]
    unsplit = {key: value for key, value in study.items() if key != "split"}
    given = cs.compare(unsplit, parts)
    assert given.json["partition"]["by"] == "given" and given.json["partition"]["shards"] == 3
    assert given.json["partition"]["dropped"] == 12
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        on_threads = cs.compare(unsplit, parts, engine=cs.Executor(pool))
    assert models(on_threads) == models(given) and on_threads.json["partition"] == given.json["partition"]


def test_numbers_that_stand_for_missing_ones(study, frame):
    """Whoever reads the rows says so, and it is said once, wherever the shards are."""
    import numpy as np

    coded = frame.assign(x=np.where(np.arange(1200) % 100 == 1, -999.0, frame["x"]))
    parts = [coded.iloc[i * 300 : (i + 1) * 300] for i in range(4)]
    unsplit = {key: value for key, value in study.items() if key != "split"}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        engine = cs.Executor(pool)
        for own, data in ((study, coded), (unsplit, parts)):
            here, there = cs.compare(own, data), cs.compare(own, data, engine=engine)
            assert [w["code"] for w in here.warnings if w["level"] != "unreliable"][:2] == ["maybe-missing", "rows-dropped"]
            assert there.json["warnings"] == here.json["warnings"]
        # What one shard alone shows is said of it.
        one = cs.compare(unsplit, [frame.iloc[:600], coded.iloc[600:]], engine=engine)
        [said] = [w for w in one.warnings if w["code"] == "maybe-missing"]
        assert (said["shard"], said["value"]) == (1, 6.0) and "is -999 in 6 rows, far from" in said["message"]

        # An engine that finds its shards by itself, with and without a word about their rows.
        by_itself = object()

        class Finds(cs.Executor):
            tells = slice(0, 3)

            def takes(self, data):
                return data is by_itself

            def load(self, text, data, models):
                shards = [cs.Shard.of_table(text, part, i) for i, part in enumerate(parts)]
                self.place(shards)
                return list(coded.columns), [(*shard.counts, shard.warnings)[self.tells] for shard in shards]

        assert cs.compare(unsplit, by_itself, engine=Finds(pool)).json["warnings"] == cs.compare(unsplit, parts).json["warnings"]
        silent = Finds(pool)
        silent.tells = slice(0, 2)
        assert "maybe-missing" not in [w["code"] for w in cs.compare(unsplit, by_itself, engine=silent).warnings]


@pytest.mark.parametrize("evidence", [{}, {"local": "nuts+warp3", "combine": "normal", "draws": 400, "warmup": 200}])
def test_executors(study, frame, evidence):
    study = {**study, "evidence": evidence}
    expected = cs.compare(study, frame)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert models(cs.compare(study, frame, engine=cs.Executor(pool))) == models(expected)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        found = cs.compare(study, frame, engine=cs.Executor(pool))
        assert models(found) == models(expected)
        assert found.json["partition"] == expected.json["partition"]


def test_an_engine_of_ones_own(expected, study, frame):
    class OneByOne:
        def place(self, shards):
            self.shards = shards

        def ask(self, question, stopped):
            for shard in reversed(self.shards):
                yield shard.index, shard.answer(question)

    assert models(cs.compare(study, frame, engine=OneByOne())) == models(expected)

    class Liar(OneByOne):
        def ask(self, question, stopped):
            for shard in self.shards:
                yield 0, shard.answer(question)

    with pytest.raises(ConnectionError, match="shard 0: its answer is refused: it is the answer of shard 1"):
        cs.compare(study, frame, engine=Liar())

    class Silent(OneByOne):
        def ask(self, question, stopped):
            yield 0, self.shards[0].answer(question)

    with pytest.raises(ConnectionError, match="shard 1 has not answered"):
        cs.compare(study, frame, engine=Silent())

    class Garbled(OneByOne):
        def ask(self, question, stopped):
            for shard in self.shards:
                answer = bytearray(shard.answer(question))
                answer[-1] ^= 1
                yield shard.index, bytes(answer)

    with pytest.raises(ConnectionError, match="altered"):
        cs.compare(study, frame, engine=Garbled())

    class Broken(OneByOne):
        def ask(self, question, stopped):
            raise LookupError("no way there")
            yield

    with pytest.raises(LookupError, match="no way there"):
        cs.compare(study, frame, engine=Broken())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_was_forked(expected, study, frame):
    """A pool of threads does not live on in a child; each call has its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            # A child that hangs is killed, and fails.
            signal.alarm(120)
            code = 0 if models(cs.compare(study, frame)) == models(expected) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("kind", ["a formula", "a model of one's own", "a model of one's own that fails", "a study that is wrong"])
def test_no_leak(study, frame, kind):
    """Memory does not grow with the number of comparisons, whatever comes of them."""
    import gc

    import numpy as np

    rows = frame.iloc[:60]
    calls = 0

    def values(thetas, data):
        nonlocal calls
        calls += 1
        if "fails" in kind and calls % 8 == 0:
            # What a traceback holds must go with it.
            raise LookupError("no likelihood", np.zeros(20_000))
        return -0.5 * ((data["x"] - thetas) ** 2).sum(1)

    shards = [{"x": np.linspace(-1, 1, 200)}, {"x": np.linspace(-1, 2, 200)}]
    wrong = {"split": {"shards": 2}, "model": [*study["model"], {"formula": "late ~ nothing", "family": "logistic"}]}

    def once():
        if kind == "a formula":
            cs.compare({"split": {"shards": 2}, "model": study["model"][1:]}, rows, threads=1)
        elif kind == "a model of one's own":
            cs.compare([cs.Model("m", {"a": "normal(0, 1)"}, values)], shards, threads=1, draws=200)
        elif "fails" in kind:
            # Within the work: of what is raised while a model is tested, another error is made.
            with pytest.raises(LookupError):
                cs.compare([cs.Model("m", {"a": "normal(0, 1)"}, values, check=False)], shards, threads=1, draws=200)
        else:
            with pytest.raises(cs.InputError, match="there is no column `nothing`"):
                cs.compare(wrong, rows, threads=1)

    def resident():
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(100):
        once()
    before = resident()
    for _ in range(900):
        once()
    # Two hundred results, or errors with what they hold, kept by mistake would be more than this.
    assert resident() - before < 8 << 20
