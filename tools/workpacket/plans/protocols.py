"""The protocols of the roles, written from the table of transitions and the gates, so that they cannot disagree.

Where the policy adds lanes or gates, the table of moves is the one that this repository has, between two marks. What
stands before the marks is the `stem`, by which a page that nobody edited is known whatever the policy was.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.refinement import APPROVAL_WORDS
from workpacket.documents.stub_text import CHECKLIST
from workpacket.lifecycle.activation import ITEMS
from workpacket.lifecycle.added_gates import added_gates, bearing
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import ADVANCE, CAME_FROM, Transition, transitions

_NOTE = "<!-- Written by `workpacket init` from the lifecycle; a test of the tool proves that they agree. -->"
_BEGIN = "<!-- workpacket:moves; by the policy here; `workpacket init` writes all between the marks anew -->"
_END = "<!-- workpacket:end -->"
_DEFAULT = LifecyclePolicy()
_ORCHESTRATOR = ("new", "activate", "supersede", "abandon", "block", "unblock", "reopen", "merged", ADVANCE)
_CODER = ("claim", "release", "handover", "submit")
_VALIDATOR = ("verdict", ADVANCE)


def orchestrator_protocol(policy: LifecyclePolicy = _DEFAULT) -> str:
    checklist = "\n".join(
        f"{number}. `{item}`: {text.replace('{id}', '<WP_ID>')}"
        for number, (item, text) in enumerate(zip(ITEMS, CHECKLIST, strict=True), 1)
    )
    return _page(
        "Orchestrator protocol",
        "You keep the backlog, activate packets and see that every packet has somebody who works on it.",
        _ORCHESTRATOR,
        policy,
        f"""## From stub to packet

1. `just create-stub <WP_ID>` writes the stub. No refinement and no signature is asked of it, and nobody works from it.
2. `just record-refinement <WP_ID>` writes the technical refinement. Fill it in against the main body of the
   specification.
3. `just record-refinement <WP_ID> --present` prints the Technical Refinement Block. Show it to the user.
4. The user answers `{APPROVAL_WORDS} <WP_ID>` and signs. Never sign for the user.
5. `just create-task-packet <WP_ID>` makes the packet, or lists everything that is missing.

## The activation gate

Its items are derived from evidence. A ticked box proves nothing.

{checklist}
""",
    )


def coder_protocol(policy: LifecyclePolicy = _DEFAULT) -> str:
    return _page(
        "Coder protocol",
        "You do the work of one packet at a time, within its scope, and prove what it demands.",
        _CODER,
        policy,
        """## The work

1. `just next` lists what is ready; `just claim <WP_ID>` takes it for the time of a lease.
2. Change only files of IN_SCOPE_PATHS. Never start from a stub.
3. Commit, then `just submit <WP_ID> --prove 'N=COMMAND'` for each line of DONE_MEANS.
4. `workpacket why <WP_ID>` says at any time what is missing.
""",
    )


def validator_protocol(policy: LifecyclePolicy = _DEFAULT) -> str:
    return _page(
        "Validator protocol",
        "You judge work that you had no hand in, against its packet and its specification.",
        _VALIDATOR,
        policy,
        """## The verdict

1. Read the packet, the diff and the evidence: `workpacket history <WP_ID> --json`.
2. Write a report into the repository.
3. `just verdict <WP_ID> PASS --report FILE`, or FAIL, CHANGES, OUTDATED_ONLY.
""",
    )


def _page(title: str, purpose: str, commands: tuple[str, ...], policy: LifecyclePolicy, body: str) -> str:
    moves, usual = _moves(commands, policy), _moves(commands, _DEFAULT)
    shown = usual if moves == usual else f"{_BEGIN}\n{moves}\n{_END}"
    return f"# {title}\n\n{_NOTE}\n\n{purpose}\n\n{body}\n## Your moves\n\n{shown}\n"


def _moves(commands: tuple[str, ...], policy: LifecyclePolicy) -> str:
    rows = [row for row in transitions(policy.lanes) if row.command in commands]
    cells = [_row(row, policy) for row in rows]
    return "\n".join(["| command | from | to | gate | what it means |", "|---|---|---|---|---|", *cells])


def _row(row: Transition, policy: LifecyclePolicy) -> str:
    target = "the lane it came from" if row.target == CAME_FROM else row.target
    typed = row.command if row.command == ADVANCE else row.typed
    added = added_gates(policy, row.event, row.choice) if row in bearing((row,)) else ()
    gates = ", ".join([*([row.gate] if row.gate else []), *added]) or "-"
    says = " ".join(row.says.replace("|", "/").split())
    return f"| `{typed}` | {', '.join(row.origins) or '-'} | {target} | {gates} | {says} |"


def protocols(policy: LifecyclePolicy = _DEFAULT) -> Iterator[tuple[str, str]]:
    """Path and text of each."""
    yield ".GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md", orchestrator_protocol(policy)
    yield ".GOV/roles/coder/CODER_PROTOCOL.md", coder_protocol(policy)
    yield ".GOV/roles/validator/VALIDATOR_PROTOCOL.md", validator_protocol(policy)


def stem_of(page: str) -> str:
    """What of a page does not depend on the policy; the whole page, where nothing is marked as depending on it."""
    stem, begin, rest = page.partition(_BEGIN)
    return stem if begin and rest.endswith(f"{_END}\n") else page


def stem_without_moves(page: str) -> str:
    """The stem that a page of this version has where the policy has a say in its moves."""
    head, title, _ = page.partition("## Your moves\n\n")
    return head + title
