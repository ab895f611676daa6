"""One case in the making: a genuine approval of one packet, of which a case changes what it is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from corpora.attacks.generator.people import ALICE, BOB, CAROL, MALLORY, OSCAR, People
from softkeys import SoftKey
from workpacket.approvals.envelope import (
    DEFAULT_VALIDITY,
    RepositoryName,
    Spec,
    Statement,
    Subject,
    pae,
    write_envelope,
)
from workpacket.approvals.fields import write_instant
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.model.layout import ENVELOPE_SUFFIX
from workpacket.value import replace

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ISSUED = NOW - timedelta(days=1)

PACKET = "WP-7-Fuel-Gauge-v2"
REFINEMENT = f".GOV/refinements/{PACKET}.md"
SPEC = "docs/spec.md"
ROOT_COMMIT = "1" * 40
BASE = "b" * 40
GENESIS, PREPARED, MOVED = "0" * 63 + "1", "0" * 63 + "2", "0" * 63 + "3"
CONTRACT, OTHER_CONTRACT = "5" * 64, "6" * 64
CONSUMER, OTHER_EVENT = "c" * 64, "d" * 64

REFINEMENT_TEXT = b"## TECHNICAL_REFINEMENT\n\nThe gauge reads zero when the tank is empty.\n"
SPEC_TEXT = b"# Tank\n\n## 3.1 Gauge\n\nThe gauge shall never read below zero.\n"

POLICY = f"""\
[approvals]
repository = "example/rocket"

[approvals.roles]
approver = ["{ALICE}", "{BOB}"]
validator = ["{CAROL}"]
operator = ["{OSCAR}"]

[approvals.gates.activation]
roles = ["approver"]
threshold = 1
separation = ["author"]

[approvals.gates.release]
roles = ["approver", "validator"]
threshold = 2
separation = ["author"]

[approvals.gates.verdict]
roles = ["validator"]
threshold = 1
separation = ["coder"]
max_age_days = 3

[approvals.gates.touch]
roles = ["approver"]
threshold = 1
separation = []
hardware = "touch"

[approvals.gates.pin]
roles = ["approver"]
threshold = 1
separation = []
hardware = "pin"

