"""`workpacket init`: set up governance for a repository. The section of AGENTS.md and the skills for agents are
generated from the declarations of the commands. Each step says when to run a command line; the declaration of the
command says what the command does.

The files that `init` installs are compared with those already in the repository, and the runtime's folders with those
that git already ignores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from glob import glob
from typing import Final, cast

import workpacket
from workpacket import __version__
from workpacket.cli.commands import SUMMARIES, resolve
from workpacket.cli.guard import AGENTS
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import COMMIT, conclude
from workpacket.cli.progress import MILESTONES as PROGRESS
from workpacket.git.repository import Repository, is_ignored, record_main_branch
from workpacket.lifecycle.activation import ITEMS
from workpacket.lifecycle.init import (
    GITIGNORE,
    NAME,
    RUNTIME_FOLDERS,
    TEAM_SKILLS,
    AgentHook,
    ExistingFiles,
    InitFile,
    also_guarding,
    also_hooking,
    also_ignoring,
    check,
    compare,
    init,
    paths_of_interest,
    pinned,
    requirement_of,
)
from workpacket.lifecycle.moves import Planned
from workpacket.lifecycle.policy import Form, LifecyclePolicy
from workpacket.lifecycle.starter_documents import (
    DIALECTS,
    GROUPS,
    INSTALLING,
    MISSIONS,
    Dialect,
    Group,
    StarterTexts,
    schema_paths,
)
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.layout import POLICY_PATH
from workpacket.model.wording import counted, typed_as
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.actor import moment
from workpacket.shell.base import lifecycle_of
from workpacket.shell.governing.execution import Carried, here
from workpacket.shell.keys import default_path
from workpacket.shell.package_files import STARTER, read_shipped, schema_folder
from workpacket.shell.transactions.transaction import writing
from workpacket.shell.tree import link_on_the_way, read_bytes
from workpacket.text.source import DATA, MARKDOWN
from workpacket.value import Value

FOLDERS: Final = (".agents/skills", ".claude/skills")

_STATUSES = (
    (exits.OK, "done"),
    (exits.FINDINGS, "findings"),
    (exits.REFUSED, "refused, with a list of everything that is missing"),
    (exits.CONFLICT, "try again"),
    (exits.INTEGRITY, "integrity problem: stop and tell a person"),
)


class Step(Value):
    """When to run each command."""

    when: str
    command: str

    def line(self) -> str:
        return f"- {self.when}: `workpacket {self.command}`"

    @property
    def name(self) -> str:
        return resolve(self.command.split())[0]


class Skill(Value):
    """One skill. An agent decides from `description` whether to read on; `rules` say what commands cannot express."""

    name: str
    title: str
    description: str
    steps: tuple[Step, ...]
    rules: tuple[str, ...] = ()
    further: tuple[str, ...] = ()  # the lines that follow


_SECTION = (
    Step("At the start, and after your context has been truncated", "prime"),
    Step("Where everything is", "status"),
    Step("What is ready", "next"),
    Step("Read the task, its criteria and their proofs", "show WP_ID"),
    Step("Claim it and switch to its branch before you change any file", "start WP_ID"),
    Step("Ask whether you may write a file", "guard PATH"),
    Step("When the work is committed", "done WP_ID"),
    Step("See what a packet is waiting for, and the commands to run", "why WP_ID"),
    Step("After an interruption", "resume"),
    Step("When you cannot continue", "packet block WP_ID --reason TEXT --waits-for TEXT"),
)

_CONTINUE = Skill(
    "workpacket-continue",
    "Go on with a task",
    "How to find, claim, do and submit a task that is governed by work packets. Use when asked to continue, to do the "
    "next task, or to work on a packet.",
    (
        Step("First read the rules here, and see which packets you hold", "prime"),
        Step("Look for interrupted work", "resume"),
        Step("If nothing is unfinished, take the first packet in the list", "next"),
        Step("Read the task and its proofs", "show WP_ID"),
        Step("Claim it, and switch to its branch", "start WP_ID"),
        Step("Tasks in a tasks.yaml: see which batch comes next", "runtime batch next SPEC"),
        Step("Before you submit: see everything that is missing", "why WP_ID"),
        Step("Submit the committed work", "done WP_ID"),
        Step("If you stop before finishing", "packet release WP_ID --reason TEXT"),
    ),
    (
        "Change only files in the packet's scope; `guard` says whether you may write a given file.",
        (
            "If a command is refused, follow the instruction after `->` on each line; do not try to work around the "
            "refusal."
        ),
        (
            "If the line names a person or another agent, ask them. If you are alone, stop and say what you are "
            "waiting for."
        ),
        "Never approve, sign, waive or judge your own work.",
    ),
)
_CHECKPOINT = Skill(
    "workpacket-checkpoint",
    "Leave checkpoints",
    "When to record progress, so that work can continue after a crash or a full context window without repeating "
    "anything. Use at every milestone of a task.",
    (
        Step("Milestone: task claimed", "start WP_ID"),
        Step("The work starts; the command prints its handle", "runtime run start NAME --packet WP_ID"),
        Step("Milestone: plan drafted", "runtime run checkpoint HANDLE --name plan-drafted"),
        Step("Anything that must not happen twice", "runtime run step HANDLE STEP -- PROGRAM"),
        Step("After each committed part", "runtime run checkpoint HANDLE --git"),
        Step("The work ends; the packet cannot get a verdict until then", "runtime run stop HANDLE"),
        Step("Milestone: review requested", "done WP_ID"),
        Step("Milestone: review approved and merged", "packet merged WP_ID"),
        Step("Milestone: blocked", "packet block WP_ID --reason TEXT --waits-for TEXT"),
        Step(
            "In a team, each milestone of your role in a feature", f"runtime progress {PROGRESS[0]} FEATURE AGENT TEXT"
        ),
    ),
    (
        "One call per milestone, no more: a checkpoint is a place to resume from, not a diary.",
        f"The milestones of a role: {', '.join(PROGRESS)}.",
        "Say briefly in `--cursor` where to continue; never include a password or a key.",
        "Give a step the same name in every attempt: the name identifies what is already done.",
    ),
    (
        "## Spawn prompts",
        "",
        "Add this to the prompt of every agent that you spawn for a role in a team:",
        "",
        "```text",
        "You must write a checkpoint after every significant change of state, before you do anything else:",
        'workpacket runtime progress MILESTONE FEATURE AGENT --team TEAM "What happened"',
        f"MILESTONE is one of: {', '.join(PROGRESS)}.",
        "Without a checkpoint, your work is lost if your session ends. Never write review-approved for your own work.",
        "```",
    ),
)
_RESUME = Skill(
    "workpacket-resume",
    "Resume after an interruption",
    "What to do first after a crash, a lost session or a cleared context. Use before any other work.",
    (
        Step("Read the rules here, which packets you hold, and the next command for each", "prime"),
        Step("Read the task again, and see what has already been proved", "show WP_ID"),
        Step("See what is unfinished besides packets, and how to continue each item", "resume"),
        Step("Resume what can be resumed, then follow the printed instructions", "resume --yes"),
        Step("Before you answer a run's question: see the decision and every check", "resume ID --plan"),
        Step("You established that an effect with an unknown outcome did happen", "resume ID --mark-done STEP"),
        Step("You established that the effect did not happen", "resume ID --retry STEP"),
        Step("Only the roles of your team", "resume --team TEAM"),
        Step("Your lease has expired, and no one else has claimed the packet", "start WP_ID"),
        Step("A command was interrupted between two file writes", "log recover"),
        Step("You do not know a code", "explain CODE"),
    ),
    (
        ("Find out what really happened before you answer a question about an effect; if you cannot, ask a person."),
        "Do not repeat anything that is recorded as done, not even to be safe.",
        "Changes to inputs, files and policy are shown. Tell a person; do not confirm them yourself.",
    ),
)
_STUB = Skill(
    "workpacket-stub",
    "Write stubs, but do not work on them",
    "How to add an idea to the backlog, and what must happen before anyone works on it. Use when you find work that "
    "has not been requested yet.",
    (
        Step("See whether it already exists", "search WORD"),
        Step(
            "Add it, with a criterion, the command that proves the criterion, and the files that may change",
            "new TITLE --why TEXT --criterion TEXT --prove COMMAND --scope PATH",
        ),
        Step(
            "Describe how it would be done, and name the section of the specification that requires it",
            "refine WP_ID --refinement TEXT --anchor HEADING",
        ),
        Step("See what is missing before work can start", "why WP_ID"),
        Step("A person has asked you to work on it", "start WP_ID"),
        Step("Packets here have the full form: show the refinement to the user", "refine WP_ID --present"),
    ),
    (
        "A stub needs neither a refinement nor a signature, and no one may work from it.",
        "Stop after `why`, and tell a person about the stub. Only a person decides whether work on it starts.",
        (
            "The id of a stub is never reused; create the next version as a revision: `workpacket new --next "
            "BASE_WP_ID`."
        ),
        f"In the full form, starting work requires evidence, not ticked boxes, for: {', '.join(ITEMS)}.",
    ),
)
_BATCHES = Skill(
    "task-continue",
    "Continue the batches of a spec",
    "How to work through the tasks in a `tasks.yaml`, batch by batch, from tests to implementation and review. Use in "
    "a repository with `specs/active/*/checkpoint.yaml`.",
    (
        Step("Read the checkpoint: progress, next batch, phase, deferred issues", "runtime batch status SPEC"),
        Step("Before anyone works on a phase; prints who works on what", "runtime batch begin SPEC"),
        Step("The testers succeeded", "runtime batch complete SPEC --phase testers"),
        Step(
            "An implementer failed, or did not respond",
            "runtime batch complete SPEC --phase implementers --task ID --outcome failed",
        ),
        Step("All implementers succeeded", "runtime batch complete SPEC --phase implementers"),
        Step("A review is rejected", "runtime batch complete SPEC --phase reviewers --outcome rejected --task ID"),
        Step("The reviewers agree", "runtime batch complete SPEC --phase reviewers"),
        Step("All three phases are done: write the checkpoint and commit it", "runtime batch complete SPEC"),
        Step("The same, with an issue to carry forward", "runtime batch complete SPEC --defer SEVERITY:TEXT"),
        Step("The same, when a deferred issue has been resolved", "runtime batch complete SPEC --resolved NUMBER"),
    ),
    (
        (
            "Work only on the tasks that `begin` recorded, and run `begin` again after every phase: testers, "
            "implementers, reviewers."
        ),
        "Issues above medium must be resolved within the batch; only the others can be deferred.",
        "Never edit checkpoint.yaml or a status in tasks.yaml by hand.",
    ),
)
SKILLS = (_CONTINUE, _CHECKPOINT, _RESUME, _STUB, _BATCHES)


def instructions() -> str:
    """Return the section for AGENTS.md."""
    statuses = "; ".join(f"{status} {meaning}" for status, meaning in _STATUSES)
    return "\n".join(
        [
            "## How to work here",
            "",
            "Work is governed by work packets in `.GOV/`. Do nothing without a packet, and never start from a stub.",
            "",
            *(step.line() for step in _SECTION),
            "",
            "Change only files in the packet's scope. Never edit `.GOV/log`, never approve or sign for a person, never",
            "judge your own work. The last line of each answer says what comes next; `--json` gives one object.",
            f"Exit status: {statuses}.",
        ]
    )


def skills() -> dict[str, str]:
    """Return the path and text of each skill, in both folders in which agents look for skills."""
    return {f"{folder}/{skill.name}/SKILL.md": _text(skill) for folder in FOLDERS for skill in SKILLS}


def command_lines() -> Iterator[str]:
    """Yield every command line in the instructions to agents."""
    for step in (*_SECTION, *(step for skill in SKILLS for step in skill.steps)):
        yield step.command


def _text(skill: Skill) -> str:
    lines = [
        "---",
        f"name: {skill.name}",
        f"description: {skill.description}",
        "---",
        "",
        f"# {skill.title}",
        "",
        *_explained(skill.steps),
        "",
        *(f"- {rule}" for rule in skill.rules),
        *(("", *skill.further) if skill.further else ()),
    ]
    return "\n".join(lines) + "\n"


def _explained(steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield the first mention of a command, with its description."""
    known: set[str] = set()
    for step in steps:
        yield step.line() if step.name in known else f"{step.line()} ({SUMMARIES[typed_as(step.name)]})"
        known.add(step.name)


