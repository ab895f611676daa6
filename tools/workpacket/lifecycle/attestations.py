"""The log of a packet as in-toto statements, which other tools can read.

- The proofs of a submission: `test-result/v0.1`, whose subject is the commit on which they ran.
- A replay of these proofs by CI: the same statement, which CI signs with its own certificate (Sigstore).
- Merged work: an SLSA verification summary about the commit on the target branch. Its properties say what was
  verified about the source. No level of SLSA's source track is claimed: that depends on how the forge protects
  the branch, which nothing in a repository can show.

The statements repeat what the log and the approvals say, for readers who have neither. The exporting machine signs them
in standard DSSE, which in-toto tools verify; they do not read the SSH signatures of people. The key is Ed25519 or ECDSA
in PEM (PKCS #8) and opens no gate. The key id is the one that TUF and in-toto compute in Python: the SHA-256 of the key
in their own kind of canonical JSON, where only quotes and backslashes in strings are escaped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from workpacket.approvals.envelope import PAYLOAD_TYPE, STATEMENT_TYPE, TEST_RESULT, pae
from workpacket.approvals.fields import encode_base64
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.change_checks import evidence_rows
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER, envelope_path
from workpacket.problem import WorkpacketError
from workpacket.value import Value

SUMMARY: Final = "https://slsa.dev/verification_summary/v1"
SLSA_VERSION: Final = "1.2"

UNEVALUATED: Final = "SLSA_SOURCE_LEVEL_UNEVALUATED"
APPROVED: Final = "ORG_SOURCE_WORKPACKET_CONTRACT_APPROVED"
PROVED: Final = "ORG_SOURCE_WORKPACKET_EVIDENCE_RECORDED"
JUDGED: Final = "ORG_SOURCE_WORKPACKET_JUDGED"


class VerifiedSource(Value):
    """The repository, the branch, the policy and the exporter, as URIs, which SLSA requires."""

    name: str
    resource: str
    branch: str
    policy: str
    verifier: str
    version: str
    at: str


class AttestedPacket(Value):
    """A packet whose work was submitted. `landed` is the commit on the target branch that contains it, or '' if there
    is none. `refused` are the codes of its faults; if there are any, the summary says FAILED.
    """

    state: PacketState
    landed: str = ""
    refused: tuple[str, ...] = ()

    @property
    def submitted(self) -> LogEvent | None:
        return next((event for event in reversed(self.state.history) if event.type == "submitted"), None)

    @property
    def commit(self) -> str:
        """Return the submitted commit; '' if nothing was submitted."""
        return str(self.submitted.data["commit"]) if self.submitted is not None else ""

    @property
    def contract(self) -> str:
        """Return the digest of the contract that was current when the work was submitted; '' if the log is older than
        contracts.
        """
        said = ""
        for event in self.state.history:
            if event is self.submitted:
                break
            said = event.text("contract") or said
        return said

    @property
    def envelopes(self) -> tuple[str, ...]:
        """Return the digests of the approvals listed in its events."""
        return tuple(dict.fromkeys(digest for event in self.state.history for digest in event.attest))

    @property
    def properties(self) -> tuple[str, ...]:
        """Return what was verified about the source."""
        submitted = self.submitted
        opened = any(event.type in {"activated", "amended"} and event.attest for event in self.state.history)
        judged = any(event.text("verdict") == "PASS" and event.attest for event in self.state.verdicts)
        proved = submitted is not None and any("command" in row for row in evidence_rows(submitted))
        found = ((opened and bool(self.contract), APPROVED), (proved, PROVED), (judged, JUDGED))
        return tuple(name for holds, name in found if holds)

    def to_json(self) -> dict[str, Json]:
        submitted = self.submitted
        tests = _by_result(evidence_rows(submitted) if submitted is not None else ())
        return {
            "packet": self.state.packet,
            "contract": self.contract,
            "submitted": self.commit,
            "landed": self.landed,
            "approvals": [envelope_path(digest) for digest in self.envelopes],
            "properties": list(self.properties),
            "tests": {"passed": tests["met"], "warned": tests["not_applicable"], "failed": tests["not_met"]},
            "refused": list(self.refused),
        }


def proofs_of(packet: AttestedPacket, source: VerifiedSource) -> Iterator[dict[str, Json]]:
    """Yield a statement for each commit on which proofs of the last submission ran."""
    submitted = packet.submitted
    if submitted is None:
        return
    by_commit: dict[str, list[Mapping[str, Json]]] = {}
    for row in evidence_rows(submitted):
        by_commit.setdefault(str(row.get("commit", packet.commit)), []).append(row)
    for proved, rows in by_commit.items():
        yield _statement(source.name, proved, TEST_RESULT, _result(packet, submitted, rows))


def replay_of(packet: AttestedPacket, name: str, differences: Sequence[str]) -> dict[str, Json] | None:
    """Return a statement, for CI to sign, with the result of a replay of the last submission; None if there is no
    submission.
    """
    submitted = packet.submitted
    if submitted is None:
        return None
    predicate = _result(packet, submitted, evidence_rows(submitted))
    if differences:
        predicate |= {"result": "FAILED", "passedTests": [], "failedTests": [*differences]}
    return _statement(name, packet.commit, TEST_RESULT, predicate)


def _result(packet: AttestedPacket, submitted: LogEvent, rows: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the test result. An inapplicable criterion has not passed: it is listed with the warnings, with its
    reason.
    """
    by_result = _by_result(rows)
    result = "FAILED" if by_result["not_met"] else "WARNED" if by_result["not_applicable"] else "PASSED"
    event = f"{LOG_FOLDER}/{packet.state.packet}/{submitted.id}.json"
    configuration: list[Json] = [{"name": event, "digest": {"sha256": submitted.id}}]
    if packet.contract:
        configuration.append({"name": f"contract of {packet.state.packet}", "digest": {"sha256": packet.contract}})
    return {
        "result": result,
        "configuration": configuration,
        "passedTests": by_result["met"],
        "warnedTests": by_result["not_applicable"],
        "failedTests": by_result["not_met"],
    }


