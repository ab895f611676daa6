"""Shared by the lifecycle commands: find the packet, execute the command, and report the result and the next step."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from workpacket.cli.options import Arguments, Option, parse, usage
from workpacket.git.objects import commit_paths, status
from workpacket.git.repository import Repository, current_branch
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned, standing_unmet
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.model.layout import GOVERNANCE_FOLDER, LOG_FOLDER, envelope_path, packet_paths
from workpacket.model.wording import counted
from workpacket.problem import Problem, WorkpacketError, by_remedy
from workpacket.report.terminal import escape, unmet_lines
from workpacket.shell.actor import KINDS, acting
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.execution import Carried, Question, carry_out, here
from workpacket.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.authorship import Declared

Decide: TypeAlias = Callable[[Facts, PacketFacts], Answer]

ACTING = (
    Option("as", "the actor (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
    Option("actor-kind", "the kind of actor", choices=KINDS),
)
COMMIT = Option("commit", "commit the files that the command writes (default: set by the policy)")
SIGN = Option("sign", "have a person approve it first in this terminal, as with `workpacket approve`")
REASON = Option("reason", "the reason, as text", value="TEXT")
DECLARING = (
    Option("harness", "the program that the agent runs in (or: WORKPACKET_HARNESS)", value="NAME"),
    Option("harness-version", "the version of that program (or: WORKPACKET_HARNESS_VERSION)", value="VERSION"),
    Option("model", "the model (or: WORKPACKET_MODEL)", value="NAME"),
    Option("session", "the session, as the harness names it (or: WORKPACKET_SESSION)", value="ID"),
)
_LONGEST_DECLARED = 200


def actor_of(arguments: Arguments, repository: Repository) -> Actor:
    return acting(repository, arguments.value("as"), arguments.value("actor-kind"))


def declared(arguments: Arguments) -> Declared | None:
    """Return what the session declares about itself, on the command line or in variables that only users set.

    Variables set by harnesses are ignored: they say where a shell is running, not who is doing the work.
    """
    said: dict[str, str] = {}
    for option in DECLARING:
        key = option.name.replace("-", "_")
        text = arguments.value(option.name) or os.environ.get(f"WORKPACKET_{key.upper()}", "")
        if len(text) > _LONGEST_DECLARED or not text.isprintable():
            what = f"--{option.name} requires a single line of at most {_LONGEST_DECLARED} characters"
            raise usage(arguments.command, "invalid_value", what)
        said |= {key: text.strip()} if text.strip() else {}
    if not said:
        return None
    from workpacket.lifecycle.authorship import Declared

    return Declared(**said)


def required(arguments: Arguments, name: str) -> str:
    """Return the value of a required option."""
    value = arguments.value(name).strip()
    if not value:
        raise usage(arguments.command, "missing_argument", f"it needs --{name}")
    return value


def words_of(arguments: Arguments, count: int, what: str) -> list[str]:
    """Return the positional words; there must be `count` of them."""
    if len(arguments.words) < count:
        listed = "; `workpacket list` shows the ids" if "WP_ID" in what else ""
        raise usage(arguments.command, "missing_argument", f"it needs {what}{listed}")
    if len(arguments.words) > count:
        extra = " ".join(arguments.words[count:])
        raise usage(arguments.command, "unexpected_argument", f"expected {what} and nothing else, but found {extra!r}")
    return arguments.words


def scope_of(arguments: Arguments) -> list[str]:
    """Return the values of --scope, in the form used in documents."""
    paths = arguments.values("scope")
    for path in paths:
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            what = f"--scope requires a path relative to the top of the repository, not {path!r}"
            raise usage(arguments.command, "invalid_value", what)
    return [f"`{path}`" for path in paths]


def named_packet(arguments: Arguments, repository: Repository, words: int = 1) -> str:
    """Return the packet id in the first word. If there is no word, a command that declares `[WP_ID]` takes the packet
    of the current branch.
    """
    if not arguments.words and arguments.command.arguments.startswith("[WP_ID]"):
        arguments.words.append(_packet_of_branch(arguments, repository))
    return packet_called(str(repository.root), words_of(arguments, words, "WP_ID")[0]).text


def _packet_of_branch(arguments: Arguments, repository: Repository) -> str:
    from workpacket.cli.read_only import all_facts
    from workpacket.lifecycle.moves import whose_branch

    facts = all_facts(repository)
    branch = current_branch(repository)
    name = whose_branch(facts, branch or "")
    if name not in facts.packets and not branch:
        what = "give a WP_ID: a detached HEAD does not belong to a packet"
        raise usage(arguments.command, "missing_argument", what, "git switch BRANCH, or give a WP_ID")
    if name not in facts.packets:
        what = f"give a WP_ID: branch {branch} does not belong to a packet"
        raise usage(arguments.command, "missing_argument", what, _branches_of_packets(repository, facts))
    return name


def _branches_of_packets(repository: Repository, facts: Facts) -> str:
    """Say on which branches the command would find its packet."""
    from workpacket.git.repository import local_branches
    from workpacket.model.lanes import SETTLED

    unfinished = (
        name for name, packet in sorted(facts.packets.items()) if not packet.landed and packet.lane not in SETTLED
    )
    branches = local_branches(repository)
    own = [name for name in unfinished if facts.policy.branch_of(name) in branches]
    switch = " or ".join(f"git switch {facts.policy.branch_of(name)}" for name in own[:3])
    return f"{switch}{', ...' if len(own) > 3 else ''}; or give a WP_ID" if own else "workpacket list shows the ids"


def packet_command(
    arguments: Arguments,
    decide: Decide,
    *,
    also: Sequence[str] = (),
    words: int = 1,
    questions: Sequence[Question] = (),
    hands_over: Sequence[str] = (),
    repository: Repository | None = None,
) -> int:
    """Run a command on the first packet; `also` are other packets whose facts it needs. `questions` are the questions
    that its gate asks about approvals; `hands_over` has the same meaning as in `conclude`. A caller that has already
    asked git about the repository passes it on.
    """
    repository = repository or here()
    name = named_packet(arguments, repository, words)
    actor = actor_of(arguments, repository)
    command, branch = arguments.command.name, current_branch(repository) or ""

    def decide_here(facts: Facts) -> Answer:
        packet = packet_of(facts, name)
        unmet = standing_unmet(facts, packet, command, branch)
        return unmet or decide(facts, packet)

    carried = carry_out(repository, command, (name, *also), actor, decide_here, questions=questions)
    return conclude(arguments, carried, name, hands_over)


_PACKAGE: Final = lazy_pattern(r"(?:[\w.-]+--)?WP[0-9]{2,9}\Z")


def is_package_id(word: str) -> bool:
    """Whether a word refers to a spec-kitty work package, `WP07` or `041-mission--WP07`, and not to a packet."""
    return _PACKAGE.match(word) is not None


def packet_of(facts: Facts, name: str) -> PacketFacts:
    """Return the packet; raise an error if it has disappeared in the meantime, or matches only on a case-insensitive
    file system."""
    packet = facts.packets.get(name)
    if packet is None:
        raise WorkpacketError("packet_unknown", f"packet {name} not found", hint="workpacket list shows all")
    return packet


def conclude(
    arguments: Arguments,
    carried: Carried,
    packet: str = "",
    hands_over: Sequence[str] = (),
    afterwards: Callable[[], str] | None = None,
) -> int:
    """Report the result and return the exit status. A refusal names the packet. `hands_over` are the paths that must be
    committed before the next step, because someone else takes that step, perhaps in another clone. `afterwards` is
    called when everything is written and committed; what it returns is reported too.
    """
    answer = carried.answer
    commit = f"git commit -m '{arguments.command.typed.capitalize()} {packet}'"
    if not isinstance(answer, Planned):
        for done in carried.finished:
            sys.stderr.write(f"note: an interrupted {escape(done.command)} was completed first\n")
        return refuse(arguments, packet, [_committed_first(one, packet, commit) for one in answer])
    if carried.commit or arguments.flag("commit"):
        answer = _committed(arguments, carried, answer, packet)
    elif hands_over and carried.changed and answer.then.startswith(("git ", "ask ", "merge ")):
        answer = replace(answer, then=f"git add {shlex.join(hands_over)} && {commit}, then: {answer.then}")
    said = afterwards() if afterwards is not None else ""
    answer = replace(answer, notes=(*answer.notes, said)) if said else answer
    answer = _told(carried, answer)
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        changed: list[Json] = list(carried.changed)
        notes: list[Json] = list(answer.notes)
        data: dict[str, Json] = {**answer.data, "changed": changed, "notes": notes, "next": answer.then}
        sys.stdout.write(render_envelope(arguments.command.name, exits.OK, [], data))
        return exits.OK
    for done in carried.finished:
        print(f"note: an interrupted {escape(done.command)} was completed first")
    if answer.shown:
        print("\n".join(escape(line) for line in answer.shown.split("\n")))
    print(escape(answer.said))
    for note in answer.notes:
        print(f"  - {escape(note)}")
    _say_next(answer)
    return exits.OK


def _committed_first(problem: Problem, packet: str, commit: str) -> Problem:
    """Tell the user to commit a packet's move to its lane before the next move, which someone else often makes."""
    if problem.code != "wrong_lane" or not status(here(), f"{LOG_FOLDER}/{packet}"):
        return problem
    return replace(problem, hint=f"git add {GOVERNANCE_FOLDER} && {commit}, then: {problem.hint}")


