"""`init`: write missing files, update unedited ones, and leave everything else unchanged.

A file of ours counts as unedited if `init` once wrote a file with its digest there; line endings and a byte order mark
are ignored, because git and editors change them automatically. In AGENTS.md, one section between two marks is ours;
every other byte of that file belongs to its owner. In .gitignore, our lines are the folders in which runs keep their
views and, outside git, their store.

The written files specify what to install, so that CI and hooks run the same tool as here. A bare name installs whatever
an index has under that name on that day, or nothing. A requirement therefore specifies a version on the index, a commit
of a git repository, or an archive and its digest: PEP 610 records which of them is installed here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.moves import Planned
from workpacket.lifecycle.policy import Form, LifecyclePolicy
from workpacket.lifecycle.starter_documents import (
    DIALECTS,
    FIRST_SPECIFICATION,
    GOV_JUST,
    GROUPS,
    IMPORT_RECIPES,
    JUSTFILE,
    MERGE_DRIVER,
    OTHER_JUSTFILES,
    PRE_COMMIT,
    Dialect,
    Group,
    StarterFile,
    StarterTexts,
    dialect_files,
    dialect_here,
    starting_files,
    stem_of,
)
from workpacket.model.canonical import Json
from workpacket.model.layout import ATTRIBUTES_PATH, BOARD_PATH, POLICY_PATH, SPEC_POINTER
from workpacket.model.plan import FileChange, Moment, Plan, digest
from workpacket.model.wording import counted
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.value import Value, replace

AGENTS = "AGENTS.md"
BEGIN = "<!-- workpacket:begin; written by `workpacket init`, compared by `workpacket init --check` -->"
END = "<!-- workpacket:end -->"
_MARK = lazy_pattern(r"^<!-- workpacket:(begin|end)\b[^\r\n]*-->[ \t]*(?=\r?$)", re.MULTILINE)


class MarkedBlock(Value):
    """The span [start, end) of the marked lines, without the last line ending."""

    start: int
    end: int


def find_blocks(text: str) -> tuple[MarkedBlock, ...] | None:
    """Return the block; `()` if there is none, or None if the markers are not a single pair."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return ()
    if [mark[1] for mark in marks] != ["begin", "end"]:
        return None
    return (MarkedBlock(marks[0].start(), marks[1].end()),)


def marked(section: str) -> str:
    return f"{BEGIN}\n{section.rstrip()}\n{END}"


def with_block(text: str, blocks: tuple[MarkedBlock, ...], section: str) -> str:
    """Return the text with the current section in place of the old one, or at the end."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    new = marked(section).replace("\n", line_end)
    if blocks:
        return text[: blocks[0].start] + new + text[blocks[0].end :]
    if not text:
        return f"# Instructions for agents\n\n{new}\n"
    return text + ("" if text.endswith("\n") else line_end) + line_end + new + line_end


GITIGNORE: Final = ".gitignore"
RUNTIME_FOLDERS: Final = (".runr", ".workpacket")


def also_ignoring(planned: Planned, before: bytes | None, folders: Collection[str]) -> Planned:
    """Return the plan with a line in `.gitignore` for each of `folders`, which git does not ignore yet. The rest of the
    file is unchanged (None: the file does not exist).
    """
    if not folders:
        return planned
    old = before or b""
    end = b"\r\n" if b"\r\n" in old else b"\n"
    joint = end if old and not old.endswith(b"\n") else b""
    new = old + joint + b"".join(f"/{folder}/".encode() + end for folder in folders)
    written = planned.data.get("written")
    listed: list[Json] = [*written, GITIGNORE] if isinstance(written, list) else [GITIGNORE]
    change = FileChange(GITIGNORE, None if before is None else digest(before), new)
    return replace(
        planned,
        plan=replace(planned.plan, changes=(*planned.plan.changes, change)),
        then=planned.then.replace("git add ", f"git add {GITIGNORE} ", 1),
        data={**planned.data, "written": listed},
        notes=(*planned.notes, f"{GITIGNORE} ignores {' and '.join(f'/{folder}/' for folder in folders)}"),
    )


# The skills of teams that resume unfinished work if they are invoked without arguments, and the place for the line.
TEAM_SKILLS: Final = ("build-product", "plan-product")
_DETERMINE_MODE: Final = lazy_pattern(r"^#{1,6} Determine Mode[^\n]*\n", re.MULTILINE)


def also_hooking(planned: Planned, skills: Mapping[str, bytes], *, hook: bool) -> Planned:
    """Return the plan with a line in each skill that makes the skill resume unfinished work, or with an offer to add
    that line."""
    lines = {path: _hook_of(path) for path, data in skills.items() if _hook_of(path).encode() not in data}
    if not lines:
        return planned
    if not hook:
        line = next(iter(lines.values()))
        offer = f"optional: workpacket init --skills --hook adds one line to {', '.join(lines)}: {line}"
        return replace(planned, notes=(*planned.notes, offer))
    changes = tuple(FileChange(path, digest(skills[path]), _hooked(skills[path], line)) for path, line in lines.items())
    return replace(
        planned,
        plan=replace(planned.plan, changes=(*planned.plan.changes, *changes)),
        notes=(*planned.notes, *(f"{path} resumes unfinished work" for path in lines)),
    )


def _hook_of(path: str) -> str:
    team = path.split("/")[-2]
    return f"- Without arguments: run `workpacket resume --team {team} --yes` first, and continue with what it prints."


def _hooked(data: bytes, line: str) -> bytes:
    """Insert the line below the Determine Mode heading; if there is no such heading, insert it at the end."""
    text = data.decode("utf-8", "surrogateescape")
    eol = "\r\n" if "\r\n" in text else "\n"
    found = _DETERMINE_MODE.search(text)
    joint = "" if found or text.endswith("\n") else eol
    at = found.end() if found else len(text)
    return f"{text[:at]}{joint}{line}{eol}{text[at:]}".encode("utf-8", "surrogateescape")


class AgentHook(Value):
    """A hook in a coding agent's settings: the event, the tools ('' for all), and the command."""

    event: str
    tools: str
    command: str