def _by_result(rows: Sequence[Mapping[str, Json]]) -> dict[str, list[Json]]:
    """Return each criterion with its proof and the ids of its needed tests."""
    found: dict[str, list[Json]] = {"met": [], "not_applicable": [], "not_met": []}
    for row in rows:
        told = str(row["criterion"]) + "".join(f" ({row[key]})" for key in ("command", "reason") if key in row)
        found[str(row["result"])].append(told)
    for row in rows:
        needed, listed = row.get("needed"), found[str(row["result"])]
        listed += [name for name in (needed if isinstance(needed, (list, tuple)) else ()) if name not in listed]
    return found


def landing_of(packet: AttestedPacket, source: VerifiedSource, proofs: Sequence[str]) -> dict[str, Json] | None:
    """Return the summary about the merged commit. `proofs` are the digests of the exported statements about that
    commit."""
    if not packet.landed:
        return None
    inputs: list[Json] = [{"uri": envelope_path(each), "digest": {"sha256": each}} for each in packet.envelopes]
    inputs += [{"uri": TEST_RESULT, "digest": {"sha256": each}} for each in proofs]
    levels: list[Json] = ["FAILED"] if packet.refused else [UNEVALUATED, *packet.properties]
    predicate: dict[str, Json] = {
        "verifier": {"id": source.verifier, "version": {"workpacket": source.version}},
        "timeVerified": source.at,
        "resourceUri": source.resource,
        "policy": {"uri": f"{source.resource}#.GOV/policy/policy.toml", "digest": {"sha256": source.policy}},
        "inputAttestations": inputs,
        "verificationResult": "FAILED" if packet.refused else "PASSED",
        "verifiedLevels": levels,
        "slsaVersion": SLSA_VERSION,
    }
    annotations: dict[str, Json] = {"sourceRefs": [f"refs/heads/{source.branch}"], "packet": packet.state.packet}
    return _statement(source.name, packet.landed, SUMMARY, predicate, annotations)


def _statement(
    name: str, commit: str, kind: str, predicate: dict[str, Json], annotations: dict[str, Json] | None = None
) -> dict[str, Json]:
    subject: dict[str, Json] = {"name": name, "digest": {"gitCommit": commit}}
    if annotations is not None:
        subject["annotations"] = annotations
    return {"_type": STATEMENT_TYPE, "subject": [subject], "predicateType": kind, "predicate": predicate}


class MachineKey(Value):
    """A machine key. `public` is its public half in PEM, for verifiers."""

    key_id: str
    public: str
    sign: Callable[[bytes], bytes]


def read_machine_key(data: bytes) -> MachineKey:
    """Return the key in a PEM file that is not protected by a passphrase; raise WorkpacketError if there is no such
    key."""
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise WorkpacketError(
            "machine_key_unfit", "expected a private key in PEM format that is not protected by a passphrase"
        ) from None
    if isinstance(key, Ed25519PrivateKey):
        raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return MachineKey(_key_id("ed25519", "ed25519", raw.hex()), _pem(key.public_key()), key.sign)
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        private = key
        public = _pem(private.public_key())
        key_id = _key_id("ecdsa", "ecdsa-sha2-nistp256", public)
        return MachineKey(key_id, public, lambda message: private.sign(message, ec.ECDSA(hashes.SHA256())))
    raise WorkpacketError("machine_key_unfit", "the key is neither Ed25519 nor ECDSA on curve P-256")


def _pem(public: Ed25519PublicKey | ec.EllipticCurvePublicKey) -> str:
    pem = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return public.public_bytes(*pem).decode("ascii")


def _key_id(kind: str, scheme: str, public: str) -> str:
    described = f'{{"keytype":"{kind}","keyval":{{"public":"{public}"}},"scheme":"{scheme}"}}'
    return hashlib.sha256(described.encode()).hexdigest()


def signed_statement(statement: dict[str, Json], key: MachineKey) -> bytes:
    """Return the DSSE envelope on one line."""
    payload = canonical_bytes(statement)
    signature = {"keyid": key.key_id, "sig": encode_base64(key.sign(pae(payload)))}
    envelope: dict[str, Json] = {
        "payload": encode_base64(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{**signature}],
    }
    return canonical_bytes(envelope) + b"\n"