def _told(carried: Carried, answer: Planned) -> Planned:
    """Notify the people who are needed, if the policy or the environment says how to do so."""
    if not answer.plan.events or not (carried.webhook or "WORKPACKET_NOTIFY" in os.environ):
        return answer
    from workpacket.shell.notify import needs_of, tell

    needs = list(needs_of(answer.plan.events, approvals=carried.approvals))
    return replace(answer, notes=(*answer.notes, *tell(carried.webhook, needs, os.environ)))


def _committed(arguments: Arguments, carried: Carried, answer: Planned, packet: str) -> Planned:
    """Commit what the command wrote, and uncommitted changes to the packet's own document and log."""
    repository = here()
    own = status(repository, f"{LOG_FOLDER}/{packet}", *packet_paths(packet)) if packet else []
    used = {envelope_path(digest) for event in answer.plan.events for digest in event.attest}
    own += status(repository, *used) if used else []
    paths = list(dict.fromkeys((*carried.changed, *(entry.path for entry in own))))
    if not paths:
        return answer
    trailer = f"\n\nWork-Packet: {packet}" if packet else ""
    try:
        commit_paths(repository, f"workpacket {arguments.command.typed} {packet}".rstrip() + trailer, paths)
    except WorkpacketError as error:
        message = f"everything was written, but not committed: {error}"
        raise WorkpacketError(error.code, message, hint=f"git commit -- {' '.join(paths[:5])}") from error
    then = answer.then
    if then.startswith("git add "):  # that is done
        then = then.partition(", then: ")[2] or "workpacket status"
    return replace(answer, then=then, notes=(*answer.notes, f"committed {counted(len(paths), 'file')}"))


