"""The commands that move one packet: their arguments, and the plans that make the decisions. A plan is imported only
when it is needed, so that no command loads the plans of the others.

Also the open role checkpoints of a packet, for commands after which no role should be active.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import (
    ACTING,
    COMMIT,
    REASON,
    Decide,
    actor_of,
    conclude,
    packet_command,
    packet_of,
    required,
    words_of,
)
from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.model.ids import InvalidId, WorkPacketId
from workpacket.model.wording import typed_as
from workpacket.shell.governing.execution import carry_out, has_landed, here
from workpacket.value import Value, replace

_DAY = lazy_pattern(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\Z")
_LONGEST_NOTE: Final = 4000

_FOLDER = "docs/progress"


# Options that are called otherwise in plans and events.
_IN_PLANS = {"waits-for": "until"}


class _WordedMove(Value):
    """The options of a move that are arguments of its plan, and what other changes the move may make."""

    plan: Callable[..., Answer]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    # Whether the shared claim may be outdated, and whether roles may still be working on the packet.
    syncs_claim: bool = False
    leaves_work: bool = False


def _moves() -> Mapping[str, _WordedMove]:
    """Return the declarations of moves that need only string arguments."""
    from workpacket.lifecycle.claims import release
    from workpacket.lifecycle.side_moves import abandon, advance, block, reopen, unblock

    return {
        "release": _WordedMove(release, ("reason",), leaves_work=True),
        "handover": _WordedMove(release, ("reason", "to"), leaves_work=True),
        "advance": _WordedMove(advance, (), ("to", "reason")),
        "reopen": _WordedMove(reopen, ("reason",), syncs_claim=True),
        "block": _WordedMove(block, ("reason", "waits-for"), syncs_claim=True),
        "unblock": _WordedMove(unblock, (), ("reason",), syncs_claim=True),
        "abandon": _WordedMove(abandon, ("reason",), leaves_work=True),
    }


def _move(arguments: Arguments) -> int:
    row = _moves()[arguments.command.name]
    absent = [f"--{name}" for name in row.required if not arguments.value(name).strip()]
    if absent:
        raise usage(arguments.command, "missing_argument", f"it needs {' and '.join(absent)}")
    given = {_IN_PLANS.get(name, name): arguments.value(name).strip() for name in row.required}
    given |= {name: arguments.value(name) for name in row.optional}

    def decide(facts: Facts, packet: PacketFacts) -> Answer:
        return row.plan(facts, packet, **given)

    if row.leaves_work:
        return _leave_work(arguments, decide)
    return _then_sync_claim(arguments, decide) if row.syncs_claim else packet_command(arguments, decide)


def _activate(arguments: Arguments) -> int:
    from workpacket.lifecycle.activation import activate
    from workpacket.shell.governing.execution import ACTIVATION

    return packet_command(arguments, activate, questions=(ACTIVATION,))


def _merged(arguments: Arguments) -> int:
    from workpacket.lifecycle.review import merged
    from workpacket.shell.judging.landed_work import merge_faults
    from workpacket.shell.work_done import containment

    repository = here()

    def decide(facts: Facts, packet: PacketFacts) -> Answer:
        target = arguments.value("target-branch") or facts.target_branch
        found = containment(repository, packet, target)
        faults = merge_faults(repository, found.target_commit, packet.log, facts.policy) if found.proof else ()
        return tuple(faults) or merged(facts, packet, found)

    return packet_command(arguments, noting_roles(repository, decide))


def _supersede(arguments: Arguments) -> int:
    from workpacket.lifecycle.side_moves import supersede
    from workpacket.shell.governed_files import packet_called

    by = packet_called(str(here().root), required(arguments, "by")).text
    reason = arguments.value("reason")
    return _leave_work(
        arguments,
        lambda facts, packet: supersede(facts, packet, by=facts.packets[by], reason=reason),
        also=(by,),
    )


def _rename(arguments: Arguments) -> int:
    from workpacket.lifecycle.side_moves import rename_packet
    from workpacket.shell.governed_files import packet_called

    repository = here()
    words = words_of(arguments, 2, "the WP_ID and the new id")
    name = packet_called(str(repository.root), words[0]).text
    try:
        to = WorkPacketId.parse(words[1])
    except InvalidId as error:
        raise usage(arguments.command, "invalid_value", f"{words[1]!r} {error}") from error
    if to.kind != "packet":
        raise usage(arguments.command, "invalid_value", f"{to} is the id of a mission's work package")

    def decide(facts: Facts) -> Answer:
        packet = packet_of(facts, name)
        return rename_packet(facts, packet, to, landed=has_landed(repository, packet))

    actor = actor_of(arguments, repository)
    return conclude(arguments, carry_out(repository, "rename", None, actor, decide), to.text)


def _waive(arguments: Arguments) -> int:
    from workpacket.lifecycle.gates import CONSUMING
    from workpacket.lifecycle.side_moves import waive
    from workpacket.report.catalogue import catalogue
    from workpacket.shell.governing.execution import Question

    rule = words_of(arguments, 2, "WP_ID and the code of the condition")[1]
    if rule not in catalogue():
        raise usage(arguments.command, "unknown_code", f"unknown code {rule!r}; `workpacket why WP_ID` lists the codes")
    reason, day = required(arguments, "reason"), required(arguments, "until")
    if not _DAY.match(day):
        raise usage(arguments.command, "invalid_value", f"--until requires a date such as 2026-12-31, not {day!r}")
    override = arguments.command.name == "override"
    kind, expires_at, target = "overridden" if override else "waived", f"{day}T23:59:59Z", arguments.value("target")
    terms = {"rule": rule, "until": expires_at, "reason": reason, "target": target}
    return packet_command(
        arguments,
        lambda facts, packet: waive(
            facts,
            packet,
            rule=rule,
            reason=reason,
            expires_at=expires_at,
            target=target,
            override=override,
        ),
        words=2,
        questions=(Question(CONSUMING[kind], terms),),
    )


def _reapprove(arguments: Arguments) -> int:
    from workpacket.lifecycle.side_moves import Withdrawn, reapprove
    from workpacket.shell.actor import moment
    from workpacket.shell.approvals.event_approvals import withdrawn
    from workpacket.shell.approvals.facts import open_approvals
    from workpacket.shell.governed_files import packet_called

    repository, gate = here(), arguments.value("gate")
    name = packet_called(str(repository.root), words_of(arguments, 1, "WP_ID")[0]).text
    with open_approvals(repository, None, moment(), name) as approvals:
        found: list[Withdrawn] = list(withdrawn(approvals, name, gate))
    reason = arguments.value("reason") or "the previous approvals no longer count"
    return packet_command(arguments, lambda facts, packet: reapprove(facts, packet, found, reason=reason))


def _note(arguments: Arguments) -> int:
    from workpacket.lifecycle.side_moves import note

    text = " ".join(words_of(arguments, 2, "WP_ID and the text of the note")[1].split())
    if not 1 <= len(text) <= _LONGEST_NOTE:
        what = f"a note must have 1 to {_LONGEST_NOTE} characters, but this one has {len(text)}"
        raise usage(arguments.command, "invalid_value", what)
    return packet_command(arguments, lambda facts, packet: note(facts, packet, text), words=2)


def _resolve(arguments: Arguments) -> int:
    from workpacket.lifecycle.gates import RESOLVE_GATE
    from workpacket.lifecycle.side_moves import resolve
    from workpacket.model.event_types import FORKED
    from workpacket.shell.governing.execution import Question

    lane, reason = required(arguments, "lane"), required(arguments, "reason")
    return packet_command(
        arguments,
        lambda facts, packet: resolve(facts, packet, lane=lane, reason=reason),
        questions=(Question(RESOLVE_GATE, {"lane": lane}, (FORKED,)),),
    )


def _then_sync_claim(arguments: Arguments, decide: Decide, also: Sequence[str] = ()) -> int:
    """Make a move after which the shared claim may be outdated."""
    from workpacket.cli.claim import sync_team_claim

    return sync_team_claim(arguments, packet_command(arguments, decide, also=also))


def _leave_work(arguments: Arguments, decide: Decide, also: Sequence[str] = ()) -> int:
    """Make a move after which no role of the packet should be active."""

    return _then_sync_claim(arguments, noting_roles(here(), decide), also)


def _waiver(name: str) -> Command:
    return Command(
        name,
        _waive,
        arguments="WP_ID CODE",
        description="""
