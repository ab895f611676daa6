"""The wording of counts, of the last line of an answer, and of commands, for every layer. It imports nothing: every
command reads it at start-up.
"""

from __future__ import annotations

_PLURALS = {"info": "info", "piece of evidence": "pieces of evidence", "entry": "entries", "criterion": "criteria"}

# Commands that had a first word of their own: what was typed, and what is typed now. The old spelling still works
# and its first word is the name of the command in JSON answers, schemas and the log.
FORMER: dict[str, str] = {
    "activate": "packet activate",
    "create-task-packet": "packet activate",
    "contract": "packet contract",
    "amend": "packet amend",
    "prepare": "packet prepare",
    "implement": "packet implement",
    "release": "packet release",
    "handover": "packet handover",
    "unblock": "packet unblock",
    "reopen": "packet reopen",
    "advance": "packet advance",
    "abandon": "packet abandon",
    "supersede": "packet supersede",
    "resolve": "packet resolve",
    "waive": "packet waive",
    "override": "packet override",
    "reapprove": "packet reapprove",
    "merged": "packet merged",
    "note": "packet note",
    "block": "packet block",
    "deps check": "audit deps",
    "lint-justfile": "audit justfile",
    "impact": "trace impact",
    "trailers": "trace trailers",
    "history": "log show",
    "recover": "log recover",
    "import": "log import",
    "export": "log export",
    "revoke": "approvals revoke",
    "registry": "board registry",
    "merge-driver": "board merge-driver",
    "serve": "board serve",
    "run": "runtime run",
    "runs": "runtime runs",
    "cancel": "runtime cancel",
    "session": "runtime session",
    "queue": "runtime queue",
    "worker": "runtime worker",
    "store": "runtime store",
    "doctor": "runtime doctor",
    "batch": "runtime batch",
    "progress": "runtime progress",
    "schema": "help schema",
    "completion": "help completion",
}
# The same for options: each name means one thing in all commands. What is written now, and what was written before.
FORMER_OPTIONS = {
    "actor-kind": "kind",  # --kind: of documents
    "code": "reason",  # --reason: a text
    "exit-code": "gate",  # --gate: the name of one
    "on": "base",  # --base: a revision
    "once": "key",  # --key: one to sign with
    "out": "output",
    "pool": "lane",  # --lane: of a packet
    "pool-size": "limit",  # --limit: of the rows shown
    "revision": "commit",  # --commit: make one
    "revisions-of": "base",
    "target-branch": "target",  # --target: what a waiver is limited to
    "uncommitted": "worktree",  # --worktree: a folder
    "waits-for": "until",  # --until: when it ends
}
# Old spellings that print no notice: they are in the recipes that `init` writes, in the founding documents, in hooks of
# pre-commit and in the configuration of git, where the person who reads the notice did not type them.
SILENT = frozenset(
    {
        "abandon",
        "advance",
        "block",
        "create-task-packet",
        "handover",
        "history",
        "lint-justfile",
        "merge-driver",
        "merged",
        "prepare",
        "registry",
        "release",
        "reopen",
        "resolve",
        "serve",
        "supersede",
        "unblock",
        "waive",
        # Options, by what is written now.
        "exit-code",
        "waits-for",
    }
)
# Below another command from the beginning: these names are in answers, and were never typed alone.
_NEVER_ALONE = {"questions": "runtime questions", "signal": "runtime signal", "rename": "packet rename"}
TYPED = {**{old.split()[0]: new for old, new in FORMER.items()}, **_NEVER_ALONE}


def counted(count: float, noun: str) -> str:
    """`1 error`, `2 errors`, `1 piece of evidence`, `2 info`."""
    return f"{count} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"


def next_line(command: str) -> str:
    """Return the last line of an answer: the next command to run, or what to do next."""
    return f"next: {command}"


def typed_as(name: str) -> str:
    """Return the command called `name`, as typed."""
    return TYPED.get(name, name)


def age(since: str, now: str) -> str:
    """Return, in words, the time between two points in time: `3 days`, `5 hours`, `1 minute`."""
    from datetime import datetime

    minutes = max(int((datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()) // 60, 0)
    if minutes < 60:
        return counted(minutes, "minute")
    return counted(minutes // 60, "hour") if minutes < 48 * 60 else counted(minutes // (24 * 60), "day")
