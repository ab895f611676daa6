"""Verifying one approval with the policy from the base: in a process that is warm, and in one that is fresh."""

from __future__ import annotations

import base64
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

from bench.governance import wait_until_at_rest
from bench.many_approvals import write_many
from bench.one_approver import POLICY, WHO
from bench.results import Row, row
from bench.timing import Timing, measure
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.git.repository import Repository, find_repository
from workpacket.shell.approvals.approving import write_decision
from workpacket.shell.approvals.drafts import Wish, draft_decision
from workpacket.shell.approvals.facts import gate_verdict, open_approvals
from workpacket.shell.keys.own_key import find_key
from workpacket.shell.keys.ssh_keygen import sign
from workpacket.shell.moment import moment

WP = "WP-1-Parser-v1"
REFINEMENT = f"""## TECHNICAL_REFINEMENT (MASTER SPEC)

### METADATA
- WP_ID: {WP}
- USER_REVIEW_STATUS: PENDING
- USER_SIGNATURE: <pending>
- USER_APPROVAL_EVIDENCE: <pending>
"""
_FRESH = (
    "import sys; from pathlib import Path; from workpacket.git.repository import find_repository;"
    "from workpacket.shell.approvals.facts import gate_verdict; from workpacket.shell.moment import moment;"
    "sys.exit(not gate_verdict(find_repository(Path.cwd()), sys.argv[1], 'activation', base=sys.argv[2],"
    " moment=moment()).met)"
)


def rows(scratch: Path, *, large: int) -> Iterator[Row]:
    """`large` is the number of approvals in the large repository."""
    scratch.mkdir()
    os.environ["XDG_CONFIG_HOME"] = str(scratch / "config")  # nothing of the person's own settings is touched
    repository, base, key = approved(scratch / "approved")
    root = repository.root
    group = "one approval"
    yield row(group, "verdict, warm", lambda: _warm(repository, base), target=10)
    fresh = [sys.executable, "-c", _FRESH, WP, base]
    yield row(group, "verdict, fresh process", lambda: _fresh(fresh, root), target=100)
    console = "from workpacket.cli.main import console; console()"
    whole = [sys.executable, "-c", console, "approvals", "verify", "--base", base]
    yield row(group, "approvals verify, fresh process", lambda: _fresh(whole, root))
    yield row(group, "ssh-keygen -Y verify (signature alone)", _peer(scratch, key))
    yield from _many(scratch, large // 10, console)
    yield from _many(scratch, large, console)


def _many(scratch: Path, packets: int, console: str) -> Iterator[Row]:
    """A tenth beside the whole shows whether the time grows with the number or with its square."""
    root = scratch / f"many-{packets}"
    base = write_many(root, packets)
    wait_until_at_rest(root / ".GOV")
    group = f"{packets} approvals"
    first = [sys.executable, "-c", _FRESH, "WP-1-Many-0-v1", base]
    # What was approved long ago has expired, so the gate itself refuses; what was built on it stays good.
    yield row(group, "one verdict, fresh process", lambda: measure(first, root, repeats=3, statuses=(1,)))
    for words in (("approvals", "verify"), ("check", "--no-cache"), ("check",)):
        yield row(group, " ".join(words), partial(measure, [sys.executable, "-c", console, *words], root, repeats=1))
    check = [sys.executable, "-c", console, "check"]
    yield row(group, "check, warm", partial(measure, check, root, repeats=5), target="1500 CPU")
    stub = next((root / ".GOV/task_packets/stubs").glob("*.md"))
    stub.write_bytes(stub.read_bytes() + b"\n")
    yield row(group, "check, one stub edited", partial(measure, check, root, repeats=1))


def approved(root: Path) -> tuple[Repository, str, Path]:
    """A repository with one signed approval; its base, and the key."""
    key = root.parent / "key"
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(key))
    _run("git", "init", "--quiet", "--initial-branch=main", str(root))
    kind, encoded = Path(f"{key}.pub").read_text().split()[:2]
    for name, text in {
        ".GOV/policy/policy.toml": POLICY,
        ".GOV/policy/allowed_signers": f'{WHO} namespaces="{NAMESPACE}" {kind} {encoded}\n',
        f".GOV/refinements/{WP}.md": REFINEMENT,
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
        return repository, approvals.base.commit, key


def _warm(repository: Repository, base: str) -> Timing:
    walls, cpus = [], []
    for _ in range(50):
        started, cpu = time.perf_counter(), time.process_time()
        verdict = gate_verdict(repository, WP, "activation", base=base, moment=moment())
        walls.append((time.perf_counter() - started) * 1e3)
        cpus.append((time.process_time() - cpu) * 1e3)
        if not verdict.met:
            raise SystemExit(f"the approval was refused: {verdict.unmet}")
    return Timing(statistics.median(walls), min(walls), statistics.median(cpus))


def _fresh(command: list[str], root: Path) -> Timing:
    """With compiled modules, as an installed package has them whatever the environment says."""
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}
    measure(command, root, repeats=1, environment=compiled)
    return measure(command, root, repeats=15, environment=compiled)


def _peer(scratch: Path, key: Path) -> Callable[[], object]:
    message = scratch / "message"
    message.write_bytes(base64.b64encode(bytes(600)))
    _run("ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(message))
    signers = scratch / "signers"
    signers.write_text(f'{WHO} namespaces="{NAMESPACE}" {Path(f"{key}.pub").read_text()}')
    command = f"ssh-keygen -Y verify -n {NAMESPACE} -I {WHO} -f {signers} -s {message}.sig < {message}"
    return lambda: measure(["sh", "-c", command], scratch, repeats=15)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
