"""What a repository decides about the commands that prove criteria: the table `[evidence]` of the policy.

[evidence]
env = ["JAVA_HOME"]
timeout_seconds = 600
output_bytes = 10485760
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workpacket.text.node import Node
from workpacket.value import Value

# What a program needs to be found, to find its files and to write in the person's language; none of it is a secret.
ALWAYS_PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TMP", "TEMP",
    "VIRTUAL_ENV", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA",
    "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip
_LOCALE: Final = "LC_"
LONGEST: Final = 24 * 60 * 60
MOST_OUTPUT: Final = 1024 * 1024 * 1024


class EvidencePolicy(Value):
    """`env` are variables that proofs are given besides `ALWAYS_PASSED`."""

    env: tuple[str, ...] = ()
    timeout_seconds: int = 600
    output_bytes: int = 10 * 1024 * 1024

    def environment(self, whole: Mapping[str, str]) -> dict[str, str]:
        """What a proof sees of the environment."""
        passed = {*ALWAYS_PASSED, *self.env}
        return {name: value for name, value in whole.items() if name in passed or name.startswith(_LOCALE)}


EVIDENCE_KEYS: Final = EvidencePolicy.__match_args__


def evidence_policy(root: Node | None) -> EvidencePolicy:
    """What a loaded `policy.toml` says of proofs; the default is in force for what its schema does not allow."""
    table = root.get("evidence") if root is not None else None
    if table is None:
        return EvidencePolicy()
    env = table.get("env")
    names = tuple(item.text for item in env.items if item.text) if env is not None else ()
    return EvidencePolicy(
        names,
        _number(table.get("timeout_seconds"), LONGEST, EvidencePolicy().timeout_seconds),
        _number(table.get("output_bytes"), MOST_OUTPUT, EvidencePolicy().output_bytes),
    )


def _number(node: Node | None, most: int, default: int) -> int:
    return node.value if node is not None and type(node.value) is int and 1 <= node.value <= most else default