def run(arguments: Arguments) -> int:
    if arguments.words:
        raise usage(arguments.command, "unexpected_argument", "it takes only options")
    repository = here()
    package = read_package(instructions(), skills())
    paths = paths_of_interest(package)
    wanted = [group for group in GROUPS if arguments.flag(group)]
    # None, or one of the values allowed for the option.
    dialect = cast("Dialect | None", arguments.value("dialect") or None)
    form = cast("Form | None", arguments.value("form") or None)
    requirement = _requirement(arguments, wanted)
    if arguments.flag("hook") and not arguments.flag("skills"):
        raise usage(arguments.command, "conflicting_options", "--hook requires --skills")
    if arguments.flag("remove") and not arguments.value("agent"):
        raise usage(arguments.command, "conflicting_options", "--remove requires --agent")
    if arguments.flag("check"):
        seen = look_around(str(repository.root), paths)
        return _say(arguments, compare(package, seen, wanted, dialect, _policy(seen), requirement))
    with writing(repository, "init") as transaction:
        seen = look_around(str(repository.root), paths)
        items = compare(package, seen, wanted, dialect, _policy(seen), requirement, form)
        written = next((item.after for item in items if item.path == POLICY_PATH and item.after is not None), None)
        light = written is not None and lifecycle_of(written).packets.form == "light"
        planned = init(items, moment(), has_key=default_path().exists(), commits=arguments.flag("commit"), light=light)
        if arguments.flag("skills"):
            planned = also_hooking(planned, skills_of_teams(str(repository.root)), hook=arguments.flag("hook"))
        if arguments.value("agent"):
            planned = _for_agent(arguments, planned, str(repository.root))
        planned = also_ignoring(planned, *not_ignored(repository))
        changed = transaction.apply(planned.plan)
    return conclude(
        arguments, Carried(planned, changed, transaction.finished), afterwards=lambda: record_main_branch(repository)
    )


