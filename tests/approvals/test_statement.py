"""The signed statement: one meaning, one sequence of bytes, every field compulsory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from approvals.gates import statement
from workpacket.approvals.envelope import (
    DECISIONS,
    DEFAULT_VALIDITY,
    TEST_RESULT,
    RepositoryName,
    Spec,
    Statement,
    Subject,
    read_statement,
)
from workpacket.approvals.fields import LONGEST_VALIDITY
from workpacket.model.canonical import NotCanonical
from workpacket.problem import Problem

HEX64 = st.text("0123456789abcdef", min_size=64, max_size=64)
HEX40 = st.text("0123456789abcdef", min_size=40, max_size=40)
TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=30)
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,39}", fullmatch=True)
SUBJECTS = st.sets(st.builds(Subject, TEXT, HEX64), min_size=1, max_size=3).map(lambda each: tuple(sorted(each)))
TIMES = st.integers(0, 2**31).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    issued = draw(TIMES)
    return Statement(
        subjects=draw(SUBJECTS),
        packet=draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", fullmatch=True)),
        gate=draw(NAMES),
        decision=draw(st.sampled_from(DECISIONS)),
        role=draw(NAMES),
        approver=draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,30}", fullmatch=True)),
        repository=RepositoryName(
            draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,30}", fullmatch=True)), draw(HEX40)
        ),
        base=draw(HEX40 | HEX64),
        spec=draw(st.none() | st.builds(Spec, TEXT, HEX64)),
        policy=draw(HEX64),
        log_heads=tuple(sorted(draw(st.sets(HEX64, max_size=3)))),
        scope=tuple(sorted(draw(st.sets(TEXT, max_size=3)))),
        issued_at=issued,
        expires_at=issued + timedelta(seconds=draw(st.integers(1, 10**7))),
        nonce=draw(st.text("0123456789abcdef", min_size=32, max_size=32)),
    )


@given(statements())
def test_what_is_written_is_read(said: Statement) -> None:
    assert read_statement(said.payload()) == said


@given(statements())
def test_the_payload_is_canonical_json_by_rfc_8785(said: Statement) -> None:
    assert said.payload() == rfc8785.dumps(json.loads(said.payload()))


def test_the_payload_is_an_in_toto_statement_in_these_very_bytes() -> None:
    assert statement().payload().decode() == (
        '{"_type":"https://in-toto.io/Statement/v1","predicate":{"approver":"alice@example.org","base":"'
        + "b" * 40
        + '","contract":null,"decision":"approve","expiresAt":"2026-05-02T12:00:00Z","gate":"activation",'
        + '"issuedAt":"2026-05-01T11:00:00Z","logHeads":["'
        + "0" * 64
        + '"],"nonce":"'
        + "a" * 32
        + '","packet":"WP-1-Gauge","policy":"'
        + statement().policy
        + '","repository":{"name":"example/rocket","rootCommit":"'
        + "1" * 40
        + '"},"role":"approver","scope":["src/"],"spec":{"anchor":"3.1","sha256":"'
        + "e" * 64
        + '"}},"predicateType":"urn:workpacket:approval:v2","subject":[{"digest":{"sha256":"'
        + "5" * 64
        + '"},"name":"text.md"}]}'
    )


def test_a_statement_of_version_1_is_read_and_written_as_it_was() -> None:
    """What was signed before there were contracts has the bytes that it had."""
    said = statement(version=1)
    document = json.loads(said.payload())
    assert document["predicateType"] == "urn:workpacket:approval:v1"
    assert "contract" not in document["predicate"]
    assert read_statement(said.payload()) == said
    document["predicate"]["contract"] = None
    assert message_of(rfc8785.dumps(document)) == "predicate.contract is unknown"


@pytest.mark.parametrize("contract", ["c" * 64, None])
def test_the_contract_is_part_of_what_is_signed(contract: str | None) -> None:
    said = statement(contract=contract)
    assert json.loads(said.payload())["predicate"]["contract"] == contract
    assert read_statement(said.payload()) == said


def changed(path: str, value: Any) -> bytes:
    """The honest statement with another value at `path`; the value `...` takes the key away."""
    document = json.loads(statement().payload())
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place = document
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return rfc8785.dumps(document)


def message_of(payload: bytes, code: str = "statement_malformed") -> str:
    refusal = read_statement(payload)
    assert isinstance(refusal, Problem), refusal
    assert refusal.code == code
    return refusal.message


PREDICATE_KEYS = """
    packet gate decision role approver repository repository.name repository.rootCommit base spec spec.anchor
    spec.sha256 policy logHeads scope issuedAt expiresAt nonce
