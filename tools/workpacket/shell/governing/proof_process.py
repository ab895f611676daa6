"""Start the program of a proof, and run it without a shell, without input, within limits on time and output.

Because no shell starts it, shell syntax would reach the program as plain text: in `echo Eve | python3 greet.py`, `echo`
would print everything and greet.py would never start. Each such form is an error that shows how to use a shell on
purpose, `sh -c '...'`. Quotes and backslashes have the same meaning as in a POSIX shell.

The end of a proof's output is stored outside the history, by digest, in the folder that all work trees share. No output
of a proof enters an event, because everything in git remains there for everyone. The event contains the digest, by
which the cleaned end of the output can be shown on the machine where the proof was run. The stored output may be
deleted at any time.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import IO, Any, Final, Self

from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import WorkpacketError
from workpacket.value import Value

TAIL_LINES: Final = 40
TAIL_LENGTH: Final = 4000
# The number of outputs whose ends are kept, latest first.
MOST: Final = 1000


def end_of(text: str) -> str:
    return "\n".join(text.replace("\r\n", "\n").split("\n")[-TAIL_LINES:])[-TAIL_LENGTH:]


def keep_output(repository: Repository, digest: str, text: str) -> None:
    """Store the end of cleaned output, readable only by its owner; do nothing if that is not possible."""
    import tempfile

    folder = _folder(repository)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)  # readable by no one else
        with os.fdopen(descriptor, "wb") as file:
            file.write(end_of(text).encode("utf-8", "replace"))
        os.replace(temporary, os.path.join(folder, digest))
        _forget_oldest(folder)
    except OSError:
        return


def kept_output(repository: Repository, digest: str, recorded: str = "") -> str | None:
    """Return the end of the output with this digest; None if it is not stored here.

    `recorded` is the end that an older event itself contains.
    """
    try:
        with open(os.path.join(_folder(repository), digest), "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return recorded or None


def _folder(repository: Repository) -> str:
    return str(repository.common_dir / "workpacket" / "proofs")


def _forget_oldest(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) > MOST:
        ages = sorted((os.stat(os.path.join(folder, name)).st_mtime_ns, name) for name in names)
        for _, name in ages[: len(names) - MOST]:
            os.unlink(os.path.join(folder, name))


GRACE: Final = 2.0  # seconds that a program has to exit once asked to
_CHUNK: Final = 64 * 1024
# Signals that would end this process and leave the program behind.
_ENDINGS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(Value):
    """How a program ended. `output` is the beginning of its output, `length` is the size of the whole output in bytes.

    `limit` is the limit that it reached: `time`, at which it was stopped, or `output`; '' if none. `milliseconds` is
    how long it ran: a verdict given in less time cannot have been based on another run.
    """

    exit_code: int
    output: bytes
    length: int
    limit: str
    milliseconds: int


class Account(Value):
    """Another account on this machine, which runs the programs of a proof and cannot read the caller's files."""

    uid: int
    gid: int


