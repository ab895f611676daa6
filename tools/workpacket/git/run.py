"""The only place that runs git.

Commands are lists and never pass through a shell. The environment is set so that git does not prompt or page, prints
English, takes no optional locks, does not use the network, treats paths literally, and shows history as it was
committed: replacement objects and grafts, which anyone can add to a clone, are off.
"""

from __future__ import annotations

import os
import sys
import time

from workpacket.problem import WorkpacketError
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Final

    _Ended = tuple[int, bytes, bytes]  # exit status, output, errors

TIMEOUT: Final = 60.0
_SIGKILL: Final = 9  # importing signal takes longer than the rest of starting git
_SURE_TO_FIT: Final = 4096  # bytes that a pipe holds without a reader, on every system

_ENVIRONMENT: Final[Mapping[str, str]] = {
    # A question on the terminal would wait for an answer that no one can see it asks for.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    # Reading must not write the index while another git does.
    "GIT_OPTIONAL_LOCKS": "0",
    # Replacements and grafts are local: with them, this clone would see a different history from others.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    # In a partial clone, reading an object that is missing would use the network.
    "GIT_NO_LAZY_FETCH": "1",
    # A path that begins with a colon or has a star means itself.
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "",
    "LC_ALL": "C",
    "LANGUAGE": "",
}
# They change git's output, run programs while it prints, or end the history early.
_REMOVED: Final = (
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_SHALLOW_FILE",
)
# Relative paths refer to the folder that the user is in, not to the one that git is run in.
_PLACES: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR")
# Settings of the user that change what git prints, or name a program that it would run (`core.fsmonitor`).
_OPTIONS: Final = (
    "--no-pager",
    "-c", "core.quotePath=false",
    "-c", "core.fsmonitor=false",
    "-c", "color.ui=false",
    "-c", "log.showSignature=false",
    "-c", "log.showRoot=true",
    "-c", "log.follow=false",
    "-c", f"diff.orderFile={os.devnull}",
    "-c", "i18n.logOutputEncoding=UTF-8",
    "-c", "advice.graftFileDeprecated=false",
)  # fmt: skip


# git's message about an object that a partial clone lacks, because nothing is fetched implicitly.
_NOT_FETCHED: Final = "from promisor remote"
# What git says of a commit or file that a shallow clone does not have, and of a folder of another account.
_ABSENT: Final = ("bad object", "bad revision", "Not a valid", "unknown revision", "unable to read tree", "Could not")
_NOT_TRUSTED: Final = "dubious ownership"
_BY_THE_WAY: Final = ("hint:", "warning: lazy fetching disabled")
FETCH_ALL: Final = (
    "in a clone made with --filter, fetch everything: git config --unset remote.origin.partialclonefilter && "
    "git fetch --refetch; otherwise look for damage: git fsck"
)


class Answer(Value):
    """Git's exit status and output."""

    status: int
    output: bytes
    complaint: str

    @property
    def text(self) -> str:
        # A path is bytes, and need not be UTF-8: decoded like this, it can be passed back to git unchanged.
        return self.output.decode("utf-8", "surrogateescape")


def run_git(
    folder: Path | str,
    *arguments: str,
    stdin: bytes | None = None,
    check: bool = True,
    timeout: float = TIMEOUT,
    environment: Mapping[str, str] = NOTHING,
) -> Answer:
    """Run git in `folder`. With `check`, a status other than 0 raises a WorkpacketError with git's message.
    `environment` is added to the usual variables.
    """
    # A missing folder raises the same error as a missing program.
    if not os.path.isdir(folder):
        raise WorkpacketError("no_repository", f"{folder} is not a folder", path=str(folder))
    command = ["git", "-C", str(folder), *_OPTIONS, *arguments]
    try:
        status, output, errors = run_program(command, {**_environment(), **environment}, stdin, timeout)
    except FileNotFoundError as error:
        raise WorkpacketError("tool_missing", "git was not found", hint="Install git 2.31 or newer") from error
    except TimeoutError as error:
        raise WorkpacketError("git_timeout", f"git {arguments[0]} gave no answer within {timeout:.0f} s") from error
    answer = Answer(status, output, _complaint(errors))
    if answer.status != 0 and _NOT_TRUSTED in answer.complaint:
        raise _not_trusted(answer)
    if check and answer.status != 0:
        raise git_failure(arguments[0], answer, folder)
    return answer


