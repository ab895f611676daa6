"""`workpacket audit deps` and `workpacket audit justfile`: dependencies that changed without permission, and parameters
that a justfile pastes into a command line.

The `just` command replaces `{{ name }}` before the shell reads the line, so an argument that contains a quote or a
`$(...)` is executed. Passed as `"$@"` or `"$1"` (with `positional-arguments`), or through `quote(name)`, it remains a
plain argument.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
from workpacket.git.objects import commit_with_trailer
from workpacket.git.repository import Repository, commit_of, default_branch, find_repository, head_commit, merge_base
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.runs import painted_next_line
from workpacket.report.terminal import escape
from workpacket.runtime.commit_checkpoint import TRAILER
from workpacket.text.source import MARKDOWN, Source


@refusing
def run_deps(arguments: Arguments) -> int:
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
            "checkpoint_missing", f"no run or commit in this history has the checkpoint {checkpoint!r}",
            hint="workpacket runtime runs list",
        )  # fmt: skip
    return found.commit


def _where_the_branch_left(repository: Repository) -> str:
    """Return the last commit that this branch shares with the default branch, or the last commit of the default
    branch."""
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
        sys.stdout.write(f"no dependencies have changed since {against}\n")
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


_DEPS = Command(
    "deps",
    run_deps,
    description="""
Compares lock files and manifests of the work tree, committed or not, with a commit. Direct
dependencies may only change if --allow, or [deps] in the policy of that commit, names them. Naming a dependency never
allows a different source, or different content under the same version. The exit status is 11 if something changed
without permission, 17 if a file could not be read.""",
    options=(
        Option("base", "compare with this revision (default: where this branch left the default branch)", value="REV"),
        Option("since", "compare with a checkpoint: a run (its last milestone) or a Checkpoint-Id", value="CHECKPOINT"),
        Option("allow", "dependencies that are allowed to change; `*` matches any characters", value="NAME", many=True),
    ),
    examples=(
        "workpacket audit deps",
        "workpacket audit deps --base origin/main --allow 'zod,@org/*'",
        "workpacket audit deps --since parser@00000001",
    ),
)


CODE = "just_parameter_pasted"

_DEFAULT = r"=(?:'[^']*'|\"[^\"]*\"|[^\s:'\"]+)"
_HEADER = lazy_pattern(rf"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:[ \t]+[^\s:='\"]+(?:{_DEFAULT})?)*)[ \t]*:(?!=)")
_PARAMETER = lazy_pattern(rf"[*+$]*(?P<name>[A-Za-z_][\w-]*)(?:{_DEFAULT})?")
# Four braces represent two literal ones.
_PASTED = lazy_pattern(r"\{\{\{\{|\{\{(?P<expression>.*?)\}\}")
_WORD = lazy_pattern(r"[A-Za-z_][\w-]*")
_QUOTED = lazy_pattern(r"\bquote\([^()]*\)")


def pasted_parameters(source: Source) -> Iterator[Problem]:
    """Yield each location where a recipe pastes one of its parameters."""
    parameters: dict[str, str] = {}
    for number in range(1, source.line_count + 1):
        line = source.line(number)
        start = source.line_starts[number - 1]
        if line[:1] in {" ", "\t"} or not line.strip():
            yield from _in_body(line, start, parameters)
            continue
        match = _HEADER.match(line)
        if match is not None:
            parameters = {name["name"]: match["name"] for name in _PARAMETER.finditer(match["parameters"])}
        elif not line.startswith(("[", "#")):
            parameters = {}


def _in_body(line: str, start: int, parameters: dict[str, str]) -> Iterator[Problem]:
    for match in _PASTED.finditer(line):
        named = set(_WORD.findall(_QUOTED.sub("", match["expression"] or "")))
        for name in sorted(named & parameters.keys()):
            message = f"recipe {parameters[name]} pastes its parameter {name} into a command line"
            hint = (
                'set positional-arguments and pass the parameter on as "$@" or "$1"; or write {{ quote(' + name + ") }}"
            )
            yield Problem(CODE, message, Location.span(start + match.start(), start + match.end()), hint)


def run_justfile(arguments: Arguments) -> int:
    findings = []
    for path in arguments.words or ["justfile"]:
        source = _read(path)
        findings += [source.placed(found) for found in pasted_parameters(source)]
    status = exits.FINDINGS if findings else exits.OK
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("lint-justfile", status, findings, {}))
        return status
    for one in findings:
        print(f"{escape(one.path)}:{one.line}:{one.column}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")
    print(f"{len(findings)} parameters are pasted")
    print(f"next: {'workpacket explain just_parameter_pasted' if findings else 'just --list'}")
    return status


def _read(path: str) -> Source:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MARKDOWN.size + 1)
    except OSError as error:
        raise WorkpacketError("path_not_found", f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MARKDOWN.size:
        raise WorkpacketError("limit_size", f"{path} is larger than {MARKDOWN.size:,} bytes")
    return Source.from_bytes(path.replace(os.sep, "/"), data)


_JUSTFILE = Command(
    "lint-justfile",
    run_justfile,
    arguments="[FILE...]",
    description="Without a file, checks the justfile in the current directory.",
    examples=("workpacket audit justfile", "workpacket audit justfile .GOV/gov.just"),
)


DECLARED: Final = {command.name: command for command in (_DEPS, _JUSTFILE)}
