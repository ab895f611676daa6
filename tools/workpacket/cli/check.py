"""`workpacket check`: find everything that is wrong in the governance documents, in a single run.

`check --watch`: check again whenever a file changes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.workspace import (
    GarbageCollectionOff,
    Output,
    Workspace,
    open_workspace,
    show,
    show_fresh,
    write_report,
)
from workpacket.documents.places import PLACES, kind_of
from workpacket.model import exits
from workpacket.problem import WorkpacketError
from workpacket.shell.approvals import commits_decide
from workpacket.shell.cache import NO_CACHE, Cache, RestsOn
from workpacket.shell.transactions import left_before_writing, left_between_files
from workpacket.shell.tree import Found, find_documents, named_document

FORMATS = ("text", "json", "sarif", "junit", "github")
SEVERITIES = ("error", "warning", "info")

_INTERVAL = 0.3


def run(arguments: Arguments) -> int:
    _refuse_contradictions(arguments)
    workspace = open_workspace(named=bool(arguments.words) or arguments.flag("stdin-filename"))
    # With --base, a change is judged, and its author may have written to the cache too.
    cached = not (arguments.flag("no-cache") or arguments.value("base"))
    cache = workspace.open_cache(arguments.value("cache-dir")) if cached else NO_CACHE
    try:
        if arguments.flag("stdin-filename"):
            from workpacket.cli.checking import check_and_render_text

            return show_fresh(check_and_render_text(arguments, workspace, sys.stdin.buffer))
        if arguments.flag("watch"):
            return watch(lambda: check_once(arguments, workspace, cache), workspace.root)
        status = check_once(arguments, workspace, cache)
        # A changed log, or a check that did not run, fails in any case.
        return exits.OK if arguments.flag("exit-zero") and status == exits.FINDINGS else status
    finally:
        cache.close()


def _refuse_contradictions(arguments: Arguments) -> None:
    """Refuse contradictory options: one of them would otherwise be silently ignored."""
    given = [f"--{name}" for name in ("format", "json", "statistics", "diff") if arguments.flag(name)]
    same = (given == ["--format", "--json"] and arguments.value("format") == "json") or (
        given == ["--format", "--statistics"] and arguments.value("format") == "text"
    )
    if len(given) > 1 and not same:
        raise usage(arguments.command, "conflicting_options", f"{' and '.join(given)} cannot be used together")
    if arguments.flag("stdin-filename"):
        none = ("fix", "unsafe-fixes", "diff", "watch", "base", "new-since", "baseline", "prune", "output-file")
        also = [*(f"--{name}" for name in none if arguments.flag(name)), *arguments.words]
        if also:
            message = f"--stdin-filename cannot be combined with {also[0]}"
            raise usage(arguments.command, "conflicting_options", message)
    if arguments.flag("cache-dir"):
        beside = [f"--{name}" for name in ("no-cache", "base", "stdin-filename") if arguments.flag(name)]
        if beside:
            message = f"--cache-dir cannot be combined with {beside[0]}, which uses no cache"
            raise usage(arguments.command, "conflicting_options", message)
    least, failing = arguments.value("min-severity", "info"), arguments.value("fail-on", "error")
    if SEVERITIES.index(least) < SEVERITIES.index(failing):
        message = f"--min-severity {least} would hide findings that --fail-on {failing} needs"
        raise usage(arguments.command, "conflicting_options", message)
    about = [f"--{name}" for name in ("baseline", "prune", "new-since", "no-baseline") if arguments.flag(name)]
    # A baseline covers the whole repository, by its own settings.
    others = (
        "base",
        "select",
        "ignore",
        "min-severity",
        "exclude",
        "profile",
        "fix",
        "unsafe-fixes",
        "diff",
        "watch",
        "format",
        "json",
    )
    recording = arguments.flag("baseline") or arguments.flag("prune")
    beside = [*(f"--{name}" for name in others if arguments.flag(name)), *arguments.words] if recording else []
    if len(about) > 1 or beside:
        message = f"{about[0]} cannot be combined with {[*about[1:], *beside][0]}"
        raise usage(arguments.command, "conflicting_options", message)


def check_once(arguments: Arguments, workspace: Workspace, cache: Cache) -> int:
    """Run one check, or take its output from the cache if nothing has changed."""
    files = chosen_files(arguments, workspace)

    def compute() -> Output:
        from workpacket.cli.checking import check_and_render

        with GarbageCollectionOff():
            output = check_and_render(arguments, workspace, files, cache, lambda: chosen_files(arguments, workspace))
        into = arguments.value("output-file")
        if not into:
            return output
        write_report(workspace, into, output.text)
        return Output("", output.status, RestsOn(unnamed=True))

    if any(map(arguments.flag, ("baseline", "prune", "new-since"))):
        return show_fresh(compute())
    left = left_between_files(workspace.git_dir) or left_before_writing(workspace.git_dir)
    if arguments.value("base") or left or workspace.is_partial:
        # The commit that a revision names, the writes left by an interrupted command, and the files that git leaves out
        # of the work tree are looked up every time.
        return show_fresh(compute())
    if arguments.words or not commits_decide(workspace.root):
        return show(arguments, workspace, files, cache, compute)
    if not cache.is_open:
        return show_fresh(compute())
    from workpacket.shell.approvals import deciding

    return show(arguments, workspace, files, cache, compute, lambda: deciding(workspace.root))


def chosen_files(arguments: Arguments, workspace: Workspace) -> list[Found]:
    """Return the files to check: those given, or all."""
    kind = kind_given(arguments)
    if kind and not arguments.words:
        raise usage(
            arguments.command,
            "missing_argument",
            "--kind describes the files on the command line; give at least one file",
        )
    if not arguments.words:
        return find_documents(workspace.root)
    chosen: dict[str, Found] = {}
    others: list[str] = []
    for word in arguments.words:
        path = workspace.relative(word)
        if os.path.isdir(os.path.join(workspace.root, path)) and not kind:
            inside = f"{path}/" if path else ""
            for found in find_documents(workspace.root):
                if found.path.startswith(inside):
                    chosen[found.path] = found
            continue
        own_kind = kind or kind_of(path)
        if own_kind is not None:
            chosen[path] = named_document(workspace.root, path, own_kind)
        elif os.path.lexists(os.path.join(workspace.root, path)):
            others.append(word)
        else:
            hint = f"give a path relative to {os.getcwd()}, or no path to check everything"
            if word.startswith("WP-"):
                hint = f"workpacket check .GOV/task_packets/{word}.md"
            raise WorkpacketError("path_not_found", f"{word} does not exist", hint=hint)
    if others:
        _say_what_is_not_checked(others, alone=not chosen)
    return [chosen[path] for path in sorted(chosen)]


def kind_given(arguments: Arguments) -> str:
    """Return the kind given on the command line, or '' if none."""
    kind = arguments.value("kind")
    known = sorted({each for _, each in PLACES})
    if kind and kind not in known:
        message = f"unknown kind {kind!r}; the kinds of documents are {', '.join(known)}"
        raise usage(arguments.command, "invalid_value", message)
    return kind


def _say_what_is_not_checked(words: list[str], *, alone: bool) -> None:
    """Report files that are not checked. A list of changed files may include other files, but it is an error if the
    list includes no documents.
    """
    from workpacket.report.terminal import escape

    for word in words:
        sys.stderr.write(f"note: {escape(word)} was not checked: it is not in a folder for governance documents\n")
    if alone:
        message = "none of the files is in a folder for governance documents"
        raise WorkpacketError("nothing_to_check", message, hint="name its --kind")


UNCOMMITTED_OPTION = Option("uncommitted", "with --base: judge .GOV as it is in the work tree, unlike CI")

COMMAND = Command(
    "check",
    run,
    arguments="[PATH...]",
    description="""
