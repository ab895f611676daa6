"""A question that is answered in a process of its own, with a temporary folder of its own."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

CPU_SECONDS = 60  # a change that keeps the tests busy for so long was noticed
SECONDS = 300
BYTES = 4 * 1024**3
MEMORY = "/dev/shm"


def answer_of(question: Callable[[], T]) -> T:
    """What the question comes to in a fork of this process; raises `EOFError` if the fork ends without an answer.

    A fork ends without the cleanup at exit, so what its tests leave behind is deleted here.
    """
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mutation-", dir=memory, ignore_cleanup_errors=True) as folder:
        return _asked(question, folder)


def _asked(question: Callable[[], T], folder: str) -> T:
    reading, writing = os.pipe()
    child = _fork()
    if child == 0:
        os.close(reading)
        os.environ.update(TMPDIR=folder, PYTEST_DEBUG_TEMPROOT=folder)
        tempfile.tempdir = None  # the folder that was found before is that of the parent
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(question(), stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(said)  # type: ignore[no-any-return] # what our own fork has written


def is_noticed(tests: Callable[[], str | None]) -> str | None:
    """The test that failed in a fork, or what else ended it; None if all went well. Nothing is shown."""

    def bounded() -> str | None:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        return tests()

    try:
        return answer_of(bounded)
    except EOFError:
        return "the process ended"


def _fork() -> int:
    with warnings.catch_warnings():  # newer Pythons warn if there are threads; what waits in them is not needed here
        warnings.simplefilter("ignore")
        return os.fork()
