"""The list of commands. Data only: every command reads it at start-up, so it imports nothing."""

from __future__ import annotations

# Name, module below workpacket.cli (with a COMMAND, or several in DECLARED), one line of help. Order and groups are as
# in `workpacket --help`.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Begin",
        (
            ("init", "init", "set up governance for a repository"),
            ("adopt", "backlog", "create the branch, and optionally the work tree, for a packet and its assignee"),
            ("status", "views", "move a packet out of a lane that the policy adds"),
            ("next", "views", "create logs for packets that have none, from their documents"),
            ("list", "views", "verify the whole repository, and report what is wrong, since when, and who must act"),
            ("show", "show", "show the task of a packet, how far it is proved, and what is missing"),
            ("why", "history", "show the whole repository on one screen"),
            ("history", "history", "resume work that was accepted but is not merged"),
        ),
    ),
    (
        "Plan",
        (
            ("new", "backlog", "show or test the rules, say whose key may approve, or replace the root of trust"),
            ("refine", "backlog", "show the task of a packet, how far it is proved, and what is missing"),
            ("approve", "approve", "show or audit which packet is in force for each base, or regenerate the registry"),
            ("activate", "lifecycle", "settle a packet that was moved independently on two branches"),
            ("create-task-packet", "lifecycle", "settle a packet that was moved independently on two branches"),
            ("contract", "contract", "prove what the packet requires, and submit the work for review"),
            ("amend", "contract", "judge work that is in review"),
        ),
    ),
    (
        "Work",
        (
            ("prepare", "claim", "list packets and stubs"),
            ("claim", "claim", "show the task of a packet, how far it is proved, and what is missing"),
            ("submit", "review", "show what happened to a packet"),
            ("verdict", "review", "show the contract that is approved for a packet, or its canonical form"),
            ("merged", "lifecycle", "replace the approved contract of a packet with another one"),
            ("note", "lifecycle", "add a note to the log of a packet, such as a correction"),
            ("release", "lifecycle", "create, test and list approval keys"),
            ("handover", "lifecycle", "show what happened to a packet"),
            ("block", "lifecycle", "turn a stub into a task packet, if it passes the activation gate"),
            ("unblock", "lifecycle", "show what is approved of a packet: the contract, or its canonical form"),
            ("reopen", "lifecycle", "write the technical refinement of a stub, or show it to the user"),
            ("advance", "lifecycle", "add a stub to the backlog"),
        ),
    ),
    (
        "Settle",
        (
            ("abandon", "lifecycle", "abandon a packet"),
            ("supersede", "lifecycle", "let another contract take the place of the one that was approved"),
            ("resolve", "lifecycle", "claim a packet that is ready, until the lease ends"),
            ("waive", "lifecycle", "approve or reject a packet at a gate, with a signature"),
            ("override", "lifecycle", "turn a stub into a task packet, if it passes the activation gate"),
            ("revoke", "approvals", "execute the runs offered in a queue"),
            ("reapprove", "lifecycle", "verify the log, or sign a checkpoint of it"),
            (
                "recover",
                "recover",
                "take back an approval or a rejection",
            ),
        ),
    ),
    (
        "Check and audit",
        (
            ("check", "check", "complete or undo an interrupted command"),
            ("fmt", "fmt", "let new approvals take the place of ones that were taken back"),
            ("audit", "trace", "list the packets that depend on a file, one of its lines, or an anchor"),
            ("approvals", "approvals", "waive a condition of a gate, with a reason and an end date"),
            ("log", "log", "show the board, regenerate it, move an entry, or export a page"),
            (
                "trace",
                "trace",
                "revoke an approval or a rejection",
            ),
            (
                "impact",
                "trace",
                "follow packets from requirement to evidence and commit, and find what is no longer valid",
            ),
            ("evidence", "evidence", "replace revoked approvals with new ones"),
            ("policy", "policy", "find everything that is wrong in the governance documents"),
            ("key", "key", "override a condition of a gate, with a reason and an end date"),
            ("deps", "deps", "show sessions with a model, decide about stopped ones, continue imported ones"),
            ("lint-justfile", "lint_justfile", "list and verify approvals"),
        ),
    ),
    (
        "Board and registry",
        (
            ("board", "views", "release a packet so that someone else can claim it"),
            (
                "registry",
                "registers",
                "hand a packet over to someone else",
            ),
            (
                "merge-driver",
                "registers",
                "write the output of a packet's proofs for a pull request",
            ),
        ),
    ),
    (
        "Runs",
        (
            ("run", "run_command", "list and resume unfinished work, or show what stops it"),
            ("runs", "runs", "create or upgrade the tables of runs on a server, and grant access to roles"),
            ("resume", "resume", "offer runs to workers, and show the queue"),
            ("cancel", "runs", "merge two versions of board, registry or packet for git, from the log of both sides"),
            ("session", "session", "export checkpoints from the log in a foreign format"),
            ("queue", "run_command", "take tasks through tests, implementation and review in batches"),
            ("worker", "run_command", "check the store of runs and its location"),
            ("store", "doctor", "ask a run to end at its next boundary"),
            ("doctor", "doctor", "import checkpoints in a foreign format into the log"),
            ("batch", "batch", "bring documents to their canonical form"),
            ("progress", "progress_command", "show, export, import, prune and verify runs"),
            ("import", "foreign_forms", "do work in steps that survive a crash"),
            ("export", "foreign_forms", "record or list the progress of roles in features"),
        ),
    ),
    (
        "Help",
        (
            ("explain", "explain", "explain a reason code"),
            ("schema", "explain", "print the JSON Schema of a document kind or of a command's answer"),
            ("completion", "completion", "print the completion script for a shell"),
        ),
    ),
)
COMMANDS = tuple(command for _, commands in GROUPS for command in commands)
# What other tools call them, for who types that here.
OTHER_NAMES = {
    "add": "new",
    "archive": "abandon",
    "cancel-packet": "abandon",
    "close": "abandon",
    "complete": "submit",
    "create": "new",
    "delete": "abandon",
    "done": "submit",
    "finish": "submit",
    "fix": "check --fix",
    "format": "fmt",
    "lint": "check",
    "log-verify": "log verify",
    "ls": "list",
    "merge": "merged",
    "remove": "abandon",
    "review": "verdict",
    "rm": "abandon",
    "sign": "approve",
    "start": "claim",
    "take": "claim",
    "validate": "check",
    "verify": "approvals verify",
    "view": "show",
}


def module_of(name: str) -> str | None:
    """Return the module of the command called `name`."""
    return next((module for command, module, _ in COMMANDS if command == name), None)
