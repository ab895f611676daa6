"""Report the failure of a command: one clear message, and an exit status from the catalogue."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback

from workpacket import __version__
from workpacket.cli.commands import resolve
from workpacket.cli.options import own_words
from workpacket.errors import WorkpacketError
from workpacket.model import exits
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import Style, render_failure

_REFUSED_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)


def report_failure(error: Exception, words: list[str]) -> int:
    """Report the error on standard error, or as a JSON object if requested."""
    if not isinstance(error, WorkpacketError):
        error = _unexpected(error, words)
    reason = catalogue().get(error.code)
    status = reason.exit_code if reason is not None else exits.INTERNAL
    if "--json" in own_words(words):
        sys.stdout.write(render_envelope(resolve(words)[0] or words[0], status, [error.problem], {}))
    else:
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        sys.stderr.write(render_failure(error, Style(colour=colour)))
    return status


def _unexpected(error: Exception, words: list[str]) -> WorkpacketError:
    """Return the error for a bug in workpacket, with a log to attach to a report. Errors of the operating system are
    not bugs.
    """
    if isinstance(error, OSError) and error.errno in _REFUSED_OUTPUT and error.filename is None:
        message = f"cannot write the output: {error.strerror}"
        # Otherwise Python would try to write the rest at exit, and fail again.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the process ends
        return WorkpacketError("file_unwritable", message, hint="free some space, or write somewhere else")
    if isinstance(error, FileNotFoundError) and error.filename is None and _nowhere():
        message = "the current directory no longer exists"
        return WorkpacketError("no_repository", message, hint="change to an existing directory, then try again")
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
        return WorkpacketError("file_unwritable", message, hint="check permissions and free space, then try again")
    with tempfile.NamedTemporaryFile("w", prefix="workpacket-", suffix=".log", delete=False, encoding="utf-8") as log:
        log.write(f"workpacket {__version__} on Python {sys.version}\narguments: {words!r}\n\n")
        log.write("".join(traceback.format_exception(error)))
    return WorkpacketError(
        "internal_error", f"{type(error).__name__}: {error}", hint=f"please report it with the log in {log.name}"
    )


def _nowhere() -> bool:
    """Whether the current directory was deleted. A deleted directory can still be read as `.`."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
