"""The words of a command that proves a criterion.

A proof is started without a shell, so shell syntax would reach the program as plain text: in `echo Eve | python3
greet.py`, `echo` would print everything and greet.py would never start. Each such form is an error that shows how to
use a shell on purpose, `sh -c '...'`. Quotes and backslashes mean what they mean to a POSIX shell.
"""

from __future__ import annotations

import shlex
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern

_OPERATORS: Final = "|&;<>()`*?"
_NAMES: Final = {
    "|": "a pipe",
    "&": "a shell operator",
    ";": "a shell operator",
    "<": "a redirection",
    ">": "a redirection",
    "(": "a shell operator",
    ")": "a shell operator",
    "`": "command substitution",
    "$": "an expansion",
    "*": "a file name pattern",
    "?": "a file name pattern",
    "[": "a file name pattern",
    "{": "brace expansion",
    "~": "a home folder that the shell would expand",
    "#": "a comment",
    "newline": "the beginning of a second line",
}
# Characters after `$` that make a shell expand it (`$[1+1]` is arithmetic in bash); before any other, it is a plain
# character.
_EXPANDED: Final = lazy_pattern(r"[A-Za-z0-9_{(\[@*#?$!-]")
_ASSIGNMENT: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# Where a shell expands a home folder in an assignment.
_HOME: Final = lazy_pattern(r"[=:]~")
# First words that a shell does not look up as a program: reserved words, unless they are quoted, and commands that
# change the shell itself. Some systems have programs of these names, which would succeed and change nothing.
_RESERVED: Final = {
    "!", "{", "}", "[[", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "coproc",
}  # fmt: skip
_BUILT_IN: Final = {
    ".", ":", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "eval", "exec", "exit",
    "export", "fg", "getopts", "hash", "jobs", "let", "local", "mapfile", "popd", "pushd", "read", "readonly",
    "return", "set", "shift", "shopt", "source", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "wait",
}  # fmt: skip


def proof_words(command: str) -> list[str]:
    """Return the program and its arguments; raise WorkpacketError `proof_needs_shell` for shell syntax."""
    words = _Reader(command.strip(" \t\r\n")).words()
    first = words[0] if words else ""
    if not first:
        raise _unfit(command, "nothing", "it does not name a program")
    return words


class _Reader:
    """One pass over the text. `word` is the current word, None between words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.word: str | None = None
        self.plain = ""  # the unquoted characters of this word, for checks that need all of them
        self.first = ""  # the first word, with marks in place of quoted parts
        self.found: list[str] = []

    def words(self) -> list[str]:
        while self.at < len(self.text):
            mark = self.text[self.at]
            self.at += 1
            if mark in " \t":
                self._end_word()
            elif mark == "'":
                self._take_quoted(self._until_quote())
            elif mark == '"':
                self._take_quoted(self._double_quoted())
            elif mark == "\\":
                self._take_quoted(self._escaped())
            else:
                self._take_plain(mark)
        self._end_word()
        if self.first in _RESERVED or (self.found and self.found[0] in _BUILT_IN):
            raise _unfit(self.text, self.found[0], "a word of the shell, not a program")
        return self.found

    def _take_quoted(self, text: str) -> None:
        self.word = (self.word or "") + text
        self.plain += "\0"  # separates what is on either side of it

    def _take_plain(self, mark: str) -> None:
        if mark in "\r\n":
            raise self._refused("newline")
        if mark in _OPERATORS:
            raise self._refused(mark)
        following = self.text[self.at : self.at + 1]
        if mark == "$" and following and (following in "'\"" or _EXPANDED.match(following)):
            raise self._refused("$")
        if self.word is None and mark in "~#":
            raise self._refused(mark)
        self.word = (self.word or "") + mark
        self.plain += mark

    def _until_quote(self) -> str:
        end = self.text.find("'", self.at)
        if end < 0:
            raise _unfit(self.text, "'", "the quote ' is never closed")
        text, self.at = self.text[self.at : end], end + 1
        return text

    def _double_quoted(self) -> str:
        taken = ""
        while self.at < len(self.text):
            mark, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
            if mark == '"':
                self.at += 1
                return taken
            if mark == "`" or (mark == "$" and following and _EXPANDED.match(following)):
                raise self._refused(mark)
            if mark == "\\" and following and following in '$`"\\\n':
                self.at += 1
                mark = "" if following == "\n" else following
            taken += mark
            self.at += 1
        raise _unfit(self.text, '"', 'the quote " is never closed')

    def _escaped(self) -> str:
        if self.at == len(self.text):
            raise _unfit(self.text, "\\", "it ends with a backslash")
        mark = self.text[self.at]
        if mark in "\r\n":
            raise self._refused("newline")
        self.at += 1
        return mark

    def _end_word(self) -> None:
        if self.word is None:
            return
        if not self.found:
            self._check_first()
        if "[" in self.plain and "]" in self.plain[self.plain.index("[") :]:
            raise self._refused("[")
        if _braces(self.plain):
            raise self._refused("{")
        if (assigned := _ASSIGNMENT.match(self.plain)) and _HOME.search(self.plain, assigned.end() - 1):
            raise self._refused("~")
        self.found.append(self.word)
        self.word, self.plain = None, ""

    def _check_first(self) -> None:
        assigned = _ASSIGNMENT.match(self.plain)
        if assigned:
            what = f"an assignment before the program; without a shell it is `env {assigned[0]}... PROGRAM`"
            raise _unfit(self.text, assigned[0], what)
        self.first = self.plain

    def _refused(self, mark: str) -> WorkpacketError:
        return _unfit(self.text, mark, _NAMES[mark])


def _braces(plain: str) -> bool:
    """Whether a shell might expand the word to several words: `{a,b}`, `{1..3}`."""
    start, end = plain.find("{"), plain.rfind("}")
    return 0 <= start < end and any(between in plain[start:end] for between in (",", ".."))


def _unfit(command: str, mark: str, what: str) -> WorkpacketError:
    if mark in {"nothing", "'", '"', "\\"}:
        return WorkpacketError("proof_not_run", f"{command!r} could not be run: {what}")
    shown = "a line feed" if mark == "newline" else f"`{mark}`"
    message = f"{command!r}: {shown} is {what}, but proofs are run without a shell"
    quoted = f"sh -c {shlex.quote(command.strip())}"
    if len(quoted) > 200:
        quoted = "sh -c '...'"
    return WorkpacketError(
        "proof_needs_shell", message, hint=f"to use a shell, name it: {quoted}; to use the character itself, quote it"
    )
