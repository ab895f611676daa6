"""Which commands there are. Data only: the start of every command reads it, so it imports nothing."""

from __future__ import annotations

# name, module below workpacket.cli, one line of help. The order is the order of `workpacket --help`.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("init", "init", "begin to govern a repository"),
    ("status", "status", "show the whole repository on one screen"),
    ("next", "next_command", "list the work that is ready, the most wanted first"),
    ("why", "why", "show everything that stands between a packet and its next lane"),
    ("new", "new", "write a stub for the backlog"),
    ("refine", "refine", "write the technical refinement of a stub, or show it to the user"),
    ("activate", "activate", "make a task packet of a stub, if the activation gate lets it"),
    ("create-task-packet", "create_task_packet", "make a task packet of a stub, if the activation gate lets it"),
    ("prepare", "prepare", "make the branch, and if wished the work tree, for a packet and its assignee"),
    ("claim", "claim", "take a packet that is ready, for the time of a lease"),
    ("release", "release", "give a packet back, so that somebody else can claim it"),
    ("handover", "handover", "pass a packet on to somebody"),
    ("submit", "submit", "prove what the packet demands, and put the work up for review"),
    ("verdict", "verdict", "judge work that is in review"),
    ("merged", "merged", "record that the work is on the target branch, after looking for it there"),
    ("reopen", "reopen", "go on with work that was accepted but is not merged"),
    ("block", "block", "stop work that cannot go on"),
    ("unblock", "unblock", "let blocked work go on, in the lane where it stopped"),
    ("supersede", "supersede", "let a later revision take the place of a packet"),
    ("abandon", "abandon", "give a packet up"),
    ("waive", "waive", "waive a condition of a gate, for a reason and for a time"),
    ("override", "override", "overrule a condition of a gate, for a reason and for a time"),
    ("resolve", "resolve", "settle a packet that was moved independently on two branches"),
    ("adopt", "adopt", "begin a log for packets that have none, from what their documents say"),
    ("show", "show", "show a packet as it stands, or as it stood"),
    ("history", "history", "show what happened to a packet"),
    ("board", "board", "show the board, draw it anew, or move an entry"),
    ("registry", "registry", "show which packet is in force for each base, or draw the registry anew"),
    ("policy", "policy", "show the rules in force, test those of the work tree, or say whose key may approve"),
    ("log", "log", "verify that the log is what was written"),
    ("lint-justfile", "lint_justfile", "find parameters that a justfile pastes into a command line"),
    ("recover", "recover", "finish what an interrupted command left between several files"),
    ("check", "check", "find everything that is wrong in the governance documents"),
    ("fmt", "fmt", "bring documents to their canonical form"),
    ("list", "list_command", "list packets and stubs"),
    ("approve", "approve", "approve or reject a packet at a gate, with a signature"),
    ("revoke", "revoke", "take back an approval or a rejection"),
    ("approvals", "approvals", "list and verify approvals"),
    ("key", "key", "make, try and list the keys that approve"),
    ("run", "run_command", "do work in steps that survive a crash"),
    ("runs", "runs", "look at runs, move, prune and verify them"),
    ("queue", "queue_command", "offer runs to workers, and look at what waits"),
    ("worker", "worker", "do the runs that are offered in a queue"),
    ("store", "store_command", "make or upgrade the tables of runs on a server, and let roles in"),
    ("resume", "resume", "say what an unfinished run would go on with, and answer what it asks"),
    ("cancel", "cancel", "ask a run to end at its next boundary"),
    ("import", "import_command", "take checkpoints in a foreign form into the log"),
    ("export", "export_command", "write checkpoints of the log in a foreign form"),
    ("doctor", "doctor", "examine the store of runs and the place it lies in"),
    ("explain", "explain", "explain a reason code"),
    ("schema", "schema", "print the JSON Schema of a document kind"),
    ("completion", "completion", "print what a shell needs to complete command lines"),
)


def module_of(name: str) -> str | None:
    """The module of the command called `name`."""
    return next((module for command, module, _ in COMMANDS if command == name), None)
