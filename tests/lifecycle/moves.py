"""Moves that anybody may try on any packet; the gates decide which of them happen."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

from workpacket.lifecycle.claims import claim, release, renew
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.moves import Answer
from workpacket.lifecycle.review import Containment, Proofs, Work, merged, submit, verdict
from workpacket.lifecycle.side_moves import abandon, advance, block, reopen, supersede, unblock
from workpacket.model.canonical import Json

COMMIT = "d" * 40
Decide: TypeAlias = Callable[[Facts], Answer]

MOVES = (
    "claim", "renew", "release", "handover", "submit", "unproved", "PASS", "FAIL", "CHANGES", "OUTDATED_ONLY",
    "merged", "advance", "reopen", "block", "unblock", "supersede", "abandon",
)  # fmt: skip


def move(kind: str, name: str) -> Decide:
    """The plan of one move. `unproved` is a submission without evidence, which no gate may let pass."""
    work = Work(COMMIT, COMMIT, ["src/a.py"])
    proof = Proofs([{"criterion": "It greets.", "result": "met", "command": "true", "exit_code": 0}])
    report: Json = {"path": "report.md", "sha256": "a" * 64}
    decisions: dict[str, Callable[[Facts], Answer]] = {
        "claim": lambda f: claim(f, f.packets[name], branch="work", worktree=""),
        "renew": lambda f: renew(f, f.packets[name]),
        "release": lambda f: release(f, f.packets[name], reason="r"),
        "handover": lambda f: release(f, f.packets[name], reason="r", to="bob"),
        "submit": lambda f: submit(f, f.packets[name], work, proof),
        "unproved": lambda f: submit(f, f.packets[name], work, Proofs()),
        "CHANGES": lambda f: verdict(f, f.packets[name], "CHANGES", reference="r"),
        "merged": lambda f: merged(f, f.packets[name], Containment("main", COMMIT, "tree")),
        "advance": lambda f: advance(f, f.packets[name]),
        "reopen": lambda f: reopen(f, f.packets[name], reason="r"),
        "block": lambda f: block(f, f.packets[name], reason="r", until="u"),
        "unblock": lambda f: unblock(f, f.packets[name]),
        "supersede": lambda f: supersede(f, f.packets[name], by=f.packets["WP-1-Successor-v9"]),
        "abandon": lambda f: abandon(f, f.packets[name], reason="r"),
    }
    if kind in {"PASS", "FAIL", "OUTDATED_ONLY"}:
        return lambda f: verdict(f, f.packets[name], kind, report=report)
    return decisions[kind]


def any_move(chance: random.Random, names: list[str]) -> tuple[str, str, str]:
    """What, on which packet, by whom."""
    return chance.choice(MOVES), chance.choice(names), chance.choice(("ann", "bob", "cem"))
