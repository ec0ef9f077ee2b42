"""Studies as paths, TOML text or dicts, and where in them something is wrong."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import InputError

# A key that TOML takes as it is.
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


class Study:
    """A study as the compiled part takes it, and the models of one's own that stood in it."""

    def __init__(self, study: Any, own: Sequence[Any] = ()) -> None:
        from .models import Model

        self.path: str | None = None
        self.text: str | None = None
        self.own = list(own)
        # By lines of the text, of a study that was given as a dict.
        self._keys: dict[int, str] = {}
        self.own_only = False
        if isinstance(study, Study):
            raise TypeError("a study is a path, a TOML text or a dict")
        if isinstance(study, Model):
            study = [study]
        if isinstance(study, (list, tuple)):
            study = {"model": list(study)}
        if isinstance(study, os.PathLike):
            self.path = os.fspath(study)
        elif isinstance(study, str):
            # A text has a table or a value; the name of a file has neither.
            if "\n" in study or "=" in study or study.lstrip().startswith("["):
                self.text = study
            else:
                self.path = study
        elif isinstance(study, Mapping):
            self._of_dict(study)
        else:
            raise InputError(
                f"the study is of type {type(study).__name__}; give the path of a study file, TOML text, a dict, or a list "
                "of models"
            )
        if not self.own:
            return
        names = [model.name for model in self.own]
        if len(set(names)) < len(names):
            raise InputError("two models of your own have the same name; give each its own")

    def _of_dict(self, study: Mapping) -> None:
        from .models import Model

        study = dict(study)
        models = study.get("model")
        if isinstance(models, Model):
            models = [models]
        if isinstance(models, (list, tuple)):
            # Numbers of models in errors are those of the list that was given.
            listed = list(enumerate(models))
            self.own = [m for _, m in listed if isinstance(m, Model)] + self.own
            ours = [(i, m) for i, m in listed if not isinstance(m, Model)]
            self.own_only = bool(self.own) and not ours and "select" not in study
            if ours or not self.own:
                study["model"] = _Numbered(ours)
            else:
                del study["model"]
        elif self.own and "model" not in study and "select" not in study:
            self.own_only = True
        lines: list[str] = []
        _write(study, (), lines, self._keys, "study")
        if self.own_only:
            # A study has a model; nobody looks at this one.
            lines += ["[[model]]", 'formula = "y ~ 1"', 'family = "gaussian"']
        self.text = "\n".join(lines) + "\n"

    def task(self, instead: Mapping[str, Any]) -> dict:
        """As JSON will have it, with what counts in the place of what it says."""
        out: dict[str, Any] = {"instead": {k: _plain(v, k) for k, v in instead.items() if v is not None}}
        if self.path is not None:
            out["path"] = self.path
        else:
            out["text"] = self.text
        return out

    @contextlib.contextmanager
    def named(self):
        """Errors that name a line of the text name the key of the dict instead."""
        try:
            yield
        except InputError as error:
            if error.file is None and error.line in self._keys:
                key = self._keys[error.line]
                raise InputError(f"{key}: {error.reason}", row=error.row, column=error.column, reason=error.reason,
                                 key=key) from None
            raise

    def written(self) -> str | None:
        """The study's text, for a page."""
        if self.text is not None:
            return None if self.own_only else self.text
        try:
            with open(self.path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            return None


class _Numbered(list):
    """Models with the numbers that they had in the list that was given."""


def _plain(value: Any, key: str) -> Any:
    """A value as JSON takes it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 0) == 0:
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(v, key) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise InputError(f"the argument `{key}` is of type {type(value).__name__}, which it cannot be")


def _write(table: Mapping, head: tuple[str, ...], lines: list[str], keys: dict[int, str], path: str) -> None:
    """Writes a table as TOML, a value a line, and notes which key stands on which line."""
    for name in table:
        if not isinstance(name, str):
            raise InputError(f"{path} has the key {name!r}, which is no text")
    inner = []
    for name, value in table.items():
        here = f"{path}[{name!r}]"
        if isinstance(value, Mapping) or isinstance(value, _Numbered) or _is_tables(value):
            inner.append((name, value, here))
            continue
        lines.append(f"{_key(name)} = {_value(value, here)}")
        keys[len(lines)] = here
    for name, value, here in inner:
        below = (*head, _key(name))
        if isinstance(value, Mapping):
            lines.append(f"[{'.'.join(below)}]")
            keys[len(lines)] = here
            _write(value, below, lines, keys, here)
            continue
        for number, one in value if isinstance(value, _Numbered) else enumerate(value):
            if not isinstance(one, Mapping):
                raise InputError(
                    f"{here}[{number}] is of type {type(one).__name__}; a model is a dict with 'formula' and 'family', or a "
                    "consilience.Model", key=f"{here}[{number}]"
                )
            lines.append(f"[[{'.'.join(below)}]]")
            keys[len(lines)] = f"{here}[{number}]"
            _write(one, below, lines, keys, f"{here}[{number}]")
        if not len(value):
            lines.insert(0, f"{below[-1]} = []")
            for line in sorted(keys, reverse=True):
                keys[line + 1] = keys.pop(line)
            keys[1] = here


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(one, Mapping) for one in value)


def _key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name)


def _value(value: Any, path: str) -> str:
    """A value as TOML writes it."""
    if hasattr(value, "item") and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes)):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        # JSON's strings are TOML's, but for these.
        return json.dumps(value).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one, f"{path}[{i}]") for i, one in enumerate(value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(k))} = {_value(v, f'{path}[{k!r}]')}" for k, v in value.items()) + "}"
    if value is None:
        raise InputError(f"{path} is None; leave the key out", key=path)
    raise InputError(f"{path} is of type {type(value).__name__}; give text, a number, true or false, a list or a dict",
                     key=path)
