"""What the tests of runs share: a runtime on a store of their own, and a crash that is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from workpacket.runtime import Runtime, Settings
from workpacket.runtime.records.redaction import Redactor, SecretRule
from workpacket.runtime.resume.observe import Observer, ResumePolicy
from workpacket.runtime.run import Run
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.testing import ManualClock

# A rule that cannot be applied to a text in which its prefix occurs.
BROKEN = SecretRule("broken", "ghp_", None, 1)  # type: ignore[arg-type]


class Crash(BaseException):
    """Stands for the end of the process: nothing after it is executed."""


@dataclass
class World:
    """One machine on which programs start, crash and start again."""

    clock: ManualClock = field(default_factory=ManualClock)
    store: Store = field(default_factory=MemoryStore)
    redactor: Redactor = field(default_factory=Redactor)
    policy: ResumePolicy = field(default_factory=ResumePolicy)
    observers: tuple[Observer, ...] = ()
    ask: Callable[[str, str], bool | None] | None = None
    calls: list[str] = field(default_factory=list)
    ids: Iterator[str] = field(default_factory=lambda: (f"{number:032x}" for number in count(1)))

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)

    @property
    def runtime(self) -> Runtime:
        settings = Settings(
            actor="tester",
            policy=self.policy,
            observers=self.observers,
            ask=self.ask,
            redactor=self.redactor,
            clock=self.clock,
            ids=lambda: next(self.ids),
        )
        return Runtime(self.store, settings)

    def note(self, what: str) -> str:
        self.calls.append(what)
        return what

    def was_noted(self, what: str) -> bool:
        return what in self.calls

    def crash(self) -> None:
        raise Crash

    @contextmanager
    def crashing(self, run: Run) -> Iterator[Run]:
        """The run, whose process dies if a `Crash` is raised inside: its lease stays until it ends by itself."""
        try:
            yield run
        except Crash:
            run._session._over.set()
            self.clock.advance(60)
            return
        run._session.end(None)