"""
KEYS = [
    *(
        "_type",
        "predicateType",
        "subject",
        "predicate",
        "subject.0.name",
        "subject.0.digest",
        "subject.0.digest.sha256",
    ),
    *(f"predicate.{key}" for key in PREDICATE_KEYS.split()),
]


@pytest.mark.parametrize("path", KEYS)
def test_every_key_is_compulsory(path: str) -> None:
    place = path.replace("subject.0", "subject[0]")
    assert message_of(changed(path, ...)) == f"{place} is missing"


@pytest.mark.parametrize("path", KEYS)
def test_no_key_takes_a_value_of_another_form(path: str) -> None:
    values: list[Any] = [0, True, "", "\n", {}, ["\n"], [1], [None], "x y\n"]
    if path not in ("predicate.logHeads", "predicate.scope"):
        values.append([])
    place = path.replace("subject.0", "subject[0]")
    for value in values:
        assert place in message_of(changed(path, value)), value


@pytest.mark.parametrize("path", [path for path in KEYS if path != "predicate.spec"])
def test_only_the_specification_may_be_null(path: str) -> None:
    assert path.replace("subject.0", "subject[0]") in message_of(changed(path, None))
    read = read_statement(changed("predicate.spec", None))
    assert isinstance(read, Statement)
    assert read.spec is None


@pytest.mark.parametrize(
    "place", ["", "subject.0.", "subject.0.digest.", "predicate.", "predicate.repository.", "predicate.spec."]
)
def test_an_unknown_key_is_refused_anywhere(place: str) -> None:
    message = message_of(changed(place + "note", "x"))
    assert message == f"{place.replace('subject.0', 'subject[0]')}note is unknown"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("predicate.packet", "WP 1"),
        ("predicate.packet", "-WP"),
        ("predicate.packet", "W" * 81),
        ("predicate.gate", "Activation"),
        ("predicate.gate", "1st"),
        ("predicate.gate", "g" * 41),
        ("predicate.decision", "approved"),
        ("predicate.approver", "*@example.org"),
        ("predicate.approver", "alice,bob"),
        ("predicate.approver", "a" * 129),
        ("predicate.repository.name", "/rocket"),
        ("predicate.repository.name", "r" * 129),
        ("predicate.base", "b" * 39),
        ("predicate.base", "b" * 41),
        ("predicate.base", "b" * 65),
        ("predicate.base", "B" * 40),
        ("predicate.policy", "e" * 63),
        ("predicate.policy", "E" * 64),
        ("predicate.nonce", "a" * 31),
        ("predicate.nonce", "a" * 33),
        ("predicate.nonce", "A" * 32),
        ("predicate.issuedAt", "2026-05-01"),
        ("predicate.issuedAt", "2026-02-30T00:00:00Z"),
        ("predicate.expiresAt", "2026-05-01T11:00:00+00:00"),
        ("predicate.scope", ["b", "a"]),
        ("predicate.scope", ["a", "a"]),
        ("predicate.scope", ["x" * 241]),
        ("predicate.scope", ["a\x7f"]),
        ("predicate.scope", ["a\x9b"]),
        ("predicate.scope", "src"),
        ("predicate.logHeads", ["0" * 64, "0" * 64]),
        ("predicate.logHeads", ["1" * 64, "0" * 64]),
        ("predicate.logHeads", ["0" * 63]),
        ("subject.0.name", "a\tb"),
        ("subject.0.digest.sha256", "5" * 40),
        ("_type", "https://in-toto.io/Statement/v1x"),
        ("predicateType", "urn:workpacket:approval:v3"),
        ("predicate.contract", "A" * 64),
        ("predicate.contract", ""),
        ("predicate.contract", ...),
        ("predicateType", "urn:workpacket:approval:v"),
    ],
)
def test_a_value_outside_its_form_is_named(path: str, value: Any) -> None:
    assert message_of(changed(path, value)).startswith(path.replace("subject.0", "subject[0]"))


@pytest.mark.parametrize("path", ["predicate.repository.name", "predicate.approver"])
def test_the_longest_name_is_read(path: str) -> None:
    assert isinstance(read_statement(changed(path, "a" * 128)), Statement)


# The words that a fault ends with; a table says so of itself.
FORMS = {
    "_type": "'https://in-toto.io/Statement/v1'",
    "predicateType": "'urn:workpacket:approval:v2'",
    "predicate.contract": "a SHA-256 digest",
    "subject.0.name": "a path",
    "subject.0.digest.sha256": "a SHA-256 digest",
    "predicate.packet": "the id of a packet",
    "predicate.gate": "the name of a gate",
    "predicate.decision": "one of approve, reject, revoke",
    "predicate.role": "the name of a role",
    "predicate.approver": "a literal principal",
    "predicate.repository.name": "the name of a repository",
    "predicate.repository.rootCommit": "a commit",
    "predicate.base": "a commit",
    "predicate.spec.anchor": "an anchor",
    "predicate.spec.sha256": "a SHA-256 digest",
    "predicate.policy": "a SHA-256 digest",
    "predicate.logHeads": "a list of event ids",
    "predicate.scope": "a list of paths",
    "predicate.issuedAt": "an instant",
    "predicate.expiresAt": "an instant",
    "predicate.nonce": "16 bytes in lower-case hexadecimal",
}


@pytest.mark.parametrize("path", FORMS)
def test_a_fault_says_what_belongs_there(path: str) -> None:
    place = path.replace("subject.0", "subject[0]")
    assert message_of(changed(path, "\n")) == f"{place} is not {FORMS[path]}"


@pytest.mark.parametrize(
    ("path", "longest"),
    [
        ("predicate.packet", "W" * 80),
        ("predicate.gate", "g" * 40),
        ("predicate.role", "r" * 40),
        ("predicate.approver", "a" * 128),
        ("predicate.repository.name", "r" * 128),
        ("predicate.base", "b" * 64),
        ("predicate.spec.anchor", "a" * 240),
        ("predicate.policy", "e" * 64),
        ("predicate.nonce", "a" * 32),
    ],
)
@pytest.mark.parametrize("more", ["!", "\n", " "])
def test_nothing_follows_the_longest_value(path: str, longest: str, more: str) -> None:
    assert isinstance(read_statement(changed(path, longest)), Statement)
    assert message_of(changed(path, longest + more)).startswith(f"{path} is not ")


def test_an_approval_is_meant_for_two_weeks_and_for_thirty_days_at_most() -> None:
    assert (timedelta(days=14), timedelta(days=30)) == (DEFAULT_VALIDITY, LONGEST_VALIDITY)


def test_all_faults_are_named_at_once() -> None:
    document = json.loads(statement().payload())
    document["predicate"] |= {"packet": "", "nonce": "x", "surplus": 1}
    message = message_of(rfc8785.dumps(document))
    assert message == (
        "predicate.packet is not the id of a packet; predicate.nonce is not 16 bytes in lower-case hexadecimal; "
        "predicate.surplus is unknown"
    )


@pytest.mark.parametrize("document", [b"[]", b"1", b'"x"', b"null"])
def test_what_is_no_table_says_so(document: bytes) -> None:
    assert message_of(document) == "the document is not a table of keys and values"


def subject(name: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": "5" * 64}}


def test_subjects_are_in_the_order_of_their_names_and_then_of_their_digests() -> None:
    first, second, third = Subject("a", "1" * 64), Subject("a", "2" * 64), Subject("b", "0" * 64)
    assert sorted([third, second, first]) == [first, second, third]
    assert not first < Subject("a", "1" * 64)


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"]])
def test_subjects_are_sorted_and_different(names: list[str]) -> None:
    document = changed("subject", [subject(name) for name in names])
    assert message_of(document) == "subject is not sorted by name, or contains a name twice"


def test_a_statement_expires_after_it_is_issued() -> None:
    assert (
        message_of(changed("predicate.expiresAt", "2026-05-01T11:00:00Z"))
        == "predicate.expiresAt is not after issuedAt"
    )
    assert isinstance(read_statement(changed("predicate.expiresAt", "2026-05-01T11:00:01Z")), Statement)


@pytest.mark.parametrize(
    "spell",
    [
        lambda payload: b" " + payload,
        lambda payload: payload + b"\n",
        lambda payload: payload.replace(b":", b": ", 1),
        lambda payload: payload.replace(b"WP-1", b"WP\\u002d1"),
    ],
)
def test_another_spelling_is_refused(spell: Any) -> None:
    message_of(spell(statement().payload()), "statement_not_canonical")


def test_text_that_has_no_bytes_is_refused() -> None:
    payload = statement().payload().replace(b'"src/"', b'"\\ud800"')
    assert "lone surrogate" in message_of(payload)
    with pytest.raises(NotCanonical):
        statement(scope=("\ud800",)).payload()


def test_json_faults_keep_their_code() -> None:
    message_of(b"{", "approval_not_json")
    message_of(b'{"a":1,"a":1}', "approval_duplicate_key")


def test_what_a_statement_covers_depends_on_its_version() -> None:
    assert statement().covers == "contract"
    assert statement(version=1, contract=None).covers == "refinement only"


def test_the_type_of_a_test_result_is_the_one_that_in_toto_publishes() -> None:
    assert TEST_RESULT == "https://in-toto.io/attestation/test-result/v0.1"
