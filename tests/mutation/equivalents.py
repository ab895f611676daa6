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
_SCOPE_FIELD = (
    r"_SCOPE_FIELD = lazy_pattern('IN_SCOPE_PATHS([^\\n]*(?:\\n[ \\t]*(?=\\n)|\\n[ \\t]+[^\\n]*)*)', re.IGNORECASE)"
)
_PATH = r"""_PATH: Final = lazy_pattern('[^\\s\'\\"`,;()<>]+')"""
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
        "approvals/verify.py",
        "_page_not_accepted",
        "if page is None or fido is None:",
        "if page is None:",
        "what was made in a page was made by a token; the condition is there for the type checker",
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
    Equivalent(
        "ledger/fold.py",
        "_StateDraft.trunk",
        "found.add(event.id)",
        "pass",
        "without the shortcut the ancestors of each closing are asked, and the answer is the same",
    ),
    Equivalent(
        "ledger/fold.py",
        "_StateDraft.trunk",
        "heads.difference_update(event.parents)",
        "pass",
        "without the shortcut the ancestors of each closing are asked, and the answer is the same",
    ),
    Equivalent(
        "ledger/fold.py",
        "LaneReplay.__init__",
        "self._naming = 0",
        "self._naming = 1",
        "the first move of a log is part of every history, so its bit is never on one branch alone",
    ),
    Equivalent(
        "ledger/fold.py",
        "LaneReplay._take",
        "bit = self._bit[event.id] = 1 << len(self._bit)",
        "bit = self._bit[event.id] = 2 << len(self._bit)",
        "each move has a bit of its own either way",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "",
        _SCOPE_FIELD,
        _SCOPE_FIELD.removesuffix("', re.IGNORECASE)") + "?', re.IGNORECASE)",
        "what follows the name of the field may be nothing already",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._kind",
        "finished = stand.lane == 'VALIDATED' and all((move.id in self.known for move in stand.latest))",
        "finished = stand.lane == 'VALIDATED' and any((move.id in self.known for move in stand.latest))",
        "a packet is VALIDATED by one move: two of them name two pieces of work, and are a fork",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._covers",
        "names = [name for name, kind in kinds.items() if kind in wanted]",
        "names = [name for name, kind in kinds.items()]",
        "a packet that answers for nothing changes no answer; reading all of their pages would take time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._covers",
        "tops = {path.partition('/')[0] for path in paths}",
        "tops = {path.partition('/')[1] for path in paths}",
        "a page that cannot matter changes no answer; reading all of them would take time",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "",
        r"_IGNORED = re.compile('[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]')",
        r"_IGNORED = re.compile('[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]?')",
        "in the place of nothing nothing is put",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_folded_path",
        "return '/'.join(map(folded, path.split('/')))",
        "return '/x'.join(map(folded, path.split('/')))",
        "folded paths are compared with one another only, and shown to no one",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_folded_path",
        "return '/'.join(map(folded, path.split('/')))",
        "return '/'.join(map(folded, path.split('/x')))",
        "every folder on the way is folded as a path of its own, so the first name that differs is found",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_attribute_files",
        "return tuple((entry for entry in entries if entry.path.rpartition('/')[2] == ATTRIBUTES))",
        "return tuple((entry for entry in entries))",
        "git reads only files of this name; the others would take time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._approved_at",
        "return ''",
        "return None",
        "what is false is left out either way; the type checker asks for a text",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._scopes",
        "if source is not None and _may_matter(source.text, tops):",
        "if source is not None:",
        "more pages are read, and none of them changes the answer",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_may_matter",
        "if len(fields) != 1 or not any((character.isalnum() for character in fields[0])):",
        "if len(fields) != 1 or not all((character.isalnum() for character in fields[0])):",
        "more pages are read, and none of them changes the answer",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_may_matter",
        "if any((mark in fields[0] for mark in '*?')):",
        "if any((mark in fields[0] for mark in '*?!?')):",
        "more pages are read, and none of them changes the answer",
    ),
    Equivalent(
        "shell/judging/append_only.py",
        "",
        "_FEW = 200",
        "_FEW = 201",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "ledger/log.py",
        "event_misfit",
        "if ids[1:] and ids != sorted(set(ids)):",
        "if ids != sorted(set(ids)):",
        "one item and none are sorted; the condition saves time",
    ),
    Equivalent(
        "ledger/log.py",
        "_ready",
        "kept = ((key, at) for key, at in shape.items() if key != 'uniqueItems')",
        "kept = ((key, at) for key, at in shape.items())",
        "items that repeat are found where their order is asked; asking twice takes time",
    ),
    Equivalent(
        "ledger/log.py",
        "_ready",
        "kept = ((key, at) for key, at in shape.items() if key != 'uniqueItems')",
        "kept = ((key, at) for key, at in shape.items() if key != 'uniqueItemsx')",
        "items that repeat are found where their order is asked; asking twice takes time",
    ),
    Equivalent(
        "approvals/verify.py",
        "_page_not_accepted",
        "if page is None or fido is None:",
        "if page is None:",
        "a signature with a page is one of a token; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/append_only.py",
        "judge_append_only",
        "if worktree or head is None or (not any((each.code == 'log_file_deleted' for each in found))):",
        "if worktree or head is None:",
        "where nothing is missing nothing was taken back; looking for it takes time",
    ),
    Equivalent(
        "shell/judging/append_only.py",
        "_undone",
        "wanted = {path: 'A' if letter == 'D' else 'D' for path, letter in changes.items() if letter in 'AD'}",
        "wanted = {path: 'A' if letter == 'D' else 'D' for path, letter in changes.items() if letter in 'ADx'}",
        "git has no such letter for a change",
    ),
    Equivalent(
        "shell/judging/submissions.py",
        "submitted_work",
        "if commit is None or fork is None:",
        "if fork is None:",
        "without a commit there is no fork; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/append_only.py",
        "_undone",
        "paths = tuple(wanted) if len(wanted) <= _FEW else (LOG_FOLDER,)",
        "paths = tuple(wanted) if not len(wanted) <= _FEW else (LOG_FOLDER,)",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "shell/judging/append_only.py",
        "_undone",
        "paths = tuple(wanted) if len(wanted) <= _FEW else (LOG_FOLDER,)",
        "paths = tuple(wanted) if len(wanted) < _FEW else (LOG_FOLDER,)",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "evidence/additions.py",
        "",
        _PATH,
        _PATH.removesuffix("')") + "!?')",
        "a path may hold an exclamation mark as often as it likes",
    ),
    Equivalent(
        "evidence/reports.py",
        "read_cargo",
        "path = next((path for start, path in reversed(files) if start < match.start()), '')",
        "path = next((path for start, path in reversed(files) if start <= match.start()), '')",
        "a line is about a file or about a test, never about both",
    ),
    Equivalent("approvals/encodings.py", "", "_VOWELS = 'aiou'", "_VOWELS = 'aioux'", "two bits reach no fifth letter"),
)


def outdated() -> list[str]:
    """Entries that fit no change."""
    modules = {entry.module for entry in EQUIVALENT}
    existing = {(module, *change.name) for module in modules for change in changes_of(module)}
    return [f"{entry.module} in {entry.where}: {entry.now}" for entry in EQUIVALENT if entry[:4] not in existing]
