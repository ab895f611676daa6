"""The facts that judging a change needs besides the log: dependencies, waivers, git's history, the stub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from workpacket.approvals.event_signatures import EventSignatures
from workpacket.documents.packet import Packet
from workpacket.documents.policy import PolicyDocument
from workpacket.documents.spec_pointer import specification_places
from workpacket.errors import WorkpacketError
from workpacket.git.objects import blob_id, read_file_at
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of, head_commit
from workpacket.ledger.fold import standing
from workpacket.ledger.log import Log, read_logs
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.event_checks import Around, judge_actors, judge_attested, judge_change
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.gates import ended, standing_until
from workpacket.lifecycle.policy import LifecyclePolicy, unguarded_changes
from workpacket.lifecycle.proofs import replay_unmet
from workpacket.lifecycle.review import reports_of
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import LANDS_AS
from workpacket.model.layout import LOG_FOLDER, POLICY_PATH, SPEC_POINTER, packet_paths
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem
from workpacket.shell import actor
from workpacket.shell.approvals.check import root_of_trust
from workpacket.shell.approvals.event_approvals import approving_keys, revoked_keys
from workpacket.shell.approvals.uses import names_standing
from workpacket.shell.base import policy_at, read_base_policy, readable_commit, with_former
from workpacket.shell.governed_files import GovernedFiles, append_only_paths, committed_ids, find_governed, read_logged
from workpacket.shell.judging.append_only import judge_append_only
from workpacket.shell.judging.coverage import coverage_problems
from workpacket.shell.judging.landed_work import landed, merge_faults
from workpacket.shell.judging.log_verification import digest_here
from workpacket.shell.judging.merged_tree import HeadDigests, judge_merged
from workpacket.shell.judging.submissions import submitted_versions, submitted_work
from workpacket.shell.tree import read_bytes
from workpacket.shell.work_done import containment
from workpacket.text.source import DATA, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.policy import LaneFault


def around(
    repository: Repository,
    base: str,
    governed: GovernedFiles,
    logs: Mapping[str, Log],
    name: str,
    policy: LifecyclePolicy,
) -> Around:
    packet = governed.packet(WorkPacketId(name))
    return Around(
        {needed: _was_done(repository, base, needed, logs, policy) for needed in packet.dependencies()},
        tuple(_waivers(repository, base, packet)),
        lambda event: _is_contained(repository, packet, event, policy),
        lambda event: submitted_work(
            repository, base, governed, packet, event, required=policy.evidence.tests == "required"
        ),
        lambda: [point for point, _ in packet.refinement.open_points] if packet.refinement is not None else [],
        logs.keys(),
        partial(submitted_versions, repository, packet),
        partial(_standing, repository, base, packet, unasked=policy.packets.approvals == "none"),
        lambda event: replay_unmet(packet.log.as_of(event.parents).events, policy.evidence, policy.actors),
        packet.packet is not None and packet.packet.light,
        partial(_light_unmet, governed, packet, policy),
    )


def _light_unmet(governed: GovernedFiles, packet: PacketFacts, policy: LifecyclePolicy) -> list[str]:
    """Return what the document of a light packet lacks, judged by the specification that would be in force."""
    from workpacket.lifecycle.forms import document_unmet

    places = specification_places(governed.read(SPEC_POINTER))
    specification = next((found for path in places if (found := governed.read(path)) is not None), None)
    return [one.message for one in document_unmet(packet, specification, policy.roadmap_headings)]


def _standing(
    repository: Repository, base: str, packet: PacketFacts, *, unasked: bool
) -> tuple[str, str | None] | None:
    """Return the last day of a standing packet according to its files and to those of the base; None if the policy of
    the base asks the same of standing packets as of others. `unasked`: others need no approval.
    """
    if not unasked and not names_standing(policy_at(repository, readable_commit(repository, base)).policy):
        return None
    held = ((path, read_file_at(repository, base, path)) for path in packet_paths(packet.id.text))
    there = next((Packet(Source.from_bytes(path, data)) for path, data in held if data is not None), None)
    return _last_day(packet.packet), _last_day(there) if there is not None else None


def _last_day(packet: Packet | None) -> str:
    said = stated(packet, None) if packet is not None else ""
    until = standing_until(said.scope) if isinstance(said, Contract) else None
    return until.isoformat() if until is not None else ""


def _was_done(repository: Repository, base: str, needed: str, logs: Mapping[str, Log], policy: LifecyclePolicy) -> bool:
    """Whether the packet, or any revision of a base id, was ever in a lane that satisfies the dependency. It may have
    moved on since then.
    """
    own = {name: log for name, log in logs.items() if name == needed or name.startswith(f"{needed}-v")}
    if any(event.lane_to in policy.satisfied_by for log in own.values() for event in log.events):
        return True
    waiting = {name: log for name, log in own.items() if LANDS_AS.get(standing(log).lane, "") in policy.satisfied_by}
    return bool(waiting) and bool(landed(repository, base, waiting, policy))


def _waivers(repository: Repository, base: str, packet: PacketFacts) -> Iterator[LogEvent]:
    """Yield the waivers that are approved and have not ended."""
    waivers = [event for event in packet.state.waivers if event.attest]
    if not waivers:
        return
    from workpacket.shell.approvals.event_approvals import lifts
    from workpacket.shell.approvals.facts import open_approvals

    now = actor.moment()
    with open_approvals(repository, base, now) as approvals:
        for event in waivers:
            if not ended(event, now.now) and lifts(approvals, event):
                yield event


def _is_contained(repository: Repository, packet: PacketFacts, event: LogEvent, policy: LifecyclePolicy) -> bool:
    """Whether head, which becomes the target branch when the change lands, contains the commit that the event calls
    merged, in the state that was judged.
    """
    before = packet.log.ancestry(event.parents)
    submitted = [each.text("commit") for each in packet.log.events if each.type == "submitted" and each.id in before]
    if submitted[-1:] != [event.text("commit")]:
        return False
    head = head_commit(repository) or ""
    try:
        return bool(containment(repository, packet, head).proof) and not merge_faults(
            repository, head, packet.log.as_of(event.parents), policy
        )
    except WorkpacketError:
        return False


def _brings_moves(logs: Iterable[Log], known: frozenset[str]) -> bool:
    return any(event.moves_lane and event.id not in known for log in logs for event in log.events)


def _unfit(fault: LaneFault) -> Problem:
    """Return the problem that says that the legal moves of the change cannot be determined."""
    reason = CHANGE_BY_CODE["base_lanes_unfit"]
    message = f"the policy on the base adds invalid lanes: {fault.message}"
    return Problem(reason.code, message, Location(POLICY_PATH), fault.hint, severity=reason.severity)


# How far the clock that wrote an event may be ahead of the one that judges it.
SKEW = timedelta(seconds=300)


def ahead(logs: Iterable[Log], known: frozenset[str], now: str) -> Iterator[Problem]:
    """Report new events from a clock that is ahead: no event could follow them until that time."""
    reason = CHANGE_BY_CODE["event_ahead"]
    latest = datetime.fromisoformat(now) + SKEW
    for log in logs:
        for event in log.events:
            if event.id not in known and datetime.fromisoformat(event.at) > latest:
                what = f"it is dated {event.at}, but this machine's clock says {now}"
                yield Problem(reason.code, what, Location(event.path), reason.remedy, severity=reason.severity)


def _unguarded(repository: Repository, base: str) -> Iterator[Problem]:
    """Report tables that the change weakens although the policy names no approvers, unless the base names a new root of
    trust.
    """
    before = policy_at(repository, readable_commit(repository, base)).policy
    try:
        after = read_bytes(str(repository.root), POLICY_PATH, DATA.size)
    except OSError:
        after = b""
    if before is None or before == after:
        return
    roots = (PolicyDocument.from_bytes(data).root for data in (before, after))
    changed = unguarded_changes(*roots)
    if not changed:
        return
    from workpacket.shell.approvals.facts import open_approvals

    with open_approvals(repository, base, actor.moment()) as approvals:
        if root_of_trust(approvals).replaced:
            return
    reason = CHANGE_BY_CODE["policy_unguarded"]
    for name in changed:
        what = f"[{name}] is changed, but the policy on the base names no one who could approve that"
        yield Problem(reason.code, what, Location(POLICY_PATH), reason.remedy, severity=reason.severity)


def judge(repository: Repository, base: str, *, worktree: bool = False) -> list[Problem]:
    """Return everything that prevents merging the change since `base`; with `worktree`, judge the work tree."""
    commit = commit_of(repository, base)
    root = str(repository.root)
    files = {path: read_logged(root, path) for path in append_only_paths(root)}
    there = committed_ids(repository, commit)
    findings = judge_merged(repository, commit, worktree=worktree)
    ids = {path: blob_id(data, commit) for path, data in files.items()}
    findings += judge_append_only(repository, commit, ids, worktree=worktree)
    findings += _unguarded(repository, commit)
    known = frozenset(path.rpartition("/")[2].removesuffix(".json") for path in there)
    logs, _ = read_logs({path: data for path, data in files.items() if path.startswith(f"{LOG_FOLDER}/")})
    governed = find_governed(root)
    faults = read_base_policy(repository, commit).lifecycle.lane_faults
    findings += [_unfit(fault) for fault in faults[:1] if _brings_moves(logs.values(), known)]
    policy = read_base_policy(repository, readable_commit(repository, commit)).lifecycle
    approving = approving_keys(repository, commit) if policy.actors.present else frozenset()
    revoked = revoked_keys(repository, commit) if policy.actors.present else frozenset()
    signatures = EventSignatures(with_former(repository, commit, policy.actors), approving, revoked)
    packets = {name: log for name, log in logs.items() if name in governed.known and not log.is_renamed}
    reports = reports_of(logs.values())
    digest_of = partial(digest_here, root) if worktree else HeadDigests(repository)
    clock = actor.moment().now
    findings += ahead(logs.values(), known, clock)
    for name, log in logs.items():
        if name != CHECKPOINT_LOG:
            beside = partial(around, repository, commit, governed, packets, name, policy)
            moves = judge_change(
                log,
                known,
                digest_of,
                beside,
                clock=clock,
                governed=bool(known),
                reports=reports,
                policy=policy,
            )
            attested = judge_attested(log, known, policy.evidence)
            for judged in (*moves, *judge_actors(log, known, signatures), *attested):
                reason = CHANGE_BY_CODE[judged.code]
                message = f"{name}: {judged.message}"
                findings.append(
                    Problem(judged.code, message, Location(judged.event.path), reason.remedy, severity=reason.severity)
                )
    return findings + coverage_problems(repository, commit, head_commit(repository) or commit, packets, policy)
