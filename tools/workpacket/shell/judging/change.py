"""The facts needed to judge a change, besides the log: dependencies, waivers, git's history, the stub; and those about
a submission: the commit, its changes, and where its evidence was obtained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from sys import intern

from workpacket.approvals.event_signatures import EventSignatures
from workpacket.digests import sha256
from workpacket.documents.packet import Packet
from workpacket.documents.policy import PolicyDocument
from workpacket.documents.spec_pointer import specification_places
from workpacket.git.objects import blob_id, changed_paths, changes_before, object_names, read_blobs, read_file_at
from workpacket.git.repository import Repository, commit_of, head_commit, is_ancestor, merge_base, resolved
from workpacket.ledger.fold import standing
from workpacket.ledger.log import Log, read_logs
from workpacket.lifecycle.change_checks import SubmittedWork, evidence_rows
from workpacket.lifecycle.contract import Contract, provable, stated
from workpacket.lifecycle.event_checks import Around, judge_actors, judge_attested, judge_change
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.gates import ended, standing_until
from workpacket.lifecycle.policy import LifecyclePolicy, unguarded_changes
from workpacket.lifecycle.proofs import demands_of, replay_unmet
from workpacket.lifecycle.review import Report, reports_of
from workpacket.lifecycle.scope import outside
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import LANDS_AS
from workpacket.model.layout import LOG_FOLDER, POLICY_PATH, SPEC_POINTER, packet_paths
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.shell import actor
from workpacket.shell.approvals.check import root_of_trust
from workpacket.shell.approvals.uses import names_standing
from workpacket.shell.base import (
    approving_keys,
    policy_at,
    read_base_policy,
    readable_commit,
    revoked_keys,
    with_former,
)
from workpacket.shell.governed_files import (
    GovernedFiles,
    LogsOnDemand,
    append_only_paths,
    committed_ids,
    find_governed,
    read_logged,
)
from workpacket.shell.judging.coverage import coverage_problems
from workpacket.shell.judging.landed_work import landed, merge_faults
from workpacket.shell.judging.log_verification import digest_here
from workpacket.shell.judging.merged_tree import HeadDigests, judge_append_only, judge_merged
from workpacket.shell.tree import read_bytes
from workpacket.shell.work_done import containment, is_described, is_own, reports_at, same_work
from workpacket.text.source import DATA, MARKDOWN, Source
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.policy import LaneFault


def submitted_work(
    repository: Repository,
    base: str,
    governed: GovernedFiles,
    packet: PacketFacts,
    event: LogEvent,
    *,
    required: bool = False,
) -> SubmittedWork:
    """Gather the facts about a submission. `required`: whether the policy requires the contract to specify a proof of
    each criterion.
    """
    asked = provable(packet.packet, packet.refinement)
    scope = _scope_of(packet)
    commit = resolved(repository, f"{event.text('commit')}^{{commit}}")
    fork = merge_base(repository, commit, base) if commit else None
    head = head_commit(repository) or ""
    if commit is None and is_described(repository, event, head):
        # After a squash, the commit may be gone with its branch; the landed work then takes its place.
        changed = event.texts("changed")
        return SubmittedWork(
            asked.criteria, scope, changed, same=frozenset({event.text("commit") or ""}), exempt=asked.exempt
        )
    if commit is None or fork is None:
        return SubmittedWork(asked.criteria, scope, None)
    later = (other for other in packet.log.events if other.type == "amended")
    return SubmittedWork(
        asked.criteria,
        scope,
        _changed(repository, governed, packet, (fork, commit)),
        older=is_ancestor(repository, commit, base) and not _knows_claim(repository, packet, event, commit),
        amended=any(event.id in packet.log.ancestry(other.parents) for other in later),
        same=frozenset(_same(repository, event, commit)),
        absent=frozenset(_absent(repository, event, commit)),
        exempt=asked.exempt,
        misdescribed=is_described(repository, event, commit) is False,
        demands=demands_of(packet),
        required=required,
    )


def _scope_of(packet: PacketFacts) -> list[str]:
    return [entry.value for entry in packet.packet.in_scope_paths] if packet.packet is not None else []


def _changed(
    repository: Repository, governed: GovernedFiles, packet: PacketFacts, between: tuple[str, str]
) -> list[str]:
    """Return the paths that the work changes. If the work is based on another packet's work, it begins where that work
    ended, for paths in that packet's scope. A report listed in a verdict belongs to the validator.
    """
    fork, commit = between
    reports = set(reports_at(repository, packet, commit))
    paths = (change.path for change in changed_paths(repository, fork, commit))
    changed = [path for path in paths if not is_own(path) and path not in reports]
    begun, name = packet.state.assignment.base_commit, packet.state.assignment.base_packet
    other = governed.packet(WorkPacketId(name)) if name in governed.known else None
    if other is None or not _is_between(repository, begun, other, packet):
        return changed
    since = {change.path for change in changed_paths(repository, begun, commit)}
    foreign = set(outside(changed, _scope_of(other)))
    return [path for path in changed if path in since or path in foreign]


def _is_between(repository: Repository, commit: str, other: PacketFacts, packet: PacketFacts) -> bool:
    """Whether, at this commit, the work on the other packet had begun and the work on this packet had not. The person
    who prepares a packet chooses where its work begins; with a later commit, part of the work would count as the other
    packet's.
    """
    if not resolved(repository, f"{commit}^{{commit}}"):
        return False
    begun = [f"{commit}:{event.path}" for event in other.log.events if event.type == "claimed"]
    own = [f"{commit}:{event.path}" for event in packet.log.events if event.type == "claimed"][-1:]
    held = object_names(repository, (*begun, *own))
    return not held.keys().isdisjoint(begun) and held.keys().isdisjoint(own)


def _knows_claim(repository: Repository, packet: PacketFacts, event: LogEvent, commit: str) -> bool:
    """Whether the commit contains the claim under which it is submitted; a packet adopted in progress has no claim."""
    before = packet.log.ancestry(event.parents)
    claims = [other for other in packet.log.events if other.type == "claimed" and other.id in before]
    return not claims or read_file_at(repository, commit, claims[-1].path) is not None


def _same(repository: Repository, event: LogEvent, commit: str) -> Iterator[str]:
    for said in {str(row["commit"]) for row in evidence_rows(event) if "commit" in row}:
        proved = resolved(repository, f"{said}^{{commit}}")
        if proved is not None and same_work(repository, proved, commit):
            yield said


def _absent(repository: Repository, event: LogEvent, commit: str) -> Iterator[str]:
    """Yield the locations `path:line` that are given as proof but missing from the commit."""
    for row in evidence_rows(event):
        places = row.get("proof")
        for place in places if isinstance(places, list) else ():
            path, _, line = str(place).rpartition(":")
            data = read_file_at(repository, commit, path) if path else None
            if data is None or not line.isdecimal() or not 1 <= int(line) <= len(data.splitlines()):
                yield str(place)


def submitted_versions(repository: Repository, packet: PacketFacts, path: str) -> Mapping[str, bytes]:
    """Return, by digest, the bytes of the file in every commit of this clone and in the work tree; nothing if a
    submitted commit is not in this clone.

    A squash removes the versions between the moves of a branch, so nothing is left to compare with.
    """
    submitted = [event.text("commit") for event in packet.log.events if event.type == "submitted"]
    if any(resolved(repository, f"{commit}^{{commit}}") is None for commit in submitted):
        return {}
    head = head_commit(repository) or ""
    # By default, git does not list what a merge itself changed, such as how a conflict was settled.
    options = ("--all", "--diff-merges=separate")
    versions = changes_before(repository, head, path, options=options, form="%H")
    blobs = {change.blob for _, changes in versions for change in changes if change.path == path and change.blob}
    found = list(read_blobs(repository, blobs).values())
    with suppress(OSError):
        found.append(read_bytes(str(repository.root), path, MARKDOWN.size))
    return {sha256(data).hexdigest(): data for data in found}


def around(
    repository: Repository,
    base: str,
    governed: GovernedFiles,
    logs: LogsOnDemand,
    name: str,
    policy: LifecyclePolicy,
) -> Around:
    packet = governed.packet(WorkPacketId(name))
    return Around(
        # The facts below are functions because each of them asks git, and most moves need none of them.
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
    """Return what the document of a light packet lacks, judged by the specification that would be current."""
    from workpacket.lifecycle.forms import document_unmet

    places = specification_places(governed.read(SPEC_POINTER))
    specification = next((found for path in places if (found := governed.read(path)) is not None), None)
    return [one.message for one in document_unmet(packet, specification, policy.roadmap_headings)]


def _standing(
    repository: Repository, base: str, packet: PacketFacts, *, unasked: bool
) -> tuple[str, str | None] | None:
    """Return the last day of a standing packet according to its files and to those on the base; None if the base's
    policy has the same requirements for standing packets as for others. `unasked`: other packets need no approval.
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


