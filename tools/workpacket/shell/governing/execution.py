"""Run a lifecycle command: take the lock, gather the facts, plan, apply. All decisions are in the plan, not in this
module.

The facts are the packets involved, their dependencies, the registers, the base's policy, and the clock.

A command asks the approvals layer whether its gates are approved, and which waivers are in effect. A `Question` is
asked only about a packet in a lane in which the gate applies, so that a read-only command (`why`) can ask about every
gate that may come next. The code that verifies signatures is loaded only when there is something to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from workpacket import __version__
from workpacket.approvals.facts import Verdict
from workpacket.documents.spec_pointer import specification_places
from workpacket.git.objects import object_names, read_blobs
from workpacket.git.repository import (
    Branch,
    Repository,
    current_branch,
    default_branch,
    find_repository,
    head_commit,
    is_ancestor,
    local_branch,
    remote_branches,
    without_remote,
)
from workpacket.ledger.log import Log, is_renaming, read_logs
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import (
    ACTIVATION_GATE,
    OPEN_WITHOUT_RULE,
    STANDING_GATE,
    VERDICT_GATE,
    ended,
    ends_unjudged,
    lease_held,
    moves_under,
    settles_by_landing,
)
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import transition
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.layout import (
    BOARD_PATH,
    LARGEST_SPECIFICATION,
    LOG_FOLDER,
    POLICY_PATH,
    REGISTRY_PATH,
    SPEC_POINTER,
)
from workpacket.model.plan import Moment
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell.actor import moment
from workpacket.shell.base import (
    Base,
    BasePolicy,
    find_base,
    gate_policy,
    no_verdict,
    read_base_policy,
    remember_base,
    tree_at,
)
from workpacket.shell.governed_files import GovernedFiles, find_governed
from workpacket.shell.held import look
from workpacket.shell.transactions.transaction import complete_unfinished, writing
from workpacket.shell.tree import read_bytes
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from workpacket.model.events import LogEvent
    from workpacket.shell.approvals.facts import Approvals
    from workpacket.shell.transactions.recovery import Recovered


def gather(
    repository: Repository,
    names: Iterable[str] | None,
    actor: Actor,
    questions: Sequence[Question] = (),
    read_all: Callable[[GovernedFiles], Mapping[str, PacketFacts]] | None = None,
) -> Facts:
    """Gather the facts about these packets (None: all packets), with their other revisions and their dependencies.

    The `questions` are asked about the first of the packets; `read_all` replaces the function that reads all packets.
    """
    governed = find_governed(str(repository.root))
    pointer = governed.read(SPEC_POINTER)
    # If approvals are needed, they read the specification of the base, which most likely has the same path as here.
    policy = read_base_policy(repository, ahead=specification_places(pointer) if questions else ())
    packets = _packets(governed, names) if names is not None else (read_all or _all_packets)(governed)
    packets = _with_landings(repository, packets, policy)
    specification = _specification(governed, pointer)
    asked = [packets[name] for name in (names or ()) if name in packets]
    now = moment()
    said = ask(repository, asked[0], (*questions, *added_questions(policy.lifecycle)), now) if asked else Said()
    return Facts(
        moment=now,
        actor=actor if policy.lifecycle.actor_tables is None else policy.lifecycle.actors.acting(actor),
        tool=f"workpacket {__version__}",
        policy=policy.lifecycle,
        packets=packets,
        known=governed,
        board=governed.read(BOARD_PATH),
        registry=governed.read(REGISTRY_PATH),
        spec_pointer=pointer,
        specification=specification,
        refinement_faults={packet.id.text: _faults(packet, specification) for packet in asked},
        target_branch=policy.target_branch,
        target_here=without_remote(repository, policy.target_branch),
        approvals=said.verdicts,
        approved=said.approved,
        on_target=_is_on(repository, policy),
    )


def _is_on(repository: Repository, policy: BasePolicy) -> bool:
    return current_branch(repository) == without_remote(repository, policy.target_branch)


def _with_landings(
    repository: Repository, packets: Mapping[str, PacketFacts], policy: BasePolicy
) -> Mapping[str, PacketFacts]:
    """Return the packets, marking those whose work has been merged. If the checked-out commit is not in the
    first-parent history of the target branch, none counts as merged.
    """
    lifecycle = policy.lifecycle
    waiting = {
        name: each.log
        for name, each in packets.items()
        if settles_by_landing(each.outline, lifecycle) or ends_unjudged(each.outline, lifecycle)
    }
    if not waiting:
        return packets
    # A branch that has just begun has the line of the target branch.
    at = local_branch(repository, without_remote(repository, policy.target_branch))
    if not _is_on(repository, policy) and (at is None or at != head_commit(repository)):
        return packets
    from workpacket.shell.judging.landed_work import landed

    found = landed(repository, head_commit(repository) or "", waiting, policy.lifecycle)
    return {name: each.as_landed() if name in found else each for name, each in packets.items()}


def _all_packets(governed: GovernedFiles) -> dict[str, PacketFacts]:
    """Return all packets, which include their dependencies."""
    return {name: governed.packet(WorkPacketId.parse(name)) for name in sorted(governed.known)}


def _packets(governed: GovernedFiles, names: Iterable[str]) -> dict[str, PacketFacts]:
    """Return the given packets, all revisions of their bases, and the dependencies of the given packets."""
    found: dict[str, PacketFacts] = {}

    def take(wp_id: WorkPacketId) -> None:
        alike = governed.beginning(_without_revision(wp_id.text))
        for name in alike.known:
            revision = WorkPacketId.parse(name)
            if name not in found and revision.base == wp_id.base:
                found[name] = alike.packet(revision)

    chosen = list(names)
    for name in chosen:
        take(WorkPacketId.parse(name))
    for name in chosen:
        packet = found.get(name)
        for needed in packet.dependencies() if packet is not None else ():
            parsed_need = WorkPacketId.try_parse(needed)
            if parsed_need is not None:
                take(parsed_need)
    return found


def _without_revision(name: str) -> str:
    """Return the name without a revision such as `-v3`."""
    head, mark, number = name.rpartition("-v")
    return head if mark and number.isascii() and number.isdecimal() else name


def _specification(governed: GovernedFiles, pointer: Source | None) -> Source | None:
    """Return the current specification, which the pointer may place anywhere in the repository."""
    for path in specification_places(pointer):
        try:
            return Source.from_bytes(path, read_bytes(governed.root, path, LARGEST_SPECIFICATION))
        except OSError:
            continue
    return None


def _faults(packet: PacketFacts, specification: Source | None) -> tuple[Problem, ...]:
    """Return what a strict check finds in the refinement. Only a stub needs a refinement."""
    refinement = packet.refinement
    if refinement is None or packet.lane != "STUB":
        return ()
    from workpacket.rules.rule import examine, rules_for
    from workpacket.shell.governing.refinement_check import refinement_faults
    from workpacket.shell.package_files import schemas

    faults = examine(refinement, rules_for(refinement.kind), schemas())
    return refinement_faults(refinement, map(refinement.source.placed, faults), specification)


# How far the clocks of machines that share a repository may differ.
_SKEW: Final = timedelta(minutes=5)
_READ_BY_ALL: Final = (POLICY_PATH, BOARD_PATH, REGISTRY_PATH, SPEC_POINTER)


class Carried(Value):
    """The answer, the written paths, and what an earlier command left unfinished. `commit`, `webhook` and `approvals`
    are policy settings: whether commands commit what they write, the address for messages, and whether light packets
    need an approval.
    """

    answer: Answer
    changed: tuple[str, ...] = ()
    finished: tuple[Recovered, ...] = ()
    commit: bool = False
    webhook: str = ""
    approvals: bool = False


def carry_out(
    repository: Repository,
    command: str,
    names: Sequence[str] | None,
    actor: Actor,
    decide: Callable[[Facts], Answer],
    *,
    questions: Sequence[Question] = (),
    during_merge: bool = False,
    dry_run: bool = False,
) -> Carried:
    """Have `decide` make a plan from the facts about `names` (None: all packets), and apply the plan as one
    transaction.

    `questions` are asked about the first of the packets.
    """
    with writing(repository, command, during_merge=during_merge) as transaction:
        held = transaction.held
        held.require(_READ_BY_ALL)
        if names is None:
            held.require_everything()
        else:
            held.require_packets(names)
        facts = gather(repository, names, actor, questions)
        if names is not None:
            held.require_packets(_waited_for(facts, names))
        if facts.specification is None:
            held.require(specification_places(facts.spec_pointer))
        clock = _require_clock(repository, facts, names)
        _require_lanes(facts)
        answer = decide(facts)
        if isinstance(answer, Planned):
            answer = _refused_beside_base(repository, facts, answer)
        else:
            answer = _where_it_went_on(repository, facts, names or (), answer)
        if not isinstance(answer, Planned) or dry_run:
            return Carried(answer, (), transaction.finished)
        from workpacket.shell.keys import signed  # a refused command signs nothing

        changed = transaction.apply(signed(answer.plan, facts.policy.actors))
        deleted = held.deleted() if names is not None else ""
        if deleted or clock:
            answer = replace(answer, notes=(*answer.notes, *filter(None, (deleted, clock))))
        policy = facts.policy
        asked = policy.packets.approvals == "signed"
        return Carried(answer, changed, transaction.finished, policy.packets.commit, policy.webhook, asked)


def unseen_moves(repository: Repository, facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    """Report moves of a packet that are on the base, on its own branch or on a branch of the main remote, but not in
    the log here: another move made here could not be merged, or would contradict them.
    """
    return _moves_beside_base(repository, packet) or tuple(_moves_on_branches(repository, facts, packet))


def _moves_beside_base(repository: Repository, packet: PacketFacts) -> tuple[Problem, ...]:
    branch = default_branch(repository)
    if branch is None or branch.commit == head_commit(repository) or packet.log.is_renamed:
        return ()
    name = packet.id.text
    there, own = tree_at(repository, branch.commit, _folder_of(packet)), _paths_of(packet)
    if there.keys() <= own:
        return ()
    log = _log_with(repository, packet, there)
    moves = [event for event in log.events if event.path not in own and event.moves_lane]
    base = branch.name
    if packet.log.by_id and packet.log.by_id.keys().isdisjoint(path.removesuffix(".json")[-64:] for path in there):
        message = (
            f"{base} has a different packet named {name}, created by {(moves[0].actor.id if moves else 'someone')}"
        )
        return (Problem("packet_exists", message, hint=f"workpacket packet rename {name} NEW_WP_ID"),)
    return tuple(
        Problem(
            "move_beside_base",
            f"{base} contains a move of {name} that this branch lacks: {move.type} by {move.actor.id} ({move.id[:12]})",
            hint=f"git merge {base}, then run the command again",
        )
        for move in moves
    )


def _moves_on_branches(repository: Repository, facts: Facts, packet: PacketFacts) -> Iterator[Problem]:
    """Report the last move that continues the log here on each branch of the main remote, as last fetched, on the local
    branch that the policy names for the packet, and on the local main branch, which may not have been pushed yet.

    A branch that lacks an event of this log already contradicts it. A claim there expires with its lease.
    """
    own, folder, name = _paths_of(packet), _folder_of(packet), packet.id.text
    if not own or packet.log.is_renamed:
        return
    named = facts.policy.branch_of(name)
    base = default_branch(repository)
    main = without_remote(repository, base.name) if base is not None else ""
    commits = {each: local_branch(repository, each) for each in dict.fromkeys((named, main)) if each}
    local = [Branch(f"refs/heads/{each}", commit) for each, commit in commits.items() if commit is not None]
    branches = [*local, *remote_branches(repository)]
    trees = object_names(repository, (f"{branch.commit}:{folder}" for branch in branches))
    # Many branches have the same log, and most have no more than this one.
    by_tree = {trees[place]: branch for branch in branches if (place := f"{branch.commit}:{folder}") in trees}
    for branch in by_tree.values():
        there = tree_at(repository, branch.commit, folder)
        if not own < there.keys() or _is_merged(repository, branch.commit):
            continue
        log = _log_with(repository, packet, there)
        last = next((event for event in reversed(log.events) if event.moves_lane and event.path not in own), None)
        if last is None:
            continue
        if last.type == "claimed" and not lease_held(replace(packet, log=log).state, facts.moment.now):
            continue
        given_up = f"git push {' --delete '.join(branch.name.split('/', 1))}"
        merging = f"git merge {branch.name}; if that work was given up: {given_up}"
        if branch in local:
            merging = f"git switch {named}" if branch.name == named else f"git merge {main}, then run the command again"
        yield Problem(
            "moved_elsewhere",
            f"{branch.name} has a later move of {name}: {last.type} by {last.actor.id} ({last.id[:12]})",
            hint=merging,
        )


def _where_it_went_on(
    repository: Repository, facts: Facts, names: Sequence[str], unmet: tuple[Problem, ...]
) -> tuple[Problem, ...]:
    """Return the conditions that block the command; if the lane is one of them, and the packet has moved on elsewhere,
    return only that move."""
    if not any(one.code in {"packet_is_stub", "wrong_lane"} for one in unmet):
        return unmet
    packets = (facts.packets[name] for name in names if name in facts.packets)
    return next((found for one in packets if (found := unseen_moves(repository, facts, one))), unmet)


def _folder_of(packet: PacketFacts) -> str:
    return f"{LOG_FOLDER}/{packet.id}"


def _paths_of(packet: PacketFacts) -> frozenset[str]:
    return frozenset(event.path for event in packet.log.stored)


def _log_with(repository: Repository, packet: PacketFacts, there: Mapping[str, str]) -> Log:
    """Return the log here together with the events in another tree."""
    own = {event.path: event.encode() for event in packet.log.stored}
    contents = read_blobs(repository, (blob for path, blob in there.items() if path not in own))
    logs, _ = read_logs({path: contents[blob] for path, blob in there.items() if path not in own} | own)
    return logs[packet.id.text]


def _is_merged(repository: Repository, commit: str) -> bool:
    """Whether the checked-out commit contains another one. If so, events of that commit that are missing here were
    removed later.
    """
    head = head_commit(repository)
    return head is not None and is_ancestor(repository, commit, head)


def has_landed(repository: Repository, packet: PacketFacts) -> bool:
    """Whether any event of the packet's log is on the base."""
    branch = default_branch(repository)
    there = tree_at(repository, branch.commit, f"{LOG_FOLDER}/{packet.id}") if branch is not None else {}
    return any(path.removesuffix(".json")[-64:] in packet.log.by_id for path in there)


