"""The list of commands. Data only: every command reads it at start-up, so it imports nothing."""

from __future__ import annotations

# Name, module below workpacket.cli (with a COMMAND, or several in DECLARED), one line of help. Order and groups are
# those of `workpacket --help`.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Begin",
        (
            ("init", "init", "set up governance for a repository"),
            ("adopt", "backlog", "create logs for packets that have none, from their documents"),
            ("status", "views", "show the whole repository on one screen"),
            ("next", "views", "list the work that is ready, most urgent first"),
            ("list", "views", "list packets and stubs"),
            ("search", "views", "find packets by words in their ids, titles, documents and events"),
            ("show", "show", "show the task of a packet, how much of it is proved, and what is missing"),
            ("why", "history", "show every condition that keeps a packet from its next lane"),
            ("history", "history", "show what happened to a packet"),
        ),
    ),
    (
        "Plan",
        (
            ("new", "backlog", "add a stub to the backlog"),
            ("refine", "backlog", "write the technical refinement of a stub, or show it to the user"),
            ("approve", "approve", "approve or reject a packet at a gate, with a signature"),
            ("activate", "lifecycle", "turn a stub into a task packet, if it passes the activation gate"),
            ("create-task-packet", "lifecycle", "turn a stub into a task packet, if it passes the activation gate"),
            ("contract", "contract", "show the contract of a packet, or its canonical form"),
            ("amend", "contract", "replace the approved contract of a packet"),
        ),
    ),
    (
        "Work",
        (
            ("start", "claim", "activate and claim a packet, on a separate branch"),
            ("done", "review", "prove the work on a packet, and submit it"),
            ("prepare", "claim", "create the branch, and optionally the work tree, for a packet and its assignee"),
            ("claim", "claim", "claim a packet that is ready, until the lease ends"),
            ("implement", "implement", "create branch and work tree for a work package of spec-kitty, and claim it"),
            ("submit", "review", "prove what the packet requires, and submit the work for review"),
            ("verdict", "review", "judge work that is in review"),
            ("merged", "lifecycle", "find the work on the target branch, and record the merge"),
            ("note", "lifecycle", "add a note to the log of a packet, such as a correction"),
            ("release", "lifecycle", "release a packet so that someone else can claim it"),
            ("handover", "lifecycle", "hand a packet over to another actor"),
            ("block", "lifecycle", "mark work that cannot continue as blocked"),
            ("unblock", "lifecycle", "resume blocked work in its previous lane"),
            ("reopen", "lifecycle", "resume work that was accepted but is not merged"),
            ("advance", "lifecycle", "move a packet out of a lane that the policy adds"),
        ),
    ),
    (
        "Settle",
        (
            ("abandon", "lifecycle", "abandon a packet"),
            ("supersede", "lifecycle", "replace a packet with a later revision"),
            ("resolve", "lifecycle", "settle a packet that was moved independently on two branches"),
            ("waive", "lifecycle", "waive a condition of a gate, with a reason and an end date"),
            ("override", "lifecycle", "override a condition of a gate, with a reason and an end date"),
            ("revoke", "approvals", "revoke an approval or a rejection"),
            ("reapprove", "lifecycle", "replace revoked approvals with new ones"),
            ("recover", "recover", "complete or undo an interrupted command"),
        ),
    ),
    (
        "Check and audit",
        (
            ("check", "check", "find everything that is wrong in the governance documents"),
            ("fmt", "fmt", "rewrite documents in their canonical form"),
            ("audit", "trace", "verify the whole repository, and report what is wrong, since when, and who must act"),
            ("approvals", "approvals", "list and verify approvals"),
            ("log", "log", "verify the log, or sign a checkpoint of it"),
            (
                "trace",
                "trace",
                "follow packets from requirement to evidence and commit, and find what is no longer valid",
            ),
            ("trailers", "authorship", "print the trailers of a packet for a commit or a pull request"),
            ("impact", "trace", "list the packets that depend on a file, one of its lines, or an anchor"),
            ("evidence", "evidence", "write the output of a packet's proofs for a pull request"),
            ("report", "pull_request", "report what a pull request does to the packets, for its page"),
            ("policy", "policy", "show or test the policy, add an approver, or replace the root of trust"),
            ("key", "key", "create, test and list approval keys"),
            ("deps", "deps", "find dependencies that changed without permission"),
            ("lint-justfile", "lint_justfile", "find parameters that a justfile inserts into a command line unquoted"),
        ),
    ),
    (
        "Board and registry",
        (
            ("board", "views", "show the board, regenerate it, move an entry, or export a page"),
            (
                "registry",
                "registers",
                "show or audit which packet is in force for each base, or regenerate the registry",
            ),
            (
                "merge-driver",
                "registers",
                "merge two versions of a board, registry or packet for git, using the logs of both sides",
            ),
        ),
    ),
    (
        "Runs",
        (
            ("run", "run_command", "do work in steps that survive a crash"),
            ("runs", "runs", "show, export, import, prune and verify runs"),
            ("resume", "resume", "list and resume unfinished work, or show what stops it"),
            ("cancel", "runs", "ask a run to stop at its next boundary"),
            ("session", "session", "show sessions with a model, decide about stopped ones, and continue imported ones"),
            ("queue", "run_command", "offer runs to workers, and show the queue"),
            ("worker", "run_command", "execute the runs offered in a queue"),
            ("store", "doctor", "create or upgrade the tables of runs on a server, and grant access to roles"),
            ("doctor", "doctor", "check the store of runs and its location"),
            ("batch", "batch", "take tasks through tests, implementation and review in batches"),
            ("progress", "progress_command", "record or list the progress of roles in features"),
            ("import", "foreign_forms", "import checkpoints in a foreign format into the log"),
            ("export", "foreign_forms", "export checkpoints from the log in a foreign format"),
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
# Commands that other tools call, for people who type them anyway.
OTHER_NAMES = {
    "add": "new",
    "archive": "abandon",
    "close": "abandon",
    "complete": "submit",
    "create": "new",
    "delete": "abandon",
    "finish": "submit",
    "find": "search",
    "fix": "check --fix",
    "format": "fmt",
    "grep": "search",
    "lint": "check",
    "log-verify": "log verify",
    "ls": "list",
    "merge": "merged",
    "remove": "abandon",
    "review": "verdict",
    "rm": "abandon",
    "sign": "approve",
    "take": "claim",
    "validate": "check",
    "verify": "approvals verify",
    "view": "show",
}


def module_of(name: str) -> str | None:
    """Return the module of the command called `name`."""
    return next((module for command, module, _ in COMMANDS if command == name), None)