def signed_first(arguments: Arguments, packet: str, *words: str) -> int:
    """With --sign, have the person approve first; return the exit status of the approval."""
    if not arguments.flag("sign"):
        return exits.OK
    if arguments.flag("json"):
        raise usage(
            arguments.command,
            "conflicting_options",
            "--sign shows text to a person, so it cannot be combined with --json",
        )
    from workpacket.cli.approve import COMMAND, approve  # needed for a signature only

    return approve(parse(COMMAND, [packet, *words]), goes_on=True)


def _say_next(answer: Planned) -> None:
    if answer.then:
        print(f"next: {escape(answer.then)}")


def refuse(arguments: Arguments, packet: str, unmet: Sequence[Problem], data: Mapping[str, Json] | None = None) -> int:
    """Report every unmet condition with the command that meets it, and return exit status 3."""
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        rows: list[Json] = [unmet_json(one) for one in unmet]
        after = unmet[0].hint if unmet else ""
        said: dict[str, Json] = {**(data or {}), "id": packet, "unmet": rows, "next": after}
        sys.stdout.write(render_envelope(arguments.command.name, exits.REFUSED, unmet, said))
        return exits.REFUSED
    number = len(by_remedy(unmet))
    count = "1 condition is" if number == 1 else f"{number} conditions are"
    style = arguments.style(sys.stderr)
    what = f"{escape(arguments.command.typed)} {escape(packet)}: {count} not met"
    sys.stderr.write(f"{style.paint('refused', 'error')}: {what}\n")
    sys.stderr.write("".join(unmet_lines(unmet, style)))
    if unmet:
        sys.stderr.write(f"next: {escape(unmet[0].hint)}\n")
    return exits.REFUSED


def unmet_json(one: Problem) -> Json:
    return {"code": one.code, "message": one.message, "command": one.hint, "path": one.path, "line": one.line}
