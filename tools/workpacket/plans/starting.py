"""The files with which a repository begins to be governed, as `init` writes them now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from workpacket.documents.packet_text import PacketText, render_packet
from workpacket.documents.refinement_text import RefinementText, render_refinement
from workpacket.documents.register_text import BOARD_PATH, REGISTRY_PATH, empty_board, empty_registry
from workpacket.documents.stub_text import SPEC_POINTER, StubText, render_stub
from workpacket.lifecycle.policy import POLICY_PATH, LifecyclePolicy
from workpacket.model.ids import WorkPacketId
from workpacket.plans.dialects import HANDSHAKE, SPEC_KITTY, Dialect, guide, without_just
from workpacket.plans.editors import POLICY_SCHEMA, SETTINGS_PATH, schema_paths, settings_text
from workpacket.plans.protocols import protocols, stem_without_moves
from workpacket.value import NOTHING, Value

_NO_POLICY = LifecyclePolicy()
GOV_JUST = ".GOV/gov.just"
ATTRIBUTES = ".GOV/.gitattributes"
STUB_TEMPLATE = ".GOV/templates/TASK_PACKET_STUB_TEMPLATE.md"
FIRST_SPECIFICATION = ".GOV/spec/SPEC_v1.md"
PRE_COMMIT = ".pre-commit-config.yaml"
WORKFLOW = ".github/workflows/workpacket.yml"

# Files of a group are written when the group is asked for; those that are there are kept up to date.
Group = Literal["", "skills", "pre-commit", "workflow", "vscode"]
GROUPS: tuple[Group, ...] = ("skills", "pre-commit", "workflow", "vscode")


class Package(Value):
    """What the package holds for `init`: texts that are copied as they are, and what it knows of older versions.

    `shipped` holds, by path, the digests of every text that `init` ever wrote there. `instructions` is the section of
    AGENTS.md, `skills` the texts of the skills by path, `schemas` the schemas for editors by kind of document.
    """

    gov_just: str
    pre_commit: str
    workflow: str
    instructions: str
    skills: Mapping[str, str] = NOTHING
    schemas: Mapping[str, str] = NOTHING
    shipped: Mapping[str, frozenset[str]] = NOTHING


class StarterFile(Value):
    """One file. `ours` is replaced by its next version as long as nobody edited it; what is not is written once.

    Of a text in which the policy of the repository has a say, `stem` is the part that is the same everywhere.
    """

    path: str
    text: str
    ours: bool = True
    group: Group = ""
    stem: str = ""


_POLICY = """#:schema ../schemas/policy.schema.json
# What this repository decides. In force is this file as the main branch holds it, not as it lies here.
[check]
profile = "{profile}"

[lifecycle]
lease_hours = 72
satisfied_by = ["VALIDATED", "MERGE_PENDING"]
roadmap_headings = ["roadmap"]
branch_pattern = "wp/{{id}}"
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
checkpoints/** -text
"""

# When the templates were made; a date of the day would make every copy another text.
_TEMPLATES_MADE = "2026-01-01T00:00:00Z"


def starting_files(
    dialect: Dialect, package: Package, policy: LifecyclePolicy = _NO_POLICY, *, found_governed: bool = False
) -> Iterator[StarterFile]:
    """Every file of the dialect, those of all groups included. `found_governed`: documents were there before us."""
    profile = "adopt" if found_governed or dialect == SPEC_KITTY else "strict"
    yield StarterFile(".GOV/README.md", guide(dialect))
    yield StarterFile(ATTRIBUTES, _ATTRIBUTES)
    yield StarterFile(POLICY_PATH, _POLICY.format(profile=profile), ours=False)
    yield StarterFile(POLICY_SCHEMA, package.schemas["policy"])
    pointer = f"# Specification in force\n\n{FIRST_SPECIFICATION}\n"
    yield StarterFile(SPEC_POINTER, pointer, ours=False)
    yield StarterFile(FIRST_SPECIFICATION, _SPECIFICATION, ours=False)
    yield StarterFile(BOARD_PATH, empty_board(policy.lanes), ours=False)
    yield StarterFile(REGISTRY_PATH, empty_registry(), ours=False)
    for path, text in protocols(policy):
        spoken = text if dialect == HANDSHAKE else without_just(text, package.gov_just)
        yield StarterFile(path, spoken, stem=stem_without_moves(spoken))
    for path, text in dialect_files(dialect, package):
        yield StarterFile(path, text)
    for path, text in package.skills.items():
        yield StarterFile(path, text, group="skills")
    yield StarterFile(PRE_COMMIT, package.pre_commit, group="pre-commit")
    yield StarterFile(WORKFLOW, package.workflow, group="workflow")
    yield StarterFile(SETTINGS_PATH, settings_text(), group="vscode")
    for kind, path in schema_paths():
        if path != POLICY_SCHEMA:
            yield StarterFile(path, package.schemas[kind], group="vscode")


def dialect_files(dialect: Dialect, package: Package) -> Iterator[tuple[str, str]]:
    """Path and text of what only this dialect has."""
    if dialect == HANDSHAKE:
        yield GOV_JUST, package.gov_just
        yield from _templates()
    elif dialect == SPEC_KITTY:
        yield ".GOV/templates/WORK_PACKAGE_TEMPLATE.md", _WORK_PACKAGE


def _templates() -> Iterator[tuple[str, str]]:
    """What `new`, `refine` and `activate` write, to look at and to fill in by hand."""
    name = WorkPacketId("WP-1-Name-v1")
    now, todo = _TEMPLATES_MADE, "TODO"
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


_WORK_PACKAGE = """---
work_package_id: WP01
title: What is to be done
lane: planned
dependencies: []
subtasks: [T001]
owned_files:
- src/example/**
history:
- timestamp: '2026-01-01T00:00:00Z'
  actor: TODO
  action: created
---

# Work package: what is to be done

Copy this file to `kitty-specs/<mission>/tasks/WP01-<slug>.md`.

### T001: the first part

## Definition of Done

- [ ] What shows that it is done.

## Reviewer Guidance

- What to look at.
"""
