"""The dialects of `init`: the files written in addition to those that the tool itself needs, and their conventions.

  handshake    recipes for just under the names used in that dialect, and templates
  spec-kitty   missions below `kitty-specs/`; the words of its lanes, and a template of a work package
  plain        nothing but what the tool needs

Editors get the schemas, and optionally settings for VS Code. The role protocols are generated from the gates and the
transition table, so that they always agree.

If the policy adds lanes or gates, the table of moves between two marks includes them. The part before the marks is the
`stem`, by which an unedited page is recognized, regardless of the policy.

This module lists the files that the current `init` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal

from workpacket.documents.packet import PacketText, render_packet
from workpacket.documents.places import PLACES
from workpacket.documents.refinement import APPROVAL_WORDS, RefinementText, render_refinement
from workpacket.documents.register_table import empty_board, empty_registry
from workpacket.documents.spec_pointer import STILL_TO_WRITE
from workpacket.documents.stub import CHECKLIST, StubText, render_stub
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.activation import ITEMS
from workpacket.lifecycle.gates import added_gates, bearing
from workpacket.lifecycle.policy import Form, LifecyclePolicy
from workpacket.lifecycle.transitions import ADVANCE, CAME_FROM, Role, Transition, transitions
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import lanes_named
from workpacket.model.layout import (
    ATTRIBUTE_LINES,
    ATTRIBUTES_PATH,
    BOARD_PATH,
    GOVERNANCE_FOLDER,
    POLICY_PATH,
    REGISTRY_PATH,
    ROLES_FOLDER,
    SCHEMAS_FOLDER,
    SPEC_POINTER,
    SPECIFICATIONS_FOLDER,
    TEMPLATES_FOLDER,
    refinement_paths,
)
from workpacket.value import NOTHING, Value

Dialect = Literal["handshake", "spec-kitty", "plain"]
HANDSHAKE: Final = "handshake"
SPEC_KITTY: Final = "spec-kitty"
PLAIN: Final = "plain"
DIALECTS: tuple[Dialect, ...] = (HANDSHAKE, SPEC_KITTY, PLAIN)

MISSIONS = "kitty-specs"
# The lanes of a work package, in order.
_MISSION_LANES = (
    "planned", "claimed", "in_progress", "for_review", "in_review", "approved", "done", "blocked", "canceled",
)  # fmt: skip

_FOLDERS = (
    ("`spec/`", "the specification; `roles_shared/SPEC_CURRENT.md` contains the path of the current version"),
    ("`task_packets/stubs/`", "the backlog"),
    ("`task_packets/`", "the packets"),
    ("`refinements/`", "findings from before a packet was activated, and the user's decision"),
    ("`roles_shared/`", "task board and traceability registry, generated from the log"),
    ("`log/`", "the log: one file per event, never edited"),
    ("`policy/`", "the settings of this repository"),
    ("`roles/`", "how to work here"),
)
_HANDSHAKE_FOLDERS = (
    ("`templates/`", "what stubs, refinements and packets look like"),
    ("`gov.just`", "recipes for just"),
)

_RECIPE = lazy_pattern(r'^([a-z-]+) \*arguments:\n    @workpacket (.+?) "\$@"$', re.MULTILINE)
_CALL = lazy_pattern(r"`just ([a-z-]+)")


def dialect_here(present: Collection[str], own: Mapping[Dialect, Collection[str]], *, missions: bool) -> Dialect:
    """Return the dialect of a repository: determined by any file that only one dialect writes, else by its missions.

    `present` are the existing paths, `own` the paths that only one dialect has. A repository with a `.GOV/` that
    contains none of them is plain; one without a `.GOV/` is handshake.
    """
    for dialect in (HANDSHAKE, SPEC_KITTY):
        if any(path in present for path in own[dialect]):
            return dialect
    if missions:
        return SPEC_KITTY
    return PLAIN if README in present else HANDSHAKE


def without_just(text: str, recipes: str) -> str:
    """Return the text with commands in place of the `recipes`, for people who do not use just."""
    commands = dict(_RECIPE.findall(recipes))
    return _CALL.sub(lambda call: f"`workpacket {commands[call[1]]}", text)


def guide(dialect: Dialect) -> str:
    """`.GOV/README.md`"""
    rows = (*_FOLDERS, *(_HANDSHAKE_FOLDERS if dialect == HANDSHAKE else ()))
    table = "\n".join(["| folder | what |", "|---|---|", *(f"| {folder} | {what} |" for folder, what in rows)])
    commands = (
        "`workpacket status` shows the state of everything, and `workpacket why WP_ID` shows what a packet is "
        "waiting for."
    )
    words = f"\n{_words()}" if dialect == SPEC_KITTY else ""
    return f"# Governance\n\n{table}\n\n{commands}\n{words}"


def _words() -> str:
    rows = [
        f"| {word} | {', '.join(lane.token for lane in lanes_named(word.replace('_', ' ')))} |"
        for word in _MISSION_LANES
    ]
    return "\n".join(
        [
            f"Work packages below `{MISSIONS}/` are checked and listed; `workpacket claim` and `implement` write lane",
            "and history into their files. Their lanes are interpreted as:",
            "",
            "| work package | task board |",
            "|---|---|",
            *rows,
            "",
        ]
    )


SETTINGS_PATH = ".vscode/settings.json"
POLICY_SCHEMA = f"{SCHEMAS_FOLDER}/policy.schema.json"
_ENDINGS = {".json": "json.schemas", ".yaml": "yaml.schemas", ".toml": "evenBetterToml.schema.associations"}


def schema_paths() -> Iterator[tuple[str, str]]:
    """Yield the name and path of the schema of every pure data document, and of the shared schema."""
    yield "common", f"{SCHEMAS_FOLDER}/common.schema.json"
    for kind in dict.fromkeys(kind for place, kind in PLACES if _ending(place)):
        yield kind, f"{SCHEMAS_FOLDER}/{kind}.schema.json"


def settings_text() -> str:
    """Return `.vscode/settings.json`; its keys are those of the JSON, YAML and TOML extensions."""
    paths = dict(schema_paths())
    in_json: list[dict[str, object]] = []
    in_yaml: dict[str, list[str]] = {}
    in_toml: dict[str, str] = {}
    for kind in dict.fromkeys(kind for place, kind in PLACES if _ending(place)):
        schema, places = paths[kind], [place for place, of in PLACES if of == kind]
        ending = _ending(places[0])
        if ending == ".json":
            in_json.append({"fileMatch": [f"/{place}" for place in places], "url": f"./{schema}"})
        elif ending == ".yaml":
            in_yaml[f"./{schema}"] = places
        else:
            in_toml |= {f".*/{place.replace('.', chr(92) + '.')}$": f"./{schema}" for place in places}
    settings = {_ENDINGS[".json"]: in_json, _ENDINGS[".yaml"]: in_yaml, _ENDINGS[".toml"]: in_toml}
    return json.dumps(settings, indent=2) + "\n"


def _ending(place: str) -> str:
    return next((ending for ending in _ENDINGS if place.endswith(ending)), "")


_NOTE = "<!-- Written by `workpacket init` from the lifecycle; a test of the tool proves that they agree. -->"
_BEGIN = "<!-- workpacket:moves; by the policy here; `workpacket init` writes all between the marks anew -->"
_END = "<!-- workpacket:end -->"
_DEFAULT = LifecyclePolicy()


def orchestrator_protocol(policy: LifecyclePolicy = _DEFAULT) -> str:
    checklist = "\n".join(
        f"{number}. `{item}`: {text.replace('{id}', '<WP_ID>')}"
        for number, (item, text) in enumerate(zip(ITEMS, CHECKLIST, strict=True), 1)
    )
    return _page(
        "Orchestrator protocol",
        "You maintain the backlog, activate packets, and make sure that someone is working on every packet.",
        "orchestrator",
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
        "You do the work of one packet at a time, within its scope, and prove that its requirements are met.",
        "coder",
        policy,
        """## The work

