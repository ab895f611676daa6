"""`guard`: say whether a path may be written now. It runs as a command, as a hook for coding agents and for git, or
continuously.

A path is judged by every governed repository that contains it, under each name that it may have: a program that
resolves `..` before links and one that resolves links first write different files. As a hook, the guard speaks only to
refuse: only the agent's user can permit the use of a tool. A hook that fails says so on standard error and exits with
1, which no agent treats as a refusal.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import NamedTuple

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.git.discovery import STEERING_VARIABLES
from workpacket.lifecycle.scope import GuardRules, PathDecision, as_text, decide, from_text
from workpacket.model import exits
from workpacket.model.layout import APPEND_ONLY_FOLDERS, GOVERNANCE_FOLDER
from workpacket.problem import WorkpacketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final, TypeAlias

    from workpacket.git.repository import Repository

    Judge: TypeAlias = Callable[[str], PathDecision]

_FAILED: Final = 1


class RootDecision(NamedTuple):
    """A decision about a path by the repository with this root."""

    root: str
    decision: PathDecision


class Agent:
    """A coding agent's hooks: its tools that write files, and the paths that a tool call contains."""

    __slots__ = ("introduction", "refusal", "settings", "starting", "tools", "writing")

    def __init__(
        self,
        settings: str,
        writing: str,
        starting: str,
        tools: dict[str, Callable[[dict[str, Any]], list[str]]],
        refusal: Callable[[str], object],
        introduction: Callable[[str], str],
    ) -> None:
        self.settings = settings
        self.writing = writing
        self.starting = starting
        self.tools = tools
        self.refusal = refusal
        self.introduction = introduction


def _one(argument: str) -> Callable[[dict[str, Any]], list[str]]:
    """Return the path in this argument, if there is one."""
    return lambda given: [path] if isinstance(path := given.get(argument), str) and path else []


_HEADS: Final = ("*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: ")


def _patched(given: dict[str, Any]) -> list[str]:
    """Return the paths in a patch. A line of a changed file begins with a space, + or -, so it cannot look like a
    header; between files, the patch reader ignores spaces before a header.
    """
    patch = given.get("command")
    if not isinstance(patch, str):
        raise ValueError("it contains no patch")
    found: list[str] = []
    begun = updating = False
    for line in patch.split("\n"):
        head = line.rstrip() if updating else line.strip()
        if not begun or head == "*** End Patch":
            begun = head == "*** Begin Patch"
            continue
        name = next((name for name in _HEADS if head.startswith(name)), "")
        if name:
            found.append(head.removeprefix(name).strip())
            updating = name in _HEADS[2:]
    return found


def _denied(reason: str) -> object:
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


def _in_context(text: str) -> str:
    answer = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
    return json.dumps(answer) + "\n"


AGENTS: Final = {
    "claude": Agent(
        ".claude/settings.json",
        "PreToolUse",
        "SessionStart",
        {
            **dict.fromkeys(("Write", "Edit", "MultiEdit"), _one("file_path")),
            "NotebookEdit": _one("notebook_path"),
        },
        _denied,
        _in_context,
    ),
    "codex": Agent(".codex/hooks.json", "PreToolUse", "SessionStart", {"apply_patch": _patched}, _denied, _in_context),
    "gemini": Agent(
        ".gemini/settings.json",
        "BeforeTool",
        "SessionStart",
        dict.fromkeys(("write_file", "replace"), _one("file_path")),
        lambda reason: {"decision": "deny", "reason": reason},
        _in_context,
    ),
}