def account_of(name: str) -> Account:
    """Return the account with this name; raise ValueError if there is none, or if it cannot be used: an account that
    can replace what this process loads or starts could make it do anything.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        raise ValueError("only root can run programs under another account")
    import pwd

    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError as error:
        raise ValueError(f"account {name} not found") from error
    if found.pw_uid == 0:
        raise ValueError(f"{name} is root itself")
    account = Account(found.pw_uid, found.pw_gid)
    for path in filter(None, (sys.executable, *sys.path, *os.environ.get("PATH", "").split(os.pathsep))):
        exposed = _writable(os.path.realpath(path), account)
        if exposed:
            raise ValueError(f"{name} can write to {exposed}, from which programs are loaded")
    return account


def _writable(path: str, account: Account) -> str:
    """Return the part of an absolute path that the account can change; '' if there is no such part."""
    place = path
    while True:
        with suppress(OSError):
            found = os.stat(place)
            owned = found.st_uid == account.uid
            shared = found.st_mode & 0o002 or (found.st_gid == account.gid and found.st_mode & 0o020)
            # In a sticky folder, only the owner of a file can replace it.
            if owned or (shared and not (place != path and found.st_mode & 0o1000)):
                return place
        if place == os.path.dirname(place):
            return ""
        place = os.path.dirname(place)


def run_limited(
    words: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    *,
    seconds: float,
    most_output: int,
    account: Account | None = None,
) -> Ended:
    """Run a program until it exits; raise OSError or ValueError if it cannot be started."""
    other: dict[str, Any] = {}
    if account is not None:
        other = {"user": account.uid, "group": account.gid, "extra_groups": []}
    began = time.monotonic()
    with (
        _Interrupts() as interrupts,
        subprocess.Popen(  # noqa: S603 - the command that the person who submits names as proof; no shell reads it
            list(words),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A group of its own, so that everything that the program starts can be stopped with it.
            start_new_session=True,
            **other,
        ) as process,
    ):
        assert process.stdout is not None
        output = _Output(process.stdout, most_output)
        overdue = False
        try:
            interrupts.allow()
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            overdue = True
        finally:
            # Processes it left behind are stopped too; otherwise they would keep the output open forever.
            _stop(process, ask=overdue)
        output.finish()
        limit = "time" if overdue else "output" if output.length > most_output else ""
        return Ended(
            process.returncode, bytes(output.kept), output.length, limit, round(1000 * (time.monotonic() - began))
        )


class _Interrupts:
    """While this is active, these signals raise KeyboardInterrupt, but are held back at first: an interrupt between
    starting a program and preparing to stop it would leave the program behind. This works only in the main thread.
    """

    def __init__(self) -> None:
        self._allowed = self._came = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            heeded = (number for number in _ENDINGS if signal.getsignal(number) is not signal.SIG_IGN)
            self._before = {number: signal.signal(number, self._interrupt) for number in heeded}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._came and not self._allowed:  # nothing was started
            raise KeyboardInterrupt

    def allow(self) -> None:
        self._allowed = True
        if self._came:
            raise KeyboardInterrupt

    def _interrupt(self, _: int, __: FrameType | None) -> None:
        self._came = True
        if self._allowed:
            raise KeyboardInterrupt


class _Output:
    """Reads the output in a thread: keeps the first bytes, and counts all of them."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        self.kept = bytearray()
        self.length = 0
        self._source = source
        self._most = most
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        # The pipe is closed under this thread when the proof is ended from outside.
        with suppress(OSError, ValueError):
            while chunk := os.read(self._source.fileno(), _CHUNK):
                self.length += len(chunk)
                self.kept += chunk[: max(0, self._most - len(self.kept))]

    def finish(self) -> None:
        """Wait for the output to end, but not for a process that left the group and keeps the output open."""
        self._thread.join(GRACE)


def _stop(process: subprocess.Popen[bytes], *, ask: bool) -> None:
    """End every process in the group; with `ask`, first ask them to exit."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            if ask:
                os.killpg(process.pid, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE)
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
    """One pass over the text. `word` is the current word, or None between words."""

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
            raise _unfit(self.text, self.found[0], "a shell keyword, not a program")
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
            what = f"an assignment before the program; without a shell, write `env {assigned[0]}... PROGRAM`"
            raise _unfit(self.text, assigned[0], what)
        self.first = self.plain

    def _refused(self, mark: str) -> WorkpacketError:
        return _unfit(self.text, mark, _NAMES[mark])


def _braces(plain: str) -> bool:
    """Whether a shell might expand the word into several words: `{a,b}`, `{1..3}`."""
    start, end = plain.find("{"), plain.rfind("}")
    return 0 <= start < end and any(between in plain[start:end] for between in (",", ".."))


def _unfit(command: str, mark: str, what: str) -> WorkpacketError:
    if mark in {"nothing", "'", '"', "\\"}:
        return WorkpacketError("proof_not_run", f"{command!r} could not be run: {what}")
    shown = "a newline" if mark == "newline" else f"`{mark}`"
    message = f"{command!r}: {shown} is {what}, but proofs are run without a shell"
    quoted = f"sh -c {shlex.quote(command.strip())}"
    if len(quoted) > 200:
        quoted = "sh -c '...'"
    return WorkpacketError(
        "proof_needs_shell",
        message,
        hint=f"to use a shell, specify it: {quoted}; to use the character itself, quote it",
    )
