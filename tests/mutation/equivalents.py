"""Changes that change nothing that can be seen from outside, each with the reason; they are not counted.

An entry that no change fits any longer is a failure: it would excuse nothing, or soon something else.
"""

from __future__ import annotations

from typing import NamedTuple

from mutation.subjects import changes_of


class Equivalent(NamedTuple):
    module: str
    where: str
    before: str
    now: str
    reason: str


_LINE = (
    r"""_LINE = lazy_pattern('(\\S+)[ \\t]+((?:[^\\s"]|"[^"]*")+)[ \\t]+([a-z0-9@.-]+)[ \\t]+([A-Za-z0-9+/=]+)"""
    r"""(?:[ \\t][^\\x00-\\x08\\x0b-\\x1f\\x7f]*)?')"""
)
EQUIVALENT = (
    Equivalent(
        "approvals/browser_answers.py",
        "decode_base64url",
        "return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))",
        "return base64.urlsafe_b64decode(text + '=' * (-len(text) % 5))",
        "Python reads base64 with more padding than it needs",
    ),
    Equivalent(
        "approvals/allowed_signers.py",
        "",
        "_PATTERN_CHARACTERS = frozenset('*?!,')",
        "_PATTERN_CHARACTERS = frozenset('*?!,?')",
        "a set that holds the question mark already",
    ),
    Equivalent(
        "approvals/allowed_signers.py",
        "",
        _LINE,
        _LINE.removesuffix("')") + "!?')",
        "the comment at the end of the line may hold any sign as often as it likes",
    ),
    Equivalent(
        "approvals/decide.py",
        "_counting",
        "return [each for each in opened if each is not None and each.statement.decision == decision]",
        "return [each for each in opened if each.statement.decision == decision]",
        "what has no refusal was opened; the condition is there for the type checker",
    ),
    Equivalent(
        "approvals/keys.py",
        "PublicKey.fingerprint",
        "return 'SHA256:' + encode_base64(hashlib.sha256(self.blob).digest()).rstrip('=')",
        "return 'SHA256:' + encode_base64(hashlib.sha256(self.blob).digest()).rstrip('=x')",
        "the last letter of 32 bytes in base64 stands for four bits, and x is none of the sixteen",
    ),
    Equivalent(
        "approvals/encodings.py",
        "",
        "_CONSONANTS = 'bdfghjklmnprstvz'",
        "_CONSONANTS = 'bdfghjklmnprstvzx'",
        "four bits reach no seventeenth letter",
    ),
    Equivalent("approvals/encodings.py", "", "_VOWELS = 'aiou'", "_VOWELS = 'aioux'", "two bits reach no fifth letter"),
)


def outdated() -> list[str]:
    """Entries that fit no change."""
    modules = {entry.module for entry in EQUIVALENT}
    existing = {(module, *change.name) for module in modules for change in changes_of(module)}
    return [f"{entry.module} in {entry.where}: {entry.now}" for entry in EQUIVALENT if entry[:4] not in existing]