def _refused_beside_base(repository: Repository, facts: Facts, answer: Planned) -> Answer:
    """Return the plan, but refuse one that moves a packet or uses an approval while the base or the remote has moves
    that are not in the log here.
    """
    events = (event for event in answer.plan.events if not is_renaming(event))
    moved = dict.fromkeys(event.packet for event in events if event.moves_lane or event.attest)
    for name in moved:
        packet = facts.packets.get(name)
        unseen = unseen_moves(repository, facts, packet) if packet is not None else ()
        if unseen:
            return unseen
    return answer


def facts_before(repository: Repository, names: Sequence[str], actor: Actor) -> Facts:
    """Return the facts about packets, for a command that does something before `carry_out`, such as creating a branch
    or running a proof.

    Raises WorkpacketError `tree_incomplete` if any of these packets is missing here.
    """
    complete_unfinished(repository, "recover")
    held = look(repository)
    held.require_visible()
    held.require(_READ_BY_ALL)
    held.require_packets(names)
    return gather(repository, names, actor)


def _waited_for(facts: Facts, names: Sequence[str]) -> list[str]:
    """Return the dependencies of the given packets: a dependency hidden from the work tree would seem not to exist."""
    named = (facts.packets[name] for name in names if name in facts.packets)
    return [needed for packet in named for needed in packet.dependencies()]


