"""A recorded failure is raised again as it was, as far as it could be kept; a record never makes code run."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.worlds import World
from workpacket.runtime import Run
from workpacket.runtime.errors import NotDone, RunBlocked, StepFailed
from workpacket.runtime.records.failures import failure_again, failure_data


class OwnError(LookupError):
    def __init__(self, table: str, row: int) -> None:
        super().__init__(table, row)
        self.row = row


class OtherSignature(ValueError):
    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such row"),
        KeyError("x"),
        FileNotFoundError(2, "No such file", "a.txt"),
        OwnError("users", 7),
        OtherSignature(code=3),
        NotDone("queue full"),
        TimeoutError(),
        SystemExit(3),
        ValueError(object()),
        Exception("bare"),
        ValueError("x" * 5000),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_is_raised_again_with_its_class_and_text(error: BaseException) -> None:
    again = failure_again(json.loads(json.dumps(failure_data(error))))
    assert type(again) is type(error)
    assert str(again)[:1900] == str(error)[:1900]


def test_an_error_with_attributes_made_from_its_arguments_has_them_again() -> None:
    again = failure_again(failure_data(OwnError("users", 7)))
    assert isinstance(again, OwnError)
    assert again.row == 7


def test_a_fault_of_the_runtime_keeps_its_code_and_its_hint() -> None:
    again = failure_again(failure_data(RunBlocked("stopped", code="needs_confirmation", hint="say yes")))
    assert isinstance(again, RunBlocked)
    assert (again.code, again.message, again.hint, again.details) == ("needs_confirmation", "stopped", "say yes", {})


def test_of_a_class_that_is_not_known_the_nearest_known_one_above_it_is_raised() -> None:
    def local() -> type[Exception]:
        class Local(OSError):
            pass

        return Local

    again = failure_again(failure_data(local()("gone")))
    assert (type(again), str(again)) == (OSError, "gone")


def test_nothing_is_imported_for_a_record() -> None:
    sys.modules.pop("this", None)
    again = failure_again({"error": "Error: x", "raised": {"types": ["this:Error", "builtins:Exception"], "args": []}})
    assert (type(again), "this" in sys.modules) == (StepFailed, False)


@pytest.mark.parametrize(("said", "kind"), [("ValueError: no row", ValueError), ("OwnError: x", StepFailed)])
def test_a_failure_recorded_without_its_class_is_raised_by_the_name_in_its_text(
    said: str, kind: type[Exception]
) -> None:
    assert type(failure_again({"error": said})) is kind


def test_half_a_character_in_the_text_of_an_error_does_not_replace_the_error() -> None:
    assert failure_data(OSError("a\udcff"))["error"] == "OSError: a\\udcff"


ANY_TEXT = st.text(st.characters(codec=None))  # lone surrogates too: names of files may contain them


@given(text=ANY_TEXT, reason=ANY_TEXT)
def test_no_text_of_an_exception_makes_its_record_fail(text: str, reason: str) -> None:
    world = World()

    def fail(kind: type[Exception]) -> None:
        raise kind(text)

    def program(run: Run) -> None:
        for kind in (ValueError, OwnText):
            with pytest.raises(kind) as raised:
                run.step("fail", fail, kind)
            assert type(raised.value) is kind
        with pytest.raises(NotDone):
            run.effect("refuse", lambda: fail(NotDone), key="k")

    def stopped(run: Run) -> None:
        world.runtime.confirm(run.id, "subject", yes=True, note=reason)
        fail(ValueError)

    for _ in range(2):
        with world.runtime.run("names", key="1") as run:
            program(run)
    (effect,) = world.runtime.state("names@1").effects.values()
    assert effect.status == "failed", "what certainly did not happen is certain"
    with pytest.raises(ValueError) as error, world.runtime.run("names", key="2") as run:
        stopped(run)
    assert error.value.args == (text,)
    world.runtime.cancel("names@2", reason)
    assert world.runtime.state("names@2").status == "cancelled"


class OwnText(Exception):
    """Its text is not text that can be written as UTF-8."""

    def __str__(self) -> str:
        return f"{self.args[0]}\udc80" * 2000