def also_guarding(
    planned: Planned, path: str, seen: Mapping[str, bytes | None], hooks: Sequence[AgentHook], *, add: bool
) -> Planned:
    """Return the plan with these hooks in a coding agent's settings, or without any hook of ours. Everything else in
    that JSON file is unchanged. `seen` has the file, if it exists.
    """
    before = seen.get(path)
    if path in seen and before is None:
        raise _unlike(path, "it is not a regular file")
    settings = _settings_in(path, before)
    table = settings.get("hooks", {})
    if not isinstance(table, dict) or not all(isinstance(rows, list) for rows in table.values()):
        raise _unlike(path, '"hooks" must map each event to a list')
    kept = {event: [row for row in rows if not _is_ours(row)] for event, rows in table.items()}
    for hook in hooks if add else ():
        row = {"hooks": [{"type": "command", "command": hook.command}]}
        kept.setdefault(hook.event, []).append({"matcher": hook.tools, **row} if hook.tools else row)
    after = {event: rows for event, rows in kept.items() if rows or (event in table and not table[event])}
    new = {**settings, "hooks": after} if after else {key: value for key, value in settings.items() if key != "hooks"}
    if new == settings:
        return replace(planned, notes=(*planned.notes, f"{path} already has the requested content"))
    data = (json.dumps(new, indent=2, ensure_ascii=False) + "\n").encode() if new else None
    change = FileChange(path, None if before is None else digest(before), data)
    said = f"{path}: {counted(len(hooks), 'hook')} added" if add else f"{path}: workpacket's hooks were removed"
    return replace(
        planned,
        plan=replace(planned.plan, changes=(*planned.plan.changes, change)),
        then=planned.then.replace("git add ", f"git add {path} ", 1),
        notes=(*planned.notes, said),
    )


def _settings_in(path: str, before: bytes | None) -> dict[str, object]:
    try:
        settings = json.loads(before or b"{}")
    except ValueError as error:
        raise _unlike(path, str(error)) from error
    if not isinstance(settings, dict):
        raise _unlike(path, "it must be an object")
    return settings


def _unlike(path: str, why: str) -> WorkpacketError:
    message = f"{path} cannot be extended: {why}"
    return WorkpacketError("invalid_value", message, path=path, hint="fix the file, then run the command again")


