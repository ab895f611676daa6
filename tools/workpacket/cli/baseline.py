"""`check --baseline`, `--prune`, `--new-since`, and the findings that `check` leaves out because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from workpacket.cli.checking import Reported, source_lines
from workpacket.cli.options import Arguments
from workpacket.cli.workspace import Output, Workspace
from workpacket.git.objects import read_file_at
from workpacket.git.repository import commit_of, find_repository
from workpacket.model import exits
from workpacket.model.layout import BASELINE_PATH, POLICY_PATH
from workpacket.model.plan import FileChange, Plan, digest
from workpacket.model.reasons import Reason
from workpacket.model.wording import counted, next_line
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.rules.settings import Baseline, SourceLine, baseline_text, compare, read_baseline, recorded
from workpacket.shell.actor import moment
from workpacket.shell.base import readable_commit
from workpacket.shell.cache import NO_CACHE, RestsOn
from workpacket.shell.checking import check
from workpacket.shell.configuration import read_settings
from workpacket.shell.governing.evidence import make_tree, scratch_folder
from workpacket.shell.governing.execution import here
from workpacket.shell.package_files import schemas
from workpacket.shell.transactions.transaction import writing
from workpacket.shell.tree import find_documents, may_name, read_bytes, refusal
from workpacket.text.source import BASELINE
from workpacket.value import replace


def without_known(
    arguments: Arguments, workspace: Workspace, reasons: Mapping[str, Reason], line: SourceLine
) -> Callable[[Sequence[Problem]], Reported]:
    """Return the function that leaves out known findings (those in the baseline or at a revision) and reports how
    many."""
    since = arguments.value("new-since")
    if since:
        return _new_since(since, workspace, reasons, line)
    known = _known(_data_in_force(arguments, workspace))
    if isinstance(known, Problem):
        unread = known
        return lambda findings: Reported([*findings, unread])
    narrowed = ("select", "ignore", "exclude", "min-severity", "stdin-filename")
    whole = not (arguments.words or any(arguments.values(option) for option in narrowed))

    def report(findings: Sequence[Problem]) -> Reported:
        compared = compare(findings, known, reasons, line)
        notes = []
        if compared.known:
            count = counted(compared.known, "known finding")
            notes.append(f"{count} in {BASELINE_PATH} not shown; use --no-baseline to show them")
        if whole and compared.gone:
            gone = compared.gone.total()
            entries = f"{counted(gone, 'entry')} in {BASELINE_PATH} no longer {'applies' if gone == 1 else 'apply'}"
            notes.append(f"{entries}; `workpacket check --prune` removes {'it' if gone == 1 else 'them'}")
        return Reported(compared.new, tuple(notes))

    return report


def _new_since(
    revision: str, workspace: Workspace, reasons: Mapping[str, Reason], line: SourceLine
) -> Callable[[Sequence[Problem]], Reported]:
    """Return the function that leaves out findings that this revision already had. The revision's files are checked in
    the same way, in a temporary folder, because a change in one file can cause or remove findings in another.
    """
    repository = here()
    commit = readable_commit(repository, commit_of(repository, revision))
    with scratch_folder() as folder:
        tree = make_tree(repository, f"{folder}/tree", commit).root
        files = find_documents(tree)
        settings = read_settings(workspace.root)
        before = check(
            tree, files, whole=True, cache=NO_CACHE, reasons=reasons, settings=settings, progress=lambda *_: None
        )
        known = recorded(before.findings, reasons, source_lines(tree))

    def report(findings: Sequence[Problem]) -> Reported:
        compared = compare(findings, known, reasons, line)
        count = counted(compared.known, "finding")
        return Reported(
            compared.new, (f"{count} not shown because {revision} already had them",) if compared.known else ()
        )

    return report


def write_baseline(
    arguments: Arguments,
    workspace: Workspace,
    findings: Sequence[Problem],
    reasons: Mapping[str, Reason],
    line: SourceLine,
) -> Output:
    """Record today's findings or, with `--prune`, remove entries that no longer match a finding."""
    before = _data_here(workspace)
    if arguments.flag("prune"):
        command = "check --prune"
        known = _known(before)
        if isinstance(known, Problem):
            raise WorkpacketError.of(known)
        gone = compare(findings, known, reasons, line).gone
        kept = Counter(known) - gone
        said = f"removed {counted(gone.total(), 'entry')} from {BASELINE_PATH}; {kept.total()} left"
    else:
        command = "check --baseline"
        kept = recorded(findings, reasons, line)
        files = counted(len({place.path for place in kept}), "file")
        said = f"recorded {counted(kept.total(), 'finding')} in {files}: {BASELINE_PATH}"
        left = len(findings) - kept.total()
        if left:
            said += f"\n{counted(left, 'finding')} cannot be recorded, and will be reported"
    after = baseline_text(kept).encode()
    unread = _known(after)
    if isinstance(unread, Problem):  # nothing is recorded that a later check would refuse to read
        raise WorkpacketError.of(unread)
    if after == before or (before is None and not kept):
        return Output(f"{said}\nnothing to write\n", exits.OK, RestsOn(unnamed=True))
    old = digest(before) if before is not None else None
    with writing(find_repository(Path(workspace.root)), command) as transaction:
        transaction.apply(Plan(command, moment().tx, (FileChange(BASELINE_PATH, old, after),)))
    following = next_line(f"commit {BASELINE_PATH}")
    return Output(f"{said}\n{following}\n", exits.OK, RestsOn(unnamed=True))


def _data_in_force(arguments: Arguments, workspace: Workspace) -> bytes | None:
    """Return the baseline to use. With a base, it is the one on the base, so that a change cannot declare its own
    findings known. The baseline in the change is used only if the base has none, or if the base's policy has approvals:
    additions to the baseline then require an approval.
    """
    base = arguments.value("base")
    if not base:
        return _data_here(workspace)
    repository = here()
    commit = readable_commit(repository, commit_of(repository, base))
    before, policy = (read_file_at(repository, commit, path) for path in (BASELINE_PATH, POLICY_PATH))
    return _data_here(workspace) if before is None or may_name(policy or b"", b"approvals") else before


def _data_here(workspace: Workspace) -> bytes | None:
    try:
        return read_bytes(workspace.root, BASELINE_PATH, BASELINE.size)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"its entries are not applied: {refusal(error)}"
        raise WorkpacketError("baseline_unread", message, path=BASELINE_PATH) from error


def _known(data: bytes | None) -> Baseline | Problem:
    known = read_baseline(data, schemas())
    return replace(known, hint=catalogue()[known.code].remedy) if isinstance(known, Problem) else known
