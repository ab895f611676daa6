"""A governed repository, prepared once for each stage in the life of a packet, and copied for each test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from corpora.seeds.user import Repository, new_repository, ran

WP, BASE = "WP-1-Greeting-v1", "WP-1-Greeting"
STUB = f".GOV/task_packets/stubs/{WP}.md"
REFINEMENT = f".GOV/refinements/{WP}.md"
PACKET = f".GOV/task_packets/{WP}.md"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
ANN = "ann@example.org"
NAMESPACE = "workpacket-approval@v1"
SPECIFICATION = """# Specification

## 1 Main body

### 1.1 Greeting
The program greets its user by name.

## 2 Roadmap
Later it will sing.
"""
IN_MAIN_BODY, IN_ROADMAP = 6, 9
APPROVALS = f"""
[approvals]
repository = "example/greeter"

[approvals.roles]
approver = ["{ANN}"]
""" + "".join(
    f'\n[approvals.gates.{gate}]\nroles = ["approver"]\nthreshold = 1\nseparation = []\n'
    for gate in ("activation", "policy")
)


def init(repository: Repository, key: Path) -> None:
    repository.done("init")
    repository.write("justfile", "import '.GOV/gov.just'\n")
    repository.commit("Begin")


def trusted(repository: Repository, key: Path) -> None:
    """With a specification, and a policy that asks for the signature of one person."""
    repository.write(".GOV/spec/SPEC_v1.md", SPECIFICATION)
    repository.write(".GOV/policy/policy.toml", repository.read(".GOV/policy/policy.toml") + APPROVALS)
    public = " ".join(key.with_suffix(".pub").read_text("utf-8").split()[:2])
    repository.write(".GOV/policy/allowed_signers", f'{ANN} namespaces="{NAMESPACE}" {public}\n')
    repository.commit("Trust")


def stub(repository: Repository, key: Path) -> None:
    repository.done(
        "new", WP, "--what", "Greet the user", "--why", "People like it", "--roadmap", "SPEC_v1 2", "--risk", "LOW"
    )
    repository.replace(
        STUB,
        ("- IN_SCOPE:\n  - TODO", "- IN_SCOPE:\n  - `src/`\n  - The greeting itself."),
        ("(DRAFT)\n- TODO", "(DRAFT)\n- The name is printed."),
    )
    repository.commit("An idea")


def refined(repository: Repository, key: Path) -> None:
    repository.done("refine", WP)
    fill_in(repository, IN_MAIN_BODY)


def fill_in(repository: Repository, line: int) -> None:
    """Write the refinement, with an anchor at this line of the specification."""
    words = SPECIFICATION.splitlines()[line - 1]
    values = {
        "SPEC_ANCHOR: <fill in>": f"SPEC_ANCHOR: SPEC_v1.md line {line}",
        "CONTEXT_START_LINE: <fill in>": f"CONTEXT_START_LINE: {line}",
        "CONTEXT_END_LINE: <fill in>": f"CONTEXT_END_LINE: {line}",
        "CONTEXT_TOKEN: <fill in>": f"CONTEXT_TOKEN: {words.split()[0]}",
        "  <fill in>": f"  {words}",
        "VERDICT: <fill in>": "VERDICT: PASS",
        "[ ] PASS": "[x] PASS",
        "_FOUND: <fill in>": "_FOUND: NO",
        "_NEEDED: <fill in>": "_NEEDED: NO",
    }
    repository.replace(REFINEMENT, *values.items())
    repository.write(REFINEMENT, re.sub("<fill in[^>]*>", "Nothing of that kind.", repository.read(REFINEMENT)))


def presented(repository: Repository, key: Path) -> None:
    repository.done("refine", WP, "--present")
    repository.commit("For the user to read")


def approved(repository: Repository, key: Path) -> None:
    sign(repository, key)
    repository.commit("Approved")


def sign(repository: Repository, key: Path) -> None:
    """Approve as on two machines: the product writes a statement, ssh-keygen signs it, the product takes it back."""
    public = str(key.with_suffix(".pub"))
    statement = repository.root / ".git" / "statement"
    repository.done("approve", WP, "--key", public, "--statement-out", str(statement))
    signed = ran(repository.root, "ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", key, statement)
    assert signed.status == 0, signed
    repository.done("approve", "--attach", str(statement))


def ready(repository: Repository, key: Path) -> None:
    repository.done("create-task-packet", WP)
    repository.replace(PACKET, ("TERMS: TODO", "TERMS: x"))
    repository.commit("Activated")


def claimed(repository: Repository, key: Path) -> None:
    """Claimed by a coder, whose branch stays checked out, with the work on it."""
    repository.done("packet", "prepare", WP, "--for", "coder")
    repository.done("claim", WP, "--as", "coder")
    repository.commit("Claimed")
    repository.git("switch", "--quiet", f"wp/{WP}")
    repository.git("merge", "--quiet", "main")
    repository.commit("Greet", {"src/greet.py": "print('hello')\n"})


STAGES: tuple[Callable[[Repository, Path], None], ...] = (
    init, trusted, stub, refined, presented, approved, ready, claimed
)  # fmt: skip


class Prepared:
    """What many tests begin with is made once, by the commands that a user types, and copied for each of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.key = folder / "key"

    def copy(self, make: Callable[[Path], None], to: Path) -> None:
        """A copy of the folder that this function fills."""
        folder = self._folder / make.__name__
        if not folder.exists():
            folder.mkdir()
            make(folder)
        shutil.copytree(folder, to, dirs_exist_ok=True)

    def at(self, stage: str, to: Path) -> Repository:
        """A copy of the repository as it stands after this stage."""
        shutil.copytree(self._reached([one.__name__ for one in STAGES].index(stage)), to, dirs_exist_ok=True)
        return Repository(to)

    def _reached(self, index: int) -> Path:
        step = STAGES[index]
        folder = self._folder / step.__name__
        if not folder.exists():
            if index:
                shutil.copytree(self._reached(index - 1), folder)
            else:
                new_repository(folder)
                made = ran(self._folder, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.key)
                assert made.status == 0, made
            step(Repository(folder), self.key)
        return folder
