"""What CI attests counts only as the policy of the base pins it: the attacks of attested_replays.jsonl, and more."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

from approvals.authority import (
    IDENTITY,
    INFO,
    ISSUER,
    NOW,
    PEM,
    Ci,
    Leaf,
    Party,
    authority,
    base64_of,
    new_key,
    utf8_string,
)
from ledger.stories import COMMIT, PACKET, Story
from workpacket.approvals.envelope import TEST_RESULT
from workpacket.approvals.sigstore import TrustedCi, attestation_file, read_trusted_ci, verify_attestation
from workpacket.ledger.fold import fold
from workpacket.lifecycle.attestations import AttestedPacket, replay_of
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.lifecycle.proofs import attestation_fault
from workpacket.model.canonical import canonical_bytes
from workpacket.model.event_types import LONGEST_ATTESTATION
from workpacket.model.events import LogEvent
from workpacket.problem import WorkpacketError
from workpacket.value import replace

LISTED: Final = Path(__file__).with_name("attested_replays.jsonl")
CASES: Final = [json.loads(line) for line in LISTED.read_text("utf-8").splitlines()]
CI: Final = Ci()
OTHER: Final = "e" * 40
_BARE: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_NAMED: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.8")


def story(commit: str = COMMIT, packet: str = PACKET) -> Story:
    told = Story(packet)
    told.tell("created", "activated", "claimed")
    told.add("submitted", commit=commit)
    return told


def statement(told: Story, differences: tuple[str, ...] = ()) -> bytes:
    found = replay_of(AttestedPacket(fold(told.log())), told.packet, differences)
    assert found is not None
    return canonical_bytes(found)


class Scene:
    """An attestation that is sound, until a case changes something."""

    def __init__(self) -> None:
        self.told = story()
        self.ci: Any = CI.trusted()
        self.statement = statement(self.told)
        self.bundle = CI.bundle(self.statement)
        self.said: dict[str, Any] = {}
        self.result = "same"

    def again(self, leaf: Party | None = None, **more: Any) -> None:
        self.bundle = CI.bundle(self.statement, leaf, **more)

    @property
    def file(self) -> dict[str, Any]:
        claims = {"commit": COMMIT, "digest": hashlib.sha256(self.payload).hexdigest()}
        return {"bundle": self.bundle, "identity": IDENTITY, "issuer": ISSUER, **claims, **self.said}

    @property
    def payload(self) -> bytes:
        try:
            return base64.b64decode(self.bundle["dsseEnvelope"]["payload"])
        except (TypeError, KeyError, ValueError):
            return b""

    @property
    def entry(self) -> dict[str, Any]:
        found: dict[str, Any] = self.bundle["verificationMaterial"]["tlogEntries"][0]
        return found

    def fault(self, text: str = "") -> str:
        attestation = text or json.dumps(self.file)
        event = self.told.add("evidence.replayed", commit=COMMIT, result=self.result, attestation=attestation)
        policy = EvidencePolicy(replay="ci", ci=pins(self.ci))
        return attestation_fault(event, before(self.told, event), policy)


def before(told: Story, event: LogEvent) -> list[LogEvent]:
    return [each for each in told.log().events if each.id != event.id]


def pins(trusted: TrustedCi | None) -> Any:
    if trusted is None:
        return None
    return {key: getattr(trusted, key) for key in ("issuer", "identity", "certificates", "log_key")}


Change = Callable[[Scene], object]


def leaf(**said: Any) -> Change:
    """The leaf says something else."""
    return lambda scene: scene.again(Leaf(**said).issued_by(CI.issuing))


def uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


def from_another(place: str) -> Change:
    """A part of another genuine bundle: an attestation of another submission, by another leaf."""

    def change(scene: Scene) -> None:
        other = CI.bundle(statement(story(OTHER)))
        if place == "payload":
            scene.bundle["dsseEnvelope"]["payload"] = other["dsseEnvelope"]["payload"]
        elif place == "signatures":
            scene.bundle["dsseEnvelope"]["signatures"] = other["dsseEnvelope"]["signatures"]
        else:
            scene.bundle["verificationMaterial"][place] = other["verificationMaterial"][place]

    return change


def attested_of(told: Story, **claims: Any) -> Change:
    def change(scene: Scene) -> None:
        scene.bundle = CI.bundle(statement(told))
        scene.said = claims

    return change


def stated(**changes: Any) -> Change:
    """The workflow signed a statement with something else in it."""

    def change(scene: Scene) -> None:
        document = json.loads(scene.statement)
        document.update(changes)
        scene.statement = canonical_bytes(document)
        scene.again()

    return change


def edited(scene: Scene) -> None:
    document = json.loads(scene.payload)
    document["predicate"]["result"] = "FAILED"
    scene.bundle["dsseEnvelope"]["payload"] = base64_of(canonical_bytes(document))


def found_different(scene: Scene) -> None:
    scene.statement = statement(scene.told, ("It boils.: met in the log, but the test fails",))
    scene.again()


def failed(scene: Scene) -> None:
    found_different(scene)
    scene.result = "different"


def by_another_authority(name: str) -> Change:
    return lambda scene: scene.again(Leaf().issued_by(authority(name)))


def pinned_only(*parties: Party) -> Change:
    def change(scene: Scene) -> None:
        scene.ci = TrustedCi(ISSUER, IDENTITY, "".join(each.pem for each in parties), CI.log_key)

    return change


def by_key(key: Any) -> Change:
    """The leaf, the log and the envelope agree, and the signature is by this key."""

    def change(scene: Scene) -> None:
        genuine = Leaf().issued_by(CI.issuing)
        scene.again(Party(genuine.certificate, key))

    return change


def of_another_kind(scene: Scene) -> None:
    body = json.loads(base64.b64decode(scene.entry["canonicalizedBody"]))
    text = base64_of(json.dumps({**body, "kind": "hashedrekord"}).encode())
    promise = {"signedEntryTimestamp": base64_of(CI.promise(text, int(NOW.timestamp())))}
    scene.entry.update(canonicalizedBody=text, inclusionPromise=promise)


def predicate(**changes: Any) -> Change:
    def change(scene: Scene) -> None:
        stated(predicate={**json.loads(scene.statement)["predicate"], **changes})(scene)

    return change


def subject(**digest: Any) -> Change:
    return stated(subject=[{"name": "x", "digest": digest}])


def expired_authority(scene: Scene) -> None:
    old = authority("old", CI.root, ends=timedelta(days=-1))
    pinned_only(CI.root, old)(scene)
    scene.again(Leaf().issued_by(old))


def by_an_unfit_issuer(**unfit: Any) -> Change:
    def change(scene: Scene) -> None:
        party = authority("unfit", CI.root, **unfit)
        pinned_only(CI.root, party)(scene)
        scene.again(Leaf().issued_by(party))

    return change


def leaf_issues_leaf(scene: Scene) -> None:
    genuine = Leaf(subject="leaf").issued_by(CI.issuing)
    pinned_only(CI.root, CI.issuing, genuine)(scene)
    scene.again(Leaf().issued_by(genuine))


def other_log(scene: Scene) -> None:
    ci = Ci()
    ci.root, ci.issuing = CI.root, CI.issuing
    scene.bundle = ci.bundle(scene.statement)


def with_entry(**changes: Any) -> Change:
    return lambda scene: scene.entry.update(changes)


def two_entries(scene: Scene) -> None:
    entries = scene.bundle["verificationMaterial"]["tlogEntries"]
    entries.append({**entries[0], "integratedTime": "1"})


def envelope(**changes: Any) -> Change:
    return lambda scene: scene.bundle["dsseEnvelope"].update(changes)


def two_signatures(scene: Scene) -> None:
    scene.bundle["dsseEnvelope"]["signatures"] *= 2


def shorter_signature(scene: Scene) -> None:
    row = scene.bundle["dsseEnvelope"]["signatures"][0]
    row["sig"] = base64_of(base64.b64decode(row["sig"])[:-1])


def shorter_leaf(scene: Scene) -> None:
    row = scene.bundle["verificationMaterial"]["certificate"]
    row["rawBytes"] = base64_of(base64.b64decode(row["rawBytes"])[:-3])


def other_submission(scene: Scene) -> None:
    told = story()
    told.events.pop()
    told.add("submitted", commit=COMMIT, at="2026-02-01T00:00:00Z")
    scene.bundle = CI.bundle(statement(told))


def two_commits(scene: Scene) -> None:
    subject = json.loads(scene.statement)["subject"][0]
    stated(subject=[subject, {**subject, "digest": {"gitCommit": OTHER}}])(scene)


def nothing(scene: Scene) -> None:
    assert scene.file


def set_to(name: str, value: Any) -> Change:
    return lambda scene: setattr(scene, name, value)


def claiming(**said: Any) -> Change:
    return set_to("said", said)


CHANGES: Final[Mapping[str, Change]] = {
    "sound": nothing,
    "root-signed-leaf": lambda scene: scene.again(Leaf().issued_by(CI.root)),
    "pinned-intermediate": pinned_only(CI.issuing),
    "failed-replay": failed,
    "other-authority": by_another_authority("other"),
    "authority-of-the-same-name": by_another_authority("issuing"),
    "no-trust-root": set_to("ci", None),
    "root-of-the-change": by_another_authority("root of the change"),
    "expired-leaf": lambda scene: scene.again(at=NOW + timedelta(minutes=10)),
    "leaf-not-yet-valid": lambda scene: scene.again(at=NOW - timedelta(minutes=2)),
    "expired-authority": expired_authority,
    "leaf-issues-leaf": leaf_issues_leaf,
    "leaf-for-servers": leaf(purpose=ExtendedKeyUsageOID.SERVER_AUTH),
    "self-signed-leaf": lambda scene: scene.again(Leaf().issued_by(None)),
    "other-identity": leaf(names=[uri(IDENTITY.replace("workpacket-replay", "release"))]),
    "identity-of-the-change": leaf(names=[uri(IDENTITY.replace("heads/main", "pull/7/merge"))]),
    "identity-is-a-prefix": leaf(names=[uri(f"{IDENTITY}-2")]),
    "two-identities": leaf(names=[uri(IDENTITY), uri("https://forge.example/other")]),
    "identity-is-a-mail-address": leaf(names=[x509.RFC822Name("ci@forge.example")]),
    "other-issuer": leaf(issuers=[(_NAMED, utf8_string("https://other.example"))]),
    "no-issuer": leaf(issuers=[]),
    "two-issuers": leaf(issuers=[(_BARE, b"https://other.example"), (_NAMED, utf8_string(ISSUER))]),
    "other-commit": claiming(commit=OTHER),
    "statement-of-other-commit": attested_of(story(OTHER), commit=OTHER),
    "two-commits": two_commits,
    "other-submission": other_submission,
    "other-packet": attested_of(story(packet="WP-1-Teapot-v1")),
    "other-digest": claiming(digest="0" * 64),
    "other-claims": claiming(identity="https://forge.example/other"),
    "payload-of-another-bundle": from_another("payload"),
    "signature-of-another-bundle": from_another("signatures"),
    "leaf-of-another-bundle": from_another("certificate"),
    "log-entry-of-another-bundle": from_another("tlogEntries"),
    "difference-called-same": found_different,
    "result-edited": edited,
    "other-predicate": stated(predicateType="https://slsa.dev/provenance/v1"),
    "other-payload-type": envelope(payloadType="text/plain"),
    "two-signatures": two_signatures,
    "no-signature": envelope(signatures=[]),
    "no-log-entry": lambda scene: scene.bundle["verificationMaterial"].pop("tlogEntries"),
    "other-log": other_log,
    "time-edited": with_entry(integratedTime=str(int(NOW.timestamp()) + 1)),
    "no-promise": with_entry(inclusionPromise=None),
    "two-log-entries": two_entries,
    "other-media-type": lambda scene: scene.bundle.update(mediaType="application/vnd.dev.sigstore.bundle.v9+json"),
    "truncated-signature": shorter_signature,
    "truncated-leaf": shorter_leaf,
    "key-unknown": claiming(more="x"),
    "signature-by-another-key": by_key(new_key()),
    "leaf-with-another-kind-of-key": lambda scene: scene.again(
        Leaf(key=Ed25519PrivateKey.generate()).issued_by(CI.issuing)
    ),
    "other-kind-of-entry": of_another_kind,
    "not-a-commit": subject(gitCommit="main"),
    "no-result": predicate(result=None),
    "no-identity": leaf(names=[]),
    "issuer-is-no-authority": by_an_unfit_issuer(is_one=False),
    "issuer-may-not-issue": by_an_unfit_issuer(issues=False),
}
TEXTS: Final[Mapping[str, Callable[[str], str]]] = {
    "truncated": lambda text: text[: len(text) // 2],
    "key-twice": lambda text: text.replace('"commit":', '"commit": "x", "commit":', 1),
    "too-large": lambda text: text + " " * LONGEST_ATTESTATION,
    "not-json": lambda _: "attested",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_an_attestation_counts_only_as_the_list_says(case: dict[str, str]) -> None:
    scene = Scene()
    CHANGES.get(case["id"], nothing)(scene)
    altered = TEXTS[case["id"]](json.dumps(scene.file)) if case["id"] in TEXTS else ""
    if case["id"] == "too-large":  # no event holds it
        with pytest.raises(WorkpacketError, match=case["says"]):
            verify_attestation(altered.encode(), CI.trusted())
        return
    fault = scene.fault(altered)
    assert bool(fault) is (case["expect"] == "refused"), fault
    assert case.get("says", "") in fault


def test_every_case_is_played() -> None:
    assert [case["id"] for case in CASES] == [*dict.fromkeys(case["id"] for case in CASES)]
    assert {case["id"] for case in CASES} == {*CHANGES, *TEXTS}


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(WorkpacketError) as caught:
        act()
    assert caught.value.code == "replay_attestation_invalid"
    return caught.value.message


def test_the_file_says_what_its_bundle_says() -> None:
    scene = Scene()
    data = attestation_file(json.dumps(scene.bundle).encode())
    assert json.loads(data) == scene.file
    found = verify_attestation(data, CI.trusted())
    assert (found.commit, found.issuer, found.identity, found.signed_at) == (COMMIT, ISSUER, IDENTITY, NOW)
    assert (found.result, found.failed) == ("PASSED", ())


def test_a_bundle_that_is_none_is_refused() -> None:
    scene = Scene()
    assert "is missing or is not an object" in refused(lambda: attestation_file(b"[]"))
    scene.bundle["verificationMaterial"]["ö"] = 1
    assert "no canonical form" in refused(lambda: attestation_file(json.dumps(scene.bundle).encode()))
    scene.bundle = CI.bundle(scene.statement)
    scene.bundle["verificationMaterial"]["x"] = "y" * (LONGEST_ATTESTATION - len(json.dumps(scene.bundle)) - 20)
    assert "at most 100000 are allowed" in refused(lambda: attestation_file(json.dumps(scene.bundle).encode()))


def test_a_file_of_the_largest_size_is_written_and_read() -> None:
    scene = Scene()
    scene.bundle["verificationMaterial"]["x"] = ""
    room = LONGEST_ATTESTATION - len(attestation_file(json.dumps(scene.bundle).encode()))
    scene.bundle["verificationMaterial"]["x"] = "y" * room
    data = attestation_file(json.dumps(scene.bundle).encode())
    assert len(data) == LONGEST_ATTESTATION
    assert verify_attestation(data, CI.trusted()).commit == COMMIT


@pytest.mark.parametrize("length", [1, 127, 128, 255])
def test_an_issuer_of_any_length_is_read(length: int) -> None:
    name = "https://" + "i" * (length - 8) if length > 8 else "i" * length
    scene = Scene()
    scene.again(Leaf(issuers=[(_NAMED, utf8_string(name))]).issued_by(CI.issuing))
    assert json.loads(attestation_file(json.dumps(scene.bundle).encode()))["issuer"] == name


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"\x0c",
        b"\x16\x01i",
        b"\x0c\x02i",
        b"\x0c\x81\x01i",
        b"\x0c\x01ii",
        b"\x0c\x00" + b"i" * 256,
        b"\x0c\x81\x00" + b"i" * 256,
    ],
)
def test_another_encoding_is_no_name_of_an_issuer(der: bytes) -> None:
    scene = Scene()
    scene.again(Leaf(issuers=[(_NAMED, der)]).issued_by(CI.issuing))
    assert verify_fault(scene).startswith(f"it was signed by {IDENTITY}, certified by ;")


def verify_fault(scene: Scene, **policy: str) -> str:
    data = json.dumps({**scene.file}).encode()
    return refused(lambda: verify_attestation(data, replace(CI.trusted(), **policy)))


def test_a_policy_that_cannot_be_read_pins_nothing() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    rsa_key = rsa.generate_private_key(65537, 2048).public_key().public_bytes(PEM, INFO).decode()
    assert "certificates in [evidence.ci]" in verify_fault(Scene(), certificates=broken)
    assert "log_key in [evidence.ci]" in verify_fault(Scene(), log_key=broken)
    assert "log_key is not an ECDSA key" in verify_fault(Scene(), log_key=rsa_key)
    assert "[evidence.ci] table on the base is invalid: evidence.ci is not a table" in fault_of_table("x")


def fault_of_table(table: object) -> str:
    return refused(lambda: verify_attestation(json.dumps(Scene().file).encode(), read_trusted_ci(table)))


@pytest.mark.parametrize(
    ("key", "what", "longest"),
    [
        ("issuer", "a URI", 1002),
        ("identity", "a URI", 1002),
        ("certificates", "certificates in PEM format", 20000),
        ("log_key", "a public key in PEM format", 20000),
    ],
)
def test_each_setting_is_needed(key: str, what: str, longest: int) -> None:
    table = {**pins(CI.trusted())}
    assert read_trusted_ci(table) == CI.trusted()
    assert read_trusted_ci({**table, key: "a:".ljust(longest, "!")}).faults == ()
    for value in (1, "\x00", "", "a:".ljust(longest + 1, "!")):
        assert fault_of_table({**table, key: value}).endswith(f": evidence.ci.{key} is not {what}")
    del table[key]
    assert f"evidence.ci.{key} is missing" in fault_of_table(table)
    assert "evidence.ci.more is unknown" in fault_of_table({**pins(CI.trusted()), "more": 1})


def material(**changes: Any) -> Change:
    return lambda scene: scene.bundle["verificationMaterial"].update(changes)


def body(change: Callable[[dict[str, Any]], object]) -> Change:
    """The log signed an entry with another body."""

    def made(scene: Scene) -> None:
        document = json.loads(base64.b64decode(scene.entry["canonicalizedBody"]))
        change(document)
        text = base64_of(json.dumps(document).encode())
        promise = {"signedEntryTimestamp": base64_of(CI.promise(text, int(NOW.timestamp())))}
        scene.entry.update(canonicalizedBody=text, inclusionPromise=promise)

    return made


def signed(**changes: Any) -> Change:
    return body(lambda document: document["spec"]["signatures"][0].update(changes))


IS_NONE = "is missing or is not an object"
OTHER_ENTRY = "the log entry is for a different statement, signature or certificate"
UNDATED = "the signature does not match the log entry"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (claiming(more=1), "the attestation does not have exactly the keys bundle, commit, digest, identity, issuer"),
        (set_to("bundle", 1), f"the bundle {IS_NONE}"),
        (
            set_to("bundle", {}),
            "the bundle does not have exactly the keys dsseEnvelope, mediaType, verificationMaterial",
        ),
        (lambda scene: scene.bundle.update(verificationMaterial=1), f"verificationMaterial {IS_NONE}"),
        (material(tlogEntries=[1]), f"tlogEntries[0] {IS_NONE}"),
        (material(tlogEntries=1), "tlogEntries is not a list with exactly one item"),
        (material(certificate=1), f"certificate {IS_NONE}"),
        (material(certificate={}), "certificate is not a string"),
        (lambda scene: scene.bundle.update(dsseEnvelope=1), f"dsseEnvelope {IS_NONE}"),
        (envelope(more=1), "dsseEnvelope does not have exactly the keys payload, payloadType, signatures"),
        (envelope(payload=1), "payload is not a string"),
        (envelope(payload="="), "payload is base64 with stray bits or wrong padding"),
        (envelope(signatures=1), "signatures is not a list with exactly one item"),
        (envelope(signatures=[1]), f"signatures[0] {IS_NONE}"),
        (envelope(signatures=[{}]), "sig is not a string"),
        (with_entry(integratedTime=1), "integratedTime is not a number"),
        (with_entry(integratedTime="01"), "integratedTime is not a number"),
        (with_entry(integratedTime="1!"), "integratedTime is not a number"),
        (with_entry(integratedTime="1" * 17), "integratedTime is not a number"),
        (with_entry(logIndex=None), "logIndex is not a number"),
        (with_entry(logIndex="0"), UNDATED),
        (with_entry(logIndex="8"), UNDATED),
        (with_entry(logId=None), f"logId {IS_NONE}"),
        (with_entry(logId={}), "keyId is not a string"),
        (with_entry(canonicalizedBody=None), "canonicalizedBody is not a string"),
        (with_entry(inclusionPromise=None), f"inclusionPromise {IS_NONE}"),
        (with_entry(inclusionPromise={}), "signedEntryTimestamp is not a string"),
        (by_key(new_key()), "the signature does not match the statement"),
        (
            body(lambda it: it.update(apiVersion="0.0.2")),
            "the log entry is of kind ('dsse', '0.0.2'), not ('dsse', '0.0.1')",
        ),
        (body(lambda it: it.pop("spec")), f"spec {IS_NONE}"),
        (
            body(lambda it: it["spec"].pop("signatures")),
            "signatures in the log entry is not a list with exactly one item",
        ),
        (body(lambda it: it["spec"].update(signatures=[1])), f"signatures in the log entry {IS_NONE}"),
        (body(lambda it: it["spec"]["payloadHash"].update(algorithm="sha1")), OTHER_ENTRY),
        (signed(signature=None), "signature is not a string"),
        (signed(signature=base64_of(b"x")), OTHER_ENTRY),
        (signed(verifier=None), "verifier is not a string"),
        (predicate(result=None), "the statement does not contain both a result and what the result applies to"),
        (predicate(configuration=None), "the statement does not contain both a result and what the result applies to"),
        (predicate(failedTests=None), "the statement does not contain both a result and what the result applies to"),
        (predicate(configuration=[1]), f"configuration {IS_NONE}"),
        (predicate(configuration=[{"name": "x"}]), f"digest {IS_NONE}"),
        (stated(predicate=1), f"predicate {IS_NONE}"),
        (stated(subject=[1]), f"subject[0] {IS_NONE}"),
        (stated(subject=1), "subject is not a list with exactly one item"),
        (stated(more=1), "the statement does not have exactly the keys _type, predicate, predicateType, subject"),
        (
            stated(_type="https://in-toto.io/Statement/v0.1"),
            f"the statement is of type {TEST_RESULT!r}, not a test result",
        ),
        (subject(gitCommit=COMMIT, sha256="0"), "the subject's digest does not have exactly the keys gitCommit"),
        (subject(gitCommit=7), "the statement's subject is not a commit"),
        (subject(gitCommit=f"{COMMIT}0"), "the statement's subject is not a commit"),
    ],
)
def test_a_malformed_part_is_named(change: Change, says: str) -> None:
    scene = Scene()
    change(scene)
    assert verify_fault(scene).startswith(says)
    assert len(verify_fault(scene)) == len(says)


def test_a_log_entry_that_is_no_object_and_one_of_an_unreadable_certificate() -> None:
    scene = Scene()
    text = base64_of(b"[]")
    promise = {"signedEntryTimestamp": base64_of(CI.promise(text, int(NOW.timestamp())))}
    scene.entry.update(canonicalizedBody=text, inclusionPromise=promise)
    assert verify_fault(scene) == f"the log entry {IS_NONE}"
    scene = Scene()
    signed(verifier=base64_of(b"x"))(scene)
    assert verify_fault(scene).startswith("the certificate in the log entry cannot be read: ")


def test_a_certificate_without_a_name_and_one_whose_issuer_is_no_text() -> None:
    scene = Scene()
    scene.again(Leaf(names=[]).issued_by(CI.issuing))
    assert (
        refused(lambda: attestation_file(json.dumps(scene.bundle).encode())) == "the certificate contains no identity"
    )
    scene.again(Leaf(issuers=[(_BARE, b"\xff")]).issued_by(CI.issuing))
    assert json.loads(attestation_file(json.dumps(scene.bundle).encode()))["issuer"] == "\ufffd"


@pytest.mark.parametrize("result", ["PASSED", "WARNED", "FAILED"])
def test_each_result_of_a_test_is_known(result: str) -> None:
    scene = Scene()
    predicate(result=result, failedTests=["a", "b"])(scene)
    found = verify_attestation(json.dumps(scene.file).encode(), CI.trusted())
    assert (found.result, found.failed) == (result, ("a", "b"))


def test_what_is_no_sha256_is_not_in_the_configuration() -> None:
    scene = Scene()
    rows = json.loads(scene.statement)["predicate"]["configuration"]
    predicate(configuration=[*rows, {"name": "x", "digest": {"sha1": "0"}}, {"name": "y", "digest": {"sha256": "0"}}])(
        scene
    )
    found = verify_attestation(json.dumps(scene.file).encode(), CI.trusted())
    assert list(found.configuration) == [row["name"] for row in rows]
