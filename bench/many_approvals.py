"""Makes a repository with any number of packets, each activated by a signed approval on the base.

One key signs everything in memory, because ten thousand calls of `ssh-keygen` would take longer than the measurement.
The packets come in a hundred commits, so that they are settled under different bases.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.trees import board_text, packet_text, registry_text, stub_text
from workpacket.approvals.envelope import RepositoryName, Statement, Subject, pae, write_envelope
from workpacket.approvals.fields import read_instant, string, write_instant
from workpacket.approvals.keys import PublicKey, read_key_blob
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.documents.refinement import RefinementText, render_refinement
from workpacket.documents.stub import Stub
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.model.canonical import Json
from workpacket.model.events import Actor, LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.text.source import Source

WHO = "ann@example.org"
BEGUN = "2026-01-01T00:00:00Z"
COMMITS = 100
SPEC = ".GOV/spec/SPEC_v1.md"
SPEC_LINE = "It counts."
_SPECIFICATION = f"# Specification\n\n{SPEC_LINE}\n".encode()
_SPEC_SHA1 = hashlib.sha1(_SPECIFICATION, usedforsecurity=False).hexdigest()
_GATES = "".join(
    f'\n[approvals.gates.{gate}]\nroles = ["approver"]\nthreshold = 1\nseparation = {separation}\n'
    for gate, separation in {"activation": '["author"]', "policy": "[]"}.items()
)
POLICY = f'[approvals]\nrepository = "example/bench"\n\n[approvals.roles]\napprover = ["{WHO}"]\n{_GATES}'


class MemoryKey:
    """An Ed25519 key that signs as `ssh-keygen -Y sign` does."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._private = Ed25519PrivateKey.generate()
        raw = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.blob = string(b"ssh-ed25519") + string(raw)

    @property
    def public(self) -> PublicKey:
        return read_key_blob(self.blob)

    def line(self, principal: str) -> str:
        return f'{principal} namespaces="{NAMESPACE}" ssh-ed25519 {base64.b64encode(self.blob).decode()}\n'

    def sign(self, message: bytes) -> bytes:
        common = string(NAMESPACE.encode()) + string(b"") + string(b"sha512")
        proof = self._private.sign(b"SSHSIG" + common + string(hashlib.sha512(message).digest()))
        whole = string(string(b"ssh-ed25519") + string(proof))
        return b"SSHSIG" + (1).to_bytes(4, "big") + string(self.blob) + common + whole