def _is_ours(row: object) -> bool:
    """Whether an entry has only commands of ours; an entry that a person extended belongs to that person."""
    hooks = row.get("hooks") if isinstance(row, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    commands = [hook.get("command") if isinstance(hook, dict) else None for hook in hooks]
    return all(isinstance(one, str) and one.startswith(_OUR_COMMANDS) for one in commands)


_OUR_COMMANDS: Final = ("workpacket guard ", "workpacket prime ")


Standing = Literal["missing", "outdated", "edited", "current", "theirs"]
_NO_POLICY = LifecyclePolicy()
_REMARKS = {
    ATTRIBUTES_PATH: f"; to merge branches without conflicts on the board, run once in each clone: {MERGE_DRIVER}",
    PRE_COMMIT: "; it takes effect with: pre-commit install",
    GOV_JUST: "; for its recipes, install the extra workpacket[just]",
}
_IMPORT = f"; your own justfile needs the line: {IMPORT_RECIPES.strip()}"
_OWN_HOOKS = (
    "it is your own file; to run the check on each commit, add this below its `repos:`: {repo: local, hooks: "
    "[{id: workpacket-check, name: workpacket check, entry: workpacket check, language: system, pass_filenames: "
    "false, files: '^[.]GOV/'}]}"
)
_BOM = b"\xef\xbb\xbf"


class ExistingFiles(Value):
    """The existing files and their bytes (None for anything but a regular file), and whether there are missions."""

    files: Mapping[str, bytes | None]
    missions: bool = False


class InitFile(Value):
    """The state of one file. `after` is its new content, if that differs."""

    path: str
    standing: Standing
    before: bytes | None = None
    after: bytes | None = None
    why: str = ""
    group: Group = ""


def paths_of_interest(package: StarterTexts) -> list[str]:
    """Return every path that `init` may have to read, in any dialect."""
    paths = [file.path for dialect in DIALECTS for file in starting_files(dialect, package)]
    return list(dict.fromkeys([*paths, AGENTS, *OTHER_JUSTFILES]))


def compare(
    package: StarterTexts,
    seen: ExistingFiles,
    wanted: Collection[Group] = (),
    dialect: Dialect | None = None,
    policy: LifecyclePolicy = _NO_POLICY,
    requirement: str | None = None,
    form: Form | None = None,
) -> list[InitFile]:
    """Return the state of each file. For groups that were not requested, only existing files count.

    `policy` is the one in the work tree: it affects what the protocols say about moves. `requirement` is what the
    requested workflow and hooks install; without one, each file keeps its own requirement. `form` is the form of new
    packets.
    """
    own: dict[Dialect, Collection[str]] = {one: [path for path, _ in dialect_files(one, package)] for one in DIALECTS}
    governed = BOARD_PATH in seen.files and POLICY_PATH not in seen.files
    # On a board that people kept themselves, missions are only part of the work.
    spoken = dialect or dialect_here(seen.files, own, missions=seen.missions and not governed)
    items = [
        replace(_file(_filled(file, seen, wanted, requirement), package, seen), group=file.group)
        for file in starting_files(spoken, package, policy, found_governed=governed, form=form)
        if _counts(file, seen, wanted)
    ]
    return [*items, _agents(package, seen)]


def init(
    items: list[InitFile], moment: Moment, *, has_key: bool = False, commits: bool = False, light: bool = False
) -> Planned:
    """Plan the files. `has_key`: whether the person has already created a key for approvals; `commits`: whether the
    files are committed immediately; `light`: whether new packets are one document each.
    """
    changes = tuple(
        FileChange(item.path, None if item.before is None else digest(item.before), item.after)
        for item in items
        if item.after is not None
    )
    written = [item.path for item in items if item.standing == "missing" and item.after is not None]
    upgraded = [item.path for item in items if item.standing == "outdated"]
    edited = [item for item in items if item.standing == "edited"]
    kept = [item.path for item in items if item.standing in ("current", "theirs")]
    counts = [f"{counted(len(written), 'file')} written"]
    counts += [f"{len(upgraded)} updated"] if upgraded else []
    counts += [f"{len(kept) + len(edited)} already existed and were left unchanged"] if kept or edited else []
    offered = [group for group in GROUPS if not any(item.group == group for item in items)]
    # The light form does not write the board on branches.
    remarks = {path: said for path, said in _REMARKS.items() if not (light and path == ATTRIBUTES_PATH)}
    remarks[GOV_JUST] += "" if JUSTFILE in written else _IMPORT
    notes = [f"wrote {path}{remarks.get(path, '')}" for path in written]
    notes += [f"updated: {path}" for path in upgraded]
    notes += [f"left unchanged: {item.path}: {item.why}" for item in edited]
    notes += [f"optional: workpacket init --{group}" for group in offered]
    data: dict[str, Json] = {
        "written": [*written],
        "upgraded": [*upgraded],
        "edited": [item.path for item in edited],
        "kept": [*kept],
        "offered": [*offered],
    }
    begin = "workpacket adopt" if BOARD_PATH not in written else _NEW_LIGHT if light else _NEW_FULL
    if light and POLICY_PATH in written:
        trusting = "workpacket policy trust" if has_key else "workpacket key init, then: workpacket policy trust"
        notes.append(f"optional, to have every packet approved with a signature: {trusting}")
    then = _then(written, [change.path for change in changes], begin, trust=not light, has_key=has_key)
    if commits and changes:
        then = begin
    return Planned(Plan("init", moment.tx, changes), ", ".join(counts), then, data, tuple(notes))


_NEW_FULL: Final = "workpacket new WP-1-NAME-v1 --what TEXT --why TEXT"
_NEW_LIGHT: Final = (
    'workpacket new "TITLE" --criterion TEXT --prove COMMAND --scope PATH --requirement TEXT --refinement TEXT'
)


def check(items: list[InitFile]) -> Iterator[Problem]:
    """Report the changes that `init` would make, as findings, and the files that it would leave alone."""
    says = {
        "missing": ("starter_missing", "error", "it does not exist", "workpacket init writes it"),
        "outdated": (
            "starter_outdated",
            "error",
            "init would now write different content",
            "workpacket init updates it",
        ),
        "edited": (
            "starter_edited",
            "warning",
            "",
            "to get the current version, move this file out of the way, then: workpacket init",
        ),
    }
    for item in items:
        if item.standing in says:
            code, severity, message, hint = says[item.standing]
            level: Literal["error", "warning"] = "error" if severity == "error" else "warning"
            yield Problem(code, item.why or message, Location(item.path), hint, severity=level)


def known_digest(text: str) -> str:
    """Return the digest of a text, in the form recorded in `shipped`."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _then(written: Collection[str], changed: Collection[str], begin: str, *, trust: bool, has_key: bool) -> str:
    """Return the next steps: after the first `init`, what must be done before work can start; later, how to keep the
    changes. `trust`: whether work requires an approval.
    """
    if not changed:
        return "workpacket status"
    tops = dict.fromkeys(path.partition("/")[0] for path in changed)
    commit = f"git add {' '.join(tops)} && git commit -m 'Governance', on the main branch"
    if POLICY_PATH not in written:
        return commit
    if not trust:
        return f"{commit}, then: {begin}"
    steps = [f"write {FIRST_SPECIFICATION}"] if FIRST_SPECIFICATION in written else []
    steps += [] if has_key else ["workpacket key init"]
    return ", then: ".join([*steps, "workpacket policy trust", commit, begin])


def _counts(file: StarterFile, seen: ExistingFiles, wanted: Collection[Group]) -> bool:
    if file.path == FIRST_SPECIFICATION and SPEC_POINTER in seen.files:
        return False  # the pointer names a different file
    if file.path == JUSTFILE and any(path in seen.files for path in OTHER_JUSTFILES):
        return False
    # A file of that name that does not mention us belongs to someone else.
    return not file.group or file.group in wanted or b"workpacket" in (seen.files.get(file.path) or b"")


def _filled(file: StarterFile, seen: ExistingFiles, wanted: Collection[Group], requirement: str | None) -> StarterFile:
    """Return the file with the requirement, if its group was requested, otherwise with the requirement that it has in
    the repository.
    """
    if PLACEHOLDER not in file.text:
        return file
    if requirement is None or file.group not in wanted:
        requirement = written_in(_normal(seen.files.get(file.path) or b""))
    return replace(file, text=file.text.replace(PLACEHOLDER, requirement)) if requirement else file


def _file(file: StarterFile, package: StarterTexts, seen: ExistingFiles) -> InitFile:
    if file.path not in seen.files:
        return InitFile(file.path, "missing", None, file.text.encode())
    before = seen.files[file.path]
    if not file.ours:
        return InitFile(file.path, "theirs")
    if before is None:
        return InitFile(file.path, "edited", why="it is not a regular file")
    text = _normal(before)
    if text == file.text:
        return InitFile(file.path, "current")
    known = package.shipped.get(file.path, ())
    digests = {known_digest(text), known_digest(without_requirement(text))}
    if not digests.isdisjoint(known) or (file.stem and known_digest(stem_of(text)) in known):
        return InitFile(file.path, "outdated", before, _as_before(file.text, before))
    own = file.path == PRE_COMMIT and b"workpacket" not in before
    return InitFile(
        file.path, "edited", why=_OWN_HOOKS if own else "it does not match any version that init has ever written"
    )


def _agents(package: StarterTexts, seen: ExistingFiles) -> InitFile:
    before = seen.files.get(AGENTS)
    if before is None and AGENTS in seen.files:
        return InitFile(AGENTS, "edited", why="it is not a regular file")
    text = (before or b"").decode("utf-8", "surrogateescape")
    blocks = find_blocks(text)
    if blocks is None:
        return InitFile(AGENTS, "edited", before, why="it must have exactly one pair of workpacket markers")
    after = with_block(text, blocks, package.instructions).encode("utf-8", "surrogateescape")
    if not blocks:
        return InitFile(AGENTS, "missing", before, after, "its workpacket section is missing")
    section = text[blocks[0].start : blocks[0].end].replace("\r\n", "\n")
    if section == marked(package.instructions):
        return InitFile(AGENTS, "current")
    if known_digest(section) not in package.shipped.get(AGENTS, ()):
        return InitFile(
            AGENTS, "edited", before, why="its workpacket section does not match any version that init has ever written"
        )
    return InitFile(AGENTS, "outdated", before, after)


def _normal(data: bytes) -> str:
    return data.removeprefix(_BOM).replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")


def _as_before(text: str, before: bytes) -> bytes:
    """Return the text with the line endings and the byte order mark of the file that it replaces."""
    data = text.encode()
    if b"\r\n" in before:
        data = data.replace(b"\n", b"\r\n")
    return _BOM + data if before.startswith(_BOM) else data


NAME: Final = "workpacket"
# The placeholder for the requirement in a template.
PLACEHOLDER: Final = "{workpacket}"
# Templates have the requirement between double quotes, so it contains neither a quote nor a backslash.
_PINNED = lazy_pattern(
    r"workpacket(\[[a-z,]+\])?"
    r"( ?== ?[0-9A-Za-z.!+_-]+| @ git\+[a-z]+://[^\s\"'\\@]+(?:@[^\s\"'\\@/]+/[^\s\"'\\@]+)?@[0-9a-f]{40}(#[^\s\"'\\]+)?"
    r"| @ https://[^\s\"'\\]+#sha256=[0-9a-f]{64})"
)
_WRITTEN = lazy_pattern(r'"(workpacket(?:\[[a-z,]+\])?(?: ?==| @ )[^"\n]*)"')
_REMEDY: Final = (
    "use --from to give a source that others can install from: workpacket==VERSION, 'workpacket @ "
    "git+https://HOST/PATH@COMMIT', or 'workpacket @ https://HOST/FILE.whl#sha256=DIGEST'"
)


def requirement_of(direct_url: Mapping[str, Json] | None, version: str) -> str:
    """Return the requirement that installs the running tool: `direct_url` is the PEP 610 record, or None if the tool
    was installed from an index.
    """
    if direct_url is None:
        return f"{NAME}=={version}"
    url = direct_url.get("url")
    if not isinstance(url, str) or url.startswith("file:"):
        message = f"this copy of workpacket was installed from {url}, a path on this machine that CI cannot use"
        raise WorkpacketError("install_source_local", message, hint=_REMEDY)
    commit, archive = direct_url.get("vcs_info"), direct_url.get("archive_info")
    if isinstance(commit, dict):
        folder = direct_url.get("subdirectory")
        inside = f"#subdirectory={folder}" if folder else ""
        return pinned(f"{NAME} @ {commit.get('vcs')}+{url}@{commit.get('commit_id')}{inside}")
    hashes = archive.get("hashes") if isinstance(archive, dict) else None
    digest = hashes.get("sha256") if isinstance(hashes, dict) else None
    return pinned(f"{NAME} @ {url.partition('#')[0]}#sha256={digest}")


def pinned(requirement: str) -> str:
    """Return the requirement if it identifies exactly one state of the tool."""
    if not _PINNED.fullmatch(requirement):
        message = (
            f"{requirement!r} does not identify the version of workpacket to install: it has no version number, "
            "commit or digest"
        )
        raise WorkpacketError("install_source_open", message, hint=_REMEDY)
    return requirement


def written_in(text: str) -> str | None:
    """Return the requirement in one of our files."""
    found = _WRITTEN.search(text)
    return found[1] if found else None


def without_requirement(text: str) -> str:
    """Return the file unchanged from the template."""
    return _WRITTEN.sub(f'"{PLACEHOLDER}"', text)
