"""A governed repository whose gates ask for signatures, and people with real keys that ssh-keygen has made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lifecycle.governed import Governed
from shell.approvals.deciding import digest_of, drafted, revocation, written
from softkeys import write_derived_key
from workpacket.approvals.envelope import write_envelope
from workpacket.approvals.sshsig import SshSignature, read_signature
from workpacket.shell.approvals.decisions import StatementDraft
from workpacket.shell.keys import find_key, sign, signers_line

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
REFINEMENT = f".GOV/refinements/{NAME}.md"
PACKET = f".GOV/task_packets/{NAME}.md"
ALICE, VICTOR, MALLORY = "alice@example.org", "victor@example.org", "mallory@example.org"

POLICY = f"""
[approvals]
repository = "example/greeter"

[approvals.roles]
approver = ["{ALICE}"]
validator = ["{VICTOR}"]
operator = ["{VICTOR}"]
"""
GATES = {"activation": "approver", "verdict": "validator", "waiver": "approver", "policy": "operator"}


@dataclass
class Signed:
    """The repository of a test, and the folder of private keys, which lies outside of it."""

    governed: Governed
    home: Path

    def begin(self, *, gates: dict[str, str] | None = None, more: str = "") -> None:
        """Mallory has a key, which no line of allowed_signers holds."""
        self.home.mkdir()
        for who in (ALICE, VICTOR, MALLORY):
            write_derived_key(self._key(who), who)
        self.governed.once(self.begin_by_commands, tuple((gates or GATES).items()), more)

    def begin_by_commands(self, gates: Sequence[tuple[str, str]], more: str) -> None:
        rules = "".join(
            f'\n[approvals.gates.{gate}]\nroles = ["{role}"]\nthreshold = 1\nseparation = []\n' for gate, role in gates
        )
        governed = self.governed
        governed.begin(policy=more + POLICY + rules)
        lines = [signers_line(who, find_key(str(self._key(who))).public) for who in (ALICE, VICTOR)]
        governed.write(".GOV/policy/allowed_signers", "".join(f"{line}\n" for line in lines))
        governed.commit("Anchor")

    def line_of(self, who: str) -> str:
        return " ".join(Path(f"{self._key(who)}.pub").read_text().split()[:2])

    def ready(self, name: str = NAME) -> None:
        """A stub with its refinement, presented."""
        self.governed.once(self.ready_by_commands, name)

    def ready_by_commands(self, name: str) -> None:
        self.governed.stub(name)
        self.governed.refine(name)
        self.governed.done("refine", name, "--present")

    def activated(self) -> None:
        """Signed, activated and committed."""
        self.governed.once(self.activated_by_commands)

    def activated_by_commands(self) -> None:
        self.ready()
        self.approve()
        self.governed.done("packet", "activate", NAME)
        self.governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
        self.governed.commit("activated")

    def submitted(self) -> None:
        """Signed, activated, worked on by a coder and submitted; the branch of the work is checked out."""
        self.governed.once(self.submitted_by_commands)

    def submitted_by_commands(self) -> None:
        governed = self.governed
        self.activated()
        governed.work(NAME)
        governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
        governed.write("report.md", "Good.\n")
        governed.commit("submitted")

    def approve(self, gate: str = "activation", who: str = ALICE, *, name: str = NAME, **terms: str) -> str:
        """The digest of the envelope."""
        draft = self.draft(gate, who, name=name, **terms)
        return self._written(draft, who)

    def draft(self, gate: str, who: str, *, name: str = NAME, **terms: str) -> StatementDraft:
        return drafted(self.governed.root, self._key(who), self.governed.clock(), name, gate, "approve", terms=terms)

    def revoke(self, envelope: str, who: str = ALICE) -> None:
        self._written(revocation(self.governed.root, self._key(who), self.governed.clock(), envelope), who)

    def _written(self, draft: StatementDraft, who: str) -> str:
        return digest_of(written(self.governed.root, self._key(who), self.governed.clock(), draft))

    def forged(self, draft: StatementDraft, by: str) -> None:
        """What somebody with a key, though not a trusted one, can put into the repository."""
        signature = sign(draft.message, str(self._key(by)))
        parsed = read_signature(signature)
        assert isinstance(parsed, SshSignature)
        name, data = write_envelope(draft.statement.payload(), parsed.key.fingerprint, signature)
        for change in draft.changes:
            assert change.new is not None
            (self.governed.root / change.path).write_bytes(change.new)
        self.governed.write(f".GOV/attestations/{name}", data.decode())

    def wait(self, **by: float) -> None:
        self.governed.clock.turn(**by)

    def _key(self, who: str) -> Path:
        return self.home / who.partition("@")[0]


def codes_of(governed: Governed, *words: str) -> set[str]:
    found = governed.json("check", *words)["findings"]
    return {finding["code"] for finding in found if finding["severity"] == "error"}
