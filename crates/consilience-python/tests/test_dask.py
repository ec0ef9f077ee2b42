"""A Dask cluster: partitions stay where they are, and a worker that dies is made good."""

import json
import os
import signal
import threading

import numpy as np
import pytest

import consilience as cs

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def parts(frame):
    rows = frame.drop(columns="mixed").reset_index(drop=True)
    return [rows.iloc[i * 300 : (i + 1) * 300] for i in range(4)]


@pytest.fixture(scope="module")
def unsplit(study):
    return {key: value for key, value in study.items() if key != "split"}


def models(result):
    return json.dumps(result.json["models"])


@pytest.mark.parametrize("evidence", [{}, {"local": "nuts+warp3", "combine": "normal", "draws": 400, "warmup": 200}])
def test_the_same_bits(client, unsplit, parts, evidence, tmp_path):
    study = {**unsplit, "evidence": evidence}
    expected = cs.compare(study, parts, kernel="portable")
    engine = cs.dask.Engine(client)
    collection = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts], interleave_partitions=False)
    assert collection.npartitions == 4
    found = cs.compare(study, collection, engine=engine)
    assert models(found) == models(expected)
    assert found.json["partition"] == expected.json["partition"]
    # Tables that are here are sent there.
    assert models(cs.compare(study, parts, engine=engine)) == models(expected)
    if not evidence:
        for i, part in enumerate(parts):
            part.to_parquet(tmp_path / f"part-{i}.parquet", index=False)
        files = dd.read_parquet(sorted(tmp_path.glob("part-*.parquet")), split_row_groups=False, aggregate_files=False)
        assert files.npartitions == 4
        assert models(cs.compare(study, files, engine=engine)) == models(expected)


def test_a_worker_that_dies(client, unsplit, parts):
    """Shards that were on it are made again elsewhere."""
    study = {**unsplit, "evidence": {"local": "nuts+warp3", "combine": "normal", "draws": 3000, "warmup": 500}}
    expected = cs.compare(study, parts, kernel="portable")
    collection = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts], interleave_partitions=False)
    engine = cs.dask.Engine(client)
    killed = []
    ask = engine.ask

    def first_kill(question, stopped):
        if not killed and b'"asks":["fit"' in question[:4000]:
            pid = client.submit(os.getpid, pure=False).result()
            killed.append(pid)
            threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
        yield from ask(question, stopped)

    engine.ask = first_kill
    found = cs.compare(study, collection, engine=engine)
    assert killed and models(found) == models(expected)


def test_own_models(client, shards):
    def values(thetas, data):
        eta = thetas[:, :1] + thetas[:, 1:] * data["x"]
        return (data["late"] * eta - np.logaddexp(0, eta)).sum(1)

    own = cs.Model("own", {"a": "normal(0, 1)", "b": "normal(0, 1)"}, values)
    expected = cs.compare([own], shards, kernel="portable")
    found = cs.compare([own], shards, engine=cs.dask.Engine(client))
    assert models(found) == models(expected) and found.json["partition"] == expected.json["partition"]


def test_own_models_that_are_no_sum(client, unsplit, parts):
    """The test is made where the rows are."""
    def centring(thetas, data):
        return -0.5 * ((data["late"] - thetas[:, :1] * (data["x"] - data["x"].mean())) ** 2).sum(1)

    own = cs.Model("own", {"a": "normal(0, 1)"}, centring)
    collection = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts], interleave_partitions=False)
    few = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in (parts[0][1:2], *parts[1:])], interleave_partitions=False)
    engine = cs.dask.Engine(client)
    for data, message in ((collection, "no sum over rows"), (parts, "no sum over rows"), (few, "first shard, which has 1 of them")):
        with pytest.raises(cs.InputError, match=message):
            cs.compare(unsplit, data, models=[own], engine=engine)


def test_one_partition(client, unsplit, parts):
    """Of one alone nothing depends on how rows are split, so that what cannot be tested is not refused."""
    def of_many(thetas, data):
        if len(data["x"]) < 290:
            raise LookupError("too few")
        return -0.5 * ((data["late"] - thetas[:, :1] * data["x"]) ** 2).sum(1)

    own = cs.Model("own", {"a": "normal(0, 1)"}, of_many)
    engine = cs.dask.Engine(client)
    both = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts[:2]], interleave_partitions=False)
    for data, partitions in ((dd.from_pandas(parts[0], npartitions=1, sort=False), 1), (both, 2)):
        assert data.npartitions == partitions
        if partitions == 1:
            assert "own" in cs.compare(unsplit, data, models=[own], engine=engine).log_evidence
        else:
            with pytest.raises(cs.InputError, match="cannot be tested: on two parts of a shard it raises LookupError"):
                cs.compare(unsplit, data, models=[own], engine=engine)


def test_numbers_that_stand_for_missing_ones(client, unsplit, parts):
    """What workers say of their partitions' rows is said of the result."""
    coded = [part.assign(x=np.where(np.arange(300) % 100 == 1, -999.0, part["x"])) for part in parts]
    collection = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in coded], interleave_partitions=False)
    expected = cs.compare(unsplit, coded, kernel="portable")
    found = cs.compare(unsplit, collection, engine=cs.dask.Engine(client))
    assert [w["value"] for w in found.warnings if w["code"] == "maybe-missing"] == [12.0]
    assert found.json["warnings"] == expected.json["warnings"]


def test_what_cannot_be_sent_fails_at_once(client, unsplit, frame):
    lock = threading.Lock()
    own = cs.Model("m", {"a": "normal(0, 1)"}, lambda thetas, data, lock=lock: -0.5 * thetas[:, 0] ** 2, check=False)
    with pytest.raises(cs.InputError, match="shard 0 cannot be sent to another process"):
        cs.compare([own], [1, 2], engine=cs.dask.Engine(client))
    with pytest.raises(cs.InputError, match="takes a distributed.Client"):
        cs.dask.Engine(3)
    collection = dd.from_pandas(frame.drop(columns="mixed"), npartitions=2)
    with pytest.raises(cs.InputError, match="Dask collection; give engine="):
        cs.compare(unsplit, collection)
    with pytest.raises(cs.InputError, match="there is no column `late`|there is no column"):
        cs.compare(unsplit, collection.rename(columns={"late": "early"}), engine=cs.dask.Engine(client))
