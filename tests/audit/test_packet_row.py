"""Packets are audited some at a time: the report does not depend on how many, nor on what an earlier audit proved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit.audited import DONE, Audited
from audit.pages import audit_of, packet
from audit.test_planted_faults import FAULTS
from git.scratch import git
from ledger.stories import rewritten
from lifecycle.actors import NAME, begin, keys
from lifecycle.governed import Governed, govern
from workpacket.approvals.event_signatures import EventSignatures
from workpacket.git.objects import blob_id, folder_id, folder_ids
from workpacket.git.repository import find_repository
from workpacket.model.events import LogEvent
from workpacket.problem import Location, Problem
from workpacket.report.audit_data import PacketTexts, audit_json
from workpacket.report.json_report import encode_readable, render_envelope
from workpacket.shell import audit as subject

FORMS = ("text", "html", "json", "sarif", "markdown")


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_packets_read_one_by_one_give_the_same_report(
    audited: Audited, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault:
        FAULTS[fault][0](audited)
    together = {form: audited("audit", "--format", form) for form in FORMS}
    monkeypatch.setattr(subject, "_AT_ONCE", 1)
    assert {form: audited("audit", "--format", form) for form in FORMS} == together


def test_a_packet_is_doubted_whatever_its_text_says() -> None:
    names = [f"WP-1-Part-{number}-v1" for number in range(3)]
    packets = {
        name: packet(name, f'{name} says "doubted":false and "packets":[] twice: "packets":[]') for name in names
    }
    fault = Problem("log_event_missing", "its parent is missing", Location(f".GOV/log/{names[1]}", 1, 1))
    texts = PacketTexts(encode_readable)
    made = audit_of(packets, visit=texts.take, findings=[fault])
    whole = json.loads("".join(texts.spliced(render_envelope("audit", 1, [], audit_json(made)), names, made)))
    assert [one["id"] for one in whole["data"]["packets"]] == names
    assert [one["doubted"] for one in whole["data"]["packets"]] == [False, True, False]
    assert '"doubted":false and "packets":[]' in whole["data"]["packets"][1]["title"]


def test_the_id_of_a_folder_is_the_one_that_git_gives_it(audited: Audited) -> None:
    repository = find_repository(audited.root, {})
    head = git(audited.root, "rev-parse", "HEAD")
    there = folder_ids(repository, head, ".GOV/log")
    assert DONE in there
    for name, identity in there.items():
        files = (audited.root / ".GOV/log" / name).iterdir()
        assert folder_id({path.name: blob_id(path.read_bytes(), head) for path in files}) == identity
    assert folder_ids(repository, head, ".GOV/nothing") == {}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The events whose signature was verified."""
    found: list[str] = []
    judge = EventSignatures.judge

    def spy(signatures: EventSignatures, event: LogEvent, file: bytes | None = None) -> object:
        found.append(event.id)
        return judge(signatures, event, file)

    monkeypatch.setattr(EventSignatures, "judge", spy)
    return found


@pytest.fixture
def signed(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Governed:
    governed = govern(tmp_path / "repository", monkeypatch, capsys)
    begin(governed, keys(tmp_path_factory.mktemp("settings"), monkeypatch))
    governed.activate(NAME)
    governed.commit("activated")
    return governed


def proven(governed: Governed) -> list[bool]:
    (one,) = governed.json("audit")["data"]["packets"]
    return [event["proven"] for event in one["events"]]


def test_signatures_are_not_verified_twice_while_log_and_policy_are_the_same(
    signed: Governed, judged: list[str]
) -> None:
    first = proven(signed)
    assert (all(first), len(judged)) == (True, len(first))
    assert proven(signed) == first
    assert len(judged) == len(first)


def test_a_changed_event_is_verified_again(signed: Governed, judged: list[str]) -> None:
    first = proven(signed)
    *_, last = signed.state(NAME).history
    name, data = rewritten(last, at="2026-03-01T08:00:00Z")
    (signed.root / last.path).unlink()
    signed.write(f".GOV/log/{NAME}/{name}", data.decode())
    del judged[:]
    assert proven(signed) == [*first[:-1], False]
    assert len(judged) == len(first)
    assert proven(signed)[-1] is False  # what is not proven is not remembered as proven


def test_what_was_proven_under_another_policy_is_verified_again(signed: Governed) -> None:
    assert all(proven(signed))
    text = signed.read(".GOV/policy/policy.toml").replace("[actors.ann]", "[actors.x]")
    signed.write(".GOV/policy/policy.toml", text)
    signed.commit("Ann has left")
    assert not any(proven(signed))


def test_without_a_cache_every_signature_is_verified(
    signed: Governed, judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = proven(signed)
    monkeypatch.setenv("WORKPACKET_CACHE_DIR", str(tmp_path / "another"))
    assert proven(signed) == first
    assert len(judged) == 2 * len(first)
