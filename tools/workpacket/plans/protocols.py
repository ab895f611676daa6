"""The protocols of the roles, written from the table of transitions and the gates, so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.refinement import APPROVAL_WORDS
from workpacket.documents.stub_text import CHECKLIST
from workpacket.lifecycle.activation import ITEMS
from workpacket.lifecycle.transitions import CAME_FROM, TRANSITIONS, Transition

_NOTE = "<!-- Written by `workpacket init` from the lifecycle; a test of the tool proves that they agree. -->"
_ORCHESTRATOR = ("new", "activate", "supersede", "abandon", "block", "unblock", "reopen", "merged")
_CODER = ("claim", "release", "handover", "submit")
_VALIDATOR = ("verdict",)


def orchestrator_protocol() -> str:
    checklist = "\n".join(
        f"{number}. `{item}`: {text.replace('{id}', '<WP_ID>')}"
        for number, (item, text) in enumerate(zip(ITEMS, CHECKLIST, strict=True), 1)
    )
    return _page(
        "Orchestrator protocol",
        "You keep the backlog, activate packets and see that every packet has somebody who works on it.",
        _ORCHESTRATOR,
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


def coder_protocol() -> str:
    return _page(
        "Coder protocol",
        "You do the work of one packet at a time, within its scope, and prove what it demands.",
        _CODER,
        """## The work

1. `just next` lists what is ready; `just claim <WP_ID>` takes it for the time of a lease.
2. Change only files of IN_SCOPE_PATHS. Never start from a stub.
3. Commit, then `just submit <WP_ID> --prove 'N=COMMAND'` for each line of DONE_MEANS.
4. `workpacket why <WP_ID>` says at any time what is missing.
""",
    )


def validator_protocol() -> str:
    return _page(
        "Validator protocol",
        "You judge work that you had no hand in, against its packet and its specification.",
        _VALIDATOR,
        """## The verdict

1. Read the packet, the diff and the evidence: `workpacket history <WP_ID> --json`.
2. Write a report into the repository.
3. `just verdict <WP_ID> PASS --report FILE`, or FAIL, CHANGES, OUTDATED_ONLY.
""",
    )


def _page(title: str, purpose: str, commands: tuple[str, ...], body: str) -> str:
    rows = [row for row in TRANSITIONS if row.command in commands]
    table = "\n".join(["| command | from | to | gate | what it means |", "|---|---|---|---|---|", *map(_row, rows)])
    return f"# {title}\n\n{_NOTE}\n\n{purpose}\n\n{body}\n## Your moves\n\n{table}\n"


def _row(row: Transition) -> str:
    target = "the lane it came from" if row.target == CAME_FROM else row.target
    return f"| `{row.typed}` | {', '.join(row.origins) or '-'} | {target} | {row.gate or '-'} | {row.says} |"


def protocols() -> Iterator[tuple[str, str]]:
    """Path and text of each."""
    yield ".GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md", orchestrator_protocol()
    yield ".GOV/roles/coder/CODER_PROTOCOL.md", coder_protocol()
    yield ".GOV/roles/validator/VALIDATOR_PROTOCOL.md", validator_protocol()
