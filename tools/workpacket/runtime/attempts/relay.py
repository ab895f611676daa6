"""Run a program as a step, in its own process group, so that a cancellation stops all of it.

In a script (`relay`), its output passes through and only a small part of it is stored. The program starts behind a
gate: a shell that waits for one line and only then becomes the program. The line is sent once the process has been
recorded, so the log knows every running program; if this process dies before that, the gate closes and the program
never starts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, TypedDict

from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.redaction import Redactor

LOOK = 0.1  # seconds between two checks for cancellation
GRACE = 5.0  # seconds that a program gets to exit by itself


class Outcome(TypedDict):
    exit_code: int
    stdout: str
    stderr: str


def run_command(
    argv: Sequence[str], check: Callable[[], None], *, cwd: Path | None = None, timeout: float | None = None
) -> Outcome:
    """Run the program until it exits. If the run is cancelled, `check` raises and the whole process group is
    stopped."""
    with subprocess.Popen(  # noqa: S603  # an argument list, no shell
        list(argv),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        waited = 0.0
        while True:
            try:
                stdout, stderr = process.communicate(timeout=LOOK)
                return Outcome(exit_code=process.returncode, stdout=stdout, stderr=stderr)
            except subprocess.TimeoutExpired:
                waited += LOOK
                _check_or_stop(process, check, timeout is not None and waited >= timeout)


def _check_or_stop(process: subprocess.Popen[str], check: Callable[[], None], overdue: bool) -> None:
    try:
        if overdue:
            raise TimeoutError("the program exceeded its time limit")
        check()
    except BaseException:
        stop_group(process)
        raise


def stop_group(process: subprocess.Popen[Any]) -> None:
    """Terminate every process in the group, then kill those that remain."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        # The leader may end while others of its group ignore the signal, so the group is killed in any case.
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


KEPT = 16 * 1024  # the number of bytes stored of each output: the last ones
_GATE = 'read -r _ && exec "$@" </dev/null'


class StoredOutput(TypedDict):
    """The stored facts of one output: its digest, its length and its end."""

    sha256: str
    length: int
    tail: str


class Relayed(TypedDict):
    exit_code: int
    stdout: StoredOutput
    stderr: StoredOutput


class ProgramFailed(Exception):
    """The program exited with a nonzero status. The message is stored with the failed step."""

    def __init__(self, outcome: Relayed) -> None:
        said = outcome["stderr"]["tail"].strip().splitlines()
        super().__init__(f"exit status {outcome['exit_code']}" + (f": {said[-1]}" if said else ""))
        self.outcome = outcome


@dataclass(slots=True)
class _RelayedOutput:
    sink: BinaryIO | None
    redactor: Redactor
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    length: int = 0
    tail: bytes = b""

    def drain(self, source: IO[bytes]) -> None:
        while chunk := os.read(source.fileno(), 65536):
            self.digest.update(chunk)
            self.length += len(chunk)
            self.tail = (self.tail + chunk)[-KEPT - self.redactor.longest :]
            if self.sink is not None:
                try:
                    self.sink.write(chunk)
                    self.sink.flush()
                except BrokenPipeError:
                    self.sink = None  # the reader is gone; the step is still done

    def kept(self) -> StoredOutput:
        """Return what is stored. The end is searched for secrets together with the output before it, and then cut;
        otherwise, a secret that crosses the cut would not be recognized.
        """
        text = self.redactor.clean_text(self.tail.decode("utf-8", "replace"))
        if self.length > KEPT:
            text = text.encode("utf-8")[-KEPT:].decode("utf-8", "ignore")
        return StoredOutput(sha256=self.digest.hexdigest(), length=self.length, tail=text)


def relay(
    argv: Sequence[str],
    begin: Callable[[int], None],
    check: Callable[[], None],
    *,
    sinks: tuple[BinaryIO | None, BinaryIO | None],
    redactor: Redactor,
    timeout: float | None = None,
) -> Relayed:
    """Run the program until it exits. `begin` gets its process id before the program does anything; `check` raises to
    stop it."""
    if shutil.which(argv[0]) is None:
        raise RunBlocked(f"the program {argv[0]!r} was not found", code="worker_failed")
    with subprocess.Popen(  # noqa: S603  # the words of the user, as they are
        ["/bin/sh", "-c", _GATE, "sh", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        outputs = [_RelayedOutput(sink, redactor) for sink in sinks]
        try:
            begin(process.pid)
            readers = _open_gate(process, outputs)
            _wait(process, check, timeout)
        except BaseException:
            stop_group(process)
            raise
        for reader in readers:
            reader.join()
    stdout, stderr = (output.kept() for output in outputs)
    return Relayed(exit_code=process.returncode, stdout=stdout, stderr=stderr)


def _open_gate(process: subprocess.Popen[bytes], outputs: Sequence[_RelayedOutput]) -> list[threading.Thread]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    readers = [
        threading.Thread(target=output.drain, args=(source,), daemon=True)
        for output, source in zip(outputs, (process.stdout, process.stderr), strict=True)
    ]
    for reader in readers:
        reader.start()
    process.stdin.write(b"\n")
    process.stdin.close()
    process.stdin = None  # otherwise it would be flushed once more when the process exits
    return readers


def _wait(process: subprocess.Popen[bytes], check: Callable[[], None], timeout: float | None) -> None:
    waited = 0.0
    while True:
        try:
            process.wait(LOOK)
            return
        except subprocess.TimeoutExpired:
            waited += LOOK
            if timeout is not None and waited >= timeout:
                raise TimeoutError(f"the program took longer than {timeout:g} s") from None
            check()