1. `just next` lists what is ready; `just claim <WP_ID>` takes it for the time of a lease.
2. Change only files in IN_SCOPE_PATHS. Never start from a stub.
3. Commit, then `just submit <WP_ID> --prove 'N=COMMAND'` for each line of DONE_MEANS.
4. `workpacket why <WP_ID>` says at any time what is missing.
""",
    )


def validator_protocol(policy: LifecyclePolicy = _DEFAULT) -> str:
    return _page(
        "Validator protocol",
        "You judge other people's work against its packet and its specification.",
        "validator",
        policy,
        """## The verdict

1. Read the packet, the diff and the evidence: `workpacket history <WP_ID> --json`.
2. Write a report into the repository.
3. `just verdict <WP_ID> PASS --report FILE`, or FAIL, CHANGES, OUTDATED_ONLY.
""",
    )


def _page(title: str, purpose: str, role: Role, policy: LifecyclePolicy, body: str) -> str:
    moves, usual = _moves(role, policy), _moves(role, _DEFAULT)
    shown = usual if moves == usual else f"{_BEGIN}\n{moves}\n{_END}"
    return f"# {title}\n\n{_NOTE}\n\n{purpose}\n\n{body}\n## Your moves\n\n{shown}\n"


def _moves(role: Role, policy: LifecyclePolicy) -> str:
    rows = [row for row in transitions(policy.lanes) if role in row.by]
    cells = [_row(row, policy) for row in rows]
    return "\n".join(["| command | from | to | gate | meaning |", "|---|---|---|---|---|", *cells])


def _row(row: Transition, policy: LifecyclePolicy) -> str:
    target = "its previous lane" if row.target == CAME_FROM else row.target
    typed = row.command if row.command == ADVANCE else row.typed
    added = added_gates(policy, row.event, row.choice) if row in bearing((row,)) else ()
    gates = ", ".join([*([row.gate] if row.gate else []), *added]) or "-"
    says = " ".join(row.says.replace("|", "/").split())
    return f"| `{typed}` | {', '.join(row.origins) or '-'} | {target} | {gates} | {says} |"


def protocols(policy: LifecyclePolicy = _DEFAULT) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each protocol."""
    yield f"{ROLES_FOLDER}/orchestrator/ORCHESTRATOR_PROTOCOL.md", orchestrator_protocol(policy)
    yield f"{ROLES_FOLDER}/coder/CODER_PROTOCOL.md", coder_protocol(policy)
    yield f"{ROLES_FOLDER}/validator/VALIDATOR_PROTOCOL.md", validator_protocol(policy)