Someone with a role at the gate must approve it first, by signing the same rule, expiry and reason.""",
        options=(
            Option("until", "the last day on which it applies", value="YYYY-MM-DD"),
            Option("target", "only for this item, such as a single dependency", value="TEXT"),
            REASON,
            *ACTING,
        ),
        examples=(
            f'workpacket {typed_as(name)} WP-1-Parser-v1 dependency_unmet --until 2026-12-31 --reason "it is stable"',
        ),
    )


def _activation(name: str) -> Command:
    return Command(
        name,
        _activate,
        arguments="WP_ID",
        description="""
The seven items of the stub's checklist are derived from evidence. Either the packet, board, registry and log are all
updated, or each unmet condition is listed with the command that meets it.""",
        options=ACTING,
        examples=(f"workpacket {typed_as(name)} WP-1-Parser-v1", f"workpacket {typed_as(name)} WP-1-Parser-v1 --json"),
    )


_ALL: Final = (
    _activation("activate"),
    _activation("create-task-packet"),
    Command(
        "release",
        _move,
        arguments="WP_ID",
        options=(REASON, *ACTING),
        examples=('workpacket packet release WP-1-Parser-v1 --reason "needs someone who knows CommonMark"',),
    ),
    Command(
        "handover",
        _move,
        arguments="WP_ID",
        options=(Option("to", "the next holder", value="NAME"), REASON, *ACTING),
        examples=('workpacket packet handover WP-1-Parser-v1 --to coder-2 --reason "end of my shift"',),
    ),
    Command(
        "merged",
        _merged,
        arguments="WP_ID",
        description="Finds the commit itself, the same change (after a squash) or the same files (after a rebase).",
        options=(Option("target-branch", "the branch (default: set by the policy)", value="BRANCH"), *ACTING),
        examples=("workpacket packet merged WP-1-Parser-v1",),
    ),
    Command(
        "advance",
        _move,
        arguments="WP_ID",
        description="""
