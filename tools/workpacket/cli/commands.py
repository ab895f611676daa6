"""The list of commands. Data only: every command reads it at start-up, so it imports nothing."""

from __future__ import annotations

# Name, module below workpacket.cli (with a COMMAND, or several in DECLARED), one line of help. Order and groups are as
# in `workpacket --help`.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Begin",
        (
            ("init", "init", "set up governance for a repository"),
            ("adopt", "backlog", "move a packet out of a lane that the policy adds"),
            ("status", "views", "create logs for packets that have none, from their documents"),
            ("next", "views", "show the whole repository on one screen"),
            ("list", "views", "show or test the rules, say whose key may approve, or replace the root of trust"),
            ("show", "show", "show the task of a packet, how far it is proved, and what is missing"),
            ("why", "history", "show everything that keeps a packet from its next lane"),
            ("history", "history", "settle a packet that was moved independently on two branches"),
        ),
    ),
    (
        "Plan",
        (
            ("new", "backlog", "list packets and stubs"),
            ("refine", "backlog", "show the task of a packet, how far it is proved, and what is missing"),
            ("approve", "approve", "create, test and list approval keys"),
            ("activate", "lifecycle", "show what happened to a packet"),
            ("create-task-packet", "lifecycle", "show what happened to a packet"),
            ("contract", "contract", "show the contract that is approved for a packet, or its canonical form"),
            ("amend", "contract", "replace the approved contract of a packet with another one"),
        ),
    ),
    (
        "Work",
        (
            ("prepare", "claim", "add a stub to the backlog"),
            ("claim", "claim", "write the technical refinement of a stub, or show it to the user"),
            ("submit", "review", "turn a stub into a task packet, if it passes the activation gate"),
            ("verdict", "review", "show what is approved of a packet: the contract, or its canonical form"),
            ("merged", "lifecycle", "let another contract take the place of the one that was approved"),
            ("note", "lifecycle", "add a note to the log of a packet, such as a correction"),
            ("release", "lifecycle", "approve or reject a packet at a gate, with a signature"),
            ("handover", "lifecycle", "turn a stub into a task packet, if it passes the activation gate"),
            ("block", "lifecycle", "prove what the packet requires, and submit the work for review"),
            ("unblock", "lifecycle", "judge work that is in review"),
            ("reopen", "lifecycle", "claim a packet that is ready, until the lease ends"),
            ("advance", "lifecycle", "create the branch, and optionally the work tree, for a packet and its assignee"),
        ),
    ),
    (
        "Settle",
        (
            ("abandon", "lifecycle", "abandon a packet"),
            ("supersede", "lifecycle", "replace a packet with a later revision"),
            ("resolve", "lifecycle", "resume work that was accepted but is not merged"),
            ("waive", "lifecycle", "release a packet so that someone else can claim it"),
            ("override", "lifecycle", "hand a packet over to someone else"),
            ("revoke", "approvals", "revoke an approval or a rejection"),
            ("reapprove", "lifecycle", "replace revoked approvals with new ones"),
            (
                "recover",
                "recover",
                "follow packets from requirement to evidence and commit, and find what is no longer valid",
            ),
        ),
    ),
    (
        "Check and audit",
        (
            ("check", "check", "list the packets that depend on a file, one of its lines, or an anchor"),
            ("fmt", "fmt", "write the output of a packet's proofs for a pull request"),
            ("audit", "trace", "find everything that is wrong in the governance documents"),
            ("approvals", "approvals", "show the board, regenerate it, move an entry, or export a page"),
            ("log", "log", "list and verify approvals"),
            (
                "trace",
                "trace",
                "take back an approval or a rejection",
            ),
            ("impact", "trace", "complete or undo an interrupted command"),
            ("evidence", "evidence", "let new approvals take the place of ones that were taken back"),
            ("policy", "policy", "verify the whole repository, and report what is wrong, since when, and who must act"),
            ("key", "key", "show or audit which packet is in force for each base, or regenerate the registry"),
            ("deps", "deps", "execute the runs offered in a queue"),
            ("lint-justfile", "lint_justfile", "verify the log, or sign a checkpoint of it"),
        ),
    ),
    (
        "Board and registry",
        (
            ("board", "views", "waive a condition of a gate, with a reason and an end date"),
            (
                "registry",
                "registers",
                "override a condition of a gate, with a reason and an end date",
            ),
            (
                "merge-driver",
                "registers",
                "bring documents to their canonical form",
            ),
        ),
    ),
    (
        "Runs",
        (
            ("run", "run_command", "show, export, import, prune and verify runs"),
            ("runs", "runs", "list and resume unfinished work, or show what stops it"),
            ("resume", "resume", "create or upgrade the tables of runs on a server, and grant access to roles"),
            ("cancel", "runs", "take tasks through tests, implementation and review in batches"),
            ("session", "session", "check the store of runs and its location"),
            ("queue", "run_command", "ask a run to end at its next boundary"),
            ("worker", "run_command", "show sessions with a model, decide about stopped ones, continue imported ones"),
            ("store", "doctor", "offer runs to workers, and show the queue"),
            ("doctor", "doctor", "export checkpoints from the log in a foreign format"),
            ("batch", "batch", "merge two versions of board, registry or packet for git, from the log of both sides"),
            ("progress", "progress_command", "do work in steps that survive a crash"),
            ("import", "foreign_forms", "record or list the progress of roles in features"),
            ("export", "foreign_forms", "import checkpoints in a foreign format into the log"),
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
