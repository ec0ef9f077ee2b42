"""Ctrl-C while files are read."""

import gzip
import os
import subprocess
import sys

import pytest

INTERRUPTED = """
import glob, os, signal, sys, threading, time
import consilience as cs
files = sorted(glob.glob(sys.argv[1]))
memory = sys.argv[2] or None
study = {"split": {"shards": 2}, "model": [{"formula": "y ~ x", "family": "gaussian"}]}
sent = []
def press():
    time.sleep(0.4)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    # Where memory is bounded, text goes through a copy in the folder for temporary files.
    cs.compare(study, files, threads=1, memory=memory)
except KeyboardInterrupt:
    print("took", time.monotonic() - sent[0])
    time.sleep(0.2)
    print("threads", threading.active_count())
"""

HEADER = b"x,y,text\n"
# A megabyte of rows that are mostly text that nobody reads, so that few of them make a large file.
BLOCK = b"".join(b"%d.25,%d.5,%s\n" % (i % 97, i % 89, b"t" * 1000) for i in range(1000))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Files that take far longer to read than the test waits: 200 MB under sixty names, and 20 GB, compressed."""
    folder = tmp_path_factory.mktemp("large")
    first = folder / "00.csv"
    with first.open("wb") as file:
        file.write(HEADER)
        for _ in range(200):
            file.write(BLOCK)
    for i in range(1, 60):
        os.link(first, folder / f"{i:02}.csv")
    member = gzip.compress(BLOCK, 6)
    with (folder / "a.csv.gz").open("wb") as file:
        file.write(gzip.compress(HEADER))
        for _ in range(20_000):
            file.write(member)
    return folder


@pytest.mark.parametrize("memory", ["", "1GiB"])
@pytest.mark.parametrize("what", ["*.csv", "*.csv.gz"])
def test_control_c_while_reading(large, tmp_path, what, memory):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", INTERRUPTED, str(large / what), memory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout.startswith("took"), done.stderr
    took = float(done.stdout.split()[1])
    print(what, memory, "took", took)
    # A tick and a chunk; to the end of the files it would be many seconds on any machine.
    assert took < 1
    assert "threads 1" in done.stdout
    assert list(tmp_path.iterdir()) == [] and len(list(large.iterdir())) == 61


WRITING = """
import os, signal, sys, threading, time
import consilience as cs
def press():
    time.sleep(0.4)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    cs.simulate("higgs", sys.argv[1], 10**10, threads=1)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_control_c_while_writing(tmp_path, name):
    """What is simulated would be a terabyte; nothing of it is there."""
    done = subprocess.run([sys.executable, "-c", WRITING, str(tmp_path / name)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr
    assert list(tmp_path.iterdir()) == []