def _require_clock(repository: Repository, facts: Facts, names: Sequence[str] | None) -> str:
    """Check the clock by which leases and approvals are judged: it must not be behind the log.

    Events that are already on the base do not block a command, because no command could change them: they are returned
    as a note.
    """
    latest = datetime.fromisoformat(facts.moment.now) + _SKEW
    noted = ""
    for name in names or ():
        packet = facts.packets.get(name)
        events = packet.log.events if packet is not None else ()
        ahead = {event.path: event.at for event in events if datetime.fromisoformat(event.at) > latest}
        if not ahead:
            continue
        branch = default_branch(repository)
        known = tree_at(repository, branch.commit, f"{LOG_FOLDER}/{name}") if branch is not None else {}
        new = [at for path, at in ahead.items() if path not in known]
        if new:
            message = f"this machine's clock says {facts.moment.now}, but {name} has an event dated {max(new)}"
            raise WorkpacketError("clock_behind", message, hint="correct this machine's clock")
        where = branch.name if branch is not None else ""
        noted = (
            f"{name} has an event dated {max(ahead.values())} on {where}: the clock of the machine that wrote it was "
            "ahead"
        )
    return noted


def _require_lanes(facts: Facts) -> None:
    """Refuse invalid lanes: if a lane were missing from the sequence, packets could skip its gate."""
    for fault in facts.policy.lane_faults[:1]:
        raise WorkpacketError("lanes_unfit", fault.message, hint=fault.hint, path=POLICY_PATH)


