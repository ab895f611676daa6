"""A question that is answered in a process of its own."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

CPU_SECONDS = 60  # a change that keeps the tests busy for so long was noticed
SECONDS = 300
BYTES = 4 * 1024**3


def answer_of(question: Callable[[], T]) -> T:
    """What the question comes to in a fork of this process; raises `EOFError` if the fork ends without an answer."""
    reading, writing = os.pipe()
    child = _fork()
    if child == 0:
        os.close(reading)
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
