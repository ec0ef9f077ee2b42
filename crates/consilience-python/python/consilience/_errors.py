"""What can go wrong, as exceptions."""

from __future__ import annotations


class InputError(ValueError):
    """The study, the data or an argument is wrong: you can mend it. The message says what, where, and what to do.

    ``file``, ``line``, ``row`` and ``column`` say where, as far as it is known; ``key`` is the place in a study that was
    given as a dict, such as ``study['model'][1]['family']``.
    """

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None, row: int | None = None,
                 column: str | None = None, reason: str | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.file, self.line, self.row, self.column, self.key = file, line, row, column, key
        self.reason = message if reason is None else reason

    def __reduce__(self):
        return _again, (InputError, self.args, self.__dict__)


class NumericError(ArithmeticError):
    """A computation has no finite or no trustworthy result. ``model``, ``shard`` and ``parameter`` name the culprit."""

    def __init__(self, message: str, *, shard: int | None = None, model: str | None = None,
                 parameter: str | None = None) -> None:
        super().__init__(message)
        self.shard, self.model, self.parameter = shard, model, parameter

    def __reduce__(self):
        return _again, (NumericError, self.args, self.__dict__)


class UnreliableWarning(UserWarning):
    """A result is not to be trusted; its own warnings say why. With ``strict=True`` it is an :class:`UnreliableError`."""


class UnreliableError(ArithmeticError):
    """A result that is not to be trusted, with ``strict=True``. ``result`` is what there is."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


def _again(kind, args, state):
    """An exception from its pickle."""
    error = kind(*args)
    error.__dict__.update(state)
    return error
