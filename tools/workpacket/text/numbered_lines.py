"""Lines by their number among those that are not blank, for comparing two versions of a text.

Made without `Source`, whose lines the edits were reckoned in: what is compared must not rest on what is doubted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

LINE_END = re.compile(r"\r\n|\r|\n")


class NumberedLines:
    """The lines of a text that are not blank. `origin` gives the number that each of them had before the repair."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self.starts = [0, *(match.end() for match in LINE_END.finditer(text))]
        self._numbers: list[int] = []
        for line in LINE_END.split(text):
            self._numbers.append(len(self.lines))
            if line.strip():
                self.lines.append(line)
        self.origin: Sequence[int] = range(len(self.lines) + 1)

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def number(self, line: int) -> int:
        """The number of the line, counted from 0 with the blank ones, or of the next that is not blank."""
        number = self._numbers[line] if line < len(self._numbers) else len(self.lines)
        return self.origin[number] if number < len(self.origin) else len(self.lines)
