"""Which commands there are. Data only: the start of every command reads it, so it imports nothing."""

from __future__ import annotations

# name, module below workpacket.cli, one line of help. The order is the order of `workpacket --help`.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("check", "check", "find everything that is wrong in the governance documents"),
    ("fmt", "fmt", "bring documents to their canonical form"),
    ("list", "list_command", "list packets and stubs"),
    ("approve", "approve", "approve or reject a packet at a gate, with a signature"),
    ("revoke", "revoke", "take back an approval or a rejection"),
    ("approvals", "approvals", "list and verify approvals"),
    ("key", "key", "make, try and list the keys that approve"),
    ("explain", "explain", "explain a reason code"),
    ("schema", "schema", "print the JSON Schema of a document kind"),
)


def module_of(name: str) -> str | None:
    """The module of the command called `name`."""
    return next((module for command, module, _ in COMMANDS if command == name), None)
