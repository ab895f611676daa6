"""`export attestations`: what others read of proofs and landings."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.stories import COMMIT, A, B, C, Story
from lifecycle.governed import Governed
from lifecycle.signed import NAME, OTHER, VICTOR, Signed
from workpacket.approvals.envelope import pae
from workpacket.ledger.fold import fold
from workpacket.lifecycle.attestations import (
    APPROVED,
    JUDGED,
    PROVED,
    AttestedPacket,
    VerifiedSource,
    landing_of,
    proofs_of,
    read_machine_key,
    replay_of,
)
from workpacket.model.canonical import Json
from workpacket.value import replace

pytestmark = pytest.mark.share(4)

Private = Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def pem(key: Private, passphrase: bytes = b"") -> bytes:
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)


@pytest.fixture
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("machine") / "machine.pem"
    path.write_bytes(pem(Ed25519PrivateKey.generate()))
    return path


def statements(governed: Governed, key: Path, *words: str) -> list[dict[str, Any]]:
    """What was signed, after a look at the signatures."""
    machine = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(machine, Ed25519PrivateKey)
    found = []
    for line in governed.done("log", "export", "attestations", *words, "--key", str(key)).out.splitlines():
        envelope = json.loads(line)
        payload = base64.b64decode(envelope["payload"])
        (signature,) = envelope["signatures"]
        machine.public_key().verify(base64.b64decode(signature["sig"]), pae(payload))
        found.append(json.loads(payload))
    return found


def landed(signed: Signed) -> Governed:
    """Signed, done, judged by a signed approval, and merged."""
    signed.begin()
    signed.submitted()
    governed = signed.governed
    signed.approve("verdict", VICTOR, verdict="PASS")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", "--message", "land", f"wp/{NAME}")
    return governed


def test_a_proof_is_a_test_result_about_the_submitted_commit(signed: Signed, key: Path) -> None:
    signed.begin()
    signed.submitted()
    governed = signed.governed
    state = governed.state(NAME)
    submitted = next(event for event in state.history if event.type == "submitted")
    (found,) = statements(governed, key)
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert found["subject"] == [{"name": "example/greeter", "digest": {"gitCommit": submitted.text("commit")}}]
    result = found["predicate"]
    assert (result["result"], result["warnedTests"], result["failedTests"]) == ("PASSED", [], [])
    assert [name.partition(" (")[2] for name in result["passedTests"]] == ["true)"] * 2
    contract = next(event.text("contract") for event in state.history if event.type == "activated")
    assert result["configuration"] == [
        {"name": f".GOV/log/{NAME}/{submitted.id}.json", "digest": {"sha256": submitted.id}},
        {"name": f"contract of {NAME}", "digest": {"sha256": contract}},
    ]


# fmt: off
ROWS: list[Json] = [
    {
        "criterion": "It greets", "result": "met", "command": "pytest tests/test_greet.py", "exit_code": 0,
        "needed": ["tests/test_greet.py::test_name", "tests/test_greet.py::test_b"],
    },
    {"criterion": "It sings", "result": "not_met", "command": "pytest tests/test_sing.py", "commit": "c" * 40},
    {"criterion": "It dances", "result": "not_applicable", "reason": "there is no music"},
]
# fmt: on


def test_what_failed_or_does_not_apply_is_named(signed: Signed) -> None:
    signed.begin()
    signed.submitted()
    state = signed.governed.state(NAME)
    history = [
        event._replace(data={**event.data, "evidence": ROWS}) if event.type == "submitted" else event
        for event in state.history
    ]
    source = VerifiedSource("greeter", "urn:x", "main", "0" * 64, "urn:y", "1", "2026-03-01T08:00:00Z")
    packet = AttestedPacket(replace(state, history=tuple(history)))
    first, second = (each["predicate"] for each in proofs_of(packet, source))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["result"], second["result"]) == ("WARNED", "FAILED")
    greets = ["It greets (pytest tests/test_greet.py)", "tests/test_greet.py::test_name", "tests/test_greet.py::test_b"]
    assert first["passedTests"] == greets
    assert first["warnedTests"] == ["It dances (there is no music)"]
    assert second["failedTests"] == ["It sings (pytest tests/test_sing.py)"]
    assert packet.to_json()["tests"] == {
        "passed": greets,
        "warned": ["It dances (there is no music)"],
        "failed": ["It sings (pytest tests/test_sing.py)"],
    }
    assert landing_of(packet, source, []) is None


def test_what_landed_is_summed_up_with_what_it_rests_on(signed: Signed, key: Path) -> None:
    governed = landed(signed)
    proof, summary = statements(governed, key)
    head = governed.git("rev-parse", "HEAD")
    assert proof["predicateType"].endswith("/test-result/v0.1")
    assert summary["predicateType"] == "https://slsa.dev/verification_summary/v1"
    (subject,) = summary["subject"]
    assert subject["digest"] == {"gitCommit": head}
    assert subject["annotations"] == {"sourceRefs": ["refs/heads/main"], "packet": NAME}
    predicate = summary["predicate"]
    assert predicate["verificationResult"] == "PASSED"
    assert predicate["verifiedLevels"] == [
        "SLSA_SOURCE_LEVEL_UNEVALUATED",
        "ORG_SOURCE_WORKPACKET_CONTRACT_APPROVED",
        "ORG_SOURCE_WORKPACKET_EVIDENCE_RECORDED",
        "ORG_SOURCE_WORKPACKET_JUDGED",
    ]
    assert predicate["slsaVersion"] == "1.2"
    assert predicate["resourceUri"].startswith("urn:workpacket:repository:")
    assert predicate["verifier"]["id"].startswith("urn:workpacket:verifier:")
    used = {each["uri"] for each in predicate["inputAttestations"]}
    assert len([uri for uri in used if uri.startswith(".GOV/attestations/")]) == 2
    assert "https://in-toto.io/attestation/test-result/v0.1" in used
    assert all(len(each["digest"]["sha256"]) == 64 for each in predicate["inputAttestations"])


def test_a_merge_that_the_log_names_is_the_subject(signed: Signed, key: Path) -> None:
    governed = landed(signed)
    head = governed.git("rev-parse", "HEAD")
    governed.done("merged", NAME)
    governed.commit("recorded")
    assert statements(governed, key)[-1]["subject"][0]["digest"] == {"gitCommit": head}


def test_work_with_something_wrong_is_summed_up_as_failed(signed: Signed, key: Path) -> None:
    governed = landed(signed)
    (first, *_) = [path for path in governed.files() if path.startswith(".GOV/attestations/")]
    governed.write(first, governed.read(first).replace("sig", "gis"))
    governed.commit("tampered")
    summary = statements(governed, key)[-1]["predicate"]
    assert summary["verificationResult"] == "FAILED"
    assert summary["verifiedLevels"] == ["FAILED"]


def test_verify_tells_the_same_of_each_packet(signed: Signed, key: Path) -> None:
    governed = landed(signed)
    (row,) = governed.json("approvals", "verify")["data"]["packets"]
    assert row["packet"] == NAME
    assert row["landed"] == governed.git("rev-parse", "HEAD")
    assert row["refused"] == []
    told = governed.json("log", "export", "attestations", "--key", str(key))["data"]
    assert told["packets"] == [row]
    assert told["key_id"] == read_machine_key(key.read_bytes()).key_id
    assert told["public_key"].startswith("-----BEGIN PUBLIC KEY-----\n")
    assert len(told["text"].splitlines()) == 2
    unknown = governed.json("approvals", "verify", OTHER)
    assert [one["code"] for one in unknown["findings"]] == ["packet_unknown"]


def test_only_what_was_submitted_is_told(signed: Signed, key: Path) -> None:
    signed.begin()
    signed.submitted()
    governed = signed.governed
    governed.git("switch", "--quiet", "main")
    assert statements(governed, key) == []
    governed.git("switch", "--quiet", f"wp/{NAME}")
    assert statements(governed, key, OTHER) == []
    assert len(statements(governed, key, NAME)) == 1


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("origin", "resource"),
    [
        ("https://forge.example/team/greeter.git", "git+https://forge.example/team/greeter.git"),
        ("https://user:secret@forge.example/team/greeter.git", "git+https://forge.example/team/greeter.git"),
        ("ssh://git@forge.example/team/greeter", "git+ssh://forge.example/team/greeter"),
        ("git@forge.example:team/greeter.git", "urn:workpacket:repository:"),
        ("/srv/git/greeter", "urn:workpacket:repository:"),
    ],
)
def test_the_repository_is_named_by_where_it_comes_from(signed: Signed, key: Path, origin: str, resource: str) -> None:
    governed = landed(signed)
    governed.git("config", "remote.origin.url", origin)
    assert statements(governed, key)[-1]["predicate"]["resourceUri"].startswith(resource)


def test_names_can_be_given(signed: Signed, key: Path) -> None:
    governed = landed(signed)
    given = ("--resource", "git+https://a.example/b", "--verifier", "https://ci.example/verifier")
    predicate = statements(governed, key, *given)[-1]["predicate"]
    assert (predicate["resourceUri"], predicate["verifier"]["id"]) == given[1::2]
    assert predicate["policy"]["uri"] == "git+https://a.example/b#.GOV/policy/policy.toml"
    assert governed("log", "export", "attestations", "--key", str(key), "--verifier", "me").codes == ["invalid_value"]


def test_a_file_is_written_once(signed: Signed, key: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    governed = landed(signed)
    out = tmp_path_factory.mktemp("out") / "attestations.jsonl"
    words = ("export", "attestations", "--key", str(key), "--out", str(out))
    assert "2 statements written to" in governed.done(*words).out
    assert len(out.read_bytes().splitlines()) == 2
    assert governed(*words).codes == ["file_unwritable"]


def test_a_key_is_needed(signed: Signed, tmp_path_factory: pytest.TempPathFactory) -> None:
    signed.begin()
    governed = signed.governed
    assert governed("log", "export", "attestations").codes == ["missing_argument"]
    assert governed("log", "export", "attestations", "--key", "nowhere.pem").codes == ["file_unreadable"]
    other = tmp_path_factory.mktemp("keys") / "rsa.pem"
    other.write_bytes(pem(rsa.generate_private_key(65537, 2048)))
    assert governed("log", "export", "attestations", "--key", str(other)).codes == ["machine_key_unfit"]


def test_only_what_a_signature_opened_counts_as_approved_or_judged(signed: Signed) -> None:
    signed.begin()
    signed.submitted()
    state = signed.governed.state(NAME)
    assert AttestedPacket(state).properties == (APPROVED, PROVED)
    unsigned = tuple(event._replace(attest=()) for event in state.history)
    assert AttestedPacket(replace(state, history=unsigned)).properties == (PROVED,)
    claimed = tuple(event for event in state.history if event.type != "submitted")
    assert AttestedPacket(replace(state, history=claimed)).properties == (APPROVED,)


# --- what the log alone says ---

SOURCE = VerifiedSource("greeter", "urn:x", "main", "0" * 64, "urn:y", "1", "2026-03-01T08:00:00Z")


def submitted(*kinds: str) -> Story:
    story = Story()
    story.tell("created", *(kinds or ("activated", "claimed", "submitted")))
    return story


def packet_of(story: Story, **more: Any) -> AttestedPacket:
    return AttestedPacket(fold(story.log()), **more)


def test_an_approval_counts_for_the_contract_only_if_the_contract_rests_on_it() -> None:
    story = submitted("activated", "claimed")
    story.add("noted", attest=(A,))
    story.add("submitted")
    assert packet_of(story).properties == (PROVED,)
    amended = submitted("activated")
    amended.add("amended", attest=(A,))
    amended.tell("claimed", "submitted")
    assert packet_of(amended).properties == (APPROVED, PROVED)


def test_an_approval_of_no_contract_approves_none() -> None:
    story = Story()
    story.tell("created")
    story.add("activated", attest=(A,))
    story.tell("claimed", "submitted")
    state = fold(story.log())
    older = (
        event._replace(data={key: said for key, said in event.data.items() if key != "contract"})
        for event in state.history
    )
    packet = AttestedPacket(replace(state, history=tuple(older)))
    assert (packet.contract, packet.properties) == ("", (PROVED,))


def test_only_a_signed_pass_counts_as_judged() -> None:
    for verdict, attest, expected in (("PASS", (), False), ("FAIL", (A,), False), ("PASS", (A,), True)):
        story = submitted()
        to = {"PASS": "MERGE_PENDING", "FAIL": "IN_PROGRESS"}[verdict]
        story.add("verdict.given", verdict=verdict, lane_to=to, attest=attest)
        assert (JUDGED in packet_of(story).properties) == expected, (verdict, attest)


def test_evidence_is_recorded_if_any_criterion_was_proved_by_a_command() -> None:
    by_hand: dict[str, Json] = {"criterion": "it looks good", "result": "met", "reason": "I looked"}
    by_command: dict[str, Json] = {"criterion": "it boils", "result": "met", "command": "boil", "exit_code": 0}
    for rows, expected in (([by_hand], False), ([by_hand, by_command], True), ([by_command, by_hand], True)):
        story = submitted("activated", "claimed")
        story.add("submitted", evidence=rows)
        assert (PROVED in packet_of(story).properties) == expected


def test_the_last_submission_is_told_with_the_contract_of_its_time() -> None:
    story = submitted()
    story.add("verdict.given", verdict="FAIL", lane_to="IN_PROGRESS")
    story.add("submitted", commit="e" * 40)
    story.add("amended", contract=C)
    packet = packet_of(story, landed="f" * 40, refused=("log_edited",))
    assert packet.to_json() == {
        "packet": story.packet,
        "contract": A,
        "submitted": "e" * 40,
        "landed": "f" * 40,
        "approvals": [],
        "properties": [PROVED],
        "tests": {"passed": ["it boils (boil)"], "warned": [], "failed": []},
        "refused": ["log_edited"],
    }
    (proof,) = proofs_of(packet, SOURCE)
    assert proof["subject"] == [{"name": "greeter", "digest": {"gitCommit": "e" * 40}}]


def test_a_packet_without_a_submission_has_nothing_to_attest() -> None:
    packet = packet_of(submitted("activated", "claimed"))
    assert (packet.to_json()["submitted"], packet.to_json()["tests"]) == (
        "",
        {"passed": [], "warned": [], "failed": []},
    )
    assert list(proofs_of(packet, SOURCE)) == []
    assert replay_of(packet, "greeter", ()) is None


def test_each_approval_is_named_once_in_the_order_of_the_events() -> None:
    story = Story()
    story.tell("created")
    story.add("activated", attest=(B,))
    story.add("claimed")
    story.add("submitted", attest=(A,))
    story.add("verdict.given", attest=(B, C))
    assert packet_of(story).envelopes == (B, A, C)
    landed = landing_of(packet_of(story, landed=COMMIT), SOURCE, ["0" * 64])
    assert landed is not None
    predicate = landed["predicate"]
    assert isinstance(predicate, dict)
    assert predicate["inputAttestations"] == [
        *({"uri": f".GOV/attestations/{one}.dsse.json", "digest": {"sha256": one}} for one in (B, A, C)),
        {"uri": "https://in-toto.io/attestation/test-result/v0.1", "digest": {"sha256": "0" * 64}},
    ]


def test_a_replay_tells_the_submission_or_what_differs_from_it() -> None:
    packet = packet_of(submitted())
    same, other = (replay_of(packet, "greeter", found) for found in ((), ("it boils: exit code 1",)))
    assert same is not None
    assert other is not None
    assert same["subject"] == other["subject"] == [{"name": "greeter", "digest": {"gitCommit": COMMIT}}]
    assert isinstance(same["predicate"], dict)
    assert isinstance(other["predicate"], dict)
    assert (same["predicate"]["result"], same["predicate"]["passedTests"]) == ("PASSED", ["it boils (boil)"])
    assert (other["predicate"]["result"], other["predicate"]["passedTests"]) == ("FAILED", [])
    assert other["predicate"]["failedTests"] == ["it boils: exit code 1"]


def test_a_test_that_two_criteria_need_is_named_once_and_the_verifier_with_its_version() -> None:
    rows: list[Json] = [
        {"criterion": name, "result": "met", "command": "pytest", "exit_code": 0, "needed": ["t::a", "t::b"]}
        for name in ("It boils", "It whistles")
    ]
    story = submitted("activated", "claimed")
    story.add("submitted", evidence=rows)
    packet = packet_of(story, landed=COMMIT)
    (proof,) = proofs_of(packet, SOURCE)
    assert isinstance(proof["predicate"], dict)
    assert proof["predicate"]["passedTests"] == ["It boils (pytest)", "It whistles (pytest)", "t::a", "t::b"]
    landing = landing_of(packet, SOURCE, ())
    assert landing is not None
    assert isinstance(landing["predicate"], dict)
    assert landing["predicate"]["verifier"] == {"id": "urn:y", "version": {"workpacket": "1"}}