def here() -> Repository:
    """Return the repository that contains the current folder."""
    return find_repository(Path.cwd())


class Question(Value):
    """A question about a gate. `lanes` are those in which the question is asked; () means all."""

    gate: str
    terms: Mapping[str, str] = NOTHING
    lanes: tuple[str, ...] = ()


ACTIVATION = Question(ACTIVATION_GATE, lanes=transition("activate").origins)


def verdict_question(choice: str, report: str = "") -> Question:
    """`report` is the term for the validator's report; '' leaves it open."""
    terms = {"verdict": choice, **({"report": report} if report else {})}
    return Question(VERDICT_GATE, terms, transition("verdict", choice).origins)


def added_questions(policy: LifecyclePolicy) -> tuple[Question, ...]:
    """Return a question about every gate that the policy adds to a possible next move."""
    return tuple(
        Question(added.gate, lanes=tuple(lane for row in moves_under(added.on, policy.lanes) for lane in row.origins))
        for added in policy.gates
    )


class Said(Value):
    """The verdict for each gate in question, and the ids of the effective waivers."""

    verdicts: Mapping[str, Verdict] = NOTHING
    approved: frozenset[str] = frozenset()


def ask(repository: Repository, packet: PacketFacts, questions: Sequence[Question], now: Moment) -> Said:
    wanted = [question for question in questions if not question.lanes or packet.state.lane in question.lanes]
    waivers = [event for event in packet.state.waivers if event.attest and not ended(event, now.now)]
    if not (wanted or waivers) or not packet.state.history:
        return Said()
    base = find_base(repository)
    asked = [each for each in wanted if each.gate not in OPEN_WITHOUT_RULE or gate_policy(base.policy, each.gate)]
    # If no one can approve yet, no envelope or history needs to be read to report it. A waiver was judged by the policy
    # of its time, and a damaged log must be reported first.
    sound = not any(each.severity == "error" for each in packet.log.findings)
    faults = no_verdict(base) if sound and not waivers else ()
    if faults:
        said = Said({each.gate: Verdict(each.gate, "none", (), faults) for each in asked})
    else:
        said = _judged(base, packet, asked, waivers, now)
    if said.verdicts:
        remember_base(base)
    return said


def _judged(
    base: Base, packet: PacketFacts, asked: Sequence[Question], waivers: Sequence[LogEvent], now: Moment
) -> Said:
    from workpacket.shell.approvals.facts import open_approvals
    from workpacket.shell.approvals.uses import names_standing

    name = packet.id.text
    with open_approvals(base.repository, base, now, name) as approvals:
        approvals.know(packet.log)
        standing = packet.standing and names_standing(approvals.base.policy.policy)
        # Commands refer to it by the name of the gate that it replaces.
        gates = {each.gate: STANDING_GATE if standing and each.gate == ACTIVATION_GATE else each.gate for each in asked}
        verdicts = {each.gate: approvals.verdict(name, gates[each.gate], terms=each.terms) for each in asked}
        return Said(verdicts, frozenset(_accepted(approvals, waivers)) if waivers else frozenset())


def _accepted(approvals: Approvals, waivers: Sequence[LogEvent]) -> Iterator[str]:
    from workpacket.shell.approvals.event_approvals import lifts

    return (event.id for event in waivers if lifts(approvals, event))
