"""For programs that tests start: the process kills itself before or after the n-th thing that lasts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any


def strike(number: int, when: str, places: Iterable[tuple[Any, str]]) -> None:
    """`places` are the functions that make something last, each by its owner and name."""
    calls: list[str] = []

    def struck(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            calls.append(function.__name__)
            here = len(calls) == number
            if here and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments, **named)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for owner, name in places:
        setattr(owner, name, struck(getattr(owner, name)))
