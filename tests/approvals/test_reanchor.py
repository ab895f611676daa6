"""The record of a new root of trust, and what speaks against an entry of it."""

from __future__ import annotations

import pytest

from workpacket.approvals.policy import (
    HEADER,
    NewRoot,
    PolicyChange,
    is_reason,
    named_in,
    read_record,
    unfit_record,
    written,
)
from workpacket.problem import Problem
from workpacket.value import replace

OLD, NEW, NEXT = "1" * 64, "2" * 64, "3" * 64
ROOT = NewRoot("2026-11-19T03:00:00Z", "the keys were not kept", OLD, NEW)
RECORD = (HEADER + written(ROOT)).encode()
CHANGE = PolicyChange(b"", RECORD, OLD, NEW, frozenset({NEW}))
LATER = replace(ROOT, replaced=NEW, policy=NEXT)


def against(change: PolicyChange) -> list[str]:
    return [each.code for each in unfit_record(change)]


def test_what_is_written_is_read() -> None:
    assert read_record(RECORD) == (ROOT,)
    assert read_record(RECORD + written(LATER).encode()) == (ROOT, LATER)


def test_nothing_speaks_against_the_policy_that_the_base_names() -> None:
    assert against(CHANGE) == []
    later = PolicyChange(RECORD, RECORD + written(LATER).encode(), NEW, NEXT, frozenset({NEW, NEXT}))
    assert against(later) == []


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (replace(CHANGE, named=frozenset()), ["reanchor_unnamed"]),
        (replace(CHANGE, named=frozenset({OLD})), ["reanchor_unnamed"]),
        (replace(CHANGE, replaced=NEXT), ["reanchor_unfit"]),
        (replace(CHANGE, policy=NEXT), ["reanchor_unfit"]),
        (replace(CHANGE, after=b""), ["reanchor_unfit"]),
        (replace(CHANGE, before=RECORD), ["reanchor_unfit"]),
        (replace(CHANGE, before=RECORD, after=HEADER.encode() + written(LATER).encode()), ["reanchor_unfit"]),
        (replace(CHANGE, before=b"# lost\n"), ["reanchor_unfit"]),
        (replace(CHANGE, after=RECORD + written(LATER).encode(), replaced=NEW, policy=NEXT), ["reanchor_unfit"]),
    ],
)
def test_what_does_not_fit_is_refused(change: PolicyChange, codes: list[str]) -> None:
    assert against(change) == codes


def test_the_sentence_says_when_and_why() -> None:
    said = (
        "the root of trust was replaced at 2026-11-19T03:00:00Z without approval by a key in the previous policy: "
        "lost by x; earlier approvals are judged by the policy that applied at the time"
    )
    assert replace(ROOT, reason="lost by x").sentence == said
    assert replace(ROOT, reason="lost by x.").sentence == said


@pytest.mark.parametrize("again", [OLD, NEW])
def test_a_policy_that_was_in_force_does_not_come_back(again: str) -> None:
    """Its digest is still named by the CI configuration of the base, where nobody has to take it out."""
    entry = replace(ROOT, replaced=NEXT, policy=again)
    change = PolicyChange(RECORD, RECORD + written(entry).encode(), NEXT, again, frozenset({OLD, NEW}))
    (problem,) = unfit_record(change)
    assert (problem.code, "cannot be used twice" in problem.message) == ("reanchor_unfit", True)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((b"[[reanchor]]", b"[reanchor]"), "reanchor is not a list of at least one table"),
        ((b"reason =", b"why ="), "reanchor[0].reason is missing; reanchor[0].why is unknown"),
        (
            (b'"the keys', b'"\\u001bthe keys'),
            "reanchor[0].reason is not a single line of text without quotes or backslashes",
        ),
        ((b"2026-11-19", b"2026-13-19"), "2026-13-19T03:00:00Z is not a valid time"),
        ((b"00Z", b"00"), "reanchor[0].at is not a valid time"),
        ((b"[[reanchor]]", b"more = 1\n[[reanchor]]"), "more is unknown"),
        ((b'replaced = "1', b'replaced = "'), "reanchor[0].replaced is not a SHA-256 digest"),
        ((b"[[reanchor]]", b"[["), "not TOML"),
        ((b"# New", b"\xff"), "not TOML"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(change: tuple[bytes, bytes], complaint: str) -> None:
    problem = read_record(RECORD.replace(*change))
    assert isinstance(problem, Problem)
    assert problem.code == "reanchor_unfit"
    assert problem.message == complaint or complaint == "not TOML" == problem.message[:8]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"# WORKPACKET_REANCHOR={NEW}", {NEW}),
        (f"  WORKPACKET_REANCHOR: '{NEW}'", {NEW}),
        (f'export WORKPACKET_REANCHOR="{NEW}"; WORKPACKET_REANCHOR={OLD}', {NEW, OLD}),
        (f"WORKPACKET_REANCHOR={NEW}0", set()),
        (f"WORKPACKET_REANCHOR={NEW[1:]}", set()),
        (f"WORKPACKET_REANCHOR is {NEW}", set()),
    ],
)
def test_a_digest_is_named_by_its_variable(text: str, found: set[str]) -> None:
    assert named_in(text) == found


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("lost", True),
        ("", False),
        ("two\nlines", False),
        ('with "quotes"', False),
        ("a\\b", False),
        ("x" * 240, True),
        (f"{'x' * 240}!", False),
    ],
)
def test_a_reason_is_one_plain_line(text: str, fits: bool) -> None:
    assert is_reason(text) is fits
