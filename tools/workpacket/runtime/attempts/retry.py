"""When a failed step is tried again: policy as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` tries in all; the wait begins at `first` seconds and grows by `factor` up to `most`."""

    attempts: int = 1
    first: float = 1.0
    factor: float = 2.0
    most: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)

    def wait_after(self, tries: int, error: BaseException) -> float | None:
        """Seconds to wait after the `tries`-th try failed with `error`; None if there is no further one."""
        if tries >= self.attempts or not isinstance(error, self.on):
            return None
        return min(self.first * self.factor ** (tries - 1), self.most)


ONCE = Retry()