def _for_agent(arguments: Arguments, planned: Planned, root: str) -> Planned:
    """Add the hooks of a coding agent: the guard before its tools write, and the introduction when a session starts."""
    name = arguments.value("agent")
    agent = AGENTS[name]
    hooks = (
        # A status of 2 would stop the agent, and an older workpacket answers with it.
        AgentHook(agent.writing, "|".join(agent.tools), f"workpacket guard --agent {name} || exit 1"),
        AgentHook(agent.starting, "", f"workpacket prime --agent {name}"),
    )
    seen = look_around(root, [agent.settings]).files
    return also_guarding(planned, agent.settings, seen, hooks, add=not arguments.flag("remove"))


def _requirement(arguments: Arguments, wanted: list[Group]) -> str | None:
    """Return what the workflow and hooks install: the value of `--from`, or else the running version of workpacket."""
    if not INSTALLING.intersection(wanted):
        if arguments.value("from"):
            raise usage(arguments.command, "conflicting_options", "--from requires --workflow or --pre-commit")
        return None
    given = arguments.value("from")
    if given:
        return pinned(given)
    return None if arguments.flag("check") else requirement_of(*running())


def _policy(seen: ExistingFiles) -> LifecyclePolicy:
    """Return the policy in the work tree: the files are written for it, because it will become the base's policy."""
    return lifecycle_of(seen.files.get(POLICY_PATH) or b"")


