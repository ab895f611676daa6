"""Cases as text: a header, then the files of a small repository.

    about: why this case is worth having
    expect: .GOV/roles_shared/TASK_BOARD.md:3:1
    -- .GOV/roles_shared/TASK_BOARD.md --
    # Board

`expect` names a place where the rule of the case must complain. With `escapes: yes`, `\\x0c`, `\\ufeff` and the like in
the files stand for those characters, so that a case can hold what an editor would spoil; a backslash is then `\\\\`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FILE = re.compile(r"^-- (?P<path>\S+) --\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    about: str
    expected: tuple[tuple[str, int, int], ...]
    files: dict[str, bytes]

    def write(self, root: Path) -> None:
        for path, data in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)


def read_case(path: Path) -> Case:
    header, *rest = _FILE.split(path.read_text(encoding="utf-8"))
    fields = [line.split(": ", 1) for line in header.splitlines() if line]
    escapes = ["escapes", "yes"] in fields
    files = {name: _content(text, escapes=escapes) for name, text in zip(rest[::2], rest[1::2], strict=True)}
    expected = tuple(_place(value) for name, value in fields if name == "expect")
    return Case(next(value for name, value in fields if name == "about"), expected, files)


def _content(text: str, *, escapes: bool) -> bytes:
    if not escapes:
        return text.encode("utf-8")
    # Latin-1 first, so that `\\xff` is one byte; characters beyond are written as \\u and become UTF-8.
    decoded = text.encode("ascii").decode("unicode_escape")
    return b"".join(bytes([ord(c)]) if 0x80 <= ord(c) <= 0xFF else c.encode("utf-8") for c in decoded)


def _place(text: str) -> tuple[str, int, int]:
    path, line, column = text.rsplit(":", 2)
    return path, int(line), int(column)
