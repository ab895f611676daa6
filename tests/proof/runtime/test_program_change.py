"""A model of programs that change while their runs are interrupted: no result is handed to a call that did not make it.

A program is a tree of calls. Between two attempts, calls are added, removed, exchanged and given other arguments. What
each call makes names the call: its place and its arguments. The model counts the places itself, and knows which results
were stored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from hypothesis import given, settings
from hypothesis import strategies as st

from proof.share import bounded
from runtime.worlds import Crash, World
from workpacket.runtime import Run, RunBlocked

HISTORIES = 100_000
BOUNDED_HISTORIES = 2_000


class Asked(NamedTuple):
    """One call of a program. `inner` are the calls of a child run, or of a step that makes calls."""

    kind: str
    name: str
    argument: int = 0
    inner: tuple[Asked, ...] = ()


PLAIN = ("step", "effect", "keyed", "sleep", "failing", "map")
CHANGES = 7  # of one program, each followed by an attempt


class Choices:
    """Choices taken from bytes: one draw of hypothesis for a whole history is ten times as fast as one for each."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, count: int) -> int:
        return next(self._left, 0) % count

    def of(self, options: Sequence[str]) -> str:
        return options[self.below(len(options))]

    def leaf(self) -> Asked:
        return Asked(self.of(PLAIN), self.of("ab"), self.below(2))

    def call(self) -> Asked:
        if self.below(3):
            return self.leaf()
        inner = tuple(self.leaf() for _ in range(1 + self.below(3)))
        return Asked(self.of(("child", "outer")), self.of("cd"), 0, inner)

    def program(self) -> list[Asked]:
        return [self.call() for _ in range(1 + self.below(5))]

    def change(self, program: list[Asked]) -> None:
        """Add, remove, exchange or replace a call, or leave the program as it is."""
        what, at = self.below(6), self.below(len(program))
        if what == 0:
            program.insert(at, self.call())
        elif what == 1 and len(program) > 1:
            del program[at]
        elif what == 2:
            program[at : at + 2] = reversed(program[at : at + 2])
        elif what == 3:
            program[at] = self.call()