def _run(arguments: Arguments) -> int:
    if arguments.value("agent"):
        return _as_hook(arguments)
    ways = [name for name in ("staged", "base", "watch") if arguments.flag(name)]
    if len(ways) + bool(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected a PATH, or one of --staged, --base and --watch")
    if ways == ["watch"]:
        return _watch(arguments)
    decisions = _changes(arguments) if ways else _named(arguments.words, os.getcwd(), arguments.value("as"))
    return _tell(arguments, decisions)


def _tell(arguments: Arguments, decisions: Sequence[PathDecision]) -> int:
    refused = [one.refused for one in decisions if one.refused is not None]
    status = exits.REFUSED if refused else exits.OK
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        rows: list[Any] = [
            {"path": one.path, "allowed": one.refused is None, "packet": one.packet, "why": one.why}
            | ({"code": one.refused.code, "command": one.refused.hint} if one.refused else {})
            for one in decisions
        ]
        sys.stdout.write(render_envelope("guard", status, refused, {"paths": rows}))
        return status
    from workpacket.report.terminal import escape

    for one in decisions:
        if one.refused is None:
            print(f"{escape(one.path)} may be written: {escape(one.why)}")
    if refused:
        from workpacket.report.terminal import unmet_lines

        count = "1 path" if len(refused) == 1 else f"{len(refused)} paths"
        style = arguments.style(sys.stderr)
        sys.stderr.write(f"{style.paint('refused', 'error')}: {count} must not be written now\n")
        sys.stderr.write("".join(unmet_lines(refused, style)))
        sys.stderr.write(f"next: {escape(refused[0].hint)}\n")
    return status


def _as_hook(arguments: Arguments) -> int:
    """Answer the tool call on standard input in the agent's format; print nothing if the guard allows it."""
    agent = AGENTS[arguments.value("agent")]
    try:
        call = json.loads(sys.stdin.buffer.read())
        name = call["tool_name"]
        paths = agent.tools[name](call["tool_input"]) if name in agent.tools else []
        decisions = _named(paths, call.get("cwd") or os.getcwd(), arguments.value("as")) if paths else []
    except Exception as error:
        sys.stderr.write(f"workpacket guard could not judge this call, and does not stop it: {error}\n")
        return _FAILED
    refused = [one for one in decisions if one.refused is not None]
    if refused:
        sys.stdout.write(json.dumps(agent.refusal(_in_a_sentence(refused[0]))) + "\n")
    return exits.OK


def _in_a_sentence(decision: PathDecision) -> str:
    from workpacket.report.terminal import escape

    assert decision.refused is not None
    one = decision.refused
    return f"{escape(decision.path)} must not be written: {escape(one.message)} ({one.code}). next: {escape(one.hint)}"


# --- paths ---


def _named(words: Sequence[str], folder: str, name: str) -> list[PathDecision]:
    """Judge paths as given to a program in this folder; if a path has several names, the first refused one counts."""
    for variable in STEERING_VARIABLES:  # the path says which repositories judge it
        os.environ.pop(variable, None)
    found = []
    judges: dict[str, Judge] = {}
    for word in words:
        decisions = [one for place in _places(folder, word) for one in _judged(place, name, judges)]
        found.append((word, decisions))
    ignored = _ignored([one for _, decisions in found for one in decisions])
    return [_first_refused(word, [ignored.get(one, one.decision) for one in decisions]) for word, decisions in found]


def _first_refused(word: str, decisions: Sequence[PathDecision]) -> PathDecision:
    refused = [one for one in decisions if one.refused is not None]
    elsewhere = PathDecision(word, "", "no governed repository contains it", None)
    return (refused or decisions or [elsewhere])[0]


def _ignored(judged: Sequence[RootDecision]) -> dict[RootDecision, PathDecision]:
    """Return the refused paths that git ignores: an ignored file is not committed, so it needs no packet."""
    asked: dict[str, dict[str, list[RootDecision]]] = {}
    for one in judged:
        if one.decision.refused is not None and one.decision.refused.code != "path_protected":
            asked.setdefault(one.root, {}).setdefault(one.decision.path, []).append(one)
    found: dict[RootDecision, PathDecision] = {}
    for root, paths in asked.items():
        for path in _ignored_by_git(root, list(paths)):
            free = PathDecision(path, "", "git ignores it, so it does not land", None)
            found |= dict.fromkeys(paths[path], free)
    return found


def _ignored_by_git(root: str, paths: list[str]) -> list[str]:
    """Return the untracked paths that git ignores. Return none if git cannot tell, for example because the path is
    behind a link."""
    from workpacket.git.run import run_git

    # This command of git does not know the setting, and "./" says the same: the path is not a pattern.
    names, environment = [f"./{path}" for path in paths], {"GIT_LITERAL_PATHSPECS": "0"}
    if len(names) == 1:  # without an input, git is started in less time
        answer = run_git(root, "check-ignore", "-q", "--", names[0], check=False, environment=environment)
        return paths if answer.status == 0 else []
    given = "\0".join(names).encode(errors="surrogateescape")
    answer = run_git(root, "check-ignore", "-z", "--stdin", stdin=given, check=False, environment=environment)
    return [name[2:] for name in answer.text.split("\0")[:-1]] if answer.status == 0 else []


def _places(folder: str, word: str) -> list[str]:
    """Return the absolute paths that a program may write when given this path: with `..` resolved before links or
    after, and with a final link replaced or followed.
    """
    if "\0" in word:
        raise WorkpacketError("invalid_value", "a path cannot contain a NUL character", hint="name another path")
    full = os.path.join(folder, word)
    found = []
    for path in (full, os.path.normpath(full)):
        above, name = os.path.split(path.rstrip("/") or "/")
        if name not in {"", ".", ".."}:
            found.append(os.path.join(os.path.realpath(above), name))
        found.append(os.path.realpath(path))
    return list(dict.fromkeys(found))


def _judged(place: str, name: str, judges: dict[str, Judge]) -> Iterator[RootDecision]:
    """Judge an absolute path by each governed repository that contains it, under each of its names there."""
    root = os.path.dirname(place)
    while True:
        if os.path.isdir(os.path.join(root, GOVERNANCE_FOLDER)) and os.path.exists(os.path.join(root, ".git")):
            judge = judges.get(root) or judges.setdefault(root, _judge(root, name))
            path = os.path.relpath(place, root).replace(os.sep, "/")
            yield from (RootDecision(root, judge(known)) for known in (path, *_other_names(root, path)))
        if os.path.dirname(root) == root:
            return
        root = os.path.dirname(root)


def _other_names(root: str, path: str) -> list[str]:
    """Return the tracked files that are hard links to the same file, because writing one changes all of them."""
    import stat

    from workpacket.git.run import run_git

    def identity(name: str) -> tuple[int, int, int]:
        try:
            found = os.lstat(os.path.join(root, name))
        except OSError:
            return 0, 0, 0
        return (found.st_dev, found.st_ino, found.st_nlink) if stat.S_ISREG(found.st_mode) else (0, 0, 0)

    own = identity(path)
    if own[2] < 2:
        return []
    names = run_git(root, "ls-files", "-z").text.split("\0")[:-1]
    return [name for name in names if name != path and identity(name) == own]


def _judge(root: str, name: str) -> Judge:
    """Return the judge of this repository's paths for an actor."""
    from pathlib import Path

    from workpacket.git.repository import find_repository
    from workpacket.shell.actor import moment, name_of_actor

    repository = find_repository(Path(root))
    rules = _rules(repository)
    actor = name_of_actor(repository, name)
    now = moment().now
    return lambda path: decide(path, actor, rules, now)


def _rules(repository: Repository) -> GuardRules:
    """Return the rules of a repository; they are cached until a document, the log or a branch changes."""
    from workpacket.cli.workspace import open_cache
    from workpacket.shell.cache import CachedOutput, RestsOn

    cache = open_cache(str(repository.git_dir), str(repository.common_dir))
    try:
        cached = CachedOutput(cache, str(repository.root), (), ("guard",))
        known = cached.recall()
        if known is not None:
            return from_text(known[1])
        from workpacket.cli.read_only import output
        from workpacket.cli.workspace import SETTINGS_FILES

        rules = _gathered(repository)
        made = output(repository, as_text(rules))
        cached.keep(exits.OK, made.text, made.rests_on | RestsOn(SETTINGS_FILES))
        return rules
    finally:
        cache.close()


def _gathered(repository: Repository) -> GuardRules:
    from workpacket.cli.read_only import NOBODY
    from workpacket.documents.spec_pointer import specification_places
    from workpacket.git.repository import head_commit
    from workpacket.lifecycle.contract_drift import contract_unmet
    from workpacket.lifecycle.coverage import stated_scope
    from workpacket.lifecycle.scope import Guarded, pattern_of
    from workpacket.lifecycle.transitions import forward_command
    from workpacket.model.lanes import OVER
    from workpacket.model.layout import SPEC_POINTER
    from workpacket.shell.governing.execution import gather

    facts = gather(repository, None, NOBODY)
    if head_commit(repository) is None:  # no policy is in force before the first commit
        return GuardRules((), None, ())
    packets = []
    for name, packet in sorted(facts.packets.items()):
        document = packet.packet or packet.stub if packet.lane and packet.lane not in OVER else None
        if document is None:
            continue
        scope = stated_scope(document)
        lease = packet.state.lease
        drift = next((one.message for one in contract_unmet(packet)), "")
        packets.append(
            Guarded(
                name,
                packet.lane,
                forward_command(name, packet.lane, facts.policy.lanes, light=packet.light),
                lease.holder if lease is not None else "",
                lease.expires_at if lease is not None else "",
                tuple(filter(None, map(pattern_of, scope.entries))),
                scope.until.isoformat() if scope.until is not None else "",
                drift,
            )
        )
    coverage = facts.policy.coverage
    places = specification_places(facts.spec_pointer) if facts.spec_pointer is not None else ()
    anchors = (SPEC_POINTER, *places) if packets and facts.specification is not None else ()
    return GuardRules(tuple(packets), None if coverage.mode == "off" else tuple(coverage.exempt), anchors)


# --- what git has ---


def _changes(arguments: Arguments) -> list[PathDecision]:
    """Judge what is staged, or what differs from the merge base with a revision."""
    from workpacket.git.run import run_git
    from workpacket.shell.governing.execution import here

    repository = here()
    if arguments.flag("staged"):
        wanted = [["--cached"], *(["--cached", parent] for parent in _merged(repository))]
    else:
        from workpacket.git.repository import merge_base

        base = arguments.value("base")
        begun = merge_base(repository, base, "HEAD")
        if begun is None:
            raise WorkpacketError(
                "unknown_revision",
                f"{base} and HEAD have no common ancestor",
                hint="git fetch, then name another revision",
            )
        wanted = [[begun]]
    changed: dict[str, str] = {}
    for number, against in enumerate(wanted):
        answer = run_git(repository.root, "diff", "--name-status", "--no-renames", "-z", *against)
        fields = answer.text.split("\0")[:-1]
        differing = dict(zip(fields[1::2], fields[::2], strict=True))
        changed = {path: kind for path, kind in changed.items() if path in differing} if number else differing
    paths = [path for path, kind in changed.items() if not _is_entry(kind, path)]
    return [*map(_judge(str(repository.root), arguments.value("as")), paths)] if paths else []


def _merged(repository: Repository) -> list[str]:
    """Return the commits that are being merged. Staged content that matches theirs was changed by others, and was
    judged there.
    """
    try:
        return repository.git_path("MERGE_HEAD").read_text("ascii").split()
    except FileNotFoundError:
        return []


def _is_entry(kind: str, path: str) -> bool:
    """Whether the path is a new log or attestation file: commands add these."""
    return kind in {"A", "A ", "??"} and path.startswith(tuple(f"{folder}/" for folder in APPEND_ONLY_FOLDERS))


_INTERVAL: Final = 1.0


def _watch(arguments: Arguments) -> int:
    """Report each uncommitted path that must not be written once only, until the command is interrupted."""
    from workpacket.git.objects import status
    from workpacket.report.terminal import escape
    from workpacket.shell.governing.execution import here

    repository = here()
    print("watching; press Ctrl-C to stop", flush=True)
    told: set[str] = set()
    try:
        while True:
            entries = [one for one in status(repository) if not _is_entry(one.letters, one.path)]
            paths = [one.path for one in entries if one.path not in told]
            for one in map(_judge(str(repository.root), arguments.value("as")), paths) if paths else ():
                if one.refused is not None:
                    told.add(one.path)
                    print(escape(_in_a_sentence(one)), flush=True)
            told &= {one.path for one in entries}
            time.sleep(_INTERVAL)
    except KeyboardInterrupt:
        return exits.OK


COMMAND = Command(
    "guard",
    _run,
    arguments="[PATH...]",
    description="""
Says whether you may write these paths now: whether you hold a packet that has them in its scope, and the packet still
states its approved contract. Each refusal names the command to run next. The guard advises; `check --base` decides.

With --agent, it is the hook of a coding agent: it reads a tool call from standard input, and refuses it in the agent's
format. `init --agent NAME` sets this up. Commands for a shell are not judged.""",
    options=(
        Option("agent", "judge the tool call on standard input", value="NAME", choices=tuple(AGENTS)),
        Option("staged", "judge the staged changes, as a pre-commit hook"),
        Option(
            "base", "check the changes since the merge base with this revision, as a pre-push hook does", value="REV"
        ),
        Option("watch", "report uncommitted changes as they appear, until interrupted"),
        Option("as", "the actor (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
    ),
    examples=("workpacket guard src/parser.py", "workpacket guard --staged", "workpacket guard --base origin/main"),
)