[approvals.gates.policy]
roles = ["operator", "approver"]
threshold = 1
separation = []
"""


class Scenario:
    """Every attribute may be changed before `write`; `approve` adds an envelope that fits what is there by then."""

    def __init__(self, people: People) -> None:
        self.people = people
        self.policy: str | None = POLICY
        everyone = (ALICE, BOB, CAROL, OSCAR, MALLORY)
        self.signers: list[str] | None = [people.key(person).line(person) for person in everyone]
        self.revoked: list[str] = []
        self.revoked_now: list[str] = []
        self.tree = {REFINEMENT: REFINEMENT_TEXT, SPEC: SPEC_TEXT}
        self.envelopes: dict[str, bytes] = {}
        self.trust: dict[str, Any] = {}
        self.now = NOW
        self.packet = PACKET
        self.gate = "activation"
        self.subjects = [REFINEMENT]
        self.spec: dict[str, str] | None = {"anchor": "3.1 Gauge", "path": SPEC}
        self.scope = ["src/gauge/"]
        self.contract: str | None = CONTRACT
        self.contract_fault = ""
        self.parties = {"author": ["dave@example.org"], "coder": ["agent-7"]}
        self.parents: dict[str, list[str]] = {GENESIS: [], PREPARED: [GENESIS]}
        self.lane_changes = [GENESIS]
        self.consumptions: dict[str, list[str]] = {}
        self.consumer: str | None = None
        self.on_base_since: datetime | None = None
        self.legacy_uses: list[dict[str, str | None]] = []

    def key(self, owner: str = ALICE, kind: str = "ssh-ed25519") -> SoftKey:
        return self.people.key(owner, kind)

    def trust_key(self, principal: str, key: SoftKey, options: str = f'namespaces="{NAMESPACE}"') -> None:
        """In place of the person's other keys."""
        assert self.signers is not None
        self.signers = [line for line in self.signers if not line.startswith(f"{principal} ")]
        self.signers.append(key.line(principal, options))

    def statement(self, **changes: Any) -> Statement:
        """A statement that fits the scenario, but for the changes."""
        spec = self.spec
        honest = Statement(
            subjects=tuple(sorted(Subject(name, sha256(self.tree[name])) for name in self.subjects)),
            packet=self.packet,
            gate=self.gate,
            decision="approve",
            role="validator" if self.gate == "verdict" else "approver",
            approver=ALICE,
            repository=RepositoryName("example/rocket", ROOT_COMMIT),
            base=BASE,
            spec=None if spec is None else Spec(spec["anchor"], sha256(self.tree[spec["path"]])),
            policy=sha256((self.policy or "").encode()),
            log_heads=(PREPARED,),
            scope=tuple(self.scope),
            issued_at=ISSUED,
            expires_at=ISSUED + DEFAULT_VALIDITY,
            nonce=hashlib.sha256(b"%d" % len(self.envelopes)).hexdigest()[:32],
            contract=None if self.gate == "policy" else self.contract,
        )
        return replace(honest, **changes)

    def approve(self, *, key: SoftKey | None = None, statement: Statement | None = None, **changes: Any) -> str:
        """Adds an honestly signed envelope and returns the digest of its file."""
        said = statement or self.statement(**changes)
        return self.add_signed(said.payload(), key or self.key(said.approver))

    def add_signed(self, payload: bytes, key: SoftKey) -> str:
        return self.add(payload, key, self.people.sign(key, pae(payload)))

    def add(self, payload: bytes, key: SoftKey, signature: bytes) -> str:
        """Adds an envelope with whatever signature."""
        return self.add_file(*write_envelope(payload, key.fingerprint, signature))

    def add_json(self, content: str) -> str:
        """Adds an envelope file with this text, under its right name."""
        data = content.encode()
        return self.add_file(sha256(data) + ENVELOPE_SUFFIX, data)

    def add_file(self, name: str, data: bytes) -> str:
        self.envelopes[name] = data
        return name.removesuffix(ENVELOPE_SUFFIX)

    def take_envelope(self) -> bytes:
        """The only envelope so far, out of the scenario, to be changed and put back."""
        (name,) = self.envelopes
        return self.envelopes.pop(name)

    def files(self) -> dict[str, bytes]:
        """All files of the case but expected.json, by path."""
        files = {f"tree/{path}": data for path, data in self.tree.items()}
        files |= {f"attestations/{name}": data for name, data in self.envelopes.items()}
        files |= {f"trust/{name}.json": pretty(content) for name, content in self.trust.items()}
        if self.policy is not None:
            files["policy/policy.toml"] = self.policy.encode()
        if self.signers is not None:
            files["policy/allowed_signers"] = lines(self.signers)
        if self.revoked:
            files["policy/revoked_keys"] = lines(self.revoked)
        if self.revoked_now:
            files["policy-now/revoked_keys"] = lines(self.revoked_now)
        files["facts.json"] = pretty(self._facts())
        return files

    def _facts(self) -> dict[str, Any]:
        return {
            "now": write_instant(self.now),
            "packet": self.packet,
            "gate": self.gate,
            "subjects": self.subjects,
            "rootCommit": ROOT_COMMIT,
            "baseHistory": [BASE],
            "spec": self.spec,
            "scope": self.scope,
            "contract": None if self.gate == "policy" else self.contract,
            "contractFault": self.contract_fault,
            "parties": self.parties,
            "log": {"parents": self.parents, "laneChanges": self.lane_changes},
            "consumptions": self.consumptions,
            "consumer": self.consumer,
            "onBaseSince": write_instant(self.on_base_since) if self.on_base_since else None,
            "legacyUses": self.legacy_uses,
        }


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    codes: tuple[str, ...]
    build: Callable[[Scenario], None]

    @property
    def expected(self) -> dict[str, Any]:
        verdict = "refused" if self.codes else "accepted"
        return {"title": self.title, "verdict": verdict, "codes": sorted(self.codes)}


CASES: list[Case] = []


def case(*codes: str) -> Callable[[Callable[[Scenario], None]], Callable[[Scenario], None]]:
    """Registers a case that must be refused with all of `codes`; without codes it must be accepted."""

    def register(build: Callable[[Scenario], None]) -> Callable[[Scenario], None]:
        assert build.__doc__ is not None
        CASES.append(Case(build.__name__.replace("_", "-"), build.__doc__.rstrip("."), codes, build))
        return build

    return register


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pretty(content: object) -> bytes:
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def lines(texts: list[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def write(case_: Case, people: People, folder: Path) -> None:
    """The case as files below `folder`."""
    scenario = Scenario(people)
    case_.build(scenario)
    for path, data in (scenario.files() | {"expected.json": pretty(case_.expected)}).items():
        target = folder / case_.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
