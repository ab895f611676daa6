"""Effects: what happens when one is reached, for every state the log can be in."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, get_args

import pytest

from runtime.worlds import World
from workpacket.runtime import NotDone, Retry, Run, RunBlocked, RunCancelled
from workpacket.runtime.attempts.effects import KEYED, REPEATABLE, Recovery, identity, next_move
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.errors import ReceiptRedacted
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.records.state import EffectRecord, EffectStatus, fold
from workpacket.runtime.resume.observe import ResumePolicy
from workpacket.runtime.run import takes_key

EVENT = Event("s", 1, "effect.started", 1, 0, 0, "a", "w", 1, None, 0, "{}", None, "", "")
TABLE = {
    "intended": dict.fromkeys(get_args(Recovery), "start"),
    "failed": dict.fromkeys(get_args(Recovery), "start"),
    "retry": dict.fromkeys(get_args(Recovery), "start"),
    "succeeded": dict.fromkeys(get_args(Recovery), "return"),
    "mark_done": dict.fromkeys(get_args(Recovery), "return"),
    "compensate": dict.fromkeys(get_args(Recovery), "compensate"),
    "undone": dict.fromkeys(get_args(Recovery), "fail"),
    "accepted": dict.fromkeys(get_args(Recovery), "fail"),
    "started": {"manual": "block", "probe": "probe", "read": "repeat", "idempotent": "repeat", "keyed": "repeat"},
    "failed_unknown": {
        "manual": "block",
        "probe": "probe",
        "read": "repeat",
        "idempotent": "repeat",
        "keyed": "repeat",
    },
}


@pytest.fixture
def world() -> World:
    return World()


def test_the_table_is_complete() -> None:
    assert set(TABLE) == set(get_args(EffectStatus))


@pytest.mark.parametrize(
    ("status", "recovery", "move"), [(s, r, m) for s, row in TABLE.items() for r, m in row.items()]
)
def test_each_state_has_its_move(status: EffectStatus, recovery: Recovery, move: str) -> None:
    record = EffectRecord("e", "s", recovery, "t", "", status, 1, EVENT)
    assert next_move(record, recovery) == move
    for open_receipt in (record._replace(redactions=1), record._replace(unkept="a set is not JSON")):
        assert next_move(open_receipt, recovery) == ("look" if move == "return" else move)


def test_an_effect_nobody_knows_of_is_started() -> None:
    assert all(next_move(None, recovery) == "start" for recovery in get_args(Recovery))


def interrupted(world: World, **options: Any) -> None:
    """A run whose process died between the intent and the outcome of an effect."""
    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("send", world.crash, **options)


def test_the_intent_is_stored_before_the_act_and_the_receipt_after() -> None:
    world = World()

    def act() -> str:
        assert [event.type for event in world.store.read("mail@00000001")][-1] == "effect.started"
        return "receipt"

    with world.runtime.run("mail") as run:
        assert run.effect("send", act) == "receipt"
    types = [event.type for event in world.store.read("mail@00000001")]
    assert types == ["run.started", "effect.started", "effect.succeeded", "run.completed"]


def test_an_effect_of_unknown_outcome_blocks_the_run_before_anything_is_done() -> None:
    world = World()
    interrupted(world)
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("mail")
    assert caught.value.code == "effect_outcome_unknown"


@pytest.mark.parametrize(("choice", "calls"), [("mark_done", []), ("retry", ["sent"])])
def test_a_person_settles_what_nobody_knows(choice: Any, calls: list[str]) -> None:
    world = World()
    interrupted(world)
    (record,) = world.runtime.state("mail@00000001").unknown_effects
    world.runtime.settle("mail@00000001", record.effect, choice, note="looked in the outbox")
    with world.runtime.run("mail") as run:
        run.effect("send", lambda: world.note("sent"))
    assert world.calls == calls


def test_compensation_undoes_the_effect_and_stops_the_run() -> None:
    world = World()
    interrupted(world, compensate=lambda: None)
    (record,) = world.runtime.state("mail@00000001").unknown_effects
    world.runtime.settle("mail@00000001", record.effect, "compensate")
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
        run.effect("send", lambda: world.note("sent"), compensate=lambda: world.note("undone"))
    assert caught.value.code == "effect_failed"
    assert world.calls == ["undone"]


def settled(world: World, choice: Any) -> None:
    (record,) = world.runtime.state("mail@00000001").unknown_effects
    world.runtime.settle("mail@00000001", record.effect, choice)


def test_an_effect_without_a_way_to_undo_it_is_not_undone() -> None:
    world = World()
    interrupted(world)
    (question,) = world.runtime.waiting("mail@00000001")[1]
    assert question.answers == ("mark-done", "retry")
    with pytest.raises(RunBlocked) as caught:
        settled(world, "compensate")
    assert caught.value.code == "effect_outcome_unknown"
    assert "workpacket resume mail@00000001 --retry send" in caught.value.hint
    settled(world, "retry")
    with world.runtime.run("mail") as run:
        run.effect("send", lambda: world.note("sent"))
    assert world.calls == ["sent"]


def test_an_effect_with_a_way_to_undo_it_may_be_undone() -> None:
    world = World()
    interrupted(world, compensate=lambda: None)
    (question,) = world.runtime.waiting("mail@00000001")[1]
    assert question.answers == ("mark-done", "retry", "compensate")


@pytest.mark.parametrize("recovery", get_args(Recovery))
def test_an_answer_that_the_program_cannot_carry_out_opens_the_question_again(recovery: Recovery) -> None:
    """A store of an older version may hold one, and a program may have lost its way to undo the effect."""
    world = World()
    interrupted(world, recovery=recovery, compensate=lambda: None)
    settled(world, "compensate")
    for _ in range(2):
        with suppress(RunBlocked), world.runtime.run("mail") as run:
            run.effect("send", lambda: world.note("sent"), recovery=recovery)
        if recovery in REPEATABLE:
            break  # its author lets it be repeated, so no one is asked
        (question,) = world.runtime.waiting("mail@00000001")[1]
        assert (question.code, question.answers) == ("effect_outcome_unknown", ("mark-done", "retry"))
    assert world.calls == []


def test_a_program_that_catches_such_an_answer_does_not_finish_its_run() -> None:
    world = World()
    interrupted(world, compensate=lambda: None)
    settled(world, "compensate")
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run, suppress(RunBlocked):
        run.effect("send", lambda: world.note("sent"))
    assert (caught.value.code, world.calls) == ("effect_outcome_unknown", [])


@pytest.mark.parametrize("confirm", [False, True])
def test_an_effect_that_was_undone_is_repeated_only_if_a_person_says_so(confirm: bool) -> None:
    world = World()
    world.ask = lambda _, __: True
    interrupted(world, confirm=confirm, compensate=lambda: None, key="k")
    settled(world, "compensate")

    def start() -> RunBlocked | None:
        try:
            with world.runtime.run("mail") as run:
                run.effect(
                    "send",
                    lambda: world.note("sent"),
                    confirm=confirm,
                    key="k",
                    compensate=lambda: world.note("undone"),
                )
        except RunBlocked as blocked:
            return blocked
        return None

    for _ in range(3):
        blocked = start()
        assert blocked is not None
        assert (blocked.code, world.calls) == ("effect_failed", ["undone"])
        assert blocked.hint == "repeat it: workpacket resume mail@00000001 --retry send"
        (question,) = world.runtime.waiting("mail@00000001")[1]
        assert (question.question, question.answers) == ("send was undone; do it again?", ("retry", "mark-done"))
    (record,) = world.runtime.state("mail@00000001").effects.values()
    with pytest.raises(RunBlocked):
        world.runtime.settle("mail@00000001", record.effect, "compensate")
    world.runtime.settle("mail@00000001", record.effect, "retry")
    assert start() is None
    assert world.calls == ["undone", "sent"]


def test_a_program_may_go_on_without_an_effect_that_was_undone() -> None:
    world = World()
    interrupted(world, compensate=lambda: None)
    settled(world, "compensate")

    def program(*, dies: bool = False) -> None:
        with world.crashing(world.runtime.run("mail")) as run:
            with suppress(RunBlocked):
                run.effect("send", lambda: world.note("sent"), compensate=lambda: world.note("undone"))
            run.step("other way", world.crash if dies else lambda: world.note("by post"))

    program(dies=True)
    program()
    assert world.calls == ["undone", "by post"]


def test_a_copy_of_the_run_does_not_repeat_an_effect_that_was_undone() -> None:
    world = World()
    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("send", world.crash, compensate=lambda: None)
    settled(world, "compensate")
    with suppress(RunBlocked), world.runtime.run("mail") as run:
        with suppress(RunBlocked):
            run.effect("send", lambda: world.note("sent"), compensate=lambda: world.note("undone"))
        run.checkpoint(name="here")
        raise RunBlocked("stop", code="user_stopped")
    world.runtime.fork("mail@00000001", "here", key="copy")
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail", key="copy") as run:
        run.effect("send", lambda: world.note("sent"), compensate=lambda: world.note("undone"))
    assert (caught.value.code, world.calls) == ("effect_failed", ["undone"])


SECRET = "ghp_" + "A1b2" * 9


@pytest.mark.parametrize("key", [None, "letter-Eve"])
def test_the_question_about_an_effect_says_which_one(key: str | None) -> None:
    world = World()
    at = world.clock.now()
    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("send", lambda *_, **__: world.crash(), "Eve", key=key, text="hello", header=SECRET)
    (question,) = world.runtime.waiting("mail@00000001")[1]
    assert isinstance(question.arguments, Mapping)
    assert (question.arguments["0"], question.arguments["text"]) == ("Eve", "hello")
    assert SECRET not in str(question.as_json())
    assert (question.key, question.begun_at - at < 1_000_000) == (key or "", True)
    assert question.as_json()["key"] == (key or "")


def test_a_secret_in_a_key_is_not_shown() -> None:
    world = World()
    interrupted(world, key=SECRET)
    (question,) = world.runtime.waiting("mail@00000001")[1]
    assert SECRET not in str(question.as_json())
    assert question.key != ""


def test_a_long_argument_is_stored_by_its_length() -> None:
    world = World()
    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("send", lambda *_: world.crash(), "Eve", "x" * 1_000_000)
    (question,) = world.runtime.waiting("mail@00000001")[1]
    assert question.arguments == {"0": "Eve", "1": "<1000002 characters>"}


def test_a_copy_of_the_run_asks_the_same_question() -> None:
    world = World()
    with world.crashing(world.runtime.run("mail")) as run:
        run.checkpoint(name="here")
        run.effect("send", lambda *_: world.crash(), "Eve", key="k", compensate=lambda: None)
    world.runtime.state("mail@00000001")
    with suppress(RunBlocked), world.runtime.run("mail"):
        pass
    (first,) = world.runtime.waiting("mail@00000001")[1]
    assert (first.key, first.arguments) == ("k", {"0": "Eve"})


def test_only_an_effect_in_doubt_can_be_settled() -> None:
    world = World()
    with world.runtime.run("mail") as run:
        run.effect("send", lambda: "sent")
    with pytest.raises(RunBlocked):
        world.runtime.settle(run.id, next(iter(run.state.effects)), "retry")


@pytest.mark.parametrize("recovery", ["read", "idempotent", "keyed"])
def test_what_may_be_repeated_is_repeated_with_the_same_key_and_reported(recovery: Recovery) -> None:
    world = World()

    def send(key: str) -> str:
        return world.note(key)

    interrupted(world, key="invoice-10", recovery=recovery)
    with world.runtime.run("mail") as run:
        run.effect("send", send, key="invoice-10", recovery=recovery)
        assert run.repeated == ("send",)
    assert world.calls == ["invoice-10"]


@pytest.mark.parametrize(("happened", "calls"), [(True, []), (False, ["sent"])])
def test_the_probe_decides(happened: bool, calls: list[str]) -> None:
    world = World()

    def probe() -> str:
        if happened:
            return "found"
        raise NotDone

    interrupted(world, recovery="probe", probe=probe)
    with world.runtime.run("mail") as run:
        receipt = run.effect("send", lambda: world.note("sent"), recovery="probe", probe=probe)
    assert receipt == ("found" if happened else "sent")
    assert world.calls == calls
    (last,) = [event for event in world.store.read("mail@00000001") if event.type == "effect.succeeded"]
    assert last.values().get("by_probe", False) == happened


def test_a_probe_that_was_promised_and_is_missing_blocks() -> None:
    world = World()
    interrupted(world, recovery="probe", probe=world.crash)
    with pytest.raises(RunBlocked), world.runtime.run("mail") as run:
        run.effect("send", lambda: world.note("sent"), recovery="probe")
    assert world.calls == []


def test_an_error_in_a_manual_effect_leaves_its_outcome_unknown_and_is_not_retried() -> None:
    world = World()

    def times_out() -> str:
        world.note("try")
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError), world.runtime.run("mail") as run:
        run.using(retry=Retry(attempts=5, first=0.1)).effect("send", times_out)
    assert world.calls == ["try"]
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("mail")
    assert caught.value.code == "effect_outcome_unknown"


def test_an_error_in_an_idempotent_effect_is_retried() -> None:
    world = World()

    def flaky() -> str:
        world.note("try")
        if len(world.calls) < 3:
            raise TimeoutError("no answer")
        return "receipt"

    with world.runtime.run("mail") as run:
        options = run.using(retry=Retry(attempts=5, first=0.1))
        assert options.effect("send", flaky, recovery="idempotent") == "receipt"


def test_one_key_succeeds_once_wherever_it_is_asked_for() -> None:
    world = World()
    with world.runtime.run("mail") as run:
        assert run.effect("send", world.note, "first", key="k") == "first"
        assert run.effect("send", world.note, "first", key="k") == "first"
    assert world.calls == ["first"]


def test_an_effect_asked_for_with_other_arguments_is_refused() -> None:
    world = World()
    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("send", world.note, "a@example.org")
        world.crash()
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
        run.effect("send", world.note, "b@example.org")
    assert caught.value.code == "step_changed"
    assert world.calls == ["a@example.org"]


def test_arguments_that_have_no_hash_need_a_key() -> None:
    world = World()
    with pytest.raises(ValueError, match="/0: object"), world.runtime.run("mail") as run:
        run.effect("send", lambda _: None, object())
    with world.runtime.run("mail") as run:
        run.effect("send", lambda _: None, object(), key="named")


def test_an_effect_that_has_to_be_confirmed_waits_with_its_intent_stored() -> None:
    world = World()
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
        run.effect("send", world.note, "sent", confirm=True)
    assert caught.value.code == "needs_confirmation"
    assert world.calls == []
    world.runtime.confirm("mail@00000001", str(caught.value.details["subject"]), yes=True)
    with world.runtime.run("mail") as run:
        run.effect("send", world.note, "sent", confirm=True)
    assert world.calls == ["sent"]


def test_an_effect_nobody_confirmed_is_never_started() -> None:
    world = World()
    for _ in range(2):
        with pytest.raises(RunBlocked), world.runtime.run("mail") as run:
            run.effect("send", world.note, "sent", confirm=True)
    assert world.calls == []


def test_a_cancelled_run_gives_stored_receipts_and_begins_no_further_effect() -> None:
    world = World()

    def acts(run: Run) -> None:
        run.effect("send", world.note, "first", key="k")
        world.runtime.cancel(run.id, "enough")
        world.clock.advance(1)
        run._session.recorder.catch_up()
        world.note(f"still {run.effect('send', world.note, 'first', key='k')}")
        run.effect("another", world.note, "second", key="l")

    with pytest.raises(RunCancelled), world.runtime.run("mail") as run:
        acts(run)
    assert world.calls == ["first", "still first"]


def test_the_identity_of_an_effect_is_its_place_and_its_arguments_or_its_key() -> None:
    by_place = {identity("s", step, "manual", "t", args) for step in "ab" for args in ("jcs-1:1", "jcs-1:2")}
    by_key = {identity("s", step, "manual", "t", KEYED + "1") for step in "ab"}
    assert (len(by_place), len(by_key)) == (4, 1)
    assert not by_place & by_key


def test_a_receipt_that_held_a_secret_is_kept_without_it_counted_and_not_handed_out() -> None:
    world = World()
    secret = "ghp_" + "A" * 36
    with world.crashing(world.runtime.run("mail")) as run:
        assert run.effect("send", lambda: {"token": secret, "id": 7}) == {"token": secret, "id": 7}
        run.effect("plain", lambda: "receipt")
        world.crash()
    with pytest.raises(ReceiptRedacted), world.runtime.run("mail") as run:
        run.effect("send", world.crash)
    counted = [e.values().get("redactions") for e in world.store.read(run.id) if e.type == "effect.succeeded"]
    assert counted == [1, None]


def test_an_intent_is_stored_once_however_often_the_question_is_asked() -> None:
    world = World()
    for _ in range(3):
        with pytest.raises(RunBlocked), world.runtime.run("mail") as run:
            run.effect("send", world.note, "sent", confirm=True)
    types = [event.type for event in world.store.read("mail@00000001")]
    assert types.count("effect.intended") == 1
    assert types.count("confirmation.requested") == 1


def told(world: World, type_: str) -> list[dict[str, Any]]:
    """What the records of this type say, without the identities, which are hashes."""
    records = [dict(event.values()) for event in world.store.read("mail@00000001") if event.type == type_]
    return [{key: value for key, value in record.items() if key not in {"effect", "args_hash"}} for record in records]


def test_each_record_of_an_effect_says_what_was_done() -> None:
    world = World()
    with world.runtime.run("mail") as run:
        run.effect("send", lambda: "receipt", target="a@example.org", recovery="keyed", key="k")
    place = {"kind": "keyed", "step": "send", "target": "a@example.org"}
    assert told(world, "effect.started") == [{**place, "args": {}, "attempt": 1, "key": "k"}]
    assert told(world, "effect.succeeded") == [{**place, "result_hash": jcs_hash("receipt")}]
    (record,) = world.runtime.state("mail@00000001").effects.values()
    assert record.effect == jcs_hash(["mail@00000001", f"key:{jcs_hash('k')}"])
    assert record.args_hash == f"key:{jcs_hash('k')}"


@pytest.mark.parametrize(("error", "definite"), [(NotDone("refused"), True), (TimeoutError("refused"), False)])
def test_a_failed_effect_is_recorded_before_its_error_is_raised(error: Exception, definite: bool) -> None:
    world = World()

    def fails() -> None:
        raise error

    with pytest.raises(type(error)), world.runtime.run("mail") as run:
        run.effect("send", fails)
    said = f"{type(error).__name__}: refused"
    (record,) = told(world, "effect.failed")
    assert (record["step"], record["definite"], record["error"]) == ("send", definite, said)
    assert record["raised"]["args"] == ["refused"]


def test_an_effect_that_is_undone_is_recorded_as_not_done() -> None:
    world = World()
    interrupted(world, compensate=lambda: None)
    (record,) = world.runtime.state("mail@00000001").unknown_effects
    world.runtime.settle("mail@00000001", record.effect, "compensate")
    with pytest.raises(RunBlocked), world.runtime.run("mail") as run:
        run.effect("send", world.crash, compensate=lambda: None)
    assert told(world, "effect.failed") == [{"step": "send", "definite": True, "error": "compensated"}]


def test_a_key_whose_outcome_is_unknown_is_not_used_again_in_the_same_attempt() -> None:
    world = World()

    def times_out() -> None:
        world.note("try")
        raise TimeoutError

    def acts(run: Run) -> None:
        with pytest.raises(TimeoutError):
            run.effect("send", times_out, key="k")
        run.effect("send", times_out, key="k")

    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
        acts(run)
    assert (world.calls, caught.value.code) == (["try"], "effect_outcome_unknown")
    assert caught.value.details == {
        "effect": jcs_hash(["mail@00000001", f"key:{jcs_hash('k')}"]),
        "step": "send#2",
        "choices": ["mark_done", "retry"],
    }


def test_a_run_that_allows_it_asks_for_another_effect_in_the_same_place() -> None:
    world = World()
    with world.crashing(world.runtime.run("mail")) as run:
        run.effect("send", world.note, "a@example.org")
        world.crash()
    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run:
        run.effect("send", world.note, "b@example.org")
    assert caught.value.details == {"step": "send"}
    with world.runtime.run("mail") as run:
        run.using(changed="redo").effect("send", world.note, "b@example.org")
    assert world.calls == ["a@example.org", "b@example.org"]


def test_tries_come_to_an_end() -> None:
    world = World()

    def times_out() -> None:
        world.note("try")
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError), world.runtime.run("mail") as run:
        run.using(retry=Retry(attempts=3, first=0.1)).effect("send", times_out, recovery="idempotent")
    assert world.calls == ["try"] * 3


def test_a_fault_of_the_runtime_itself_says_nothing_about_the_effect() -> None:
    world = World()

    def asks() -> None:
        world.note("asked")
        raise RunBlocked("waiting for a person", code="needs_confirmation")

    with pytest.raises(RunBlocked), world.runtime.run("mail") as run:
        run.using(retry=Retry(attempts=3)).effect("send", asks, recovery="idempotent")
    assert (world.calls, told(world, "effect.failed")) == (["asked"], [])


def test_an_effect_counts_in_the_place_where_it_was_asked_for_last() -> None:
    world = World()

    def refused(_: str) -> str:
        raise NotDone

    def acts(run: Run) -> None:
        with pytest.raises(NotDone):
            run.effect("send", refused, "sent", key="k")
        run.effect("send", world.note, "sent", key="k")
        world.crash()

    with world.crashing(world.runtime.run("mail")) as run:
        acts(run)
    assert run.state.effect_steps == {"send": 0, "send#2": 1}
    world.policy = ResumePolicy(allow_unasked=True)
    with world.runtime.run("mail") as run:
        run.effect("send", world.note, "another", key="l")
    assert world.calls == ["sent", "another"]


def by_position(key: str) -> None: ...
def by_name(*, key: str) -> None: ...
def by_place_only(key: str, /) -> None: ...
def among_others(*key: str) -> None: ...
def in_any(**key: str) -> None: ...
def as_its_own() -> None:
    key = "k"
    del key


@functools.wraps(by_name)
def around(*args: Any, **kwargs: Any) -> None: ...


class Sender:
    def send(self, key: str) -> None: ...
    def __call__(self, *, key: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (by_position, True), (by_name, True), (by_place_only, False), (among_others, False), (in_any, False),
        (as_its_own, False), (around, True), (Sender().send, True), (Sender(), True), (dict, False),
        (functools.partial(by_name), True), (lambda: None, False), (print, False),
    ],
)  # fmt: skip
def test_a_function_is_given_the_key_if_it_asks_for_it_by_name(function: Callable[..., object], takes: bool) -> None:
    assert takes_key(function) == takes
    if inspect.isfunction(function):
        named = {name for name, one in inspect.signature(function).parameters.items() if one.kind in NAMED}
        assert ("key" in named) == takes


NAMED = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


def test_a_completed_run_of_before_with_an_effect_in_doubt_is_listed_as_what_it_is() -> None:
    """Older versions finished a run whose program had caught the error."""
    world = World()

    def fails() -> None:
        raise TimeoutError

    with pytest.raises(RunBlocked), world.runtime.run("mail", key="k") as run, pytest.raises(TimeoutError):
        run.effect("send", fails)
    with world.runtime.run("other") as other:
        pass
    recorder = world.runtime._outsider(run.id)
    recorder.record(RecordDraft("run.completed", {"steps": 0, "effects": 1}))
    listed = {line.id: (line.liveness, line.attention) for line in world.runtime.runs()}
    assert listed == {run.id: ("completed", "effect_outcome_unknown"), other.id: ("completed", "")}
    assert world.runtime.summary(run.id).attention == "effect_outcome_unknown"
    decision, questions = world.runtime.waiting(run.id)
    assert (decision.code, [one.kind for one in questions]) == ("effect_outcome_unknown", ["outcome"])
    world.runtime.settle(run.id, questions[0].digest, "mark_done")
    assert world.runtime.plan(run.id).action == "COMPLETE"


def test_an_effect_that_only_reads_may_stay_unknown() -> None:
    world = World()

    def fails() -> None:
        raise TimeoutError

    with world.runtime.run("mail", key="k") as run, suppress(TimeoutError):
        run.effect("look", fails, recovery="read")
    assert world.runtime.state(run.id).status == "completed"


@pytest.mark.parametrize("recovery", ["manual", "keyed", "idempotent", "probe"])
def test_a_run_with_an_effect_of_unknown_outcome_is_not_finished(recovery: Recovery) -> None:
    world = World()

    def fails() -> None:
        raise TimeoutError

    with pytest.raises(RunBlocked) as caught, world.runtime.run("mail") as run, suppress(TimeoutError):
        run.effect("send", fails, recovery=recovery)
    assert caught.value.code == "effect_outcome_unknown"
    assert world.runtime.state(run.id).status == "stopped"


def test_the_state_that_a_run_keeps_is_the_one_that_its_log_says() -> None:
    """Of its own records a run does not read the text back."""
    world, secret = World(), "ghp_" + "a" * 36
    with world.runtime.run("import") as run:
        run.step("fetch", lambda *rows, **more: [*rows, more], ["é", 1.5, None], größe={"x": 3})
        run.step("hidden", lambda: secret)
        run.effect("mail", world.note, "to ann")
        run.effect("pay", str, Decimal("1.50"), key="k", target=f"account {secret}")
        run.effect("pay", world.note, "ann", key="k2", target="größe")
        with pytest.raises(RunBlocked):
            run.effect("odd", lambda: {1, 2}, key="k3")
        run.effect("told", lambda: secret, key="k4")
        with pytest.raises(ReceiptRedacted):
            run.effect("told", lambda: secret, key="k4")
        assert run.state == fold(world.store.read(run.id))


# ---- an outcome that stays unknown -------------------------------------------------------------------------------


def lenient(world: World) -> Callable[[Run], str]:
    """A program that goes on although it is unknown whether its mail was sent."""

    def send() -> str:
        world.note("sent")
        raise TimeoutError("no answer")

    def program(run: Run) -> str:
        try:
            run.effect("mail", send, key="mail-7")
        except TimeoutError as error:
            run.accept_unknown("mail-7")
            return str(error)
        return "sent"

    return program


def test_a_run_is_finished_although_an_outcome_is_unknown_if_its_author_accepts_that(world: World) -> None:
    for _ in range(2):
        with world.runtime.run("order", key="1") as run:
            assert lenient(world)(run) == "no answer"
    assert world.runtime.state("order@1").status == "completed"
    assert world.calls == ["sent"], "an accepted outcome is no reason to act again"


def test_a_later_attempt_fails_with_the_same_error_where_the_outcome_was_accepted(world: World) -> None:
    with world.crashing(world.runtime.run("order")) as run:
        lenient(world)(run)
        world.crash()
    with world.runtime.run("order") as run:
        assert lenient(world)(run) == "no answer"
    assert world.calls == ["sent"]


def test_only_the_accepted_outcome_is_accepted(world: World) -> None:
    def fail() -> None:
        raise TimeoutError("no answer")

    def program(run: Run) -> None:
        with suppress(TimeoutError):
            run.effect("other", fail)
        lenient(world)(run)

    with pytest.raises(RunBlocked, match="other") as blocked, world.runtime.run("order") as run:
        program(run)
    assert blocked.value.code == "effect_outcome_unknown"


def test_an_effect_is_named_by_its_step_too_and_one_that_happened_stays_as_it_is(world: World) -> None:
    with world.runtime.run("order") as run:
        run.effect("mail", world.note, "mail")
        run.accept_unknown("mail")
        assert [record.status for record in run.state.effects.values()] == ["succeeded"]
        with pytest.raises(RunBlocked, match="no effect with the key or step 'male'"):
            run.accept_unknown("male")


def test_an_effect_that_a_timeout_cut_short_can_be_accepted(world: World) -> None:
    async def send() -> str:
        world.note("sent")
        await asyncio.sleep(30)
        return "sent"

    async def program() -> str:
        async with world.runtime.async_run("order", key="1") as run:
            try:
                return await asyncio.wait_for(run.effect("mail", send, key="k"), 0.05)
            except TimeoutError:
                await run.accept_unknown("k")
                return "late"

    assert [asyncio.run(program()), asyncio.run(program())] == ["late", "late"]
    assert world.calls == ["sent"]


def test_a_timeout_that_nobody_accepts_keeps_the_run_from_being_finished(world: World) -> None:
    async def program() -> None:
        async with world.runtime.async_run("order") as run:
            with suppress(TimeoutError):
                await asyncio.wait_for(run.effect("mail", asyncio.sleep, 30), 0.05)

    with pytest.raises(RunBlocked) as blocked:
        asyncio.run(program())
    assert blocked.value.code == "effect_outcome_unknown"