def _say(arguments: Arguments, items: list[InitFile]) -> int:
    findings = list(check(items))
    failed = any(finding.severity == "error" for finding in findings)
    status = exits.FINDINGS if failed else exits.OK
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("init", status, findings, {"checked": len(items)}))
        return status
    for one in findings:
        print(f"{one.severity}: {escape(one.path)}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")
    print(f"{counted(len(items), 'file')} compared, {len(findings)} different from what init writes")
    print(f"next: {'workpacket init' if failed else 'workpacket status'}")
    return status


COMMAND = Command(
    "init",
    run,
    description="""
Writes the policy, the board, the registry, the protocols of the roles, a specification to fill in, a section of
AGENTS.md that tells agents how to work here, and the files of the dialect. Run again, it adds what is missing and
updates what was not edited; everything else is left alone. For packets without a log, run `adopt`.

Dialects: `handshake` adds recipes for just and templates; `spec-kitty` its lane names and a work package template;
`plain` adds nothing. By default, the dialect is detected from the repository, else handshake.

If the name of the main branch is unusual and no remote says which branch is the main one, `init` records it with
`git config init.defaultBranch`.""",
    options=(
        Option("dialect", "the conventions that determine which files are written", choices=DIALECTS),
        Option(
            "form", "the form of new packets (default: light, unless packets already exist)", choices=("light", "full")
        ),
        Option("check", "write nothing; fail if something is missing or out of date"),
        Option("skills", "also write skills for agents, below .agents/skills and .claude/skills"),
        Option("hook", "with --skills: in existing team skills, add a line that makes agents resume unfinished work"),
        Option("agent", "also set up the hooks of this coding agent", value="NAME", choices=tuple(AGENTS)),
        Option("remove", "with --agent: remove these hooks"),
        Option("pre-commit", "also write .pre-commit-config.yaml, without installing the hook"),
        Option("workflow", "also write .github/workflows/workpacket.yml"),
        Option(
            "from",
            "the package that the workflow and hooks install (default: the running version)",
            value="REQUIREMENT",
        ),
        Option("vscode", "also write .vscode/settings.json and the schemas that it refers to"),
        COMMIT,
    ),
    examples=(
        "workpacket init",
        "workpacket init --dialect plain --skills",
        "workpacket init --agent claude",
        "workpacket init --check",
        f"workpacket init --workflow --from workpacket=={__version__}",
    ),
)


