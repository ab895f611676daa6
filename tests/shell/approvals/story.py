"""A real repository with an anchored policy, a stub and its refinement, and people with real keys."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from cli.commands import Result
from git.scratch import git, make_repository
from guided_tour.terminal import Shown, at_terminal
from shell.agents import make_key_file
from shell.approvals.deciding import digest_of, drafted, revocation, written
from workpacket.approvals.facts import Verdict
from workpacket.approvals.fields import read_instant, write_instant
from workpacket.cli.main import main
from workpacket.documents.refinement import Refinement
from workpacket.git.repository import Repository, find_repository
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event, read_log
from workpacket.lifecycle.activation import block_digest
from workpacket.lifecycle.contract import Contract
from workpacket.model.canonical import Json
from workpacket.model.events import Actor, LogEvent
from workpacket.model.events import ChangedFile as EventSubject
from workpacket.model.plan import Moment, digest
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import StatementDraft, Written
from workpacket.shell.approvals.envelopes import read_packet_log, work_tree
from workpacket.shell.approvals.facts import gate_verdict
from workpacket.shell.approvals.subject import contract_to_approve
from workpacket.shell.keys import find_key, signers_line
from workpacket.text.source import Source

WP = "WP-1-Parser-v1"
ALICE, BOB, CAROL = "alice@example.org", "bob@example.org", "carol@example.org"
REFINEMENT_PATH = f".GOV/refinements/{WP}.md"
STUB_PATH = f".GOV/task_packets/stubs/{WP}.md"
AUDIT_PATH = ".GOV/roles_shared/SIGNATURE_AUDIT.md"

SPEC = """# Specification v1

## 4 Reading
### 4.2 Parser
A parser MUST keep every byte that it reads.
It MUST name the line of a fault.
"""

REFINEMENT = f"""## TECHNICAL_REFINEMENT (MASTER SPEC)

### METADATA
- WP_ID: {WP}
- CREATED_AT: 2026-03-01T00:00:00Z
- SPEC_TARGET_RESOLVED: .GOV/roles_shared/SPEC_CURRENT.md -> Spec_v1.md
- SPEC_TARGET_SHA1: {digest(SPEC.encode())}
- USER_REVIEW_STATUS: PENDING
- USER_SIGNATURE: <pending>
- USER_APPROVAL_EVIDENCE: <pending>

### GAPS_IDENTIFIED
- None.

### FLIGHT_RECORDER_INTERACTION (event IDs + telemetry triggers)
- None.

### RED_TEAM_ADVISORY (security failure modes)
- Hostile bytes.

### PRIMITIVES (traits/structs/enums)
- Source

### CLEARLY_COVERS (5-point checklist)
- CLEARLY_COVERS_VERDICT: PASS

### ENRICHMENT
- ENRICHMENT_NEEDED: NO
- REASON_NO_ENRICHMENT: Chapter 4.2 states it.

### SPEC_ANCHORS (REQUIRED: one or more)

#### ANCHOR 1
- SPEC_ANCHOR: Spec_v1.md 4.2 Parser
- CONTEXT_START_LINE: 5
- CONTEXT_END_LINE: 5
- CONTEXT_TOKEN: keep every byte
- EXCERPT_ASCII_ESCAPED:
  ```text
  A parser MUST keep every byte that it reads.
  ```
"""

STUB = f"""# Work Packet Stub: {WP}

## STUB_METADATA
- WP_ID: {WP}

## SCOPE_SKETCH (DRAFT)
- IN_SCOPE:
  - The reader.
- OUT_OF_SCOPE:
  - The writer.
"""

POLICY = f"""
[approvals]
repository = "example/rocket"

[approvals.roles]
approver = ["{ALICE}", "{BOB}"]
operator = ["{CAROL}"]

[approvals.gates.activation]
roles = ["approver"]
threshold = 1
separation = []

