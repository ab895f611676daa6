"""The storage of a command that dies at a chosen call: what it has written stays, and it does nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from shell.simulated_disk import Killed
from workpacket.shell.transactions import recovery, transaction
from workpacket.shell.transactions.storage import Storage, platform_storage

# What a dying process still does, because the kernel does it in its place.
_BY_THE_KERNEL = frozenset({"close", "close_folder"})


class Mortal:
    """The storage of the platform until the call `dies_at`: killed before it, after it, or in the middle of a write."""

    def __init__(self, dies_at: int, how: str) -> None:
        self._disk: Any = platform_storage()
        self._dies_at = dies_at
        self._how = how
        self.calls = 0

    def __getattr__(self, method: str) -> Callable[..., object]:
        really = cast("Callable[..., object]", getattr(self._disk, method))
        if method in _BY_THE_KERNEL:
            return really

        def call(*words: Any) -> object:
            self.calls += 1
            if self.calls < self._dies_at:
                return really(*words)
            if self.calls == self._dies_at and self._how == "after":
                really(*words)
            if self.calls == self._dies_at and self._how == "within" and method == "write":
                file, data = words
                really(file, data[: len(data) // 2])
            raise Killed

        return call


@contextmanager
def dying(at: int, how: str) -> Iterator[None]:
    """Every command in this block has one life, which ends at this call of its storage."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (transaction, recovery):
            patch.setattr(module, "platform_storage", lambda: cast("Storage", Mortal(at, how)))
        yield
