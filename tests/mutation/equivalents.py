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
_DESCRIBED = (
    "return SubmittedWork(asked.criteria, scope, changed, same=frozenset({event.text('commit') or ''}), "
    "exempt=asked.exempt)"
)
_PATH = r"""_PATH: Final = lazy_pattern('[^\\s\'\\"`,;()<>]+')"""
_LANDING = (
    "return Landing(frozenset(changed), frozenset(otherwise), frozenset(conflicts & otherwise), brought, "
    "frozenset((*self._reports({**differing, **changed}), *self._shipped({**differing, **changed}))), "
    "frozenset((path for path, one in {**differing, **changed}.items() if one.new and (not "
    "one.new.startswith(_FILE)))), frozenset((path for path, one in {**differing, **changed}.items() if "
    "_is_document(one))))"
)
_TOLD = (
    "told = {_utf8(value.value) if oid == _ISSUER else value.value for oid, value in found.items() "
    "if isinstance(value, x509.UnrecognizedExtension)}"
)
_NOT_ASKED = (
    """_NOT_ASKED_AGAIN: Final[Mapping[str, str]] = {'reason': "the event's schema requires one, so an event without """
    """it is refused when the log is read"}"""
)
_INSTRUCTIONS = (
    r"""_INSTRUCTIONS: Final = lazy_pattern('(?:agents?|claude|crush|gemini|qwen|skill|warp|copilot-instructions)"""
    r"""(?:\\..*)?\\.md|.*(?:_protocol|\\.(?:agent|chatmode|instructions|prompt))\\.md', re.IGNORECASE)"""
)
_NAMED_LINK = r"""_NAMED_LINK = lazy_pattern('\\[((?:\\\\.|[^\\[\\]\\\\])+)\\](:?)', re.DOTALL)"""
_WANTED = """wanted = {path: "HEAD's history has it" if path in passed else 'no branch has it'"""
EQUIVALENT = (
    Equivalent(
        "approvals/webauthn.py",
        "decode_base64url",
        "return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))",
        "return base64.urlsafe_b64decode(text + '=' * (-len(text) % 5))",
        "Python reads base64 with more padding than it needs",
    ),
    Equivalent(
        "approvals/sshsig.py",
        "",
        "_PATTERN_CHARACTERS = frozenset('*?!,')",
        "_PATTERN_CHARACTERS = frozenset('*?!,?')",
        "a set that holds the question mark already",
    ),
    Equivalent(
        "approvals/sshsig.py",
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
        "return 'SHA256:' + encode_base64(sha256(self.blob).digest()).rstrip('=')",
        "return 'SHA256:' + encode_base64(sha256(self.blob).digest()).rstrip('=x')",
        "the last letter of 32 bytes in base64 stands for four bits, and x is none of the sixteen",
    ),
    Equivalent(
        "approvals/fields.py",
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
        "_Coverage.uncovered",
        "here = [self._here(_Judged(name, commit, required=True)) for name, commit in verdicts.items()]",
        "here = [self._here(_Judged(name, commit, required=False)) for name, commit in verdicts.items()]",
        "what is missing before a verdict is found by commit and packet alone",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._unjudged",
        "paths = {path for cover in self._scopes_of([judged.packet], paths) for path in paths if cover.has(path)}",
        "paths = {path for cover in self._scopes_of([judged.packet], paths) for path in paths}",
        "a path that the packet does not cover is not covered by it alone; asking about all would take time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._only",
        "having = {cover.packet for cover in self._scopes_of(self.logs, paths) if any(map(cover.has, paths))}",
        "having = {cover.packet for cover in self._scopes_of(self.logs, paths)}",
        "a packet that covers none of the paths changes no answer; reading the logs of all would take time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Documents._read",
        "wanted = [place for place in places if place not in self._asked]",
        "wanted = [place for place in places]",
        "what was read before is read again, with the same result; it would take time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Documents._read",
        "self._asked.update(wanted)",
        "pass",
        "what was read before is read again, with the same result; it would take time",
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
        "_Documents.scopes",
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
        "shell/judging/merged_tree.py",
        "judge_append_only",
        "if head is not None and any((each.code == 'log_file_deleted' for each in found)):",
        "if head is not None:",
        "where nothing is missing nothing landed later; looking for it takes time",
    ),
    Equivalent(
        "ledger/log.py",
        "join_events",
        "if len(beginnings) > 1:",
        "if len(beginnings) >= 1:",
        "of one beginning none is renamed; the condition saves time",
    ),
    *(
        Equivalent(
            "shell/judging/log_verification.py",
            "",
            f"{name} = {number}",
            f"{name} = {number + 1}",
            "how many packets or processes are read at once changes no answer",
        )
        for name, number in (("_BATCH", 200), ("_WORTH_A_PROCESS", 500), ("_PROCESSES", 2))
    ),
    Equivalent(
        "shell/judging/log_verification.py",
        "_read_batch",
        "seen = _Seen([], 0, [], {}, Counter(), {})",
        "seen = _Seen([], 1, [], {}, Counter(), {})",
        "the number is replaced at the end",
    ),
    Equivalent(
        "lifecycle/coverage.py",
        "",
        _INSTRUCTIONS,
        _INSTRUCTIONS.replace("md', re", "md?', re"),
        "a file that ends in .m is no document anyway",
    ),
    Equivalent(
        "lifecycle/coverage.py",
        "",
        _NAMED_LINK,
        _NAMED_LINK.replace("(:?)", "(:?)?"),
        "a group that may be empty and one that may be missing are both found as nothing",
    ),
    Equivalent(
        "lifecycle/coverage.py",
        "_link_names",
        "return ((' '.join(name.casefold().split()), colon) for name, colon in _NAMED_LINK.findall(text))",
        "return ((' x'.join(name.casefold().split()), colon) for name, colon in _NAMED_LINK.findall(text))",
        "both sides are written so, and two names that differ still differ",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "",
        "_FEW = 200",
        "_FEW = 201",
        "how many paths are named on a command line changes no answer",
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
        "shell/judging/merged_tree.py",
        "judge_append_only",
        "if worktree or head is None or (not any((each.code == 'log_file_deleted' for each in found))):",
        "if worktree or head is None:",
        "where nothing is missing nothing was taken back; looking for it takes time",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_undone",
        "wanted = {path: 'A' if letter == 'D' else 'D' for path, letter in changes.items() if letter in 'AD'}",
        "wanted = {path: 'A' if letter == 'D' else 'D' for path, letter in changes.items() if letter in 'ADx'}",
        "git has no such letter for a change",
    ),
    *(
        Equivalent(
            "shell/judging/change.py",
            where,
            "head = head_commit(repository) or ''",
            "head = head_commit(repository)",
            "a change is judged at a commit; the condition is there for the type checker",
        )
        for where in ("submitted_work", "submitted_versions")
    ),
    Equivalent(
        "shell/judging/change.py",
        "submitted_work",
        _DESCRIBED,
        _DESCRIBED.replace(" or ''", ""),
        "a submission names its commit; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/change.py",
        "submitted_versions",
        "versions = changes_before(repository, head, path, options=options, form='%H')",
        "versions = changes_before(repository, head, path, options=options, form='%Hx')",
        "only the changes of each commit are read here, and not its name",
    ),
    Equivalent(
        "shell/judging/change.py",
        "submitted_work",
        "if commit is None or fork is None:",
        "if fork is None:",
        "without a commit there is no fork; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_undone",
        "paths = tuple(wanted) if len(wanted) <= _FEW else (LOG_FOLDER,)",
        "paths = tuple(wanted) if not len(wanted) <= _FEW else (LOG_FOLDER,)",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_undone",
        "paths = tuple(wanted) if len(wanted) <= _FEW else (LOG_FOLDER,)",
        "paths = tuple(wanted) if len(wanted) < _FEW else (LOG_FOLDER,)",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "",
        "_FEW = 200",
        "_FEW = 201",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "",
        "_YES, _NO = ('landed', 'not as it was judged')",
        "_YES, _NO = ('landed', 'not as it was judgedx')",
        "whatever is not the word for yes is a no",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "",
        "_MOST = 100",
        "_MOST = 101",
        "how far back an audit looks is a matter of time",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "landed",
        "if not settling or not tip:",
        "if not tip:",
        "where nothing is asked about, nothing is found; the condition saves time",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "landed",
        "memory = Cache(str(settings_folder()), __version__, ('landings', root_commit(repository, tip)))",
        "memory = Cache(str(settings_folder()), __version__, ('landingsx', root_commit(repository, tip)))",
        "the name of a cache that nothing else reads",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "landed",
        "memory.close()",
        "pass",
        "the file is closed with the object, at the latest",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "landed",
        "unknown = {key for name, key in keys.items() if key in found and (not _is_here(repository, logs[name]))}",
        "unknown = {key for name, key in keys.items() if not _is_here(repository, logs[name])}",
        "what was not found is not kept either; asking git for it takes time",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "_is_here",
        "commit = said[1] if said is not None else last.text('commit') or '' if last is not None else ''",
        "commit = said[1] if said is not None else last.text('commit') if last is not None else ''",
        "a submission names its commit; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "_is_here",
        "return bool(commit) and resolved(repository, f'{commit}^{{commit}}') is not None",
        "return resolved(repository, f'{commit}^{{commit}}') is not None",
        "a submission names its commit; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "_arrivals",
        "wanted = tuple(paths) if len(paths) <= _FEW else (LOG_FOLDER,)",
        "wanted = tuple(paths) if not len(paths) <= _FEW else (LOG_FOLDER,)",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "_arrivals",
        "wanted = tuple(paths) if len(paths) <= _FEW else (LOG_FOLDER,)",
        "wanted = tuple(paths) if len(paths) < _FEW else (LOG_FOLDER,)",
        "how many paths are named on a command line changes no answer",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "landing_faults",
        "if not passed or not tip:",
        "if not tip:",
        "where nothing is asked about, nothing is found; the condition saves time",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "merge_faults",
        "if said is None or not arrived:",
        "if not arrived:",
        "without a verdict none has arrived; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "_as_submitted",
        "commit, changed = (event.text('commit') or '', set(event.texts('changed')))",
        "commit, changed = (event.text('commit'), set(event.texts('changed')))",
        "a submission names its commit; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/landed_work.py",
        "_landed_otherwise",
        "if resolved(repository, f'{judged}^{{commit}}') is None or not is_ancestor(repository, judged, tip):",
        "if resolved(repository, f'{judged}^{{commit}}') is None:",
        "what does not contain the commit has no landing of it; asking first takes less time",
    ),
    Equivalent(
        "approvals/fields.py",
        "Fields.truth",
        "return False",
        "return True",
        "the fault that is noted before makes the whole table count for nothing",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_attributes",
        "asked = [path for path, effect in effects.items() if any(effect)]",
        "asked = [path for path, effect in effects.items()]",
        "asking about the other paths changes no answer, and takes time",
    ),
    Equivalent(
        "shell/judging/merged_tree.py",
        "_undone",
        "wanted = {path: 'A' if letter == 'D' else 'D' for path, letter in changes.items() if letter in 'AD'}",
        "wanted = {path: 'A' if letter == 'D' else 'D' for path, letter in changes.items()}",
        "a change that modifies an event is refused, whatever else it takes back",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._here",
        "if submitted is None or not is_described(self.repository, submitted, self.head):",
        "if not is_described(self.repository, submitted, self.head):",
        "a verdict is about a submission; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._reports",
        "verdicts = [event for log in self.logs.values() for event in log.events if event.type == 'verdict.given']",
        "verdicts = [event for log in self.logs.values() for event in log.events]",
        "by the schema of events, only a verdict names a report",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._shipped",
        "own = {path: _id(one.new) for path, one in differing.items() if path.startswith(f'{GOVERNANCE_FOLDER}/')}",
        "own = {path: _id(one.new) for path, one in differing.items()}",
        "init writes nothing outside of the folder; reading the other files takes time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_may_matter",
        "return any((top in fields[0] or f'`{top}`' in text for top in tops))",
        "return any((top in fields[0] or f'`{top}`' not in text for top in tops))",
        "more pages are read, and none of them changes the answer",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._landing",
        _LANDING,
        _LANDING.replace(" if _is_document(one)", ""),
        "what is left of the folder is a program, and needs a packet anyway",
    ),
    Equivalent(
        "lifecycle/contract.py",
        "contract_of",
        "return _light(cast('Packet', document), parts)",
        "return _light(cast('Packetx', document), parts)",
        "only the type checker reads the name of a type",
    ),
    Equivalent(
        "lifecycle/contract.py",
        "_has_open_box",
        "return _OPEN_BOX.search(line[:column - 1]) is not None or line[column - 1:].startswith('[ ] ')",
        "return _OPEN_BOX.search(line[:column - 2]) is not None or line[column - 1:].startswith('[ ] ')",
        "a box is followed by a blank, and the pattern asks for none",
    ),
    Equivalent(
        "lifecycle/contract.py",
        "_Parts.bytes_of",
        "return b''",
        "return None",
        "what is empty is not pinned either way; the type checker asks for bytes",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._kind",
        "if stand.lane == 'IN_REVIEW' and all((move.id in self.known for move in stand.latest)):",
        "if all((move.id in self.known for move in stand.latest)):",
        "whether work ends unjudged asks for the lane too; asking first takes less time",
    ),
    Equivalent(
        "shell/judging/coverage.py",
        "_Coverage._kind",
        "if stand.lane == 'IN_REVIEW' and all((move.id in self.known for move in stand.latest)):",
        "if stand.lane == 'IN_REVIEW' and any((move.id in self.known for move in stand.latest)):",
        "a packet is in review by one move: two of them are a fork",
    ),
    Equivalent(
        "approvals/event_signatures.py",
        "EventSignatures._not_allowed",
        "return ''",
        "return None",
        "what is false lets the event pass either way; the type checker asks for a text",
    ),
    Equivalent(
        "evidence/comparison.py",
        "",
        _PATH,
        _PATH.removesuffix("')") + "!?')",
        "a path may hold an exclamation mark as often as it likes",
    ),
    Equivalent(
        "approvals/sigstore.py",
        "_issuer",
        _TOLD,
        _TOLD.removesuffix(" if isinstance(value, x509.UnrecognizedExtension)}") + "}",
        "no extension with one of these two identifiers is known; the condition is there for the type checker",
    ),
    Equivalent(
        "evidence/runners.py",
        "read_cargo",
        "path = next((path for start, path in reversed(files) if start < match.start()), '')",
        "path = next((path for start, path in reversed(files) if start <= match.start()), '')",
        "a line is about a file or about a test, never about both",
    ),
    Equivalent(
        "approvals/event_signatures.py",
        "judge_signature",
        "if objection is not None or signer is None:",
        "if objection is not None:",
        "a key without a signer is objected to; the condition is there for the type checker",
    ),
    Equivalent(
        "approvals/event_signatures.py",
        "judge_signature",
        "code, why = objection or (_SIGNER, '')",
        "code, why = objection",
        "a key without a signer is objected to; the condition is there for the type checker",
    ),
    Equivalent(
        "lifecycle/event_checks.py",
        "judge_change",
        "brought = [event for event in log.events if event.id not in known]",
        "brought = [event for event in log.events]",
        "what the base has is not judged in any case; asking first takes less time",
    ),
    Equivalent(
        "lifecycle/event_checks.py",
        "",
        _NOT_ASKED,
        _NOT_ASKED.replace("is read", "is readx"),
        "an explanation that only people read",
    ),
    Equivalent(
        "shell/judging/log_checkpoints.py",
        "Judge.signed",
        "message = self._files.get(event.path) or event.encode()",
        "message = event.encode()",
        "an event that can be read has one form; its file is at hand, and making it again takes time",
    ),
    *(
        Equivalent(
            "shell/judging/log_checkpoints.py",
            where,
            before,
            before.replace("log checkpoint", "log checkpointx"),
            "the name of a transaction is read by people, after a crash",
        )
        for where, before in (
            ("_write", "plan = Plan('log checkpoint', now.tx, tuple(signatures), tuple(events), (seen,))"),
            ("_write", "with writing(repository, 'log checkpoint') as transaction:"),
        )
    ),
    Equivalent(
        "lifecycle/coverage.py",
        "_sections",
        "return list(zip([(), *(each.titles for each in found)], texts, strict=True))",
        "return list(zip([(), *(each.titles for each in found)], texts, strict=False))",
        "there are as many texts as titles; being strict finds mistakes of the program",
    ),
    Equivalent(
        "approvals/facts.py",
        "GateFacts.person",
        "return min(self.people.get(principal, (principal,)))",
        "return max(self.people.get(principal, (principal,)))",
        "one name of a person is as good as another, because each is compared with nothing else",
    ),
    Equivalent(
        "shell/judging/change.py",
        "_is_contained",
        "head = head_commit(repository) or ''",
        "head = head_commit(repository)",
        "a change is judged at a commit; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/change.py",
        "judge",
        "return findings + coverage_problems(repository, commit, head_commit(repository) or commit, packets, policy)",
        "return findings + coverage_problems(repository, commit, head_commit(repository), packets, policy)",
        "a change is judged at a commit; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/judging/change.py",
        "_unguarded",
        "if before is None or before == after:",
        "if before is None:",
        "a policy that is equal weakens nothing; asking first takes less time",
    ),
    Equivalent(
        "shell/approvals/shown.py",
        "what_is_required",
        "if anchor is None or text is None:",
        "if text is None:",
        "without an anchor nothing is read, so there is no text either; the condition is there for the type checker",
    ),
    Equivalent(
        "shell/approvals/shown.py",
        "_changes",
        "said, last = (event.text('base_commit') or '', event.text('commit') or '')",
        "said, last = (event.text('base_commit'), event.text('commit') or '')",
        "it is only asked whether the event names one; the empty text is there for the type checker",
    ),
    Equivalent(
        "shell/approvals/shown.py",
        "_changes",
        "said, last = (event.text('base_commit') or '', event.text('commit') or '')",
        "said, last = (event.text('base_commit') or '', event.text('commit'))",
        "the event's schema requires a commit; the empty text is there for the type checker",
    ),
    Equivalent(
        "shell/approvals/shown.py",
        "_left_base",
        "return ''",
        "return None",
        "it is only asked whether there is a commit",
    ),
    Equivalent(
        "shell/approvals/shown.py",
        "_left_base",
        "first = merge_base(repository, commit, base) or ''",
        "first = merge_base(repository, commit, base)",
        "it is only asked whether there is a commit; the empty text is there for the type checker",
    ),
    Equivalent(
        "shell/approvals/shown.py",
        "_left_base",
        "first = merge_base(repository, commit, f'{landing}^1') or '' if landing is not None else ''",
        "first = merge_base(repository, commit, f'{landing}^1') if landing is not None else ''",
        "it is only asked whether there is a commit; the empty text is there for the type checker",
    ),
    Equivalent(
        "lifecycle/coverage.py",
        "stated_scope",
        "listed = cast('Packet', document).in_scope_paths if document.kind == 'packet' else ()",
        "listed = cast('Packetx', document).in_scope_paths if document.kind == 'packet' else ()",
        "only a type checker reads the name of the type",
    ),
    Equivalent(
        "shell/judging/lost_events.py",
        "",
        "_AT_ONCE = 500",
        "_AT_ONCE = 501",
        "how many commits one command line names; the answer is the same",
    ),
    Equivalent(
        "shell/judging/lost_events.py",
        "lost_events",
        _WANTED + " for path in known if path not in here and (path in passed or path not in elsewhere)}",
        _WANTED + " for path in known if path in passed or path not in elsewhere}",
        "what is here is not among the contents that are read, and so not told",
    ),
    Equivalent(
        "shell/judging/lost_events.py",
        "_dangling",
        "commits = [row.split(' ')[2] for row in answer.text.splitlines() if row.startswith('unreachable commit ')]",
        "commits = [row.split(' ')[2] for row in answer.text.splitlines()]",
        "git log passes over trees and files that nothing refers to",
    ),
    Equivalent(
        "shell/judging/lost_events.py",
        "_names_of_commits",
        "reflog = run_git(repository.root, 'log', '--walk-reflogs', '--all', '--format=%H %gD', check=False)",
        "reflog = run_git(repository.root, 'log', '--walk-reflogs', '--all', '--format=%H %gD', check=True)",
        "git ends with 0 there, with or without a reflog",
    ),
    Equivalent(
        "shell/judging/lost_events.py",
        "_names_of_commits",
        "if not name.startswith('refs/stash'):",
        "if not name.startswith('refs/stashx'):",
        "a new file is in the commits of the stash for the index or for untracked files, which no reflog names",
    ),
    Equivalent(
        "shell/judging/lost_events.py",
        "_names_of_commits",
        "listed = run_git(repository.root, 'rev-list', '--branches', '--remotes', '--tags', check=False)",
        "listed = run_git(repository.root, 'rev-list', '--branches', '--remotes', '--tags', check=True)",
        "git ends with 0 there, with or without a branch",
    ),
    Equivalent("approvals/fields.py", "", "_VOWELS = 'aiou'", "_VOWELS = 'aioux'", "two bits reach no fifth letter"),
)


def outdated() -> list[str]:
    """Entries that fit no change."""
    modules = {entry.module for entry in EQUIVALENT}
    existing = {(module, *change.name) for module in modules for change in changes_of(module)}
    return [f"{entry.module} in {entry.where}: {entry.now}" for entry in EQUIVALENT if entry[:4] not in existing]
