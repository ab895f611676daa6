"""What judging a change looks at outside of the log that is judged: dependencies, waivers, git's history, the stub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.ledger.log import Log
from workpacket.lifecycle.judging import Around
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.waivers import ended
from workpacket.model.events import Event
from workpacket.model.ids import WorkPacketId
from workpacket.plans.facts import PacketFacts
from workpacket.shell.governed_files import GovernedFiles
from workpacket.shell.work_done import containment


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
        {needed: _was_done(needed, logs, policy) for needed in packet.dependencies()},
        frozenset(_waived(repository, base, packet)),
        lambda event: _is_contained(repository, packet, event),
    )


def _was_done(needed: str, logs: Mapping[str, Log], policy: LifecyclePolicy) -> bool:
    """Whether the packet, or of a base any revision, ever stood in a lane that counts. It may have moved on since."""
    own = (log for name, log in logs.items() if name == needed or name.startswith(f"{needed}-v"))
    return any(event.lane_to in policy.satisfied_by for log in own for event in log.events)


def _waived(repository: Repository, base: str, packet: PacketFacts) -> Iterator[str]:
    """The conditions that waivers lift which are approved and have not ended."""
    waivers = [event for event in packet.state.waivers if event.attest]
    if not waivers:
        return
    from workpacket.shell.approvals.facts import open_approvals
    from workpacket.shell.approvals.rested import rested_upon
    from workpacket.shell.moment import moment

    now = moment()
    with open_approvals(repository, base, now) as approvals:
        for event in waivers:
            if not ended(event, now.now) and not list(rested_upon(approvals, event)):
                yield event.text("rule") or ""


def _is_contained(repository: Repository, packet: PacketFacts, event: Event) -> bool:
    """Whether head, which becomes the target branch when the change lands, has what the event says was merged."""
    submitted = [each.text("commit") for each in packet.state.history if each.type == "submitted"]
    if event.text("commit") not in submitted:
        return False
    try:
        return bool(containment(repository, packet, head_commit(repository) or "").proof)
    except WorkpacketError:
        return False