class Attempt:
    """One start of a program, which is killed before or after the call that does the `left`-th new thing."""

    def __init__(self, stored: dict[str, Any], begun: set[str], left: int, kill: Callable[[], None]) -> None:
        self.kill = kill
        self.stored = stored  # what was stored, by place; of calls in a step too
        self.begun = begun  # places of calls that failed, and of effects that were cut short
        self.left = left
        self.asked: set[str] = set()
        self.before = {*stored, *begun}
        self.programs: set[str] = set()  # the scopes whose calls must all be asked for before something new

    def new(self, place: str) -> None:
        """The call at this place is carried out."""
        scope = place.rpartition("/")[0]
        if scope in self.programs and place not in self.before:
            unasked = {
                one for one, (kind, _) in self.stored.items()
                if one in self.before and one.rpartition("/")[0] == scope and kind != "keyed"
            } - self.asked  # fmt: skip
            assert not unasked, f"{place} is new, and {unasked} were not asked for"
        if self.left == 0:
            self.kill()
            raise Crash
        self.left -= 1

    def keep(self, place: str, kind: str, made: Any) -> Any:
        self.stored[place] = kind, made
        return made

    def perform(self, run: Run, calls: Sequence[Asked], scope: str, *, program: bool) -> list[Any]:
        if program:
            self.programs.add(scope.rstrip("/"))
        counts: dict[str, int] = {}

        def place_of(name: str) -> str:
            counts[name] = counts.get(name, 0) + 1
            place = f"{scope}{name}" if counts[name] == 1 else f"{scope}{name}#{counts[name]}"
            self.asked.add(place)
            return place

        found = []
        for call in calls:
            if call.kind == "map":
                places = [place_of(call.name) for _ in range(2)]
                values = run.map(call.name, self.mapped(places), [call.argument, call.argument + 2], workers=1)
                for place, value in zip(places, values, strict=True):
                    assert value[0] == place
                found += [self.keep(place, "step", value) for place, value in zip(places, values, strict=True)]
            else:
                name = "sleep" if call.kind == "sleep" else call.name
                place = place_of(name)
                found.append(self.one(run, call, place))
        return found

    def mapped(self, places: list[str]) -> Any:
        left = dict(enumerate(places))

        def make(argument: int) -> list[Any]:
            # One worker carries them out in order, leaving out those that are done.
            place = left.pop(min(number for number in left if number % 2 == argument // 2))
            self.new(place)
            made: list[Any] = self.keep(place, "step", [place, argument])
            return made

        return make

    def one(self, run: Run, call: Asked, place: str) -> Any:
        def make(argument: int) -> list[Any]:
            try:
                self.new(place)
            finally:
                if call.kind in {"effect", "keyed"}:
                    self.begun.add(place)
            return [place, argument]

        def fail(argument: int) -> None:
            self.new(place)
            self.begun.add(place)
            raise ValueError(place)

        if call.kind == "sleep":
            run.sleep(0)
            return self.keep(place, "sleep", None)
        if call.kind == "failing":
            with suppress(ValueError):
                run.step(call.name, fail, call.argument)
            return None
        if call.kind == "child":
            value: Any = run.child(call.name, lambda run: self.perform(run, call.inner, f"{place}/", program=True))
        elif call.kind == "outer":
            value = run.step(call.name, lambda: self.perform(run, call.inner, f"{place}/", program=False))
        elif call.kind == "step":
            value = run.step(call.name, make, call.argument)
        else:
            key = f"{place} {call.argument}" if call.kind == "keyed" else None
            value = run.effect(call.name, make, call.argument, key=key, recovery="idempotent")
        if call.kind in {"step", "effect", "keyed"}:
            assert value == [place, call.argument], f"{place} was given {value}"
        else:
            assert value == self.stored.get(place, (call.kind, value))[1]
        return self.keep(place, call.kind, value)


class History:
    """A run whose program is killed and changed in turn."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.world = World()
        self.stored: dict[str, Any] = {}
        self.begun: set[str] = set()
        self.ends: list[str] = []

    def play(self) -> None:
        program = self.choices.program()
        for _ in range(CHANGES):
            self.ends.append(self.start(program))
            self.choices.change(program)

    def kill(self) -> None:
        """From here on the process stores nothing: another of its threads may be about to begin a step of a map."""

        def dead(*_: object) -> NoReturn:
            raise Crash

        self.world.store.append = dead  # type: ignore[method-assign, assignment]

    def start(self, program: list[Asked]) -> str:
        """One attempt; return how it ended."""
        run = self.world.runtime.run("changing")
        attempt = Attempt(self.stored, self.begun, self.choices.below(12), self.kill)
        try:
            attempt.perform(run, program, "", program=True)
            run._session.end(None)
        except Crash:
            run._session._over.set()
            del self.world.store.append
            self.world.clock.advance(60)
            return "killed"
        except RunBlocked as blocked:
            run._session.end(blocked)
            if blocked.code not in {"step_changed", "needs_confirmation", "effect_outcome_unknown"}:
                raise
            return blocked.code
        missing = {one for one in self.stored if "/" not in one} - attempt.asked
        assert not missing, f"the run is finished, although {missing} were not asked for"
        self.stored.clear()
        self.begun.clear()
        return "finished"


@settings(max_examples=BOUNDED_HISTORIES if bounded() else HISTORIES, deadline=None)
@given(data=st.binary(min_size=48, max_size=48))
def test_no_result_is_handed_to_a_call_that_did_not_make_it(data: bytes) -> None:
    History(Choices(data)).play()


def test_the_histories_end_in_every_way() -> None:
    chance = random.Random(20261119)
    ends: set[str] = set()
    for _ in range(200):
        history = History(Choices(chance.randbytes(48)))
        history.play()
        ends.update(history.ends)
    assert ends == {"killed", "finished", "step_changed", "needs_confirmation", "effect_outcome_unknown"}
