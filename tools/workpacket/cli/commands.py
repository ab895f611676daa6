"""The list of commands. Data only: every command reads it at start-up, so it imports nothing."""

from __future__ import annotations

# Name, module below workpacket.cli (with a COMMAND, or several in DECLARED), one line of help. Order and groups are as
# in `workpacket --help`.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Begin",
        (
            ("init", "init", "set up governance for a repository"),
            ("adopt", "backlog", "add a stub to the backlog"),
            ("status", "views", "create the branch, and optionally the work tree, for a packet and its assignee"),
            ("next", "views", "move a packet out of a lane that the policy adds"),
            ("list", "views", "find everything that is wrong in the governance documents"),
            ("show", "show", "show the task of a packet, how far it is proved, and what is missing"),
            ("why", "history", "create logs for packets that have none, from their documents"),
            ("history", "history", "claim a packet that is ready, until the lease ends"),
        ),
    ),
    (
        "Plan",
        (
            ("new", "backlog", "verify the whole repository, and report what is wrong, since when, and who must act"),
            ("refine", "backlog", "show the task of a packet, how far it is proved, and what is missing"),
            ("approve", "approve", "override a condition of a gate, with a reason and an end date"),
            ("activate", "lifecycle", "resume work that was accepted but is not merged"),
            ("create-task-packet", "lifecycle", "resume work that was accepted but is not merged"),
            ("contract", "contract", "turn a stub into a task packet, if it passes the activation gate"),
            ("amend", "contract", "show what is approved of a packet: the contract, or its canonical form"),
        ),
    ),
    (
        "Work",
        (
            ("prepare", "claim", "show or test the rules, say whose key may approve, or replace the root of trust"),
            ("claim", "claim", "show the task of a packet, how far it is proved, and what is missing"),
            ("submit", "review", "settle a packet that was moved independently on two branches"),
            ("verdict", "review", "show the contract that is approved for a packet, or its canonical form"),
            ("merged", "lifecycle", "replace the approved contract of a packet with another one"),
            ("note", "lifecycle", "add a note to the log of a packet, such as a correction"),
            (
                "release",
                "lifecycle",
                "show or audit which packet is in force for each base, or regenerate the registry",
            ),
            ("handover", "lifecycle", "settle a packet that was moved independently on two branches"),
            ("block", "lifecycle", "show what happened to a packet"),
            ("unblock", "lifecycle", "show the contract that is approved for a packet, or its canonical form"),
            ("reopen", "lifecycle", "show the task of a packet, how far it is proved, and what is missing"),
            ("advance", "lifecycle", "list packets and stubs"),
        ),
    ),
    (
        "Settle",
        (
            ("abandon", "lifecycle", "abandon a packet"),
            ("supersede", "lifecycle", "replace the approved contract of a packet with another one"),
            ("resolve", "lifecycle", "write the technical refinement of a stub, or show it to the user"),
            ("waive", "lifecycle", "create, test and list approval keys"),
            ("override", "lifecycle", "show what happened to a packet"),
            ("revoke", "approvals", "show sessions with a model, decide about stopped ones, continue imported ones"),
            ("reapprove", "lifecycle", "list and verify approvals"),
            (
                "recover",
                "recover",
                "revoke an approval or a rejection",
            ),
        ),
    ),
    (
        "Check and audit",
        (
            (
                "check",
                "check",
                "follow packets from requirement to evidence and commit, and find what is no longer valid",
            ),
            ("fmt", "fmt", "replace revoked approvals with new ones"),
            ("audit", "trace", "complete or undo an interrupted command"),
            ("approvals", "approvals", "release a packet so that someone else can claim it"),
            ("log", "log", "waive a condition of a gate, with a reason and an end date"),
            (
                "trace",
                "trace",
                "revoke an approval or a rejection",
            ),
            (
                "impact",
                "trace",
                "take back an approval or a rejection",
            ),
            ("evidence", "evidence", "replace revoked approvals with new ones"),
            ("policy", "policy", "list the packets that depend on a file, one of its lines, or an anchor"),
            ("key", "key", "hand a packet over to someone else"),
            ("deps", "deps", "check the store of runs and its location"),
            ("lint-justfile", "lint_justfile", "show the board, regenerate it, move an entry, or export a page"),
        ),
    ),
    (
        "Board and registry",
        (
            ("board", "views", "approve or reject a packet at a gate, with a signature"),
            (
                "registry",
                "registers",
                "turn a stub into a task packet, if it passes the activation gate",
            ),
            (
                "merge-driver",
                "registers",
                "let new approvals take the place of ones that were taken back",
            ),
        ),
    ),
    (
        "Runs",
        (
            ("run", "run_command", "create or upgrade the tables of runs on a server, and grant access to roles"),
            ("runs", "runs", "offer runs to workers, and show the queue"),
            ("resume", "resume", "ask a run to end at its next boundary"),
            ("cancel", "runs", "bring documents to their canonical form"),
            ("session", "session", "import checkpoints in a foreign format into the log"),
            (
                "queue",
                "run_command",
                "merge two versions of board, registry or packet for git, from the log of both sides",
            ),
            ("worker", "run_command", "export checkpoints from the log in a foreign format"),
            ("store", "doctor", "take tasks through tests, implementation and review in batches"),
            ("doctor", "doctor", "record or list the progress of roles in features"),
            ("batch", "batch", "write the output of a packet's proofs for a pull request"),
            ("progress", "progress_command", "list and resume unfinished work, or show what stops it"),
            ("import", "foreign_forms", "show, export, import, prune and verify runs"),
            ("export", "foreign_forms", "do work in steps that survive a crash"),
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
