"""The dialects of `init`: how much is written beside what the tool itself needs, and in whose words.

handshake    recipes for just under the names that people know from there, and templates
spec-kitty   missions below `kitty-specs/`; the words of its lanes, and a template of a work package
plain        nothing but what the tool needs
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import lanes_named

Dialect = Literal["handshake", "spec-kitty", "plain"]
HANDSHAKE: Final = "handshake"
SPEC_KITTY: Final = "spec-kitty"
PLAIN: Final = "plain"
DIALECTS: tuple[Dialect, ...] = (HANDSHAKE, SPEC_KITTY, PLAIN)

MISSIONS = "kitty-specs"
# The lanes of a work package, in the order of its life.
_MISSION_LANES = (
    "planned", "claimed", "in_progress", "for_review", "in_review", "approved", "done", "blocked", "canceled",
)  # fmt: skip

_FOLDERS = (
    ("`spec/`", "the specification; `roles_shared/SPEC_CURRENT.md` names the version in force"),
    ("`task_packets/stubs/`", "the backlog"),
    ("`task_packets/`", "the packets"),
    ("`refinements/`", "what was found out before a packet was activated, and the user's word on it"),
    ("`roles_shared/`", "task board and traceability registry, drawn from the log"),
    ("`log/`", "what happened, one file an event; never edited"),
    ("`policy/`", "what this repository decides"),
    ("`roles/`", "how to work here"),
)
_HANDSHAKE_FOLDERS = (
    ("`templates/`", "what stubs, refinements and packets look like"),
    ("`gov.just`", "recipes for just"),
)

_RECIPE = lazy_pattern(r'^([a-z-]+) \*arguments:\n    @workpacket (.+?) "\$@"$', re.MULTILINE)
_CALL = lazy_pattern(r"`just ([a-z-]+)")


def dialect_here(present: Collection[str], own: Mapping[Dialect, Collection[str]], *, missions: bool) -> Dialect:
    """The dialect that a repository shows: by any file that only one dialect writes, else by its missions.

    `present` are the paths that are there, `own` the paths that only a dialect has. With a `.GOV/` that holds none of
    them, it is plain; with none at all, handshake.
    """
    for dialect in (HANDSHAKE, SPEC_KITTY):
        if any(path in present for path in own[dialect]):
            return dialect
    if missions:
        return SPEC_KITTY
    return PLAIN if ".GOV/README.md" in present else HANDSHAKE


def without_just(text: str, recipes: str) -> str:
    """The text with the command in the place of each recipe of `recipes`, for people who have none."""
    commands = dict(_RECIPE.findall(recipes))
    return _CALL.sub(lambda call: f"`workpacket {commands[call[1]]}", text)


def guide(dialect: Dialect) -> str:
    """`.GOV/README.md`"""
    rows = (*_FOLDERS, *(_HANDSHAKE_FOLDERS if dialect == HANDSHAKE else ()))
    table = "\n".join(["| folder | what |", "|---|---|", *(f"| {folder} | {what} |" for folder, what in rows)])
    commands = "`workpacket status` shows where everything stands, `workpacket why WP_ID` what a packet waits for."
    words = f"\n{_words()}" if dialect == SPEC_KITTY else ""
    return f"# Governance\n\n{table}\n\n{commands}\n{words}"


def _words() -> str:
    rows = [
        f"| {word} | {', '.join(lane.token for lane in lanes_named(word.replace('_', ' ')))} |"
        for word in _MISSION_LANES
    ]
    return "\n".join(
        [
            f"Work packages below `{MISSIONS}/` are checked and listed; their files stay as they are. Their lanes are",
            "understood as:",
            "",
            "| work package | task board |",
            "|---|---|",
            *rows,
            "",
        ]
    )