def _was_done(repository: Repository, base: str, needed: str, logs: LogsOnDemand, policy: LifecyclePolicy) -> bool:
    """Whether the packet, or any revision of a base id, was ever in a lane that satisfies the dependency. The packet
    may have moved on since then.
    """
    own = {log.packet: log for log in logs.revisions(needed)}
    if any(event.lane_to in policy.satisfied_by for log in own.values() for event in log.events):
        return True
    waiting = {name: log for name, log in own.items() if LANDS_AS.get(standing(log).lane, "") in policy.satisfied_by}
    return bool(waiting) and bool(landed(repository, base, waiting, policy))


def _waivers(repository: Repository, base: str, packet: PacketFacts) -> Iterator[LogEvent]:
    """Yield the waivers that are approved and have not expired."""
    waivers = [event for event in packet.state.waivers if event.attest]
    if not waivers:
        return
    # Few packets have waivers, and these modules load the code that verifies signatures.
    from workpacket.shell.approvals.event_approvals import lifts
    from workpacket.shell.approvals.facts import open_approvals

    now = actor.moment()
    with open_approvals(repository, base, now) as approvals:
        for event in waivers:
            if not ended(event, now.now) and lifts(approvals, event):
                yield event


def _is_contained(repository: Repository, packet: PacketFacts, event: LogEvent, policy: LifecyclePolicy) -> bool:
    """Whether head, which becomes the target branch when the change is merged, contains the commit that the event calls
    merged, in the state that was judged.
    """
    before = packet.log.ancestry(event.parents)
    submitted = [each.text("commit") for each in packet.log.events if each.type == "submitted" and each.id in before]
    # The last submission before the merge is the one that was judged; an earlier one may lack what the verdict asked
    # for.
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
    """Return the problem for a change in which it cannot be determined which moves are legal."""
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
    """Report tables that the change weakens although the policy names no approvers, unless the base specifies a new
    root of trust.
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
        what = f"[{name}] has changed, but the policy on the base lists no one who could approve the change"
        yield Problem(reason.code, what, Location(POLICY_PATH), reason.remedy, severity=reason.severity)


class _WriteOnce(Value):
    """What is kept of the write-once files: their git ids, the logs with new events, and the reports in all logs."""

    ids: Mapping[str, str]
    changed: Mapping[str, Log]
    reports: Sequence[Report]


def _write_once(root: str, like: str, known: frozenset[str]) -> _WriteOnce:
    """Read every write-once file; `known` are the ids of the events on the base. There may be more events than fit into
    memory, and few of them are new, so the others are discarded.
    """
    ids: dict[str, str] = {}
    changed: dict[str, Log] = {}
    reports: list[Report] = []
    for folder, paths in groupby(append_only_paths(root), lambda path: path.rpartition("/")[0]):
        files = {path: read_logged(root, path) for path in paths}
        ids.update((intern(path), intern(blob_id(data, like))) for path, data in files.items())
        if not folder.startswith(LOG_FOLDER):
            continue
        new = any(path.rpartition("/")[2].removesuffix(".json") not in known for path in files)
        if new or any(_REPORTS in data for data in files.values()):
            logs, _ = read_logs(files)
            reports += reports_of(logs.values())
            changed.update(logs if new else {})
    return _WriteOnce(ids, dict(sorted(changed.items())), reports)


# Part of every event that names the report of a verdict.
_REPORTS = b'"report":{'


def judge(repository: Repository, base: str, *, worktree: bool = False) -> list[Problem]:
    """Return everything that prevents merging the change since `base`; with `worktree`, judge the work tree."""
    commit = commit_of(repository, base)
    root = str(repository.root)
    there = committed_ids(repository, commit)
    # What the base has was judged when it landed. An event is named by its bytes, so names tell what is new.
    known = frozenset(path.rpartition("/")[2].removesuffix(".json") for path in there)
    files = _write_once(root, commit, known)
    findings = judge_merged(repository, commit, worktree=worktree, ids=files.ids)
    findings += judge_append_only(repository, commit, files.ids, worktree=worktree)
    findings += _unguarded(repository, commit)
    logs = files.changed
    governed = find_governed(root)
    faults = read_base_policy(repository, commit).lifecycle.lane_faults
    findings += [_unfit(fault) for fault in faults[:1] if _brings_moves(logs.values(), known)]
    policy = read_base_policy(repository, readable_commit(repository, commit)).lifecycle
    approving = approving_keys(repository, commit) if policy.actors.present else frozenset()
    revoked = revoked_keys(repository, commit) if policy.actors.present else frozenset()
    signatures = EventSignatures(with_former(repository, commit, policy.actors), approving, revoked)
    packets = LogsOnDemand(governed, logs)
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
                reports=files.reports,
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
