"""Keys and receipts of effects: a key names one act, and a receipt is handed out whole or not at all."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, get_args
from uuid import UUID

import pytest

from runtime.worlds import BROKEN, World
from workpacket.model.canonical import Json
from workpacket.runtime import NotDone, Run, RunBlocked
from workpacket.runtime.attempts.effects import KEYED, EffectOptions, Recovery
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.errors import EffectKeyReused, ReceiptRedacted, ReceiptUnkept, RedactionFailed
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.runtime import Choice
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.stores.transfer import export_lines, import_lines

pytestmark = pytest.mark.share(5)

SECRET = "ghp_" + "A1b2" * 9
RUN = "mail@00000001"


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World()
    if request.param == "sqlite":
        world.store = SQLiteStore(tmp_path / "runs.db", clock=world.clock)
    yield world
    world.store.close()


Ask = Callable[[World, Run], Any]


def both(world: World, run: Run, ask: Ask, receipt: str = "100 EUR") -> None:
    """The effect as it is recorded, and then another under its key."""
    assert pay(world, run) == receipt
    ask(world, run)


def twice(world: World, run: Run) -> None:
    both(world, run, lambda world, run: pay(world, run, 200))


def pay(world: World, run: Run, amount: Any = 100, **options: Any) -> Any:
    return run.effect(options.pop("name", "pay"), world.note, f"{amount} EUR", key="k", **options)


OTHERS: list[tuple[str, Ask, str]] = [
    ("another name", lambda world, run: pay(world, run, name="mail", target="pay"), "name: pay -> mail"),
    ("another target", lambda world, run: pay(world, run, target="bob"), "target: pay -> bob"),
    ("another argument", lambda world, run: pay(world, run, 200), "argument 0: jcs-1:"),
    ("no argument", lambda world, run: run.effect("pay", lambda: world.note("x"), key="k"), "-> none"),
    ("a further argument", lambda world, run: run.effect("pay", lambda *_: world.note("x"), "100 EUR", 2, key="k"),
     "argument 1: none -> jcs-1:"),
    ("a named argument", lambda world, run: run.effect("pay", lambda *_, to: world.note(to), "100 EUR", to="b",
                                                        key="k"),
     "argument to: none -> jcs-1:"),
    ("in a nested step", lambda world, run: run.step("inner", lambda: pay(world, run, 200)), "argument 0"),
    ("another recovery too", lambda world, run: pay(world, run, 200, recovery="keyed"), "argument 0"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "shown"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_a_key_is_not_used_for_another_effect_in_the_same_attempt(world: World, ask: Ask, shown: str) -> None:
    with pytest.raises(EffectKeyReused) as caught, world.runtime.run("mail") as run:
        both(world, run, ask)
    assert (caught.value.code, world.calls) == ("effect_key_reused", ["100 EUR"])
    assert shown in caught.value.message
    assert world.runtime.summary(RUN).attention == "effect_key_reused"


def begun(world: World, how: str) -> None:
    """An attempt that left the effect so, and then died."""
    with world.crashing(world.runtime.run("mail")) as run:
        if how == "intended":
            run._session.effects.intend(plan_of(world, run))
        elif how == "started":
            run.effect("pay", lambda _: world.crash(), "100 EUR", key="k", recovery="keyed")
        else:
            pay(world, run)
        world.crash()


def plan_of(world: World, run: Run) -> Any:
    how = EffectOptions(key="k", recovery="manual", target="", probe=None, compensate=None)
    return run._session.effect_plan("pay", str, ("100 EUR",), {}, run._options, how)


@pytest.mark.parametrize("how", ["intended", "started", "succeeded"])
@pytest.mark.parametrize("ask", [row[1] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_nor_after_a_crash(world: World, how: str, ask: Ask) -> None:
    begun(world, how)
    world.calls.clear()
    with pytest.raises(EffectKeyReused), world.runtime.run("mail") as run:
        ask(world, run)
    assert world.calls == []


def test_nor_by_a_finished_run(world: World) -> None:
    with world.runtime.run("mail", key="done") as run:
        pay(world, run)
    before = world.store.head(run.id)
    with world.runtime.run("mail", key="done") as run:
        assert pay(world, run) == "100 EUR"
        with pytest.raises(EffectKeyReused):
            pay(world, run, 200)
    assert (world.calls, world.store.head(run.id)) == (["100 EUR"], before)


def test_nor_by_a_run_that_was_forked_from_it(world: World) -> None:
    with world.runtime.run("mail", key="first") as run:
        pay(world, run)
        run.checkpoint(name="paid")
    fork = world.runtime.fork(run.id, "paid", key="second")
    with pytest.raises(EffectKeyReused), world.runtime.resume(fork) as run:
        twice(world, run)
    assert world.calls == ["100 EUR"]


def test_nor_where_its_run_was_taken_to(world: World) -> None:
    begun(world, "succeeded")
    elsewhere = World(ids=world.ids)
    elsewhere.store = MemoryStore(elsewhere.clock)
    import_lines(elsewhere.store, export_lines(world.store, RUN))
    with pytest.raises(EffectKeyReused), elsewhere.runtime.run("mail") as run:
        twice(elsewhere, run)
    assert elsewhere.calls == []


def test_nor_by_async_code(world: World) -> None:
    async def note(what: str) -> str:
        return world.note(what)

    async def main() -> None:
        async with world.runtime.async_run("mail") as run:
            assert await run.effect("pay", note, "100 EUR", key="k") == "100 EUR"
            await run.effect("pay", note, "200 EUR", key="k")

    with pytest.raises(EffectKeyReused):
        asyncio.run(main())
    assert world.calls == ["100 EUR"]


def test_a_child_run_has_keys_of_its_own(world: World) -> None:
    def child() -> str:
        with world.runtime.run("child") as inner:
            return str(pay(world, inner, 200))

    with world.runtime.run("mail") as run:
        assert pay(world, run) == "100 EUR"
        assert run.step("child", child) == "200 EUR"


def test_the_same_effect_is_known_by_its_key_wherever_it_is_asked_for(world: World) -> None:
    with world.runtime.run("mail") as run:
        first = pay(world, run)
        assert run.step("inner", lambda: pay(world, run, recovery="probe")) == first
        assert pay(world, run) == first
    assert world.calls == ["100 EUR"]


def test_a_function_that_begins_to_take_its_key_is_the_same_effect(world: World) -> None:
    begun(world, "succeeded")
    with world.runtime.run("mail") as run:
        assert run.effect("pay", lambda what, key: world.note(what + key), "100 EUR", key="k") == "100 EUR"


def test_arguments_without_a_hash_are_not_compared(world: World) -> None:
    with world.runtime.run("mail") as run:
        assert run.effect("pay", lambda _, what: world.note(what), object(), "a", key="k") == "a"
        assert run.effect("pay", lambda _, what: world.note(what), object(), "a", key="k") == "a"
        with pytest.raises(EffectKeyReused):
            run.effect("pay", lambda _, what: world.note(what), object(), "b", key="k")
    assert world.calls == ["a"]


@dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: str


class Colour(Enum):
    RED = 1
    BLUE = 2


def name_of(value: object) -> str:
    """Without addresses and in one order: every worker has to give a test the same name."""
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


# Plain values that are not JSON: two that differ, of each kind.
PLAIN_VALUES: list[tuple[Any, Any]] = [
    (Decimal(100), Decimal(200)),
    (Fraction(1, 3), Fraction(2, 3)),
    (10**20, 10**20 + 1),
    (float("nan"), float("inf")),
    (1j, 2j),
    (b"ann", b"bob"),
    (bytearray(b"ann"), b"ann"),
    ("\udc80", "\udc81"),
    ("\udc80", "\\udc80"),
    (date(2026, 1, 1), date(2026, 1, 2)),
    (time(1), time(2)),
    (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
    (timedelta(1), timedelta(2)),
    (UUID(int=1), UUID(int=2)),
    (PurePosixPath("a"), PurePosixPath("b")),
    (Colour.RED, Colour.BLUE),
    ((1, 2), (1, 3)),
    ((1, 2), {1, 2}),
    ({"ann", "bob"}, {"ann", "eve"}),
    (frozenset({(1, 2)}), frozenset({(1, 3)})),
    ({1: "ann"}, {1: "bob"}),
    ({1: "ann"}, {"1": "ann"}),
    (Money(Decimal(1), "EUR"), Money(Decimal(2), "EUR")),
    ({"to": "ann", "sum": [Decimal(1)]}, {"to": "ann", "sum": [Decimal(2)]}),
    ({"to": "ann", "client": object()}, {"to": "eve", "client": object()}),
    (Decimal(100), 100),
    (Decimal(100), object()),
]


@pytest.mark.parametrize(("first", "second"), PLAIN_VALUES, ids=name_of)
def test_plain_values_that_are_not_json_are_compared(first: Any, second: Any) -> None:
    world = World()

    def pay_again(run: Run) -> None:
        assert run.effect("pay", lambda _: world.note("paid"), deepcopy(first), key="k") == "paid"
        run.effect("pay", lambda _: world.note("paid"), second, key="k")

    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("pay", lambda _: world.note("paid"), first, key="k")
        world.crash()
    with pytest.raises(EffectKeyReused), world.runtime.run("mail") as run:
        pay_again(run)
    assert world.calls == ["paid"]


@pytest.mark.parametrize(("first", "second"), PLAIN_VALUES, ids=name_of)
def test_a_yes_to_one_of_them_is_no_yes_to_another(first: Any, second: Any) -> None:
    world = World()

    def asked(value: Any) -> RunBlocked:
        with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
            run.effect("pay", lambda _: world.note("paid"), value, key="k", confirm=True)
        return caught.value

    refusal = asked(first)
    world.runtime.confirm(RUN, str(refusal.details["subject"]), yes=True)
    assert asked(second).details["arguments"] != refusal.details["arguments"]
    with world.runtime.run("mail") as run:
        run.effect("pay", lambda _: world.note("paid"), first, key="k", confirm=True)
    assert world.calls == ["paid"]


def test_an_argument_that_was_recorded_as_opaque_is_not_compared(world: World) -> None:
    """So was a Decimal before it had a hash; the effect of then is known by its key all the same."""
    with world.crashing(world.runtime.run("mail")) as run:
        args_hash = KEYED + jcs_hash("k")
        data: dict[str, Json] = {"effect": jcs_hash([run.id, args_hash]), "step": "pay", "kind": "manual",
                                 "target": "pay", "args_hash": args_hash, "args": {}, "opaque": ["0"]}  # fmt: skip
        recorder = run._session.recorder
        recorder.record(RecordDraft("effect.started", data | {"attempt": 1}))
        recorder.record(RecordDraft("effect.succeeded", data | {"result_hash": jcs_hash("paid")}, b'"paid"'))
        world.crash()
    with world.runtime.run("mail") as run:
        assert run.effect("pay", world.note, Decimal(100), key="k") == "paid"
        with pytest.raises(EffectKeyReused):
            run.effect("pay", world.note, "text", key="k")


def test_targets_that_are_stored_without_their_secrets_are_told_apart(world: World) -> None:
    with world.runtime.run("mail") as run:
        pay(world, run, target=f"https://{SECRET}@example.org")
        pay(world, run, target=f"https://{SECRET}@example.org")
        with pytest.raises(EffectKeyReused):
            pay(world, run, target=f"https://{SECRET[:-1]}9@example.org")
    assert SECRET not in repr([event.data for event in world.store.read(run.id)])


# ---- effects that were stored before their arguments were ------------------------------------------------------------


def stored_before(world: World, recorded: str = "100 EUR") -> None:
    """An effect as it was recorded before its arguments stood beside its key."""
    with world.crashing(world.runtime.run("mail")) as run:
        args_hash = KEYED + jcs_hash("k")
        data: dict[str, Json] = {"effect": jcs_hash([run.id, args_hash]), "step": "pay", "kind": "manual",
                                 "target": "pay", "args_hash": args_hash}  # fmt: skip
        recorder = run._session.recorder
        recorder.record(RecordDraft("effect.started", data | {"attempt": 1}))
        recorder.record(
            RecordDraft("effect.succeeded", data | {"result_hash": jcs_hash(recorded)}, json.dumps(recorded).encode())
        )
        world.crash()


def test_an_effect_stored_without_its_arguments_matches_by_key_once(world: World) -> None:
    stored_before(world)
    with world.crashing(world.runtime.run("mail")) as run:
        assert pay(world, run, 1) == "100 EUR"
        world.crash()
    assert [event.values()["step"] for event in world.store.read(RUN) if event.type == "effect.matched"] == ["pay"]

    def acts(run: Run) -> None:
        assert pay(world, run, 1) == "100 EUR"
        pay(world, run, 2)

    with pytest.raises(EffectKeyReused), world.runtime.run("mail") as run:
        acts(run)
    assert world.calls == []


def test_what_was_recorded_of_it_is_compared(world: World) -> None:
    stored_before(world)
    with pytest.raises(EffectKeyReused, match="name: pay -> mail"), world.runtime.run("mail") as run:
        pay(world, run, name="mail", target="pay")


def test_in_a_finished_run_it_matches_once_and_nothing_is_written(world: World) -> None:
    stored_before(world)
    with world.crashing(world.runtime.run("mail")) as run:
        run._session.recorder.record(RecordDraft("run.completed", {"steps": 0, "effects": 1}))
        world.crash()
    before = world.store.head(RUN)
    with world.runtime.resume(RUN) as run:
        assert [pay(world, run, 1), pay(world, run, 1)] == ["100 EUR"] * 2
        with pytest.raises(EffectKeyReused):
            pay(world, run, 2)
    assert world.store.head(RUN) == before


# ---- receipts that were not kept whole -------------------------------------------------------------------------------


def login(world: World, run: Run, **options: Any) -> Any:
    return run.effect("login", lambda: {"token": world.note(SECRET), "id": 7}, **options)


def interrupted(world: World, acts: Callable[[Run], Any]) -> None:
    with world.crashing(world.runtime.run("mail")) as run:
        acts(run)
        world.crash()


@pytest.mark.parametrize("recovery", ["manual", "read", "idempotent", "keyed", "probe"])
def test_a_redacted_receipt_is_never_handed_out_as_a_value(world: World, recovery: Recovery) -> None:
    interrupted(world, lambda run: login(world, run, recovery=recovery))
    for _ in range(2):
        refusal = refused(world, lambda run: login(world, run, recovery=recovery))
        assert (refusal.code, refusal.details["choices"]) == ("receipt_redacted", ["mark_done"])
        assert f"workpacket resume {RUN} --mark-done login --value JSON" in refusal.hint
    assert world.calls == [SECRET]


def refused(world: World, acts: Callable[[Run], Any]) -> RunBlocked:
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
        acts(run)
    return caught.value


def test_nor_by_a_finished_run_or_a_fork(world: World) -> None:
    with world.runtime.run("mail", key="done") as run:
        assert login(world, run) == {"token": SECRET, "id": 7}
        run.checkpoint(name="in")
    fork = world.runtime.fork(run.id, "in", key="fork")
    for stream in (run.id, fork):
        with pytest.raises(ReceiptRedacted), world.runtime.resume(stream) as again:
            login(world, again)
    assert world.calls == [SECRET]


@pytest.mark.parametrize("recovery", ["manual", "probe"])
def test_its_probe_is_asked_instead(world: World, recovery: Recovery) -> None:
    def probe() -> Any:
        return {"token": SECRET, "id": 7, "asked": True}

    interrupted(world, lambda run: login(world, run, recovery=recovery, probe=probe))
    with world.runtime.run("mail") as run:
        assert login(world, run, recovery=recovery, probe=probe) == {"token": SECRET, "id": 7, "asked": True}
    with world.runtime.resume(RUN) as run:
        assert login(world, run, recovery=recovery, probe=probe)["asked"]
    assert world.calls == [SECRET]


def test_async_code_asks_its_probe_too(world: World) -> None:
    async def act() -> str:
        return world.note(SECRET)

    async def probe() -> str:
        return "found"

    async def main(probe: Any) -> Any:
        async with world.runtime.async_run("mail", key="only") as run:
            return await run.effect("login", act, probe=probe)

    asyncio.run(main(None))
    assert asyncio.run(main(probe)) == "found"
    with pytest.raises(ReceiptRedacted):
        asyncio.run(main(None))
    assert world.calls == [SECRET]


@pytest.mark.parametrize("secret", [True, False])
def test_a_probe_that_does_not_find_what_happened_starts_nothing(world: World, secret: bool) -> None:
    def probe() -> Any:
        raise NotDone

    def acts(run: Run) -> Any:
        return run.effect("login", lambda: world.note(SECRET) if secret else {world.note("act")}, probe=probe)

    if secret:
        interrupted(world, acts)
    else:
        with pytest.raises(ReceiptUnkept), world.runtime.run("mail") as run:
            acts(run)
    with (
        pytest.raises(ReceiptRedacted if secret else ReceiptUnkept, match="does not find"),
        world.runtime.run("mail") as run,
    ):
        acts(run)
    assert len(world.calls) == 1


class Reference:
    """A codec of an author, who stores where the secret is and not the secret."""

    def encode(self, value: str) -> Json:
        return {"vault": "logins/7"} if value == SECRET else None

    def decode(self, stored: Json) -> str:
        return SECRET if stored == {"vault": "logins/7"} else ""


def test_a_codec_that_stores_a_reference_gives_back_the_value(world: World) -> None:
    interrupted(world, lambda run: run.using(codec=Reference()).effect("login", world.note, SECRET))
    with world.runtime.run("mail") as run:
        assert run.using(codec=Reference()).effect("login", world.note, SECRET) == SECRET
    assert world.calls == [SECRET]


# ---- results that cannot be kept -------------------------------------------------------------------------------------


class Failing:
    def encode(self, value: object) -> Json:
        raise KeyError(value)

    def decode(self, stored: Json) -> object:
        return stored


class Stopped(BaseException):
    pass


class Stopping(Failing):
    def encode(self, value: object) -> Json:
        raise Stopped


UNKEPT: dict[str, Callable[[World], Any]] = {
    "a time": lambda world: {"at": datetime.now(UTC), "what": world.note("act")},
    "a set": lambda world: {world.note("act")},
    "bytes": lambda world: world.note("act").encode(),
    "a tuple": lambda world: (world.note("act"), 1),
    "an object": lambda world: [world.note("act"), object()],
    "not a number": lambda world: [world.note("act"), float("nan")],
    "a great number": lambda world: [world.note("act"), 2**60],
    "a lone surrogate": lambda world: world.note("act") + "\udc80",
    "too deep": lambda world: nested(world.note("act")),
}


def nested(what: Any) -> Any:
    for _ in range(5000):
        what = [what]
    return what


@pytest.mark.parametrize("act", UNKEPT.values(), ids=list(UNKEPT))
@pytest.mark.parametrize("recovery", ["manual", "keyed", "probe"])
def test_an_act_whose_result_cannot_be_kept_is_known_to_have_happened(
    world: World, act: Callable[[World], Any], recovery: Recovery
) -> None:
    for _ in range(3):
        refusal = refused(world, lambda run: run.effect("act", act, world, key="k", recovery=recovery))
        assert isinstance(refusal, ReceiptUnkept)
        assert (refusal.code, "cannot be kept" in refusal.message) == ("receipt_unkept", True)
    assert world.calls == ["act"]
    state = world.runtime.state(RUN)
    assert (state.unknown_effects, [record.step for record in state.open_receipts]) == ((), ["act"])
    assert world.runtime.plan(RUN).action == "RESUME"


def test_the_author_learns_it_as_the_type_error_that_it_is(world: World) -> None:
    with pytest.raises(TypeError, match="/at: datetime is not JSON"), world.runtime.run("mail") as run:
        run.effect("act", lambda: {"at": datetime.now(UTC)})


@pytest.mark.parametrize(("codec", "error"), [(Failing(), ReceiptUnkept), (Stopping(), Stopped)])
def test_an_act_whose_codec_fails_is_known_to_have_happened(world: World, codec: Any, error: Any) -> None:
    with pytest.raises(error), world.runtime.run("mail") as run:
        run.using(codec=codec).effect("act", world.note, "act", recovery="keyed", key="k")
    with pytest.raises(ReceiptUnkept), world.runtime.run("mail") as run:
        run.using(codec=codec).effect("act", world.note, "act", recovery="keyed", key="k")
    assert world.calls == ["act"]


def test_an_act_whose_result_cannot_be_searched_for_secrets_is_known_to_have_happened(world: World) -> None:
    def act() -> str:
        world.redactor.rules = (BROKEN,)
        return world.note("ghp_" + "a" * 30)

    with pytest.raises(ReceiptUnkept), world.runtime.run("mail") as run:
        run.effect("act", act)
    assert [record.step for record in world.runtime.state(RUN).open_receipts] == ["act"]


def test_async_code_learns_it_too(world: World) -> None:
    async def act() -> Any:
        return {world.note("act")}

    async def main() -> None:
        async with world.runtime.async_run("mail") as run:
            await run.effect("act", act)

    for _ in range(2):
        with pytest.raises(ReceiptUnkept):
            asyncio.run(main())
    assert world.calls == ["act"]


# ---- a value given by a person ---------------------------------------------------------------------------------------


def settle(world: World, **given: Any) -> None:
    state = world.runtime.state(RUN)
    (record,) = (*state.unknown_effects, *state.open_receipts)
    world.runtime.settle(RUN, record.effect, "mark_done", "looked", **given)


DOUBTS: dict[str, Callable[[World, Run], Any]] = {
    "unknown": lambda world, run: run.effect("act", world.crash),
    "redacted": lambda world, run: run.effect("act", world.note, SECRET),
}


@pytest.mark.parametrize("doubt", DOUBTS.values(), ids=list(DOUBTS))
@pytest.mark.parametrize("value", [{"id": 7, "of": ["a", 1.5]}, "text", None, 0])
def test_mark_done_takes_the_value_that_the_program_is_given(world: World, doubt: Any, value: Json) -> None:
    interrupted(world, lambda run: doubt(world, run))
    settle(world, value=value)
    args = () if doubt is DOUBTS["unknown"] else (SECRET,)
    for _ in range(2):
        with world.runtime.resume(RUN) as run:
            assert run.effect("act", lambda *_: world.crash(), *args) == value


def test_a_value_is_decoded_by_the_codec_of_the_effect(world: World) -> None:
    interrupted(world, lambda run: run.effect("login", world.crash))
    settle(world, value={"vault": "logins/7"})
    with world.runtime.run("mail") as run:
        assert run.using(codec=Reference()).effect("login", world.crash) == SECRET


def test_without_a_value_the_program_is_given_none(world: World) -> None:
    interrupted(world, lambda run: run.effect("login", world.crash))
    settle(world)
    with world.runtime.run("mail") as run:
        assert run.using(codec=Reference()).effect("login", world.crash) is None


def test_what_is_known_to_have_happened_can_only_be_given_a_value(world: World) -> None:
    interrupted(world, lambda run: login(world, run))
    (record,) = world.runtime.state(RUN).open_receipts
    for choice in get_args(Choice):
        with pytest.raises(ReceiptRedacted):
            world.runtime.settle(RUN, record.effect, choice)
    with pytest.raises(ValueError, match="a value can only be given with mark-done"):
        world.runtime.settle(RUN, record.effect, "retry", value=1)
    assert [event.type for event in world.store.read(RUN)].count("effect.resolved") == 0


def test_a_value_that_would_not_be_stored_whole_is_refused(world: World) -> None:
    interrupted(world, lambda run: login(world, run))
    with pytest.raises(RedactionFailed):
        settle(world, value={"token": SECRET})
    assert world.runtime.state(RUN).open_receipts != ()


def test_a_fork_keeps_what_a_person_said(world: World) -> None:
    interrupted(world, lambda run: run.effect("act", world.crash))
    settle(world, value={"id": 7})
    with world.runtime.run("mail") as run:
        run.effect("act", world.crash)
        run.checkpoint(name="here")
    with world.runtime.resume(world.runtime.fork(RUN, "here", key="fork")) as run:
        assert run.effect("act", world.crash) == {"id": 7}


def test_in_a_fork_an_outcome_that_nobody_knows_stays_unknown(world: World) -> None:
    def lost(_: str) -> None:
        world.note("act")
        raise TimeoutError

    def acts(run: Run) -> None:
        with pytest.raises(TimeoutError):
            run.effect("act", lost, "a")
        run.checkpoint(name="here")
        world.crash()

    interrupted(world, acts)
    with pytest.raises(RunBlocked) as caught:
        world.runtime.resume(world.runtime.fork(RUN, "here", key="fork"))
    assert (caught.value.code, world.calls) == ("effect_outcome_unknown", ["act"])


# ---- errors whose text cannot be stored ------------------------------------------------------------------------------


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


ERRORS = [OSError("cannot open caf\udce9.txt"), Unreadable(), RuntimeError("\ud800" * 3000)]


@pytest.mark.parametrize("error", ERRORS, ids=["file name", "no text", "long"])
def test_an_error_is_recorded_whatever_its_text_is(world: World, error: Exception) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error)), world.runtime.run("mail") as run:
        run.step("read", fails)
    events = list(world.store.read(RUN))
    assert [event.type for event in events] == ["run.started", "step.failed", "run.stopped"]
    assert all(str(event.values()["error"]).startswith(type(error).__name__) for event in events[1:])


def test_what_was_certainly_not_done_stays_so_whatever_the_text_is(world: World) -> None:
    def fails() -> None:
        raise NotDone("no such file: caf\udce9.txt")

    with pytest.raises(NotDone), world.runtime.run("mail") as run:
        run.effect("send", fails)
    assert world.runtime.state(RUN).unknown_effects == ()
    with world.runtime.run("mail") as run:
        assert run.effect("send", lambda: world.note("sent")) == "sent"


# ---- a key that is confirmed -----------------------------------------------------------------------------------------


def events(world: World, stream: str = RUN) -> list[str]:
    return [event.type for event in world.store.read(stream)]


def asks(world: World, amount: int = 100, **options: Any) -> RunBlocked:
    """The program stops at a question; nothing is done."""
    done = list(world.calls)
    refusal = refused(world, lambda run: pay(world, run, amount, confirm=True, **options))
    assert (refusal.code, world.calls) == ("needs_confirmation", done)
    return refusal


def agrees(world: World, refusal: RunBlocked) -> None:
    world.runtime.confirm(RUN, str(refusal.details["subject"]), yes=True)


@pytest.mark.parametrize("options", [{"amount": 200}, {"target": "bob"}], ids=["argument", "target"])
def test_an_effect_that_was_only_announced_is_asked_about_again_under_its_key(
    world: World, options: dict[str, Any]
) -> None:
    agrees(world, asks(world))
    second = asks(world, **options)
    asks(world, **options)
    assert events(world).count("effect.intended") == 2
    agrees(world, second)
    with world.runtime.run("mail", key="00000001") as run:
        assert pay(world, run, options.get("amount", 100), confirm=True, target=options.get("target", "")) == (
            f"{options.get('amount', 100)} EUR"
        )
    assert len(world.calls) == 1


def test_what_was_agreed_to_first_is_done_if_the_program_asks_for_it_again(world: World) -> None:
    agrees(world, asks(world))
    asks(world, 200)
    with world.runtime.run("mail") as run:
        assert pay(world, run, confirm=True) == "100 EUR"
        with pytest.raises(EffectKeyReused):
            pay(world, run, 200, confirm=True)
    assert world.calls == ["100 EUR"]


def test_a_key_that_was_announced_for_another_name_is_refused(world: World) -> None:
    asks(world)
    with pytest.raises(EffectKeyReused, match="name: pay -> mail"), world.runtime.run("mail") as run:
        pay(world, run, name="mail", target="pay", confirm=True)


def test_a_yes_to_one_payment_is_no_leave_for_another_without_a_question(world: World) -> None:
    agrees(world, asks(world))
    with pytest.raises(EffectKeyReused), world.runtime.run("mail") as run:
        pay(world, run, 200)
    assert world.calls == []


@pytest.mark.parametrize("how", ["started", "succeeded"])
def test_a_confirmed_effect_whose_key_was_used_with_other_arguments_is_refused(world: World, how: str) -> None:
    begun(world, how)
    world.calls.clear()
    with pytest.raises(EffectKeyReused), world.runtime.run("mail") as run:
        pay(world, run, 200, confirm=True)
    assert (world.calls, "confirmation.requested" in events(world)) == ([], False)


def test_an_announced_effect_is_in_doubt_after_a_rollback_and_no_other_is_asked_about(world: World) -> None:
    asks(world)
    with world.crashing(world.runtime.run("mail")) as run:
        run._session.recorder.record(RecordDraft("rolled_back", {"had": 9, "has": 4}))
        world.crash()
    with pytest.raises(EffectKeyReused), world.runtime.run("mail") as run:
        pay(world, run, 200, confirm=True)
    refusal = refused(world, lambda run: pay(world, run, confirm=True))
    assert (refusal.code, world.calls) == ("effect_outcome_unknown", [])


def test_async_code_is_asked_again_too(world: World) -> None:
    async def note(what: str) -> str:
        return world.note(what)

    async def main(what: str) -> str:
        async with world.runtime.async_run("mail") as run:
            return await run.effect("pay", note, what, key="k", confirm=True)

    with pytest.raises(RunBlocked, match="waiting for a person"):
        asyncio.run(main("100 EUR"))
    with pytest.raises(RunBlocked, match="waiting for a person") as second:
        asyncio.run(main("200 EUR"))
    agrees(world, second.value)
    assert asyncio.run(main("200 EUR")) == "200 EUR"


# ---- finished runs ---------------------------------------------------------------------------------------------------


def finished_twice(world: World, acts: Callable[[Run], Any]) -> list[Any]:
    """What two further starts of a finished run answer; they write nothing."""
    answers = []
    before: Any = None
    for _ in range(3):
        with world.runtime.run("mail", key="done") as run:
            answers.append(acts(run))
        assert before in {None, world.store.head(run.id)}
        before = world.store.head(run.id)
    return answers


def caught_refusal(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RunBlocked as blocked:
        return blocked.code


def test_a_finished_run_refuses_a_redacted_receipt_and_writes_nothing(world: World) -> None:
    answers = finished_twice(world, lambda run: caught_refusal(lambda: login(world, run)))
    assert answers == [{"token": SECRET, "id": 7}, "receipt_redacted", "receipt_redacted"]


def test_a_finished_run_asks_the_probe_for_a_redacted_receipt_and_writes_nothing(world: World) -> None:
    whole = {"token": SECRET, "id": 7}
    assert finished_twice(world, lambda run: login(world, run, probe=lambda: whole)) == [whole] * 3


@pytest.mark.parametrize("probe", [None, lambda: "found"], ids=["no probe", "probe"])
def test_a_result_that_was_refused_is_refused_again_by_the_finished_run(world: World, probe: Any) -> None:
    def acts(run: Run) -> Any:
        def ask() -> Any:
            return run.effect("login", lambda: {world.note("act")}, key="k", probe=probe)

        return [caught_refusal(ask), caught_refusal(ask)]

    later = "receipt_unkept" if probe is None else "found"
    assert finished_twice(world, acts) == [["receipt_unkept", later]] * 3
    assert world.calls == ["act"]


def test_a_finished_run_that_was_refused_a_key_is_refused_it_again(world: World) -> None:
    def acts(run: Run) -> Any:
        return [pay(world, run), caught_refusal(lambda: pay(world, run, 200, confirm=True))]

    assert finished_twice(world, acts) == [["100 EUR", "effect_key_reused"]] * 3


def test_what_a_finished_run_only_announced_is_not_announced_for_something_else(world: World) -> None:
    def acts(amount: int) -> Callable[[Run], Any]:
        return lambda run: caught_refusal(lambda: pay(world, run, amount, confirm=True))

    world.ask = lambda _, __: False
    assert finished_twice(world, acts(100)) == ["confirmation_denied"] * 3
    before = world.store.head("mail@done")
    with world.runtime.run("mail", key="done") as run:
        assert acts(200)(run) == "step_changed"
    assert (world.store.head("mail@done"), world.calls) == (before, [])


@pytest.mark.parametrize("value", ["given", None])
def test_a_value_that_a_person_gave_is_the_answer_of_a_finished_run(world: World, value: Json) -> None:
    finished_twice(world, lambda run: caught_refusal(lambda: login(world, run)))
    (record,) = world.runtime.state("mail@done").open_receipts
    world.runtime.settle("mail@done", record.effect, "mark_done", value=value)
    assert finished_twice(world, lambda run: login(world, run)) == [value] * 3
