"""A progress bar: tqdm's if it is installed, else a line of text."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any


class Progress:
    """Shows how far long work is; nothing of work that ends within a second."""

    def __init__(self, show: bool | None) -> None:
        # By default where somebody looks: in a terminal or a notebook.
        self.shown = (sys.stderr.isatty() or _in_notebook()) if show is None else bool(show)
        self._begun = time.monotonic()
        self._bar: Any = None
        self._round = -1
        self._line = False

    def callback(self):
        """What the compiled part calls."""
        return self._tell if self.shown else None

    def _tell(self, round: int, kind: str, answered: int, answers: int, done: int, models: int) -> None:
        if self._bar is None and not self._line and time.monotonic() - self._begun < 1.0:
            return
        words = f"round {round}, {kind}" if round else kind
        if models:
            words += f", {done} of {models} models done"
        tqdm = _tqdm()
        if tqdm is None:
            sys.stderr.write(f"\r{words}: {answered} of {answers} ".ljust(79)[:79])
            sys.stderr.flush()
            self._line = True
            return
        if self._bar is None:
            self._bar = tqdm(total=answers, leave=False, unit="answer")
        if round != self._round:
            self._round = round
            self._bar.reset(total=answers)
        self._bar.set_description_str(words, refresh=False)
        self._bar.update(answered - self._bar.n)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._line:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _tqdm():
    try:
        # The notebook's bar is a widget, which not every notebook has.
        if _in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
            from tqdm.notebook import tqdm
        else:
            from tqdm import tqdm
        return tqdm
    except ImportError:
        return None
