"""At the coordinator: carries the questions of a run directory to the sites, and their answers back.

What is asked next, whose answers count and who is missing is known by `consilience combine` and the run
directory alone. So this can be stopped at any time, and another run goes on from there.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from logging import INFO, WARNING
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.common import log
from flwr.serverapp import Grid, ServerApp

app = ServerApp()

# Seconds between two looks, and before a node that could not be reached is asked again.
PAUSE, AGAIN = 0.2, 5.0


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Goes from round to round until the result is there."""
    config = context.run_config
    if config["drop-out"] not in ("stop", "go-on"):
        raise ValueError(f'drop-out is "stop" or "go-on", and not "{config["drop-out"]}"')
    run = Run(Path(str(config["run"])), str(config["consilience"]))
    round_seconds = float(config["round-seconds"])
    post = Post(grid, again=max(AGAIN, round_seconds / 3))
    run.combine()
    while run.missing:
        question, end = run.question, time.monotonic() + round_seconds
        log(INFO, "%s is asked of %s", question.stem, ", ".join(run.missing))
        while run.missing and run.question == question and time.monotonic() < end:
            post.ask(question, run.without, end - time.monotonic())
            answers = post.collect()
            if answers:
                run.combine(answers)
            else:
                time.sleep(PAUSE)
        if not run.missing or run.question != question:
            continue
        missing = ", ".join(run.missing)
        staying = run.sites - len(run.missing)
        if config["drop-out"] == "stop" or staying < int(config["min-sites"]):
            raise TimeoutError(
                f"{question.stem}: after {round_seconds:g} s no answer has come from: {missing}"
            )
        log(WARNING, "going on without %s", missing)
        run.combine(without=run.missing)
    log(INFO, "the result is in %s", run.folder / "result.json")


class Run:
    """A run directory, seen through the program."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder, self.program = folder, program
        self.without: list[str] = []
        self.missing: list[str] = []
        self.question, self.sites = Path(), 0

    def combine(self, answers: Sequence[bytes] = (), without: Sequence[str] = ()) -> None:
        """Takes answers in, and learns what is asked now, and of whom."""
        with tempfile.TemporaryDirectory() as mail:
            for number, answer in enumerate(answers):
                Path(mail, f"{number}.answer").write_bytes(answer)
            leave = [f"--without={site}" for site in without]
            done = self._call("combine", str(self.folder), mail, "--quiet", *leave)
        seen = self._call("status", str(self.folder), "--json")
        if seen.returncode != 0:
            raise RuntimeError(seen.stderr)
        status = json.loads(seen.stdout)
        self.missing = status["rounds"][-1]["missing"] if status["rounds"] else []
        self.sites = status["shards"]
        manifest = json.loads(Path(self.folder, "manifest.json").read_text())
        self.without = manifest["without"]
        if self.missing:
            self.question = max(Path(self.folder, "questions").glob("*.question"))
            for line in done.stderr.splitlines():
                if line.startswith("refused: "):
                    log(WARNING, "%s", line)
        elif done.returncode not in (0, 1):
            raise RuntimeError(done.stderr)

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.program, *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


class Post:
    """Messages to nodes, and what comes back."""

    def __init__(self, grid: Grid, again: float) -> None:
        self.grid, self.again = grid, again
        self.question = Path()
        # Per node the site that it says it is: only so that one who is left out is not asked for nothing.
        self.sites: dict[int, str] = {}
        # Per node when it may be asked, or asked again; per message without a reply its node.
        self.due: dict[int, float] = {}
        self.open: dict[str, int] = {}

    def ask(self, question: Path, without: list[str], seconds: float) -> None:
        """Sends the question to all nodes that are there and have not got it. They may come and go."""
        if question != self.question:
            self.question, self.due, self.open = question, {}, {}
        now = time.monotonic()
        nodes, messages = [], []
        for node in self.grid.get_node_ids():
            if self.due.get(node, 0.0) > now or self.sites.get(node) in without:
                continue
            # A node that dies with a question in its hands does not say so: it is asked again after a while.
            self.due[node] = now + self.again
            record = ConfigRecord({"question": question.read_bytes()})
            content = RecordDict({"consilience": record})
            nodes.append(node)
            messages.append(Message(content, node, MessageType.QUERY, ttl=max(seconds, 1.0)))
        if messages:
            self.open.update(zip(self.grid.push_messages(messages), nodes, strict=True))

    def collect(self) -> list[bytes]:
        """The answers that have come."""
        answers = []
        for reply in self.grid.pull_messages(list(self.open)) if self.open else []:
            node = self.open.pop(reply.metadata.reply_to_message_id)
            if reply.has_error():
                log(WARNING, "node %s: %s", node, reply.error.reason)
                self.due[node] = time.monotonic() + AGAIN
                continue
            record = reply.content["consilience"]
            self.sites[node] = str(record["site"])
            # Whatever a node replies, it has this question. One that refuses may be mended at the site and
            # the run started again: until the time is over, its site is waited for, since a node could
            # refuse in another's name.
            self.due[node] = float("inf")
            if record["answer"]:
                answers.append(bytes(record["answer"]))
            else:
                log(WARNING, "the site %s has refused; it knows why", self.sites[node])
        return answers
