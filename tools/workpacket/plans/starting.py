"""`init`: the files with which a repository begins to be governed. What is there already is left as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket.documents.packet_text import PacketText, render_packet
from workpacket.documents.refinement_text import RefinementText, render_refinement
from workpacket.documents.register_text import BOARD_PATH, REGISTRY_PATH, empty_board, empty_registry
from workpacket.documents.stub_text import SPEC_POINTER, StubText, render_stub
from workpacket.lifecycle.policy import POLICY_PATH
from workpacket.model.canonical import Json
from workpacket.model.ids import WorkPacketId
from workpacket.model.plan import FileChange, Moment, Plan
from workpacket.plans.drafting import Planned
from workpacket.plans.protocols import protocols

GOV_JUST = ".GOV/gov.just"
STUB_TEMPLATE = ".GOV/templates/TASK_PACKET_STUB_TEMPLATE.md"
FIRST_SPECIFICATION = ".GOV/spec/SPEC_v1.md"

_POLICY = """# What this repository decides. In force is this file as the main branch holds it, not as it lies here.
[check]
profile = "strict"

[lifecycle]
lease_hours = 72
satisfied_by = ["VALIDATED", "MERGE_PENDING"]
roadmap_headings = ["roadmap"]
branch_pattern = "wp/{id}"
"""

_SPECIFICATION = """# Specification

## 1 Main body

State here what is required. Refinements anchor their requirement in these lines.

## 2 Roadmap

State here what is planned. What stands only here binds nobody yet.
"""

# Two branches that move different packets change neighbouring lines, and the log of both sides says what they mean; and
# the bytes of the log are never to be touched by a conversion of line ends.
MERGE_DRIVER = "git config merge.workpacket.driver 'workpacket merge-driver %O %A %B %P %L'"
_ATTRIBUTES = f"""# Once in each clone: {MERGE_DRIVER}
# Without that git merges them like any other text; afterwards: workpacket board sync
roles_shared/TASK_BOARD.md merge=workpacket
roles_shared/WP_TRACEABILITY_REGISTRY.md merge=workpacket
task_packets/*.md merge=workpacket
task_packets/*/packet.md merge=workpacket
log/** -text
attestations/** -text
"""

_README = """# Governance

| folder | what |
|---|---|
| `spec/` | the specification; `roles_shared/SPEC_CURRENT.md` names the version in force |
| `task_packets/stubs/` | the backlog |
| `task_packets/` | the packets |
| `refinements/` | what was found out before a packet was activated, and the user's word on it |
| `roles_shared/` | task board and traceability registry, drawn from the log |
| `log/` | what happened, one file an event; never edited |
| `policy/` | what this repository decides |
| `roles/`, `templates/` | how to work here |

`workpacket status` shows where everything stands, `workpacket why WP_ID` what a packet waits for.
"""


def starting_files(moment: Moment, gov_just: str) -> Iterator[tuple[str, str]]:
    """Path and text of every file."""
    yield ".GOV/README.md", _README
    yield ".GOV/.gitattributes", _ATTRIBUTES
    yield POLICY_PATH, _POLICY
    yield SPEC_POINTER, f"# Specification in force\n\n{FIRST_SPECIFICATION}\n"
    yield FIRST_SPECIFICATION, _SPECIFICATION
    yield BOARD_PATH, empty_board()
    yield REGISTRY_PATH, empty_registry()
    yield GOV_JUST, gov_just
    yield from protocols()
    yield from templates(moment.now)


def templates(now: str) -> Iterator[tuple[str, str]]:
    """What `new`, `refine` and `activate` write, to look at and to fill in by hand."""
    name = WorkPacketId("WP-1-Name-v1")
    todo = "TODO"
    yield (
        STUB_TEMPLATE,
        render_stub(StubText(name, now, todo, todo, todo, in_scope=(todo,), acceptance_criteria=(todo,))),
    )
    refinement = RefinementText(name, now, SPEC_POINTER, FIRST_SPECIFICATION, "0" * 64)
    yield ".GOV/templates/REFINEMENT_TEMPLATE.md", render_refinement(refinement)
    packet = PacketText(
        wp_id=name,
        date=now,
        status="Ready for Dev",
        requestor=todo,
        agent=todo,
        signature="<pending>",
        refinement_file=f".GOV/refinements/{name}.md",
        what=todo,
        why=todo,
        acceptance="- TODO",
        spec_baseline=FIRST_SPECIFICATION,
        spec_target=SPEC_POINTER,
    )
    yield ".GOV/templates/TASK_PACKET_TEMPLATE.md", render_packet(packet)


def init(moment: Moment, present: Mapping[str, bool], gov_just: str, *, has_key: bool = False) -> Planned:
    """`present` says which of the files are there. Where a specification is named, no first one is written.

    `has_key`: whether the person has made a key for approvals before.
    """
    files = dict(starting_files(moment, gov_just))
    if present.get(SPEC_POINTER):
        files.pop(FIRST_SPECIFICATION)
    new = {path: text for path, text in files.items() if not present.get(path)}
    changes = tuple(FileChange(path, None, text.encode()) for path, text in new.items())
    kept: list[Json] = [path for path in files if path not in new]
    said = f"{len(new)} files written below .GOV" + (
        f", {len(kept)} were there and are left as they are" if kept else ""
    )
    key = "" if has_key else "workpacket key init, then: "
    then = (
        f"write {FIRST_SPECIFICATION}, then: {key}workpacket policy trust, then: git add .GOV && git commit -m "
        "'Governance', on the main branch, then: workpacket new WP-1-NAME-v1 --what TEXT --why TEXT"
    )
    data: dict[str, Json] = {"written": list(new), "kept": kept}
    notes = (f"so that branches merge without conflicts on the board, once in each clone: {MERGE_DRIVER}",)
    return Planned(Plan("init", moment.tx, changes), said, then, data, notes)
