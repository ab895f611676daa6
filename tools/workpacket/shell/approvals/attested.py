"""Gather what is stated about packets for other tools: where their work landed, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from workpacket.git.run import run_git
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.attestations import AttestedPacket
from workpacket.lifecycle.facts import Facts
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import Problem
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.base import held_since, known_to


def attested_packets(
    approvals: Approvals, facts: Facts, findings: Sequence[Problem], wanted: Collection[str]
) -> list[AttestedPacket]:
    """Return the packets whose work was submitted: those that are wanted, or all of them."""
    found = []
    for name, packet in sorted(facts.packets.items()):
        state = packet.state
        if (wanted and name not in wanted) or not any(event.type == "submitted" for event in state.history):
            continue
        landed = _landed(approvals, state, landed=packet.landed)
        found.append(AttestedPacket(state, landed, tuple(sorted({*_codes(approvals, name, state, findings)}))))
    return found


def _landed(approvals: Approvals, state: PacketState, *, landed: bool) -> str:
    """Return the commit of the base that the log names; if the log names none, the first that contains
    the verdict.
    """
    merged = [event.text("target_commit") or "" for event in state.history if event.type == "merged"]
    if merged:
        return merged[-1] if known_to(approvals.repository, approvals.base.commit, merged[-1:]) else ""
    passed = [event for event in state.verdicts if event.text("verdict") == "PASS"]
    if not landed or not passed:
        return ""
    folder = f"{LOG_FOLDER}/{state.packet}"
    held = held_since(approvals.repository, approvals.base.commit, folder)
    return held.get(f"{folder}/{passed[-1].id}.json", ("", 0))[0]


def _codes(approvals: Approvals, name: str, state: PacketState, findings: Iterable[Problem]) -> Iterable[str]:
    """Yield the codes of what is wrong with the packet, its approvals or its log. A problem that names no packet counts
    for every packet.
    """
    own = {digest for event in state.history for digest in event.attest}
    for each in findings:
        if each.severity != "error":
            continue
        parts = each.path.split("/")
        claim = approvals.claims.get(parts[-1])
        about = name in parts or f"{name}.md" in parts or parts[-1].partition(".")[0] in own
        about_all = "attestations" not in parts and not any(part.startswith("WP-") for part in parts)
        if about or about_all or (claim is not None and claim.packet == name):
            yield each.code


def resource_of(approvals: Approvals, repository_name: str) -> str:
    """Return the URI of the repository: the URL of `origin` without a password, or else a URN of its root commit."""
    answer = run_git(approvals.repository.root, "config", "--get", "remote.origin.url", check=False)
    url = answer.text.strip()
    scheme, separator, rest = url.partition("://")
    if separator and scheme in {"https", "ssh", "git"} and "/" in rest:
        host, _, path = rest.partition("/")
        return f"git+{scheme}://{host.rpartition('@')[2]}/{path}"
    return f"urn:workpacket:repository:{approvals.base.root_commit}:{repository_name}"
