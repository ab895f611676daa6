"""Reading ahead what the judgement of many events will ask for: all commits by two calls of git, contents in batches.

The line of the base says what each commit held where (`base_line`). A name of which it knows nothing, such as one of a
commit that the base does not have, is looked up by git itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from workpacket.model.events import Event
from workpacket.shell.approvals.events import gates_asked
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.approvals.matter import packet_paths, refinement_paths, spec_places, stub_path
from workpacket.shell.base.committed import OF_EVERY_JUDGEMENT, committed, read_ahead
from workpacket.shell.base.line import BaseLine, base_line
from workpacket.shell.base.revision import policy_at

_MATTERS = (".GOV/refinements", ".GOV/task_packets")


def events_at_gates(approvals: Approvals, consuming: Sequence[Event]) -> list[Event]:
    """The events that had to pass a gate; everything that the base holds about them has been read afterwards."""
    repository = approvals.repository
    line = _line(approvals, *OF_EVERY_JUDGEMENT, *_MATTERS)
    befores = dict.fromkeys(approvals.policy_commit(event) for event in consuming)
    read_ahead(repository, (f"{before}:{path}" for before in befores if before for path in OF_EVERY_JUDGEMENT), line)
    policies = {before: policy_at(repository, before).policy for before in befores}
    events = [event for event in consuming if gates_asked(event, policies[approvals.policy_commit(event)])]
    read_ahead(repository, _matters(approvals, events), line)
    specifications = list(_specifications(approvals, events))
    read_ahead(repository, specifications, _line(approvals, *(name.partition(":")[2] for name in specifications)))
    return events


def _line(approvals: Approvals, *paths: str) -> BaseLine | None:
    commit = approvals.base.commit
    return base_line(approvals.repository, commit, *dict.fromkeys(paths)) if commit and paths else None


def _matters(approvals: Approvals, events: Iterable[Event]) -> Iterator[str]:
    """The files of packets as the commits held them that settled their events."""
    for event in events:
        settled = approvals.settled(event)
        if settled is not None:
            commit, _, _ = settled
            packet = event.packet
            for path in (*refinement_paths(packet), *packet_paths(packet), stub_path(packet)):
                yield f"{commit}:{path}"


def _specifications(approvals: Approvals, events: Iterable[Event]) -> Iterator[str]:
    """Where the specifications may lie, which their pointers say."""
    for before in {settled[1] for event in events if (settled := approvals.settled(event)) is not None}:
        read = partial(committed, approvals.repository, before)
        yield from (f"{before}:{path}" for path in spec_places(read))