def read_package(instructions: str, skills: Mapping[str, str]) -> StarterTexts:
    """Read the texts in the package. `instructions` and `skills` depend on the commands, which only the command line
    knows.
    """
    return StarterTexts(
        gov_just=gov_just(),
        pre_commit=_read("pre-commit.yaml"),
        workflow=_read("workflow.yml"),
        replay=_read("replay.yml"),
        attest=_read("attest.yml"),
        instructions=instructions,
        skills=skills,
        schemas={kind: _schema(kind) for kind, _ in schema_paths()},
        shipped=read_shipped(),
    )


def running() -> tuple[Mapping[str, Json] | None, str]:
    """Return where the running package was installed from (PEP 610), and its version. A folder that was only added to
    the path has no such record, and counts as its own source.
    """
    import json
    from importlib import metadata

    folder = os.path.dirname(os.path.abspath(workpacket.__file__))
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return {"url": f"file://{folder}"}, workpacket.__version__
    record = found.read_text("direct_url.json")
    if record is None and not os.path.samefile(str(found.locate_file(NAME)), folder):
        return {"url": f"file://{folder}"}, workpacket.__version__
    return (json.loads(record) if record else None), found.version


def gov_just() -> str:
    """Return the recipes in `.GOV/gov.just`."""
    return _read("gov.just")


def look_around(root: str, paths: Iterable[str]) -> ExistingFiles:
    """List what is at these paths. A link is not followed: it counts as something other than a regular file."""
    files: dict[str, bytes | None] = {}
    for path in paths:
        if link_on_the_way(root, path):
            files[path] = None
        elif os.path.lexists(os.path.join(root, path)):
            files[path] = _bytes(root, path)
    return ExistingFiles(files, os.path.isdir(os.path.join(root, MISSIONS)))


# Where a repository may have its own skills, or those of plugins.
_SKILL_PLACES = (".claude/skills", ".agents/skills", "skills", "plugins/*/skills")


def skills_of_teams(root: str) -> dict[str, bytes]:
    """Return the team skills with which sessions are started, by path. Links are ignored."""
    found: dict[str, bytes] = {}
    for place in _SKILL_PLACES:
        for name in TEAM_SKILLS:
            for path in sorted(glob(f"{place}/{name}/SKILL.md", root_dir=root)):
                data = None if link_on_the_way(root, path) else _bytes(root, path)
                if data is not None:
                    found[path] = data
    return found


def _bytes(root: str, path: str) -> bytes | None:
    try:
        data = read_bytes(root, path, MARKDOWN.size)
    except OSError:
        return None
    return data if len(data) <= MARKDOWN.size else None


def _schema(kind: str) -> str:
    with open(os.path.join(schema_folder(), "draft-07", f"{kind}.schema.json"), encoding="utf-8") as stream:
        return stream.read()


def _read(name: str) -> str:
    with open(os.path.join(STARTER, name), encoding="utf-8", newline="") as stream:
        return stream.read()


def not_ignored(repository: Repository) -> tuple[bytes | None, tuple[str, ...]]:
    """Return the bytes of `.gitignore`, or None if it is missing, and the folders that it should list. If the file is a
    link, it is left alone.
    """
    try:
        before = read_bytes(str(repository.root), GITIGNORE, DATA.size)
    except FileNotFoundError:
        before = None
    except OSError:
        return None, ()
    return before, tuple(folder for folder in RUNTIME_FOLDERS if not is_ignored(repository, f"{folder}/x"))
