"""The expensive part of `check`: settings, rules, fixes, rendering."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from typing import BinaryIO

from workpacket.cli.check import SEVERITIES, kind_given
from workpacket.cli.options import Arguments, usage
from workpacket.cli.workspace import Output, Workspace, progress_bar
from workpacket.documents.document import kind_named
from workpacket.documents.places import kind_of
from workpacket.model import exits
from workpacket.model.layout import BASELINE_PATH, LARGEST_REGISTER
from workpacket.model.reasons import Reason
from workpacket.problem import Location, Problem, Severity, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.outcome import CheckOutcome, Repaired, SourceLine, exit_status
from workpacket.report.terminal import Style, escape
from workpacket.report.text import render_text
from workpacket.rules.settings import CheckSettings, Profile, grade
from workpacket.shell.approvals import approvals_here
from workpacket.shell.cache import Cache, RestsOn
from workpacket.shell.checking import Checked, check, check_text
from workpacket.shell.configuration import read_settings
from workpacket.shell.transactions import left_before_writing, left_between_files
from workpacket.shell.tree import Found, find_documents, read_bytes
from workpacket.text.source import Source
from workpacket.value import NamedTuple, replace

Files = Sequence[Found]
Choose = Callable[[], Files]

_ALONE = "each file was checked on its own; without paths, `workpacket check` also compares the files with each other"


_NO_CHANGE = "HEAD is the base, so there are no changes to judge"


def check_and_render(arguments: Arguments, workspace: Workspace, files: Files, cache: Cache, again: Choose) -> Output:
    """Check, apply fixes if requested, and render the remaining findings. `again` returns the files after the fixes."""
    reasons = catalogue()
    settings = _settings(arguments, workspace)
    selected = _selection(arguments, reasons)
    style = style_of(arguments)
    kinds = {found.path: found.kind for found in files}
    base, unsafe = arguments.value("base"), arguments.flag("unsafe-fixes")
    wanted = arguments.flag("fix") or unsafe
    if base and wanted:
        raise usage(arguments.command, "conflicting_options", "--base cannot be combined with fixes")
    with nullcontext() if arguments.words else _each_event_decoded_once():
        checked = _examined(arguments, workspace, files, cache, settings)
    if arguments.flag("baseline") or arguments.flag("prune"):
        from workpacket.cli.baseline import write_baseline

        return write_baseline(arguments, workspace, checked.findings, reasons, source_lines(workspace.root))
    without_known = _reporting(arguments, workspace, reasons, source_lines(workspace.root))
    reported = without_known(selected(_judged_in_part(workspace, checked.findings)))
    findings = reported.findings
    if arguments.flag("diff"):
        return _diff(workspace, kinds, findings, unsafe=unsafe, style=style)
    notes = [_ALONE] if arguments.words else []
    if base and not arguments.flag("uncommitted") and _is_head(base):
        notes.append(_NO_CHANGE)
    repaired: Repaired | None = None
    if wanted:
        from workpacket.cli.fmt import fix_files, refuse_unreadable

        refuse_unreadable(files)
        repairs = fix_files(workspace.root, kinds, findings, unsafe=unsafe)
        checked = _examined(arguments, workspace, again(), cache, settings)
        reported = without_known(selected(_judged_in_part(workspace, checked.findings)))
        findings = [*reported.findings, *repairs.refused]
        notes.append(repairs.told())
        repaired = repairs.done()
    outcome = CheckOutcome(
        findings=tuple(findings),
        files=kinds,
        notes=(*notes, *reported.notes),
        source_line=source_lines(workspace.root),
        fail_on=_severity(arguments.value("fail-on", "error")),
        repaired=repaired,
    )
    status = exit_status(outcome, reasons)
    rendered = render(arguments, outcome, status, reasons, style)
    # A repair writes files, and a revision may name another commit tomorrow.
    return Output(rendered, status, checked.rests_on | RestsOn(unnamed=wanted or bool(base)))


def _each_event_decoded_once() -> AbstractContextManager[None]:
    from workpacket.ledger.log import each_event_decoded_once  # a check of single files reads no log

    return each_event_decoded_once()


def outcome_of(arguments: Arguments, workspace: Workspace, cache: Cache) -> CheckOutcome:
    """Check the whole repository with these `check` options, for a command that reports the result in its own way."""
    reasons, files = catalogue(), find_documents(workspace.root)
    lines = source_lines(workspace.root)
    checked = _examined(arguments, workspace, files, cache, _settings(arguments, workspace))
    reported = _reporting(arguments, workspace, reasons, lines)(_judged_in_part(workspace, checked.findings))
    kinds = {found.path: found.kind for found in files}
    return CheckOutcome(tuple(reported.findings), kinds, reported.notes, lines)


def _judged_in_part(workspace: Workspace, findings: Sequence[Problem]) -> list[Problem]:
    if not workspace.is_partial:
        return list(findings)
    from workpacket.shell.held import judged_in_part

    return judged_in_part(workspace.root, findings)


def check_and_render_text(arguments: Arguments, workspace: Workspace, stream: BinaryIO) -> Output:
    """Check the text from a stream as if it were a file, for an editor with unsaved text."""
    path = workspace.relative(arguments.value("stdin-filename"))
    kind = kind_given(arguments) or kind_of(path)
    if kind is None:
        message = f"{path} is not in a folder for governance documents"
        raise WorkpacketError("nothing_to_check", message, hint="name its --kind")
    reasons = catalogue()
    data = stream.read(kind_named(kind).limits.size + 1)
    findings = check_text(workspace.root, path, kind, data, reasons, _settings(arguments, workspace))
    source = Source.from_bytes(path, data)

    def line(_path: str, number: int) -> str | None:
        return source.line(number) if 1 <= number <= source.line_count else None

    reported = _reporting(arguments, workspace, reasons, line)(_selection(arguments, reasons)(findings))
    outcome = CheckOutcome(
        findings=tuple(reported.findings),
        files={path: kind},
        notes=(_ALONE, *reported.notes),
        source_line=line,
        fail_on=_severity(arguments.value("fail-on", "error")),
    )
    status = exit_status(outcome, reasons)
    return Output(render(arguments, outcome, status, reasons, style_of(arguments)), status)


def _examined(
    arguments: Arguments, workspace: Workspace, files: Files, cache: Cache, settings: CheckSettings
) -> Checked:
    """Return everything that is wrong: in the documents, in the change since a base, and in the approvals."""
    reasons = catalogue()
    checked = check(
        workspace.root,
        files,
        whole=not arguments.words,
        cache=cache,
        reasons=reasons,
        settings=settings,
        progress=progress_bar(),
    )
    findings = [*checked.findings, *_left_between_files(workspace)]
    base = arguments.value("base")
    if base:
        findings += _of_the_change(base, worktree=arguments.flag("uncommitted"))
        if arguments.words:  # for a whole repository this was checked with everything else
            kinds = {found.path: found.kind for found in files}
            findings += grade(_left_behind(workspace, kinds, cache), reasons, settings)[0]
    told = approval_findings(arguments, workspace, cache, claimed=checked.by_people)
    return Checked([*findings, *told.findings], checked.rests_on | told.rests_on)


class Reported(NamedTuple):
    """The findings to report, and notes about the others."""

    findings: list[Problem]
    notes: tuple[str, ...] = ()


def _reporting(
    arguments: Arguments, workspace: Workspace, reasons: Mapping[str, Reason], line: SourceLine
) -> Callable[[list[Problem]], Reported]:
    """Return the function that leaves out known findings. Most repositories have no baseline."""
    there = (
        arguments.value("base")
        or arguments.value("new-since")
        or os.path.lexists(os.path.join(workspace.root, BASELINE_PATH))
    )
    if arguments.flag("no-baseline") or not there:
        return Reported
    from workpacket.cli.baseline import without_known

    return without_known(arguments, workspace, reasons, line)


def _diff(
    workspace: Workspace, kinds: Mapping[str, str], findings: Sequence[Problem], *, unsafe: bool, style: Style
) -> Output:
    """Return what `--fix` would change. The files that it would refuse to change come first, in lines that `patch`
    skips."""
    from workpacket.cli.fmt import show_fixes

    shown, refused = show_fixes(workspace.root, kinds, findings, unsafe=unsafe, style=style)
    if not kinds:
        raise WorkpacketError("nothing_to_check", "no governance documents found")
    said = "".join(f"error: {escape(one.path)}: {escape(one.message)} ({one.code})\n" for one in refused)
    return Output(said + shown, exits.FINDINGS if said or shown else exits.OK, RestsOn(unnamed=True))


def render(
    arguments: Arguments, outcome: CheckOutcome, status: int, reasons: Mapping[str, Reason], style: Style
) -> str:
    """Return the result in the requested format."""
    form = arguments.value("format", "json" if arguments.flag("json") else "text")
    # Each format is imported on demand: text is the usual one, and a person is waiting for it.
    if form == "json":
        from workpacket.report.json_report import render_check

        return render_check(outcome, status)
    if form == "sarif":
        from workpacket.report.ci import render_sarif

        return render_sarif(outcome, reasons, status)
    if form == "junit":
        from workpacket.report.ci import render_junit

        return render_junit(outcome, reasons)
    if form == "github":
        from workpacket.report.ci import render_github

        return render_github(outcome)
    if arguments.flag("statistics"):
        from workpacket.report.text import render_statistics

        return render_statistics(outcome, reasons, style)
    return render_text(outcome, style, quiet=arguments.flag("quiet"), every=bool(arguments.values("select")))


def style_of(arguments: Arguments) -> Style:
    """Return color and width, from the options or from the terminal and its environment."""
    return arguments.style(sys.stdout)


def source_lines(root: str) -> Callable[[str, int], str | None]:
    """Return a function that reads a line of a file for the excerpt below a finding; each file is read once."""
    sources: dict[str, Source | None] = {}

    def line(path: str, number: int) -> str | None:
        if path not in sources:
            try:
                sources[path] = Source.from_bytes(path, read_bytes(root, path, LARGEST_REGISTER))
            except OSError:
                sources[path] = None
        source = sources[path]
        return source.line(number) if source is not None and 1 <= number <= source.line_count else None

    return line


def approval_findings(arguments: Arguments, workspace: Workspace, cache: Cache, *, claimed: bool) -> Checked:
    """Return what is wrong with the approvals of the whole repository, if there are any or a base is given. `claimed`:
    the log has events that require approvals, so they are checked even if the policy does not mention them.
    """
    base = arguments.value("base")
    if not base and (arguments.words or not (claimed or approvals_here(workspace.root))):
        return Checked([])
    from pathlib import Path

    from workpacket.git.repository import find_repository
    from workpacket.shell.actor import moment
    from workpacket.shell.approvals import READ_FROM
    from workpacket.shell.approvals.check import check_approvals
    from workpacket.shell.approvals.facts import open_approvals

    with open_approvals(find_repository(Path(workspace.root)), base or None, moment()) as approvals:
        findings = check_approvals(approvals, cache)
        # Commits also decide, and the key of the cached output names them (`commits_decide`).
        return Checked(findings, RestsOn(READ_FROM, clock=approvals.by_clock))


def _left_between_files(workspace: Workspace) -> list[Problem]:
    """Report interrupted commands: their unfinished writes may be the cause of other findings."""
    if not (left_between_files(workspace.git_dir) or left_before_writing(workspace.git_dir)):
        return []
    from pathlib import Path

    from workpacket.git.repository import find_repository
    from workpacket.shell.transactions.recovery import temporaries, unfinished

    repository = find_repository(Path(workspace.root))
    left_over = [
        Problem(
            "tree_entry_foreign",
            f"{left.command} was interrupted before it changed anything, and left this file",
            Location(left.path),
            "workpacket log recover --write",
            severity="warning",
        )
        for left in temporaries(repository)
    ]
    return left_over + [
        Problem(
            "transaction_unfinished",
            f"{left.command} was interrupted while writing: {', '.join(left.paths)}",
            Location(left.paths[0]),
            catalogue()["transaction_unfinished"].remedy,
        )
        for left in unfinished(repository)
    ]


def _settings(arguments: Arguments, workspace: Workspace) -> CheckSettings:
    base = arguments.value("base")
    settings = _settings_at(base) if base else read_settings(workspace.root)
    profile = arguments.value("profile")
    return replace(settings, profile=_profile(profile)) if profile else settings


def _settings_at(base: str) -> CheckSettings:
    from workpacket.git.repository import commit_of
    from workpacket.shell.base import readable_commit
    from workpacket.shell.configuration import read_settings_at
    from workpacket.shell.governing.execution import here

    repository = here()
    return read_settings_at(repository, readable_commit(repository, commit_of(repository, base)))


def _of_the_change(base: str, *, worktree: bool) -> list[Problem]:
    from workpacket.shell.governing.execution import here
    from workpacket.shell.judging.change import judge

    return judge(here(), base, worktree=worktree)


def _is_head(base: str) -> bool:
    """Whether there are no commits between the base and HEAD.

    Such a base is probably a mistake: with it, every committed change would pass.
    """
    from workpacket.git.repository import commit_of, head_commit
    from workpacket.shell.governing.execution import here

    repository = here()
    return commit_of(repository, base) == head_commit(repository)


def _left_behind(workspace: Workspace, kinds: Mapping[str, str], cache: Cache) -> list[Problem]:
    """Report stub requirements that are missing from their packets, for the given files."""
    from workpacket.shell.checking.whole import activated_among, not_carried_over

    return not_carried_over(workspace.root, activated_among(workspace.root, kinds), cache)


def _profile(word: str) -> Profile:
    return "strict" if word == "strict" else "adopt"


def _severity(word: str) -> Severity:
    return "info" if word == "info" else "warning" if word == "warning" else "error"


def _selection(arguments: Arguments, reasons: Mapping[str, Reason]) -> Callable[[Sequence[Problem]], list[Problem]]:
    """Return a function that selects findings. A pattern that matches no code is an error; integrity findings cannot be
    left out.
    """
    select, ignore, exclude = (arguments.values(name) for name in ("select", "ignore", "exclude"))
    severities = SEVERITIES[: SEVERITIES.index(arguments.value("min-severity", "info")) + 1]
    for pattern in (*select, *ignore):
        if not any(fnmatchcase(code, pattern) for code in reasons):
            what = f"no code matches {pattern!r}; `workpacket explain --all` lists them"
            raise usage(arguments.command, "unknown_code", what)

    def kept(finding: Problem) -> bool:
        if not reasons[finding.code].ignorable:
            return True
        wanted = not select or any(fnmatchcase(finding.code, pattern) for pattern in select)
        hidden = finding.severity not in severities or any(_is_below(finding.path, pattern) for pattern in exclude)
        return wanted and not hidden and not any(fnmatchcase(finding.code, pattern) for pattern in ignore)

    return lambda findings: [finding for finding in findings if kept(finding)]


def _is_below(path: str, pattern: str) -> bool:
    """Whether a pattern matches a path, or is a folder above it."""
    folder = pattern.removeprefix("./").rstrip("/")
    return fnmatchcase(path, folder) or path.startswith(f"{folder}/")