[approvals.gates.policy]
roles = ["operator"]
threshold = 1
separation = []
"""


@dataclass
class Story:
    """`home` holds the private key of each person, by the first part of the name."""

    root: Path
    home: Path
    keys: dict[str, Path] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = {who: self.home / who.partition("@")[0] for who in (ALICE, BOB, CAROL)}

    @property
    def repository(self) -> Repository:
        return find_repository(self.root, {})

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"), "PYTHONPATH": ":".join(sys.path)}
        return {**os.environ, **own, "TERM": "dumb", "GIT_CONFIG_GLOBAL": os.devnull, "NO_COLOR": "1"}

    def write(self, path: str, text: str | bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def read(self, path: str) -> str:
        return (self.root / path).read_text("utf-8")

    def commit(self, message: str = "work") -> str:
        """A commit of this very moment: when an approval came onto the base is part of what is judged."""
        git(self.root, "add", "--all")
        ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *ann, "commit", "--quiet", "-m", message], cwd=self.root, env=environment, check=True)
        return git(self.root, "rev-parse", "HEAD")

    def branch(self, name: str) -> None:
        git(self.root, "checkout", "--quiet", "-b", name)

    def verdict(self, *, base: str | None = None, later: timedelta = timedelta(), gate: str = "activation") -> Verdict:
        packet = "policy" if gate == "policy" else WP
        return gate_verdict(self.repository, packet, gate, base=base, moment=moment_in(later))

    def draft(self, who: str = ALICE, **wished: Any) -> StatementDraft:
        asked: dict[str, Any] = {"packet": WP, "gate": "activation", "decision": "approve"} | wished
        return drafted(self.root, self.keys[who], moment(), **asked)

    def write_signed(self, draft: StatementDraft, who: str = ALICE) -> Written:
        return written(self.root, self.keys[who], moment(), draft)

    def approve(self, who: str = ALICE, **wished: Any) -> str:
        """The digest of the envelope."""
        return digest_of(self.write_signed(self.draft(who, **wished), who))

    def revoke(self, envelope: str, who: str = ALICE) -> str:
        draft = revocation(self.root, self.keys[who], moment(), envelope)
        return digest_of(self.write_signed(draft, who))

    def activate(self, *envelopes: str, refinement: str | None = None) -> LogEvent:
        """What the command `activate` writes into the log, no more of it."""
        with work_tree(self.repository) as tree:
            log = read_packet_log(tree, WP)
        data = refinement or digest((self.root / REFINEMENT_PATH).read_bytes())
        found: dict[str, Json] = {
            "lane_from": "STUB",
            "lane_to": "READY_FOR_DEV",
            "refinement": {"path": REFINEMENT_PATH, "sha256": data},
            "checklist": [],
            "contract": self.contract(),
        }
        subjects = [EventSubject(f".GOV/task_packets/{WP}.md", None, "a" * 64)]
        return self.event(NewLogEvent("activated", found, subjects, envelopes), log.events)

    def contract(self) -> str:
        """The digest of what the files say."""
        said = contract_to_approve(self._data, read_log(WP, {}), WP, "activation")
        assert isinstance(said, Contract), said
        return said.digest

    def _data(self, path: str) -> bytes | None:
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def create(self) -> LogEvent:
        return self.event(NewLogEvent("created", {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Parser"}), ())

    def present(self) -> LogEvent:
        """The refinement as it is now was shown to the user."""
        with work_tree(self.repository) as tree:
            log = read_packet_log(tree, WP)
        refinement = Refinement(Source.from_bytes(REFINEMENT_PATH, (self.root / REFINEMENT_PATH).read_bytes()))
        pinned: Json = {"path": REFINEMENT_PATH, "sha256": refinement.source.digest}
        shown: dict[str, Json] = {"refinement": pinned, "block_sha256": block_digest(refinement)}
        return self.event(NewLogEvent("refinement.presented", shown), log.events)

    def event(self, happening: NewLogEvent, events: tuple[LogEvent, ...]) -> LogEvent:
        now = moment()
        writer = EventWriter(Actor("agent-7", "agent"), now.now, now.tx, "test")
        event = next_event(writer, WP, happening, after=events[-1:])
        self.write(event.path, event.encode())
        return event

    def run(self, *words: str) -> Result:
        """A command without a terminal."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(words))
        return Result(status, out.getvalue(), err.getvalue())

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").out)

    def type(self, words: list[str], *answers: tuple[str, str]) -> Shown:
        return at_terminal(self.command(*words), self.root, answers, self.environment)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-c", "from workpacket.cli.main import console; console()", *words]


def begin(root: Path, home: Path, *, policy: str = POLICY, passphrases: dict[str, str] | None = None) -> Story:
    """The policy, the specification, the stub and the refinement are on the main branch."""
    make_repository(root)
    home.mkdir(parents=True, exist_ok=True)
    story = Story(root, home)
    for who, path in story.keys.items():
        make_key_file(path, (passphrases or {}).get(who, ""))
    signers = "".join(f"{signers_line(who, find_key(str(path)).public)}\n" for who, path in story.keys.items())
    story.write(".GOV/policy/policy.toml", policy)
    story.write(".GOV/policy/allowed_signers", signers)
    story.write(".GOV/roles_shared/SPEC_CURRENT.md", "# SPEC_CURRENT\n\nCurrent spec: **Spec_v1.md**\n")
    story.write("Spec_v1.md", SPEC)
    story.write(STUB_PATH, STUB)
    story.write(REFINEMENT_PATH, REFINEMENT)
    story.create()
    story.present()
    story.commit("begin")
    return story


def moment_in(later: timedelta) -> Moment:
    now = moment()
    instant = read_instant(now.now)
    assert instant is not None
    return Moment(write_instant(instant + later), now.tx, now.nonce)


def codes(verdict: Verdict) -> set[str]:
    return {refusal.code for refusal in verdict.unmet}
