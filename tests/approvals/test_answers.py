"""The envelope of an answer to a run's question: what it has to say, by whom and when, asked without a run."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from approvals.gates import ALICE, BOB, NOW, POLICY, SIGNERS, envelope, key_of
from softkeys import shared_key
from workpacket.approvals.envelope import EnvelopeFile, RepositoryName, Subject
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import ANSWER_GATE, Trusted, read_policy_files
from workpacket.approvals.verify import AnswerFacts, Judged, judge_answer
from workpacket.value import replace

RULES = f"""
[approvals.gates.{ANSWER_GATE}]
roles = ["approver"]
threshold = 1
separation = []
"""
ASKED = Subject("answer", "7" * 64)
CLEAR = ("answer: yes", "question: q1", "run: clean@1")
ANSWER = AnswerFacts(ASKED, "approve", CLEAR, "1" * 40, NOW)


def trusted_by(policy: str, signers: str = SIGNERS, revoked: bytes = b"") -> Trusted:
    found = read_policy_files(PolicyFiles(policy.encode(), signers.encode()), revoked)
    assert isinstance(found, Trusted), found
    return found


def signed(policy: str = POLICY + RULES, **changes: Any) -> EnvelopeFile:
    honest: dict[str, Any] = {
        "subjects": (ASKED,), "packet": "runs", "gate": ANSWER_GATE, "spec": None, "log_heads": (), "scope": CLEAR,
        "policy": hashlib.sha256(policy.encode()).hexdigest(),
    }  # fmt: skip
    return envelope(**{**honest, **changes})


def judged(file: EnvelopeFile, answer: AnswerFacts = ANSWER, trusted: Trusted | None = None) -> Judged:
    trusted = trusted or trusted_by(POLICY + RULES)
    return judge_answer(file, answer, trusted.policy.gates[ANSWER_GATE], trusted)


def codes(found: Judged) -> list[str]:
    return [one.code for one in found.refusals]


def test_an_answer_that_says_what_was_answered_counts() -> None:
    file = signed()
    found = judged(file)
    assert (found.name, found.refusals) == (file.name, ())
    assert found.opened is not None
    assert (found.opened.statement.approver, found.opened.statement.packet) == (ALICE, "runs")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"subjects": (Subject("answer", "8" * 64),)}, "subject_mismatch"),
        ({"scope": ("answer: yes", "question: q2", "run: clean@1")}, "subject_mismatch"),
        ({"decision": "reject"}, "subject_mismatch"),
        ({"packet": "WP-1-Gauge"}, "packet_mismatch"),
        ({"gate": "activation"}, "gate_mismatch"),
        ({"repository": RepositoryName("example/rocket", "2" * 40)}, "repository_mismatch"),
        ({"issued_at": NOW + timedelta(hours=1)}, "issued_in_future"),
        ({"expires_at": NOW}, "approval_expired"),
        ({"approver": BOB}, ""),
    ],
)
def test_an_answer_about_something_else_or_from_another_time_does_not(changes: dict[str, Any], code: str) -> None:
    assert codes(judged(signed(**changes))) == ([code] if code else [])


def test_both_what_is_decided_and_what_is_said_in_clear_are_compared() -> None:
    other = replace(ANSWER, decision="reject")
    assert codes(judged(signed(), other)) == ["subject_mismatch"]
    assert codes(judged(signed(), replace(ANSWER, scope=()))) == ["subject_mismatch"]
    (said,) = judged(signed(), other).refusals
    assert said.message == "the statement answers a different question"


def test_a_file_that_cannot_be_read_is_named() -> None:
    for data in (b"{}", signed().data[:-1], signed().data.replace(b"payload", b"load")):
        name = f"{hashlib.sha256(data).hexdigest()}.dsse.json"
        found = judged(EnvelopeFile(name, data))
        assert (found.name, found.opened, bool(found.refusals)) == (name, None, True)
        assert {one.path for one in found.refusals} == {name}


def test_a_signature_or_a_statement_that_cannot_be_read_is_enough() -> None:
    for place in ("payload", "sig"):
        value = json.loads(signed().data)
        target = value if place == "payload" else value["signatures"][0]
        target[place] = base64.b64encode(b"nonsense").decode()
        data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode() + b"\n"
        found = judged(EnvelopeFile(f"{hashlib.sha256(data).hexdigest()}.dsse.json", data))
        assert (found.opened, bool(found.refusals)) == (None, True)


def test_a_key_counts_during_its_time_and_until_it_is_revoked() -> None:
    line = key_of(ALICE).line(ALICE, 'namespaces="workpacket-approval@v1",valid-before="20260501Z"')
    assert codes(judged(signed(), trusted=trusted_by(POLICY + RULES, f"{line}\n"))) == ["key_out_of_time"]
    revoked = f"{key_of(ALICE).public_line}\n".encode()
    assert codes(judged(signed(), trusted=trusted_by(POLICY + RULES, revoked=revoked))) == ["key_revoked"]
    stranger = envelope(key=shared_key("ssh-ed25519", "mallory"))
    assert "signer_unknown" in codes(judged(stranger))


def test_a_gate_that_asks_for_a_touch_is_not_opened_by_a_file() -> None:
    policy = POLICY + RULES + 'hardware = "touch"\n'
    assert codes(judged(signed(policy), trusted=trusted_by(policy))) == ["hardware_required"]
