"""At a site: answers a question by the program, under the site's policy.

Question and answer are files; their bytes travel as they are. What is wrong at the site is said at the site only.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.query()
def answer(message: Message, context: Context) -> Message:
    """Replies with the site's name and the answer file, which is empty if there is none."""
    question = message.content["consilience"]["question"]
    # From --node-config, which the site writes. Nothing of it comes from elsewhere.
    node = context.node_config
    site = str(node["site"])
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "asked.question"), Path(folder, "answered.answer")
        asked.write_bytes(question)
        command = [str(node.get("consilience", "consilience")), "answer", str(asked)]
        command += ["--site", site, "--data", str(node["data"]), "--out", str(answered)]
        for option in ("policy", "key"):
            if option in node:
                command += [f"--{option}", str(node[option])]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(done.stdout + done.stderr, file=sys.stderr, flush=True)
        written = answered.read_bytes() if done.returncode == 0 else b""
    reply = ConfigRecord({"site": site, "answer": written})
    return Message(RecordDict({"consilience": reply}), reply_to=message)