def stem_of(page: str) -> str:
    """Return the part of a page that does not depend on the policy; the whole page if nothing is marked."""
    stem, begin, rest = page.partition(_BEGIN)
    return stem if begin and rest.endswith(f"{_END}\n") else page


def stem_without_moves(page: str) -> str:
    """Return the stem of this version of a page if the policy affects its moves."""
    head, title, _ = page.partition("## Your moves\n\n")
    return head + title


_NO_POLICY = LifecyclePolicy()
README = f"{GOVERNANCE_FOLDER}/README.md"
GOV_JUST = f"{GOVERNANCE_FOLDER}/gov.just"
JUSTFILE = "justfile"
# Files that just uses as a justfile instead of it.
OTHER_JUSTFILES: Final = ("Justfile", "JUSTFILE", ".justfile")
STUB_TEMPLATE = f"{TEMPLATES_FOLDER}/TASK_PACKET_STUB_TEMPLATE.md"
FIRST_SPECIFICATION = f"{SPECIFICATIONS_FOLDER}/SPEC_v1.md"
PRE_COMMIT = ".pre-commit-config.yaml"
WORKFLOW = ".github/workflows/workpacket.yml"
REPLAY_WORKFLOW = ".github/workflows/workpacket-replay.yml"
ATTEST_WORKFLOW = ".github/workflows/workpacket-attest.yml"

# Files of a group are written only on request; existing ones are kept up to date.
Group = Literal["", "skills", "pre-commit", "workflow", "vscode"]
GROUPS: tuple[Group, ...] = ("skills", "pre-commit", "workflow", "vscode")
# The groups whose files install workpacket elsewhere.
INSTALLING: Final[frozenset[Group]] = frozenset({"pre-commit", "workflow"})


class StarterTexts(Value):
    """The package's texts for `init`: those copied unchanged, and the digests of older versions.

    `shipped` has, by path, the digests of every text that `init` ever wrote there. `instructions` is the section for
    AGENTS.md, `skills` are the texts of the skills by path, and `schemas` are the schemas for editors by kind of
    document.
    """

    gov_just: str
    pre_commit: str
    workflow: str
    replay: str
    attest: str
    instructions: str
    skills: Mapping[str, str] = NOTHING
    schemas: Mapping[str, str] = NOTHING
    shipped: Mapping[str, frozenset[str]] = NOTHING


class StarterFile(Value):
    """One file. An `ours` file is replaced by newer versions until someone edits it; any other file is written once.

    If the policy affects the text, `stem` is the part that is the same everywhere.
    """

    path: str
    text: str
    ours: bool = True
    group: Group = ""
    stem: str = ""


_POLICY = """#:schema ../schemas/policy.schema.json
# What this repository decides. This file takes effect as it is on the main branch, not as it is in a work tree.
[check]
profile = "{profile}"

[lifecycle]
lease_hours = 72
satisfied_by = {satisfied_by}
roadmap_headings = ["roadmap"]
branch_pattern = "wp/{{id}}"

# Whether every change needs a packet: "required", "warn" or "off".
[coverage]
mode = "warn"
"""
_PACKETS: Final[Mapping[Form, str]] = {
    "light": """
# New packets are one document each. Until approvers are named (`workpacket policy trust`), no one approves one, and
# what no one judged ends as MERGED.
[packets]
form = "light"
approvals = "none"
""",
    "full": """
# New packets have a stub, a refinement and a packet, and are listed on the board.
[packets]
form = "full"
""",
}
_SATISFIED: Final[Mapping[Form, str]] = {
    "light": '["VALIDATED", "MERGE_PENDING", "MERGED"]',
    "full": '["VALIDATED", "MERGE_PENDING"]',
}