def write_many(root: Path, packets: int) -> str:
    """Make the last commit, which has everything: policy, stubs, refinements, packets, logs and envelopes."""
    key, chance = MemoryKey(), random.Random(1)
    git(root.parent, "init", "--quiet", "--initial-branch=main", str(root))
    ids = [WorkPacketId.parse(f"WP-1-Many-{number}-v1") for number in range(packets)]
    rows = [(wp_id, "READY_FOR_DEV") for wp_id in ids]
    base = commit_files(
        root,
        0,
        {
            SPEC: _SPECIFICATION,
            ".GOV/policy/policy.toml": POLICY.encode(),
            ".GOV/policy/allowed_signers": key.line(WHO).encode(),
            ".GOV/roles_shared/TASK_BOARD.md": board_text(rows).encode(),
            ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md": registry_text(rows).encode(),
        },
    )
    begin = base
    size = max(1, -(-packets // COMMITS))
    for number, start in enumerate(range(0, packets, size), 1):
        files: dict[str, bytes] = {}
        for wp_id in ids[start : start + size]:
            files.update(_approved(key, chance, wp_id, begin, base, number))
        base = commit_files(root, number, files)
    git(root, "reset", "--quiet", "--hard", base)
    return base


def _approved(
    key: MemoryKey, chance: random.Random, wp_id: WorkPacketId, begin: str, base: str, number: int
) -> Iterator[tuple[str, bytes]]:
    name, at = wp_id.text, _at(number)
    stub = (f".GOV/task_packets/stubs/{name}.md", stub_text(chance, wp_id).encode())
    refinement = (f".GOV/refinements/{name}.md", _refinement(wp_id, int(name.split("-")[3])).encode())
    token = re.search("ann[0-9]{12}", refinement[1].decode())
    assert token is not None
    signed = re.sub("(?m)(?<=^- USER_SIGNATURE: ).*", token.group(), packet_text(chance, wp_id))
    packet = (f".GOV/task_packets/{name}.md", (signed + _demands(stub)).encode())
    writer = EventWriter(Actor("bot", "agent"), at, "0190a5de-ac96-774b-bcce-000000000001", "bench")
    made: dict[str, Json] = {"lane_from": None, "lane_to": "STUB", "base": wp_id.base}
    created = next_event(writer, name, NewLogEvent("created", made), after=())
    instant = read_instant(at)
    assert instant is not None
    statement = Statement(
        subjects=(Subject(refinement[0], hashlib.sha256(refinement[1]).hexdigest()),),
        packet=name,
        gate="activation",
        decision="approve",
        role="approver",
        approver=WHO,
        repository=RepositoryName("example/bench", begin),
        base=base,
        spec=None,
        policy=hashlib.sha256(POLICY.encode()).hexdigest(),
        log_heads=(created.id,),
        scope=_scope(stub),
        issued_at=instant,
        expires_at=instant + timedelta(days=1),
        nonce=hashlib.sha256(name.encode()).hexdigest()[:32],
        # Like approvals from before contracts: stub and packet are generated separately, so their contracts differ.
        version=1,
    )
    payload = statement.payload()
    file, envelope = write_envelope(payload, key.public.fingerprint, key.sign(pae(payload)))
    named: Json = {"path": refinement[0], "sha256": statement.subjects[0].sha256}
    moved: dict[str, Json] = {"lane_from": "STUB", "lane_to": "READY_FOR_DEV", "refinement": named, "checklist": []}
    happened = NewLogEvent("activated", moved, attest=[file.partition(".")[0]])
    activated = next_event(writer, name, happened, after=[created])
    yield from (stub, refinement, packet, (f".GOV/attestations/{file}", envelope))
    yield from (_file(event) for event in (created, activated))


def _file(event: LogEvent) -> tuple[str, bytes]:
    return event.path, event.encode()


def _scope(stub: tuple[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted({" ".join(item.value.split()) for item in Stub(Source.from_bytes(*stub)).in_scope}))


def _demands(stub: tuple[str, bytes]) -> str:
    """Return what the stub requires, which must be carried over to the packet."""
    document = Stub(Source.from_bytes(*stub))
    demands = (*document.acceptance_criteria, *document.in_scope, *document.out_of_scope)
    return "".join(f"- {demand.value}\n" for demand in demands)


def _refinement(wp_id: WorkPacketId, number: int) -> str:
    """Return a complete refinement; the fields that the approval fills in have a unique token."""
    text = RefinementText(wp_id, _at(0), ".GOV/roles_shared/SPEC_CURRENT.md", SPEC, _SPEC_SHA1, ["Spec 1.1"])
    written = render_refinement(text).replace("USER_REVIEW_STATUS: PENDING", "USER_REVIEW_STATUS: APPROVED")
    when = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    for key, value in (
        ("USER_SIGNATURE: <pending>", f"USER_SIGNATURE: ann{when:%d%m%Y%H%M}"),
        ("USER_APPROVAL_EVIDENCE: <pending>", f"USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT {wp_id}"),
        ("START_LINE: <fill in>", "START_LINE: 3"),
        ("END_LINE: <fill in>", "END_LINE: 3"),
        ("TOKEN: <fill in>", "TOKEN: It"),
        ("  <fill in>", f"  {SPEC_LINE}"),
        ("VERDICT: <fill in>", "VERDICT: PASS"),
        ("_FOUND: <fill in>", "_FOUND: NO"),
        ("_NEEDED: <fill in>", "_NEEDED: NO"),
    ):
        written = written.replace(key, value)
    return re.sub("<fill in[^>]*>", "Nothing of that kind.", written)


def _at(number: int) -> str:
    begun = read_instant(BEGUN)
    assert begun is not None
    return write_instant(begun + timedelta(hours=number))


def commit_files(root: Path, number: int, files: Mapping[str, bytes]) -> str:
    """Add a commit to main without touching work tree and index; return its id."""
    instant = read_instant(_at(number))
    assert instant is not None
    who = f"Bench <bench@example.org> {int(instant.timestamp())} +0000"
    parts = [f"commit refs/heads/main\ncommitter {who}\ndata 1\nx\n".encode()]
    parts += [b"from refs/heads/main^0\n"] if number else []
    for path, data in files.items():
        parts.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))
    subprocess.run(["git", "-C", str(root), "fast-import", "--quiet"], input=b"".join(parts), check=True)
    return git(root, "rev-parse", "refs/heads/main")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout.strip()