Moves a packet out of a lane added by `[lifecycle.lanes]`, subject to the gates in `[lifecycle.gates]`. Built-in lanes
have their own commands.""",
        options=(
            Option("to", "the expected next lane; the command fails if the next lane is a different one", value="LANE"),
            REASON,
            *ACTING,
        ),
        examples=(
            "workpacket packet advance WP-1-Parser-v1",
            "workpacket packet advance WP-1-Parser-v1 --to MERGE_PENDING",
        ),
    ),
    Command(
        "reopen",
        _move,
        arguments="WP_ID",
        options=(REASON, *ACTING),
        examples=('workpacket packet reopen WP-1-Parser-v1 --reason "the merge broke the build"',),
    ),
    Command(
        "block",
        _move,
        arguments="[WP_ID]",
        options=(Option("waits-for", "what would unblock the work", value="TEXT"), REASON, *ACTING),
        examples=('workpacket packet block WP-1-Parser-v1 --reason "no test data" --waits-for "the samples arrive"',),
    ),
    Command(
        "unblock",
        _move,
        arguments="WP_ID",
        options=(REASON, *ACTING),
        examples=('workpacket packet unblock WP-1-Parser-v1 --reason "the samples are there"',),
    ),
    Command(
        "supersede",
        _supersede,
        arguments="WP_ID",
        options=(Option("by", "the packet that replaces this one", value="WP_ID"), REASON, *ACTING),
        examples=("workpacket packet supersede WP-1-Parser-v1 --by WP-1-Parser-v2",),
    ),
    Command(
        "rename",
        _rename,
        arguments="WP_ID NEW_WP_ID",
        description="""
For a packet whose id another packet has taken on the target branch. Its documents move to the new id, under which it is
a draft again: an approval of the old id does not count. Its events remain in the log of the old id. A packet that has
landed keeps its id.""",
        options=(COMMIT, *ACTING),
        examples=("workpacket packet rename WP-1-Parser-v1 WP-1-Parser-2-v1",),
    ),
    Command(
        "abandon",
        _move,
        arguments="WP_ID",
        options=(REASON, *ACTING),
        examples=('workpacket packet abandon WP-1-Parser-v1 --reason "nobody needs it any more"',),
    ),
    Command(
        "note",
        _note,
        arguments="WP_ID TEXT",
        description="""
The log is never changed; a mistake in it is corrected by adding a note. A note never moves a packet or opens a
gate.""",
        options=(COMMIT, *ACTING),
        examples=('workpacket packet note WP-1-Parser-v1 "The report names the wrong commit; 4f2a91c was judged."',),
    ),
    _waiver("waive"),
    _waiver("override"),
    Command(
        "reapprove",
        _reapprove,
        arguments="WP_ID",
        description="""
When an approval or its key is revoked, the events that used it no longer count. The same happens to events that have
not landed yet when the policy or the specification changes on the base, or when their approval expires. Have someone
with a role at the gate approve the packet again with `workpacket approve`; this command then records the new approvals
for the events that lost theirs. No lane changes.""",
        options=(Option("gate", "only the approvals at this gate", value="GATE"), REASON, *ACTING),
        examples=(
            "workpacket packet reapprove WP-1-Parser-v1",
            'workpacket packet reapprove WP-1-Parser-v1 --gate activation --reason "the laptop was stolen"',
        ),
    ),
    Command(
        "resolve",
        _resolve,
        arguments="WP_ID",
        options=(
            Option("lane", "the current lane of the packet", value="LANE"),
            REASON,
            *ACTING,
        ),
        examples=('workpacket packet resolve WP-1-Parser-v1 --lane IN_PROGRESS --reason "coder-1 began first"',),
    ),
)

DECLARED: Final[Mapping[str, Command]] = {command.name: command for command in _ALL}


def noting_roles(repository: Repository, decide: Decide) -> Decide:
    """Return the decision, with a note on each open role of the packet. Only the role's writer can close it."""

    def noted(facts: Facts, packet: PacketFacts) -> Answer:
        answer = decide(facts, packet)
        if not isinstance(answer, Planned):
            return answer
        return replace(answer, notes=(*answer.notes, *_notes(str(repository.root), (packet.id.text, packet.id.base))))

    return noted


def _notes(root: str, features: tuple[str, ...]) -> tuple[str, ...]:
    if not os.path.isdir(os.path.join(root, _FOLDER)):
        return ()
    from workpacket.bridges.role_acts import open_roles  # slows start-up, and few packets have roles
    from workpacket.bridges.role_facts import notes_here

    # The name of a base is contained in the names of its revisions.
    notes = notes_here(root, about=features[-1])
    found = {path: names[0] for feature in features for path, names in open_roles(notes, feature).items()}
    return tuple(
        f"the role in {path} is still open; when its writer has finished, run: workpacket runtime progress close "
        f"{feature}"
        for path, feature in sorted(found.items())
    )
