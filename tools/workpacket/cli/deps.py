"""`workpacket deps`: find dependencies that changed, and decide whether the change was allowed."""

from __future__ import annotations

import sys
from pathlib import Path

from workpacket.bridges.dependency_guard import (
    NOTHING_YET,
    DependencyChanges,
    changes_of_run,
    dependency_changes,
    refusal_of,
)
from workpacket.cli.checking import style_of
from workpacket.cli.open_store import open_runtime, refusing
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.documents.lockfiles.comparison import DependencyChange, FileVerdict
from workpacket.errors import WorkpacketError
from workpacket.git.objects import commit_with_trailer
from workpacket.git.repository import Repository, find_repository
from workpacket.git.revisions import commit_of, default_branch, head_commit, merge_base
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.problem import Location, Problem
from workpacket.report.catalogue import catalogue
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.report.runs import painted_next_line
from workpacket.runtime.commit_checkpoint import TRAILER


@refusing
def run(arguments: Arguments) -> int:
    if arguments.value("base") and arguments.value("since"):
        raise usage(arguments.command, "conflicting_options", "--base and --since cannot be used together")
    return _answer(arguments, _compared(arguments, find_repository(Path.cwd())))


def _compared(arguments: Arguments, repository: Repository) -> DependencyChanges:
    allow = tuple(arguments.values("allow"))
    since = arguments.value("since")
    if since:
        with open_runtime() as runtime:
            found = [head.stream for head in runtime.store.heads(since, limit=2)]
            if runtime.store.head(since) is not None or len(found) == 1:
                stream = since if runtime.store.head(since) is not None else found[0]
                return changes_of_run(repository, runtime.state(stream), allow)
        base = _commit_of_checkpoint(repository, since)
    elif arguments.value("base"):
        base = commit_of(repository, arguments.value("base"))
    else:
        base = _where_the_branch_left(repository)
    return dependency_changes(repository, base, allow, base)


def _commit_of_checkpoint(repository: Repository, checkpoint: str) -> str:
    head = head_commit(repository)
    found = commit_with_trailer(repository, head, TRAILER, checkpoint) if head is not None else None
    if found is None:
        raise WorkpacketError(
            "checkpoint_missing", f"no run or commit in this history has a checkpoint {checkpoint!r}",
            hint="workpacket runtime runs list",
        )  # fmt: skip
    return found.commit


def _where_the_branch_left(repository: Repository) -> str:
    """Return the last commit that this branch shares with the default branch, or the last one of the default branch."""
    head, branch = head_commit(repository), default_branch(repository)
    if head is None:
        return ""
    return (merge_base(repository, branch.commit, head) if branch is not None else None) or head


def _answer(arguments: Arguments, changes: DependencyChanges) -> int:
    refused = refusal_of(changes)
    status = exits.OK if refused is None else catalogue()[refused.code].exit_code
    then = refused.hint if refused is not None else ""
    if arguments.flag("json"):
        data: dict[str, Json] = {**changes.as_event(), "next": then}
        sys.stdout.write(render_envelope(arguments.command.name, status, _findings(changes), data))
        return status
    against = f"commit {changes.base[:12]}" if changes.base else NOTHING_YET
    if not changes.verdicts and not changes.unreadable:
        sys.stdout.write(f"no dependency changed since {against}\n")
    for verdict in changes.verdicts:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(verdict)))
    for finding in _findings(changes):
        where = f"{finding.path}:{finding.line}" if finding.line else finding.path
        sys.stdout.write(f"{finding.severity}: {escape(where)}: {escape(finding.message)} ({finding.code})\n")
    if refused is None and changes.verdicts:
        sys.stdout.write(f"every change since {against} was allowed\n")
    if then:
        sys.stdout.write(painted_next_line(then, style_of(arguments)))
    return status


def _lines(verdict: FileVerdict) -> list[str]:
    file = verdict.file
    transitive = ", ".join(f"{count} {kind}" for kind, count in file.transitive.items() if count) or "none"
    added, removed = file.lines
    shown = [f"{escape(file.path)} ({file.format}): +{added} -{removed} lines, transitive: {transitive}"]
    return shown + [f"  {escape(_line(change, verdict))}" for change in file.direct]


def _line(change: DependencyChange, verdict: FileVerdict) -> str:
    sign = {"added": "+", "removed": "-", "updated": "~"}[change.kind]
    versions = " -> ".join(filter(None, (change.old, change.new)))
    leave = "allowed" if change.name in verdict.allowed else "not allowed"
    return " ".join(filter(None, (sign, change.name, versions))) + f"  [{leave}]"


def _findings(changes: DependencyChanges) -> list[Problem]:
    found = [
        Problem("lockfile_violation", one.message, Location(one.path, one.line, 1 if one.line else 0))
        for one in changes.violations
    ]
    found += changes.unreadable
    found += [
        Problem("dependencies_many", sentence, Location(path), severity="warning")
        for path, sentence in changes.warnings
    ]
    return found


COMMAND = Command(
    "deps",
    run,
    description="""
Compares lock files and manifests of the work tree, committed or not, with a commit. Direct
dependencies may only change if --allow, or [deps] in the policy of that commit, names them. Naming a dependency never
allows a different source, or different content under the same version. The exit status is 11 if something changed
without permission, 17 if a file could not be read.""",
    options=(
        Option("base", "compare with this revision (default: where this branch left the default branch)", value="REV"),
        Option("since", "compare with a checkpoint: a run (its last milestone) or a Checkpoint-Id", value="CHECKPOINT"),
        Option("allow", "dependencies that may change; `*` matches any characters", value="NAME", many=True),
    ),
    examples=(
        "workpacket audit deps",
        "workpacket audit deps --base origin/main --allow 'zod,@org/*'",
        "workpacket audit deps --since parser@00000001",
    ),
)
