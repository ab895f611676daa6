"""What a command knows about the repository before it plans; gathered by the shell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from workpacket.documents.document import read_once
from workpacket.ledger.fold import PacketState, fold, in_force
from workpacket.ledger.log import Log
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import LANDS_AS
from workpacket.model.layout import packet_paths, refinement_paths, stub_path
from workpacket.model.plan import Moment
from workpacket.problem import Problem
from workpacket.text.blocks import normal_key
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from workpacket.approvals.facts import Verdict
    from workpacket.documents.packet import Packet
    from workpacket.documents.refinement import Refinement
    from workpacket.documents.stub import Stub
    from workpacket.documents.summary import WorkSummary
    from workpacket.lifecycle.glance import Glance


class PacketFacts(Value):
    """One packet: its files, or None for missing ones, and its log.

    `landed` says whether its work is on the target branch of this tree, as judged, or as submitted if the policy
    requires no verdict. `verified` says whether a list may call all its signatures verified.

    With the `stub_says` and `packet_says` summaries, most questions can be answered without parsing a file. The reader
    for a kind is loaded with the first document of that kind.
    """

    id: WorkPacketId
    log: Log
    stub_source: Source | None = None
    packet_source: Source | None = None
    refinement_source: Source | None = None
    stub_says: WorkSummary | None = None
    packet_says: WorkSummary | None = None
    landed: bool = False
    verified: bool = False

    @cached_property
    def state(self) -> PacketState:
        return fold(self.log)

    @cached_property
    def glance(self) -> Glance:
        from workpacket.lifecycle.glance import glance_at  # only lists of packets ask for it

        return glance_at(self.log, self.state)

    @property
    def outline(self) -> PacketState | Glance:
        """Return the state, or the part of it that is known without reading the log."""
        return self.state

    def as_landed(self) -> PacketFacts:
        return replace(self, landed=True)

    @cached_property
    def stub(self) -> Stub | None:
        if self.stub_source is None:
            return None
        from workpacket.documents.stub import Stub

        return read_once(Stub, self.stub_source)

    @cached_property
    def packet(self) -> Packet | None:
        if self.packet_source is None:
            return None
        from workpacket.documents.packet import Packet

        return read_once(Packet, self.packet_source)

    @cached_property
    def refinement(self) -> Refinement | None:
        if self.refinement_source is None:
            return None
        from workpacket.documents.refinement import Refinement

        return read_once(Refinement, self.refinement_source)

    def left_open(self) -> list[str]:
        """Return the keys of the packet's fields that still say TODO."""
        found = self.packet.left_open if self.packet is not None else []
        # A missing risk was approved as such, and only an amendment can add it.
        return [key for key in found if normal_key(key) != "risk_tier"] if in_force(self.log) else found

    @property
    def stub_path(self) -> str:
        return self.stub_source.path if self.stub_source is not None else stub_path(self.id.text)

    @property
    def packet_path(self) -> str:
        return self.packet_source.path if self.packet_source is not None else packet_paths(self.id.text)[0]

    @property
    def refinement_path(self) -> str:
        return self.refinement_source.path if self.refinement_source is not None else refinement_paths(self.id.text)[0]

    @property
    def lane(self) -> str:
        """Return the effective lane: the lane in the log, except that merged work counts as done; '' without a log.

        A move starts from `state.lane`, which is the same in every tree.
        """
        return LANDS_AS[self.outline.lane] if self.landed else self.outline.lane

    @property
    def light(self) -> bool:
        """Whether the packet is in the light form, according to the log."""
        return self.outline.light

    @property
    def standing(self) -> bool:
        """Whether the packet's scope says how long it covers small recurring changes."""
        from workpacket.lifecycle.contract import stated
        from workpacket.lifecycle.gates import standing_until

        if self.stub is not None:
            return standing_until(item.value for item in self.stub.in_scope) is not None
        contract = stated(self.packet, None) if self.packet is not None and self.packet.light else ""
        return not isinstance(contract, str) and standing_until(contract.scope) is not None

    def dependencies(self) -> Sequence[str]:
        """Return the packet's dependencies, according to its document and the approved contract, or else according to
        its stub."""
        named = self._named_in("packet")
        # Removing a dependency from the packet is not enough: only an amendment changes the approved contract.
        approved = self._approved_dependencies()
        named = [*dict.fromkeys((*named, *approved))] if approved is not None else named or self._named_in("stub")
        return [name for name in named if name.startswith("WP-")]

    def _approved_dependencies(self) -> Sequence[str] | None:
        """Return the dependencies in the last event that sets the contract; None if no such event lists them."""
        for event in reversed(self.state.history):
            if event.type in {"activated", "amended"}:
                said = event.data.get("dependencies")
                return [str(name) for name in said] if isinstance(said, list) else None
        return None

    def _named_in(self, kind: Literal["packet", "stub"]) -> Sequence[str]:
        says = self.packet_says if kind == "packet" else self.stub_says
        # A document with a different id may name this packet itself, which is not a dependency here.
        if says is not None and says["id"] == self.id.text:
            return [mention[0] for mention in says["depends"]]
        document = self.packet if kind == "packet" else self.stub
        if document is None:
            return []
        return [mention[0] for mention in document.mentions(document.dependency_texts(), self.id.text)]

    @property
    def risk(self) -> str:
        """Return the risk stated in the packet; '' if the packet states none, or if there is only a stub."""
        if self.packet_says is not None:
            return self.packet_says["risk"]
        text = self.packet.risk_tier if self.packet is not None else None
        return text.value if text is not None else ""


class Facts(Value):
    """The state of the repository. `packets` are those that the command is about, their revisions and their
    dependencies; `known` lists all packets.

    `refinement_faults` are the errors that a check finds in a refinement, by packet. `approvals` has the verdict of the
    approvals layer for each gate of the command, and `approved` has the accepted waivers. `target_here` is the local
    name of the target branch, and `on_target` says whether it is checked out.
    """

    moment: Moment
    actor: Actor
    tool: str
    policy: LifecyclePolicy
    packets: Mapping[str, PacketFacts]
    known: Collection[str]
    board: Source | None = None
    registry: Source | None = None
    spec_pointer: Source | None = None
    specification: Source | None = None
    refinement_faults: Mapping[str, Sequence[Problem]] = NOTHING
    target_branch: str = ""
    target_here: str = ""
    approvals: Mapping[str, Verdict] = NOTHING
    approved: frozenset[str] = frozenset()
    on_target: bool = False

    def is_drawn(self, name: str) -> bool:
        """Whether the board and the registry on this branch list the packet."""
        where = self.policy.packets.board
        if where in {"", "branch"}:
            return where == "branch" or not self.packets[name].light
        return where == "base" and self.on_target

    def revisions(self, wp_id: WorkPacketId) -> Iterator[PacketFacts]:
        """Yield all known revisions of the base of `wp_id`, lowest first, including `wp_id` itself."""
        same = (packet for packet in self.packets.values() if packet.id.base == wp_id.base)
        return iter(sorted(same, key=lambda packet: packet.id.revision or 1))

    def lane_of(self, name: str) -> str:
        packet = self.packets.get(name)
        return packet.lane if packet is not None else ""
