"""Which commands there are. Data only: the start of every command reads it, so it imports nothing."""

from __future__ import annotations

# name, module below workpacket.cli, one line of help. The order is the order of `workpacket --help`.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("check", "check", "find everything that is wrong in the governance documents"),
    ("fmt", "fmt", "bring documents to their canonical form"),
    ("list", "list_command", "list packets and stubs"),
    ("run", "run_command", "do work in steps that survive a crash"),
    ("runs", "runs", "look at runs, move, prune and verify them"),
    ("resume", "resume", "say what an unfinished run would go on with, and answer what it asks"),
    ("cancel", "cancel", "ask a run to end at its next boundary"),
    ("doctor", "doctor", "examine the store of runs and the place it lies in"),
    ("explain", "explain", "explain a reason code"),
    ("schema", "schema", "print the JSON Schema of a document kind"),
)


def module_of(name: str) -> str | None:
    """The module of the command called `name`."""
    return next((module for command, module, _ in COMMANDS if command == name), None)
