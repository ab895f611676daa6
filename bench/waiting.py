"""Makes a stub whose refinement pins the specification and has a signed approval, but that lacks other things."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

from bench.governed_trees import commit
from bench.one_approver import POLICY, WHO
from bench.timing import NotMeasured
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.git.repository import find_repository
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import Wish, draft_decision, write_decision
from workpacket.shell.approvals.facts import gate_verdict, open_approvals
from workpacket.shell.keys import find_key, sign

NAME = "WP-1-Parser-v1"
_SECTIONS = 120


def write_waiting(workpacket: str, root: Path) -> str:
    """Make the repository; return the stub's id. Its activation reads the specification and verifies the approval."""
    root.mkdir()
    key = root.parent / "waiting-key"
    _run(root, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(key))
    _run(root, "git", "init", "--quiet", "--initial-branch=main")
    _run(root, workpacket, "init")
    specification = root / ".GOV/spec/SPEC_v1.md"
    specification.parent.mkdir(parents=True, exist_ok=True)
    specification.write_text(_specification(), encoding="utf-8")
    policy = root / ".GOV/policy/policy.toml"
    policy.write_text(policy.read_text(encoding="utf-8") + "\n" + POLICY, encoding="utf-8")
    kind, encoded = Path(f"{key}.pub").read_text(encoding="utf-8").split()[:2]
    (policy.parent / "allowed_signers").write_text(f'{WHO} namespaces="{NAMESPACE}" {kind} {encoded}\n')
    commit(root)
    _run(root, workpacket, "new", NAME, "--what", "Parse", "--why", "Needed", "--roadmap", "SPEC_v1 2")
    _run(root, workpacket, "refine", NAME)
    _approve(root, key)
    commit(root)
    return NAME


def _specification() -> str:
    sections = (
        f"### 1.{number} Section {number}\nThe parser keeps every byte that it reads.\n" for number in range(_SECTIONS)
    )
    return "\n".join(["# Specification\n", "## 1 Main body\n", *sections, "## 2 Roadmap\nLater it will sing.\n"])


def _approve(root: Path, key: Path) -> None:
    repository, now = find_repository(root), moment()
    with open_approvals(repository, None, now) as approvals:
        wish = Wish(NAME, "activation", "approve", find_key(str(key)).public, validity=timedelta(days=1))
        draft = draft_decision(approvals, wish, now)
        write_decision(approvals, draft, sign(draft.message, str(key)))
        base = approvals.base.commit
    verdict = gate_verdict(repository, NAME, "activation", base=base, moment=moment())
    if not verdict.met:
        raise NotMeasured(f"the approval was refused: {verdict.unmet}")


def _run(root: Path, *command: str) -> None:
    subprocess.run(command, cwd=root, check=True, capture_output=True)