# How the sections of the first specification begin until they are written. They require nothing.
_SPECIFICATION = f"""# Specification

## 1 Main body

{STILL_TO_WRITE}required. Refinements anchor their requirement in these lines.

## 2 Roadmap

{STILL_TO_WRITE}planned. Nothing in this section is required yet.
"""

# Branches that move different packets change adjacent lines, whose meaning is in the logs of both sides. The bytes of
# the log must never be changed by a conversion of line ends, and text that is signed has the same ones in every clone.
MERGE_DRIVER = "git config merge.workpacket.driver 'workpacket merge-driver %O %A %B %P %L'"
_BYTES = "".join(f"{line}\n" for line in ATTRIBUTE_LINES)
_ATTRIBUTES = f"""# Once in each clone: {MERGE_DRIVER}
# Without that git merges them like any other text; afterwards: workpacket board sync
roles_shared/TASK_BOARD.md merge=workpacket
roles_shared/WP_TRACEABILITY_REGISTRY.md merge=workpacket
task_packets/*.md merge=workpacket
task_packets/*/packet.md merge=workpacket
{_BYTES}"""

IMPORT_RECIPES: Final = "import '.GOV/gov.just'\n"

# A fixed date: the current one would make every copy a different text.
_TEMPLATES_MADE = "2026-01-01T00:00:00Z"


def starting_files(
    dialect: Dialect,
    package: StarterTexts,
    policy: LifecyclePolicy = _NO_POLICY,
    *,
    found_governed: bool = False,
    form: Form | None = None,
) -> Iterator[StarterFile]:
    """Yield every file of the dialect, including the files of all groups. `found_governed`: documents existed before
    `init`. `form` is the form of new packets (default: light, unless there were packets or missions before).
    """
    incumbent = found_governed or dialect == SPEC_KITTY
    profile = "adopt" if incumbent else "strict"
    written: Form = form or ("full" if incumbent else "light")
    policy_text = _POLICY.format(profile=profile, satisfied_by=_SATISFIED[written]) + _PACKETS[written]
    yield StarterFile(README, guide(dialect))
    yield StarterFile(ATTRIBUTES_PATH, _ATTRIBUTES)
    yield StarterFile(POLICY_PATH, policy_text, ours=False)
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
    if dialect == HANDSHAKE:
        yield StarterFile(JUSTFILE, IMPORT_RECIPES, ours=False)
    for path, text in package.skills.items():
        yield StarterFile(path, text, group="skills")
    yield StarterFile(PRE_COMMIT, package.pre_commit, group="pre-commit")
    yield StarterFile(WORKFLOW, package.workflow, group="workflow")
    yield StarterFile(REPLAY_WORKFLOW, package.replay, group="workflow")
    yield StarterFile(ATTEST_WORKFLOW, package.attest, group="workflow")
    yield StarterFile(SETTINGS_PATH, settings_text(), group="vscode")
    for kind, path in schema_paths():
        if path != POLICY_SCHEMA:
            yield StarterFile(path, package.schemas[kind], group="vscode")


def dialect_files(dialect: Dialect, package: StarterTexts) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each file that only this dialect has."""
    if dialect == HANDSHAKE:
        yield GOV_JUST, package.gov_just
        yield from _templates()
    elif dialect == SPEC_KITTY:
        yield f"{TEMPLATES_FOLDER}/WORK_PACKAGE_TEMPLATE.md", _WORK_PACKAGE


def _templates() -> Iterator[tuple[str, str]]:
    """Yield the documents that `new`, `refine` and `activate` write, for people to read and to fill in by hand."""
    name = WorkPacketId("WP-1-Name-v1")
    now, todo = _TEMPLATES_MADE, "TODO"
    yield (
        STUB_TEMPLATE,
        render_stub(StubText(name, now, todo, todo, todo, in_scope=(todo,), acceptance_criteria=(todo,))),
    )
    refinement = RefinementText(name, now, SPEC_POINTER, FIRST_SPECIFICATION, "0" * 64, spec_sha1="0" * 40)
    yield f"{TEMPLATES_FOLDER}/REFINEMENT_TEMPLATE.md", render_refinement(refinement)
    packet = PacketText(
        wp_id=name,
        date=now,
        status="Ready for Dev",
        requestor=todo,
        agent=todo,
        signature="<pending>",
        refinement_file=refinement_paths(name.text)[0],
        what=todo,
        why=todo,
        acceptance="- TODO",
        spec_baseline=FIRST_SPECIFICATION,
        spec_target=SPEC_POINTER,
    )
    yield f"{TEMPLATES_FOLDER}/TASK_PACKET_TEMPLATE.md", render_packet(packet)


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
