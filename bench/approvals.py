"""Rows about verifying one approval with the policy of the base, in a warm process and in a new one."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from bench.governance import PYTHON, forget, wait_until_at_rest
from bench.many_approvals import write_many
from bench.one_approver import POLICY, WHO
from bench.rows import Row, Sampler, command, program, within_a_process
from bench.sides import Side
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.git.repository import find_repository
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import Wish, draft_decision, write_decision
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.keys import find_key, sign

WP = "WP-1-Parser-v1"
REFINEMENT = f"""## TECHNICAL_REFINEMENT (MASTER SPEC)

### METADATA
- WP_ID: {WP}
- USER_REVIEW_STATUS: PENDING
- USER_SIGNATURE: <pending>
- USER_APPROVAL_EVIDENCE: <pending>
"""
STUB = f"""# Work Packet Stub: {WP}

## STUB_METADATA
- WP_ID: {WP}
- BASE_WP_ID: WP-1-Parser
- CREATED_AT: 2026-01-31T12:00:00Z
- STUB_STATUS: STUB (NOT READY FOR DEV)

## INTENT (DRAFT)
- What: Read the lines
- Why: Nothing reads them

## SCOPE_SKETCH (DRAFT)
- IN_SCOPE:
  - `src/`
- OUT_OF_SCOPE:
  - Writing them

## ACCEPTANCE_CRITERIA (DRAFT)
- All lines are read.
"""
# The last argument says whether the gate is met. An exception does not count as a refusal: its exit status is 1.
_FRESH = (
    "import sys; from pathlib import Path; from workpacket.git.repository import find_repository;"
    "from workpacket.shell.approvals.facts import gate_verdict; from workpacket.shell.actor import moment;"
    "met = gate_verdict(find_repository(Path.cwd()), sys.argv[1], 'activation', base=sys.argv[2], moment=moment()).met;"
    "sys.exit(0 if met == (sys.argv[3] == 'met') else 3)"
)


def rows() -> Iterator[Row]:
    def warm(side: Side) -> Sampler:
        root, base, _ = _approved(side)
        return within_a_process("bench.in_process", "verdict", str(root), WP, base)(side)

    def fresh(side: Side) -> Sampler:
        root, base, _ = _approved(side)
        line = [side.python, "-c", _FRESH, WP, base, "met"]
        return program(lambda _: line, within=lambda _: root)(side)

    def verify(side: Side) -> Sampler:
        root, base, _ = _approved(side)
        return command("approvals", "verify", "--base", base, within=lambda _: root)(side)

    yield Row("verdict-warm", warm, "10", PYTHON, repeats=3)
    yield Row("verdict-fresh", fresh, "100", PYTHON, repeats=15)
    yield Row("approvals-verify-1", verify, "100", PYTHON, repeats=15)
    yield Row("ssh-keygen-verify", _signature_alone, kind="floor", repeats=15)
    # Measuring a tenth as well shows whether the time grows linearly or with the square.
    yield from many(1000)
    yield from many(10_000)


def many(packets: int) -> Iterator[Row]:
    """Make a repository with this many packets, each activated by an approval."""

    def made(side: Side) -> tuple[Path, str]:
        def make(root: Path) -> tuple[Path, str]:
            base = write_many(root, packets)
            wait_until_at_rest(root)
            return root, base

        return side.made(f"approvals-{packets}", make)

    def within(side: Side) -> Path:
        return made(side)[0]

    def one_verdict(side: Side) -> Sampler:
        root, base = made(side)
        # Old approvals have expired, so the gate itself refuses; events that used them in time stay valid.
        line = [side.python, "-c", _FRESH, "WP-1-Many-0-v1", base, "expired"]
        return program(lambda _: line, within=lambda _: root)(side)

    def edit(_side: Side, root: Path) -> None:
        stub = min((root / ".GOV/task_packets/stubs").glob("*.md"))
        stub.write_bytes(stub.read_bytes() + b"\n")

    name = f"{packets}-approvals"
    yield Row(f"verdict-of-{name}", one_verdict, f"{100 + packets // 10}", PYTHON, repeats=3)
    verify = command("approvals", "verify", within=within, before=forget)
    yield Row(f"verify-{name}", verify, f"{packets * 4 // 10}", PYTHON, repeats=1)
    without_cache = command("check", "--no-cache", within=within, before=forget)
    cold = f"{packets * 5 // 2}"
    yield Row(f"check-{name}-without-cache", without_cache, cold, PYTHON, repeats=1)
    yield Row(f"check-{name}-cold", command("check", within=within, before=forget), cold, PYTHON, repeats=1)
    yield Row(f"check-{name}-warm", command("check", within=within), "1500 CPU", PYTHON, repeats=5)
    yield Row(f"check-{name}-edited", command("check", within=within, before=edit), "1500 CPU", PYTHON, repeats=1)


def _approved(side: Side) -> tuple[Path, str, Path]:
    return side.made("approved", approved)


def approved(root: Path) -> tuple[Path, str, Path]:
    """Make a repository with one signed approval; return its base and the key."""
    key = root.with_name(f"{root.name}.key")
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(key))
    _run("git", "init", "--quiet", "--initial-branch=main", str(root))
    kind, encoded = Path(f"{key}.pub").read_text().split()[:2]
    for name, text in {
        ".GOV/policy/policy.toml": POLICY,
        ".GOV/policy/allowed_signers": f'{WHO} namespaces="{NAMESPACE}" {kind} {encoded}\n',
        f".GOV/refinements/{WP}.md": REFINEMENT,
        f".GOV/task_packets/stubs/{WP}.md": STUB,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _run("git", "-C", str(root), "add", "--all")
    person = ("-c", "user.name=Ann", "-c", f"user.email={WHO}")
    _run("git", "-C", str(root), *person, "commit", "--quiet", "-m", "begin")
    repository = find_repository(root)
    now = moment()
    with open_approvals(repository, None, now) as approvals:
        wish = Wish(WP, "activation", "approve", find_key(str(key)).public, validity=timedelta(days=1))
        draft = draft_decision(approvals, wish, now)
        write_decision(approvals, draft, sign(draft.message, str(key)))
        base = approvals.base.commit
    _run("git", "-C", str(root), "add", "--all")
    _run("git", "-C", str(root), *person, "commit", "--quiet", "-m", "approve")
    return root, base, key


def _signature_alone(side: Side) -> Sampler:
    """Measure OpenSSH's time for one signature, without policy and log."""
    key = _approved(side)[2]

    def make(folder: Path) -> Path:
        folder.mkdir()
        message = folder / "message"
        message.write_bytes(base64.b64encode(bytes(600)))
        _run("ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(message))
        (folder / "signers").write_text(f'{WHO} namespaces="{NAMESPACE}" {Path(f"{key}.pub").read_text()}')
        return folder

    verify = f"ssh-keygen -Y verify -n {NAMESPACE} -I {WHO} -f signers -s message.sig < message"
    return program(lambda _: ["sh", "-c", verify], within=lambda side: side.made("signature", make))(side)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
