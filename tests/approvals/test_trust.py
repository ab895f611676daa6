"""The memory of the policy last seen."""

from __future__ import annotations

import pytest

from workpacket.approvals.policy import Pin, judge_base, read_pin
from workpacket.problem import Problem
from workpacket.value import replace

PINNED = Pin("1" * 40, "a" * 40, "5" * 64)
SEEN = Pin("1" * 40, "b" * 64, "6" * 64)


def test_what_is_written_is_read() -> None:
    assert read_pin(PINNED.to_bytes()) == PINNED
    assert read_pin(SEEN.to_bytes()) == SEEN


def test_the_file_is_one_line_of_json() -> None:
    content = f'{{"base":"{"a" * 40}","policy":"{"5" * 64}","rootCommit":"{"1" * 40}","v":1}}\n'
    assert PINNED.to_bytes().decode() == content


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('"v":1', '"v":2'), "v is not a whole number from 1 to 1"),
        (('"v":1', '"v":1,"x":0'), "x is unknown"),
        (('"base":"a', '"base":"A'), "base is not a commit"),
        (('"policy":"5', '"policy":"'), "policy is not a SHA-256 digest"),
        (('"rootCommit":"', '"rootCommit":"x'), "rootCommit is not a commit"),
        (("{", ""), "not JSON at line 1, column 7: Extra data"),
        (('"v"', '"v":1,"v"'), "key 'v' appears twice in one object"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(change: tuple[str, str], complaint: str) -> None:
    refusal = read_pin(PINNED.to_bytes().decode().replace(*change).encode(), "trust.json")
    assert isinstance(refusal, Problem)
    assert (refusal.code, refusal.path) == ("trust_file_malformed", "trust.json")
    assert refusal.message == complaint


def test_all_faults_of_the_file_are_named_at_once() -> None:
    refusal = read_pin(b'{"v":1,"base":"","rootCommit":""}', "trust.json")
    assert isinstance(refusal, Problem)
    assert refusal.message == "rootCommit is not a commit; base is not a commit; policy is missing"


def test_the_first_policy_seen_is_believed() -> None:
    assert judge_base(None, SEEN, pinned_is_ancestor=False) == SEEN


def test_a_base_that_has_moved_on_is_believed_and_remembered() -> None:
    assert judge_base(PINNED, SEEN, pinned_is_ancestor=True) == SEEN


def test_an_older_base_with_the_same_policy_is_believed_and_the_memory_kept() -> None:
    assert judge_base(PINNED, replace(SEEN, policy=PINNED.policy), pinned_is_ancestor=False) == PINNED


def test_the_same_commit_with_the_same_policy_is_believed() -> None:
    for pinned_is_ancestor in (True, False):
        assert judge_base(PINNED, PINNED, pinned_is_ancestor=pinned_is_ancestor) == PINNED


def test_the_same_commit_with_another_policy_was_overwritten() -> None:
    refusal = judge_base(PINNED, replace(PINNED, policy="7" * 64), pinned_is_ancestor=True)
    assert isinstance(refusal, Problem)
    assert refusal.code == "policy_rolled_back"


def test_an_older_base_with_another_policy_is_a_rollback() -> None:
    refusal = judge_base(PINNED, SEEN, pinned_is_ancestor=False)
    assert isinstance(refusal, Problem)
    assert refusal.code == "policy_rolled_back"
    assert PINNED.base in refusal.message
    assert SEEN.base in refusal.message


@pytest.mark.parametrize("pinned_is_ancestor", [True, False])
def test_the_memory_of_another_repository_says_nothing(pinned_is_ancestor: bool) -> None:
    refusal = judge_base(PINNED, replace(PINNED, root_commit="2" * 40), pinned_is_ancestor=pinned_is_ancestor)
    assert isinstance(refusal, Problem)
    assert refusal.code == "trust_file_foreign"
