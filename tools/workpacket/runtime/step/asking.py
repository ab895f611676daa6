"""Putting a question to the person at the terminal, where there is one. Nobody waits where nobody can answer."""

from __future__ import annotations

import sys

YES = frozenset({"y", "yes"})


def ask_at_terminal(question: str, _: str = "") -> bool | None:
    """The answer of the person; None without a terminal, or if it ends instead of answering."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()):
        return None
    shown = "".join(character if character.isprintable() else "?" for character in question)
    sys.stderr.write(f"{shown} [y/N] ")
    sys.stderr.flush()
    word = sys.stdin.readline()
    return word.strip().casefold() in YES if word else None