def run_program(
    command: list[str],
    environment: Mapping[str, str],
    stdin: bytes | None,
    timeout: float,
    *,
    new_session: bool = False,
) -> _Ended:
    """Run a program with this input, and never with the terminal, on which git would wait for input. A new session has
    no terminal at all. TimeoutError means that the program was stopped.
    """
    if len(stdin or b"") <= _SURE_TO_FIT and sys.platform != "win32":
        try:
            return _spawn(command, environment, stdin, timeout, new_session)
        except NotImplementedError:  # a system that cannot start a session like this
            pass
    return _run(command, environment, stdin, timeout, new_session)


def _run(
    command: list[str], environment: Mapping[str, str], stdin: bytes | None, timeout: float, new_session: bool
) -> _Ended:
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - a list, and git is looked up in PATH as the user means it
            command, env=environment, input=stdin or b"", capture_output=True, timeout=timeout, check=False,
            start_new_session=new_session,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    return done.returncode, done.stdout, done.stderr


def _spawn(
    command: list[str], environment: Mapping[str, str], stdin: bytes | None, timeout: float, new_session: bool
) -> _Ended:
    """Run a program as `_run` does, but without importing subprocess, which takes longer than most git calls."""
    import select

    (output, its_output), (errors, its_errors) = os.pipe(), os.pipe()
    said = {output: bytearray(), errors: bytearray()}
    given = os.open(os.devnull, os.O_RDONLY) if stdin is None else _pipe_with(stdin)
    ends = ((given, 0), (its_output, 1), (its_errors, 2))
    places = [(os.POSIX_SPAWN_DUP2, end, number) for end, number in ends]
    try:
        try:
            child = os.posix_spawnp(command[0], command, environment, file_actions=places, setsid=new_session)
        finally:
            for end, _ in ends:
                os.close(end)
        open_ends = select.poll()
        for end in said:
            open_ends.register(end)
        try:
            _read_all(open_ends, said, time.monotonic() + timeout)
        except BaseException:
            os.kill(child, _SIGKILL)
            raise
        finally:
            _, status = os.waitpid(child, 0)
    finally:
        os.close(output)
        os.close(errors)
    return os.waitstatus_to_exitcode(status), bytes(said[output]), bytes(said[errors])


def _pipe_with(data: bytes) -> int:
    """Return the end of a pipe from which this can be read."""
    receive, send = os.pipe()
    try:
        os.write(send, data)
    finally:
        os.close(send)
    return receive


def _read_all(open_ends: select.poll, said: Mapping[int, bytearray], until: float) -> None:
    """Read from every pipe end until each is closed; raise TimeoutError if any is still open at the given time."""
    left = len(said)
    while left:
        ready = open_ends.poll(max(0.0, until - time.monotonic()) * 1000)
        if not ready:
            raise TimeoutError
        for end, _ in ready:
            data = os.read(end, 1 << 16)
            said[end].extend(data)
            if not data:
                open_ends.unregister(end)
                left -= 1


def git_failure(subcommand: str, answer: Answer, folder: Path | str | None = None) -> WorkpacketError:
    """Return the error for a call that failed; with `folder`, git is asked whether an incomplete clone is the cause."""
    if _NOT_FETCHED in answer.complaint:
        return WorkpacketError("object_missing", f"git {subcommand}: {answer.complaint}", hint=FETCH_ALL)
    if folder is not None and any(words in answer.complaint for words in _ABSENT):
        shallow = run_git(folder, "rev-parse", "--is-shallow-repository", check=False).text.strip() == "true"
    else:
        shallow = False
    if shallow:
        return history_shallow(f"git {subcommand}: {answer.complaint}")
    said = answer.complaint or f"status {answer.status}, without a message"
    return WorkpacketError("git_failed", f"git {subcommand}: {said}")


def history_shallow(what: str) -> WorkpacketError:
    hint = "git fetch --unshallow; for actions/checkout set fetch-depth: 0"
    return WorkpacketError("history_shallow", f"{what}; this clone does not have the complete history", hint=hint)


def _not_trusted(answer: Answer) -> WorkpacketError:
    import shlex  # every command imports this module

    place = answer.complaint.partition("'")[2].partition("'")[0]
    return WorkpacketError(
        "repository_not_trusted",
        f"{place} belongs to another user account, so git does not use it",
        hint=f"if you trust it: git config --global --add safe.directory {shlex.quote(place)}",
        path=place,
    )


def _complaint(errors: bytes) -> str:
    """Return git's message on one line, without its advice."""
    lines = (line.strip() for line in errors.decode("utf-8", "replace").splitlines())
    said = " ".join(line for line in lines if line and not line.startswith(_BY_THE_WAY))
    return said.removeprefix("fatal: ").removeprefix("error: ")


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in _REMOVED}
    places = {name: os.path.join(os.getcwd(), inherited[name]) for name in _PLACES if inherited.get(name)}
    return {**inherited, **places, **_ENVIRONMENT}
