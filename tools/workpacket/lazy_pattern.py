"""Regular expressions that are compiled when they are first used.

    _DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

A command imports more readers and rules than it uses; compiling all their patterns would take an eighth of its time. A
test compiles every pattern, so that an invalid one is detected.

Compiling the seventy patterns that a command does use takes another eighth. So their compiled forms are kept in
`__pycache__`, next to the compiled modules: they are read when the first pattern is used, and the command line writes
them (`keep_compiled`). They are used only by the Python that wrote them. A form that is missing or not accepted is
compiled again.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # what type checkers see; importing `typing` for it would take longer than compiling the patterns
if TYPE_CHECKING:
    from typing import Any

    # What `_sre.compile` needs besides the source: flags, code, number of groups, and their names in both directions.
    Form = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]

# Only a checkout whose patterns are edited again and again collects more.
_MOST = 4000
_kept: dict[tuple[str | bytes, int], Form] = {}
_new: list[object] = []
_read: list[str] = []  # the path of the file that was read, if any; '' where Python keeps no compiled modules


def keep_compiled() -> None:
    """Write the compiled forms, if any was missing. If that is not possible, the next command compiles them again."""
    import os
    import sys

    if not _new or not _read[0] or sys.dont_write_bytecode:
        return
    import marshal

    temporary = f"{_read[0]}.{os.getpid()}"
    try:
        with open(temporary, "xb") as file:
            file.write(marshal.dumps((_python(), _kept)))  # type: ignore[arg-type]
        os.replace(temporary, _read[0])
    except OSError:
        return


def _read_compiled() -> None:
    """Read the compiled forms, as an import reads a compiled module."""
    import marshal

    cached = __spec__.cached
    _read.append(f"{cached.removesuffix('.pyc')}.patterns" if cached else "")
    try:
        with open(_read[0], "rb") as file:
            python, forms = marshal.loads(file.read())  # noqa: S302 - from the folder of the compiled modules
        if python == _python() and len(forms) < _MOST:
            _kept.update(forms)
    except (OSError, ValueError, EOFError, TypeError):
        return


def _python() -> tuple[object, ...]:
    """Return what the compiled form of a pattern depends on."""
    import _sre  # type: ignore[import-not-found]
    import sys

    return sys.version, sys.byteorder, _sre.MAGIC, _sre.CODESIZE


def _compiled(source: str | bytes, flags: int) -> re.Pattern[Any]:
    if not _read:
        _read_compiled()
    key = (source, int(flags))
    try:
        if key not in _kept:
            if len(_kept) >= _MOST:
                return re.compile(source, flags)
            _kept[key] = _form(*key)
            _new.append(key)
        return _from_form(source, _kept[key])
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return re.compile(source, flags)  # a Python that compiles patterns in another way


def _form(source: str | bytes, flags: int) -> Form:
    """Compile a pattern as `re.compile` does, except for the last call."""
    from array import array
    from re import _compiler, _parser  # type: ignore[attr-defined]

    parsed = _parser.parse(source, flags)
    names = dict(parsed.state.groupdict)
    numbers: list[str | None] = [None] * parsed.state.groups
    for name, number in names.items():
        numbers[number] = name
    code = array("I", _compiler._code(parsed, flags)).tobytes()
    return int(flags | parsed.state.flags), code, parsed.state.groups - 1, names, tuple(numbers)


def _from_form(source: str | bytes, form: Form) -> re.Pattern[Any]:
    import _sre

    flags, code, groups, names, numbers = form
    # It refuses code that is not sound, with a RuntimeError.
    found: re.Pattern[Any] = _sre.compile(source, flags, memoryview(code).cast("I").tolist(), groups, names, numbers)
    return found


class _Later:
    """A pattern that is compiled when one of its methods is first used; each method then becomes an attribute."""

    def __init__(self, source: str | bytes, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name == "_pattern":
            self._pattern = _compiled(self._source, self._flags)
            return self._pattern
        found: object = getattr(self._pattern, name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:
    lazy_pattern = _Later

__all__ = ["keep_compiled", "lazy_pattern"]