Without a path, every governance document of the repository is checked, and all of them are compared with one another.
With paths (files or folders), only these are checked, each on its own; with `--base`, packets are also compared with
their stubs.

Approvals are verified where there are any. With `--base`, that revision decides: policy, severities and ignores are
read from it, and no part of its log and attestations may be changed or deleted.

In a repository with many findings, `--baseline` records them, and later checks report only new ones. A known finding
is recognized by its file, code and the text of its line. Findings about approvals, the log and contracts are never
recorded. With `--base`, what a change adds to the baseline needs the approval that any change of the policy needs.""",
    options=(
        Option("format", "the output format", choices=FORMATS),
        Option("select", "only these codes; a trailing '*' matches a family", value="CODE", many=True),
        Option("ignore", "all but these codes; a trailing '*' matches a family", value="CODE", many=True),
        Option("min-severity", "leave out findings below this severity", choices=SEVERITIES),
        Option("exclude", "leave out findings in these files or folders", value="PATTERN", many=True),
        Option("profile", "adopt: outdated forms are warnings; strict: they are errors", choices=("adopt", "strict")),
        Option("fail-on", "the lowest severity that makes the check fail", choices=SEVERITIES),
        Option("fix", "apply fixes that do not change the meaning"),
        Option("unsafe-fixes", "also apply fixes that a person should review"),
        Option("diff", "show what --fix would change, without changing anything"),
        Option("quiet", "print only the findings"),
        Option("exit-zero", "exit with 0 even if there are findings"),
        Option("output-file", "write the report to this file instead of printing it", value="FILE"),
        Option(
            "baseline",
            "record the current findings in .GOV/policy/baseline.json, so that later checks report only new ones",
        ),
        Option("prune", "remove baseline entries that no longer match a finding"),
        Option("new-since", "report only findings that this revision did not have", value="REV"),
        Option("no-baseline", "also report findings that are in the baseline"),
        Option("statistics", "count the findings for each code instead of listing them"),
        Option("watch", "check again whenever a file changes, until interrupted"),
        Option(
            "base", "also check the changes since this revision, using that revision's policy and settings", value="REV"
        ),
        UNCOMMITTED_OPTION,
        Option("stdin-filename", "check standard input as if it were this file", value="PATH"),
        Option("kind", "the document kind of the given files: a schema name", value="KIND"),
        Option("no-cache", "do not use the cache"),
        Option("cache-dir", "keep the cache in this folder, for example to restore it in CI", value="DIR"),
    ),
    examples=(
        "workpacket check",
        "workpacket check .GOV/task_packets --fail-on warning",
        "workpacket check --fix --diff",
        "workpacket check --base origin/main",
        "workpacket check --baseline",
        "workpacket check --format sarif > findings.sarif",
    ),
)


def watch(check: Callable[[], int], root: str) -> int:
    """Run `check` immediately and after every change, until interrupted. Checking the state of all files is cheap."""
    seen: list[tuple[str, str]] | None = None
    status = 0
    try:
        while True:
            now = [(found.path, found.state) for found in find_documents(root)]
            if now != seen:
                seen = now
                if sys.stdout.isatty():
                    sys.stdout.write("\x1b[2J\x1b[H")
                status = check()
                sys.stdout.flush()
            time.sleep(_INTERVAL)
    except KeyboardInterrupt:
        return status
