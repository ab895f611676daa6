"""One gate reads only the envelopes of its packet, and judges as it would by all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell.approvals.story import ALICE, BOB, CAROL, REFINEMENT_PATH, STUB_PATH, WP, Story, codes
from workpacket.approvals.facts import Verdict
from workpacket.shell.actor import moment
from workpacket.shell.approvals import envelopes
from workpacket.shell.approvals.facts import gate_verdict, open_approvals
from workpacket.shell.transactions.storage import Tree

OTHER = "WP-2-Lexer-v1"


def by_all(story: Story, packet: str) -> Verdict:
    with open_approvals(story.repository, None, moment()) as approvals:
        return approvals.verdict(packet, "activation")


def by_its_own(story: Story, packet: str) -> Verdict:
    return gate_verdict(story.repository, packet, "activation", moment=moment())


@pytest.fixture(autouse=True)
def _many_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were so many that a gate keeps what they claim."""
    monkeypatch.setattr(envelopes, "_FEW", 0)


def kept(story: Story) -> Path:
    (path,) = (story.home / "config" / "workpacket" / "claims").glob("*/*.sqlite")
    return path


def take_away(story: Story, envelope: str) -> None:
    (story.root / f".GOV/attestations/{envelope}.dsse.json").unlink()


def test_at_every_step_the_gate_says_what_it_would_say_by_all_envelopes(story: Story) -> None:
    for path in (REFINEMENT_PATH, STUB_PATH):
        story.write(path.replace(WP, OTHER), story.read(path).replace(WP, OTHER))
    story.commit("two packets")
    made: list[str] = []
    for step in (
        lambda: made.append(story.approve()),
        lambda: made.append(story.approve(BOB, packet=OTHER)),
        lambda: made.append(story.approve(BOB, decision="reject")),
        lambda: story.commit("on the base"),
        lambda: made.append(story.revoke(made[2], CAROL)),
        lambda: story.revoke(made[0], CAROL),
        lambda: take_away(story, made[0]),
        lambda: story.write(f".GOV/attestations/{made[1]}.dsse.json", "edited"),
        lambda: story.write(f".GOV/attestations/{'a' * 64}.dsse.json", "junk"),
        lambda: story.write(".GOV/attestations/README.md", "strange"),
        lambda: kept(story).write_text("damaged"),
        lambda: kept(story).unlink(),
    ):
        step()
        for packet in (WP, OTHER):
            assert by_its_own(story, packet) == by_all(story, packet)
            assert by_its_own(story, packet) == by_all(story, packet)
    assert codes(by_its_own(story, WP)) == {"approval_revoked", "threshold_unmet"}


def test_an_envelope_of_another_packet_that_the_events_name_is_read(story: Story) -> None:
    for path in (REFINEMENT_PATH, STUB_PATH):
        story.write(path.replace(WP, OTHER), story.read(path).replace(WP, OTHER))
    story.commit("two packets")
    event = story.activate(story.approve(ALICE, packet=OTHER))
    assert codes(by_its_own(story, WP)) == codes(by_all(story, WP))
    with open_approvals(story.repository, None, moment(), WP) as approvals:
        assert f"{event.attest[0]}.dsse.json" in approvals.claims


def test_what_is_about_other_packets_is_not_read_again(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (REFINEMENT_PATH, STUB_PATH):
        story.write(path.replace(WP, OTHER), story.read(path).replace(WP, OTHER))
    story.commit("two packets")
    own, other = story.approve(), story.approve(packet=OTHER)
    by_its_own(story, WP)
    read: list[str] = []

    def reading(tree: Tree, path: str) -> bytes | None:
        read.append(path)
        return original(tree, path)

    original = envelopes.read_file
    monkeypatch.setattr(envelopes, "read_file", reading)
    assert by_its_own(story, WP).met
    assert f".GOV/attestations/{own}.dsse.json" in read
    assert f".GOV/attestations/{other}.dsse.json" not in read
