"""Events signed by those who make them: what a name alone opens, which keys act as whom, and who judges whose work."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from architecture.source_tree import ROOT
from ledger.stories import rewritten
from lifecycle.actors import NAME, begin, errors, keys, submitted, tables
from lifecycle.governed import TOKENS_COUNT, Governed, forge
from lifecycle.signed import ALICE, Signed
from workpacket.approvals.actors import Actors, read_actors
from workpacket.approvals.event_signatures import EventSignatures
from workpacket.approvals.policy import GatePolicy
from workpacket.ledger.log import join_events
from workpacket.lifecycle.authorship import CLAIMED, not_apart
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.shell import keys as shell_keys
from workpacket.shell.approvals.subject import ApprovalSubject
from workpacket.shell.approvals.uses import FirstAuthors, parties_of
from workpacket.shell.judging import log_verification
from workpacket.shell.keys import find_key, key_path, make_event_key, signers_line
from workpacket.text.toml_strict import plain_toml

pytestmark = pytest.mark.share(4)


@pytest.fixture
def fingerprints(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    return keys(tmp_path_factory.mktemp("settings"), monkeypatch)


def verdict(governed: Governed, who: str) -> list[str]:
    return governed("verdict", NAME, "PASS", "--report", "report.md", "--as", who).codes


def test_without_an_event_key_events_are_unsigned_as_before(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    assert [event.sig for event in governed.state(NAME).history] == [""]


def test_a_key_of_the_actors_name_signs_without_a_policy(governed: Governed, fingerprints: dict[str, str]) -> None:
    governed.begin()
    governed.activate_by_commands(NAME, "")  # what other tests remember of this step has no signatures
    events = governed.state(NAME).history
    assert all(event.sig for event in events)
    actors = read_actors(plain_toml(tables(fingerprints))["actors"])
    assert {EventSignatures(actors).judge(event).state for event in events} == {"proven"}
    assert errors(governed) == {}


def test_the_whole_way_with_signed_events_passes(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    governed.git("branch", "base")
    submitted(governed)
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    governed.commit("judged")
    assert errors(governed, "--base", "base") == {}
    assert {event.actor.kind for event in governed.state(NAME).history} == {"human", "agent"}


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("coder-2", "coder-2 and coder, who worked on the packet, are the same person: ann"),
        ("ann", "ann and coder, who worked on the packet, are the same person: ann"),
    ],
)
def test_a_second_name_of_the_same_person_does_not_judge(
    governed: Governed, fingerprints: dict[str, str], who: str, reason: str
) -> None:
    begin(governed, fingerprints)
    submitted(governed)
    governed.git("branch", "base")
    refused = governed("verdict", NAME, "PASS", "--report", "report.md", "--as", who)
    assert (refused.status, refused.codes) == (3, ["verdict_by_coder"])
    assert reason in refused.err
    assert "--as" not in refused.err


def test_a_name_that_no_key_of_the_account_may_use_writes_nothing(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints)
    submitted(governed)
    before = governed.files()
    refused = governed("verdict", NAME, "PASS", "--report", "report.md", "--as", "eve")
    assert "event_key_missing" in refused.err
    assert governed.files() == before
    for name in (*fingerprints,):
        key_path(name).unlink()
        Path(f"{key_path(name)}.pub").unlink()
    assert (
        "this account has no event key"
        in governed("block", NAME, "--reason", "ill", "--until", "well", "--as", "ann").err
    )


def test_the_person_who_commissioned_it_judges_where_the_policy_says_so(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints, '\n[verdict]\nseparation = ["coder"]\n')
    governed.git("branch", "base")
    submitted(governed)
    assert verdict(governed, "coder-2") == ["verdict_by_coder"]
    done = governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "ann")
    assert "judged by the operator of the agent that did the work" in done.out
    governed.commit("judged")
    assert errors(governed, "--base", "base") == {}


def move_of(governed: Governed, **data: Json) -> dict[str, Json]:
    return {"lane_from": governed.state(NAME).lane, **data}


def test_an_unsigned_event_written_by_hand_does_not_land(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    governed.git("branch", "base")
    governed.activate(NAME)
    forge(governed, NAME, "noted", {"text": "so it is"})
    governed.commit("forged")
    found = errors(governed, "--base", "base")
    assert found == {"event_unsigned": f"{NAME}: noted of {NAME} by mallory has no signature"}


def test_events_that_the_base_holds_are_not_judged_again(governed: Governed, fingerprints: dict[str, str]) -> None:
    """A repository that names its actors today has unsigned events of yesterday."""
    governed.git("config", "user.name", "nobody's key")
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    assert [event.sig for event in governed.state(NAME).history if event.sig] == []
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + tables(fingerprints))
    governed.commit("Actors")
    governed.git("branch", "base")
    governed.git("switch", "--quiet", "--create", "work")
    governed.done("claim", NAME, "--as", "coder")
    governed.commit("claimed")
    assert errors(governed, "--base", "base") == {}


def resigned(governed: Governed, monkeypatch: pytest.MonkeyPatch, key: Path, *words: str) -> None:
    """A command of an account that looks at another policy, in which this key may do everything."""
    monkeypatch.setenv("WORKPACKET_EVENT_KEY", str(key))
    with monkeypatch.context() as patch:
        unasked = "workpacket.shell.keys.signed"
        signed = shell_keys.signed
        patch.setattr(unasked, lambda plan, _actors: signed(plan, read_actors(None)))
        governed.done(*words)
    monkeypatch.delenv("WORKPACKET_EVENT_KEY")


def test_a_key_does_not_act_under_another_name(
    governed: Governed, fingerprints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(governed, fingerprints)
    submitted(governed)
    governed.git("branch", "base")
    words = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    resigned(governed, monkeypatch, key_path("coder"), *words)
    governed.commit("judged by another name")
    found = errors(governed, "--base", "base")
    assert set(found) == {"actor_not_allowed"}
    assert "may act as coder, not as judge" in found["actor_not_allowed"]


def test_a_key_that_the_policy_does_not_list_proves_nothing(
    governed: Governed, fingerprints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(governed, {name: key for name, key in fingerprints.items() if name != "ben"} | {"ben": fingerprints["ann"]})
    governed.git("branch", "base")
    governed.activate(NAME)
    governed.git("switch", "--quiet", "--create", "work")
    resigned(governed, monkeypatch, key_path("ben"), "claim", NAME, "--as", "judge")
    governed.commit("claimed")
    assert set(errors(governed, "--base", "base")) == {"actor_key_unknown"}


def test_a_revoked_key_proves_nothing(governed: Governed, fingerprints: dict[str, str]) -> None:
    """Although the policy still lists it for the actor."""
    begin(governed, fingerprints)
    governed.activate(NAME)
    public = Path(f"{key_path('coder')}.pub").read_text("utf-8")
    governed.write(".GOV/policy/revoked_keys", " ".join(public.split()[:2]) + "\n")
    governed.commit("activated, and a key revoked")
    governed.git("branch", "base")
    governed.git("switch", "--quiet", "--create", "work")
    governed.done("claim", NAME, "--as", "coder")
    governed.commit("claimed")
    found = errors(governed, "--base", "base")
    assert set(found) == {"actor_key_unknown"}
    assert "but the policy revoked this key" in found["actor_key_unknown"]


def test_the_person_behind_a_renamed_coder_is_known_by_the_key(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints)
    submitted(governed)
    renamed = tables(fingerprints).replace("[actors.coder]", "[actors.robot]")
    actors = read_actors(plain_toml(renamed)["actors"])
    events = governed.state(NAME).history
    assert [reason for reason in not_apart("ann", events, actors) if "robot, who worked on the packet" in reason]
    assert list(not_apart("judge", events, actors)) == []
    rules = GatePolicy(("approver",), 1, ("coder", "operator"), "none", timedelta(days=1), legacy_tokens=False)
    nothing = ApprovalSubject(((".GOV/x.md", b"x"),))
    parties = parties_of(cast("FirstAuthors", NoGit()), join_events(NAME, events), nothing, rules, actors)
    assert parties == {"coder": {"coder", "robot"}, "operator": {"coder", "ann"}}


def test_the_person_behind_a_coder_who_has_left_the_policy_does_not_judge(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    """The agent is taken out with its key, so that nobody seems to be behind its work."""
    begin(governed, fingerprints)
    submitted(governed)
    policy = governed.read(".GOV/policy/policy.toml")
    row = next(table for table in policy.split("\n\n") if table.startswith("[actors.coder]"))
    governed.write(".GOV/policy/policy.toml", policy.replace(row, ""))
    governed.commit("The coder has left")
    governed.git("branch", "base")
    governed.git("branch", "--force", "main", "base")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "ann")
    governed.commit("judged")
    found = errors(governed, "--base", "base")
    assert "ann and coder, who worked on the packet, are the same person: ann" in found["move_without_gate"]


def test_two_names_with_one_key_are_one_person(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints | {"judge": fingerprints["coder"]})
    submitted(governed)
    refused = governed("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    assert refused.codes == ["verdict_by_coder"]
    assert "have a key in common" in refused.err


def test_a_role_that_the_actor_lacks(
    governed: Governed, fingerprints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = fingerprints["coder"]
    policy = tables(fingerprints).replace(f'["{key}"]', f'["{key}"]\nroles = ["author"]')
    governed.begin(policy=TOKENS_COUNT + policy)
    governed.git("branch", "base")
    governed.activate(NAME)
    governed.git("switch", "--quiet", "--create", "work")
    governed.done("claim", NAME, "--as", "coder")
    governed.commit("claimed")
    found = errors(governed, "--base", "base")
    assert "claimed requires the coder role" in found["actor_not_allowed"]


def test_a_signature_over_other_bytes(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    governed.git("branch", "base")
    governed.activate(NAME)
    *_, last = governed.state(NAME).history
    value = {**last.json(), "at": "2026-03-01T08:00:00Z"}
    name, data = rewritten(last, at="2026-03-01T08:00:00Z")
    assert json.loads(data)["sig"] == value["sig"]
    (governed.root / last.path).unlink()
    governed.write(f".GOV/log/{NAME}/{name}", data.decode())
    governed.commit("altered")
    assert "does not match this event" in errors(governed, "--base", "base")["event_signature_invalid"]


def test_a_key_in_the_work_tree_or_open_to_others_is_not_used(
    governed: Governed, fingerprints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    governed.begin()
    stolen = governed.root / "key"
    stolen.write_bytes(key_path("ann").read_bytes())
    monkeypatch.setenv("WORKPACKET_EVENT_KEY", str(stolen))
    assert "event_key_in_repository" in governed("new", NAME, "--what", "x", "--why", "y").err
    monkeypatch.delenv("WORKPACKET_EVENT_KEY")
    if os.name != "nt":
        key_path("ann").chmod(0o644)
        assert "event_key_unfit" in governed("new", NAME, "--what", "x", "--why", "y").err
        key_path("ann").chmod(0o600)
    key_path("ann").rename(key_path("ann").with_name("elsewhere"))
    monkeypatch.setenv("WORKPACKET_EVENT_KEY", str(key_path("ann")))
    assert "cannot be read" in governed("new", NAME, "--what", "x", "--why", "y").err
    assert not (governed.root / ".GOV/log" / NAME).exists()


def test_key_init_makes_keys_that_commands_use(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
    governed.begin()
    made = governed.json("key", "init", "--event")["data"]
    assert (made["actor"], made["path"]) == ("ann", str(key_path("ann")))
    assert made["lines"] == ["[actors.ann]", 'kind = "person"', f'keys = ["{made["fingerprint"]}"]']
    said = governed.done("key", "init", "--agent", "coder 1/2").out
    assert '[actors."coder 1/2"]' in said
    assert Path(f"{key_path('coder 1/2')}.pub").read_text().rstrip().endswith("workpacket agent key of coder 1/2")
    if os.name != "nt":
        assert key_path("ann").stat().st_mode & 0o077 == 0
    assert governed("key", "init", "--event").status == 4
    assert governed("key", "init", "--event", "--agent", "x").status == 2
    assert governed("key", "init", "--agent", "x\ny").status == 2
    assert governed("key", "init", str(governed.root / "key"), "--agent", "x").status == 6
    governed.stub(NAME)
    assert all(event.sig for event in governed.state(NAME).history)


def test_every_output_says_which_names_are_only_claimed(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.git("switch", "--quiet", "--create", f"wp/{NAME}")
    governed.done("claim", NAME, "--as", "coder")
    assert f"who acted: {CLAIMED}" in governed.done("log", "show", NAME).out
    assert not any(event["proven"] for event in governed.json("log", "show", NAME)["data"]["events"])
    assert f"coder ({CLAIMED}) until" in governed.done("show", NAME).out
    assert governed.json("show", NAME)["data"]["proven"] == 0
    assert f"moved by coder ({CLAIMED})" in governed.done("why", NAME).out
    assert governed.json("why", NAME)["data"]["moved_by"] == [f"coder ({CLAIMED})"]
    assert governed.json("status")["data"]["held"] == {NAME: f"coder ({CLAIMED})"}
    assert f"({CLAIMED})" in governed.json("board", "export")["data"]["page"]
    audited = governed.json("audit")["data"]
    assert {"name": "Events with a proven actor; the rest are claimed, not proven", "done": 0}.items() <= next(
        gap for gap in audited["gaps"] if gap["name"].startswith("Events")
    ).items()


def test_what_is_proven_is_called_so(governed: Governed, fingerprints: dict[str, str]) -> None:
    governed.git("config", "user.name", "nobody's key")
    governed.begin(policy=TOKENS_COUNT)
    governed.activate(NAME)
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + tables(fingerprints))
    governed.commit("Actors")
    governed.git("switch", "--quiet", "--create", f"wp/{NAME}")
    governed.done("claim", NAME, "--as", "coder")
    *before, claimed = governed.done("log", "show", NAME).out.splitlines()[:-2]
    assert all(line.endswith(f"; {CLAIMED}") for line in before)
    assert not claimed.endswith(CLAIMED)
    assert f"coder ({CLAIMED})" not in governed.done("show", NAME).out
    assert governed.json("show", NAME)["data"]["proven"] == 1
    assert governed.json("why", NAME)["data"]["moved_by"] == ["coder"]
    assert governed.json("status")["data"]["held"] == {NAME: "coder"}
    page = governed.json("board", "export")["data"]["page"]
    assert re.findall(r'class="note">([^<]*)</span>', page)[1:] == [f"unsigned ({CLAIMED})"], "the events before"
    assert f"Z ({CLAIMED})" not in page, "the holder is proven"


def signatures(governed: Governed) -> tuple[str, str]:
    """What `list` and `board show` say about the signatures of the packet, in the JSON output; text must agree."""
    (row,) = [row for row in governed.json("list")["data"]["work"] if row["id"] == NAME and row["kind"] == "packet"]
    on_board = governed.json("board", "show")["data"]["signatures"][NAME]
    text = {"unsigned": f"unsigned ({CLAIMED})"}.get(on_board, on_board)
    assert f"- {text}\n" in governed.done("board", "show").out
    (line,) = [line for line in governed.done("list").out.splitlines() if line.startswith(NAME)]
    assert f" {row['signatures']} " in line
    return row["signatures"], on_board


def test_lists_say_what_is_signed_and_what_was_verified_and_verify_nothing(
    governed: Governed, fingerprints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    governed.commit("activated")
    with monkeypatch.context() as patch:
        patch.setattr(EventSignatures, "judge", None)
        assert signatures(governed) == ("signed", "signed")
    governed.done("log", "verify", "--signatures")
    assert signatures(governed) == ("verified", "verified")
    assert '<span class="note">signed</span>' in governed.json("board", "export")["data"]["page"]
    assert governed.done("board", "export", "--format", "csv").out.splitlines()[1].endswith(",signed")

    governed.git("switch", "--quiet", "--create", f"wp/{NAME}")
    governed.done("claim", NAME, "--as", "coder")
    assert signatures(governed) == ("signed", "signed"), "a new event was not verified"
    forge(governed, NAME, "noted", {"text": "unsigned"})
    governed.done("log", "verify", "--signatures")
    assert signatures(governed) == ("unsigned", "unsigned")


def test_a_log_with_a_fault_is_not_verified_although_every_signature_is(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    governed.commit("activated")
    stray = f".GOV/log/{NAME}/{'0' * 64}.json"
    governed.write(stray, "{}")
    assert governed("log", "verify", "--signatures").status == 5
    (governed.root / stray).unlink()
    assert signatures(governed) == ("signed", "signed")


def test_what_was_verified_under_another_policy_is_only_signed(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    governed.commit("activated")
    governed.done("log", "verify", "--signatures")
    public = key_path("ben").with_suffix(".pub").read_text("utf-8")
    governed.write(".GOV/policy/revoked_keys", f"{' '.join(public.split()[:2])}\n")
    governed.commit("Ben's key is revoked")
    assert signatures(governed) == ("signed", "signed")
    governed.done("log", "verify", "--signatures")
    assert signatures(governed) == ("verified", "verified")


@pytest.mark.parametrize("policy", ["", "not the signer's"])
def test_nothing_is_called_verified_that_is_not_proven(
    governed: Governed, fingerprints: dict[str, str], policy: str
) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    if policy:
        text = governed.read(".GOV/policy/policy.toml").replace("[actors.ann]", "[actors.x]")
        governed.write(".GOV/policy/policy.toml", text)
        governed.commit("Ann has left")
    else:
        *_, last = governed.state(NAME).history
        name, data = rewritten(last, at="2026-03-01T08:00:00Z")
        (governed.root / last.path).unlink()
        governed.write(f".GOV/log/{NAME}/{name}", data.decode())
    governed("log", "verify", "--signatures")
    assert signatures(governed) == ("signed", "signed")


def test_where_the_policy_names_no_actors_lists_call_all_packets_unsigned(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    governed.begin()
    governed.activate_by_commands(NAME, "")
    assert all(event.sig for event in governed.state(NAME).history)
    (row,) = [row for row in governed.json("list")["data"]["work"] if row["kind"] == "packet"]
    assert row["signatures"] == "unsigned"
    assert governed.done("list").out.endswith("1 packet, unsigned\n")
    board = governed.done("board", "show").out
    assert f"\nwho acted: {CLAIMED}\n" in board
    assert f"- **[{NAME}]** - [READY_FOR_DEV]\n" in board


@pytest.mark.parametrize("how", ["revoked", "approving"])
def test_no_output_calls_an_event_proven_whose_key_proves_nothing(
    governed: Governed, fingerprints: dict[str, str], how: str
) -> None:
    """Although the policy still lists the key for the actor: `log verify` and `check --base` refuse it, too."""
    begin(governed, fingerprints)
    governed.activate(NAME)
    governed.git("switch", "--quiet", "--create", f"wp/{NAME}")
    governed.done("claim", NAME, "--as", "coder")
    governed.git("add", "--all")
    governed.git("commit", "--quiet", "--message", "claimed")
    governed.git("switch", "--quiet", "main")
    public = " ".join(key_path("coder").with_suffix(".pub").read_text("utf-8").split()[:2])
    if how == "revoked":
        governed.write(".GOV/policy/revoked_keys", f"{public}\n")
    else:
        governed.write(".GOV/policy/allowed_signers", f'x@example.org namespaces="workpacket-approval@v1" {public}\n')
    governed.commit("The coder's key proves nothing")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    assert f"coder ({CLAIMED}) until" in governed.done("show", NAME).out
    assert f"moved by coder ({CLAIMED})" in governed.done("why", NAME).out
    (claim,) = [line for line in governed.done("log", "show", NAME).out.splitlines() if " claimed " in line]
    assert claim.endswith(CLAIMED)
    (event,) = [each for each in governed.json("log", "show", NAME)["data"]["events"] if each["type"] == "claimed"]
    assert not event["proven"]


def test_log_verify_counts_what_signatures_come_to(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    events = len(governed.state(NAME).history)
    governed.commit("activated")
    forge(governed, NAME, "noted", {"text": "unsigned"})
    counted = governed.json("log", "verify", "--signatures")["data"]["signatures"]
    assert counted == {"proven": events, "unlisted": 0, "unsigned": 1, "invalid": 0}
    assert f"signatures: {events} proven; {CLAIMED}: 1 unsigned" in governed.done("log", "verify", "--signatures").out
    governed.write(
        ".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml").replace("[actors.ann]", "[actors.x]")
    )
    governed.commit("Ann has left")
    after = governed.json("log", "verify", "--signatures")["data"]["signatures"]
    assert (after["proven"], after["unlisted"]) == (0, events)
    assert "signatures" not in governed.json("log", "verify")["data"]


def test_log_verify_counts_a_revoked_key_as_one_that_proves_nothing(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    events = len(governed.state(NAME).history)
    public = key_path("ann").with_suffix(".pub").read_text("utf-8")
    governed.write(".GOV/policy/revoked_keys", f"{' '.join(public.split()[:2])}\n")
    governed.commit("Ann's key is revoked")
    counted = governed.json("log", "verify", "--signatures")["data"]["signatures"]
    assert (counted["proven"], counted["unlisted"]) == (0, events)


def test_many_packets_are_read_by_two_processes_with_the_same_answer(
    governed: Governed, fingerprints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    forge(governed, NAME, "noted", {"text": "unsigned"})
    governed.commit("activated")
    governed.write(f".GOV/log/{NAME}/stray", "x")
    words = ("log", "verify", "--signatures", "--base", "HEAD")
    one = governed.json(*words)
    assert one["data"]["signatures"]["unsigned"] == 1
    assert [each["code"] for each in one["findings"]] == ["log_foreign_file"]
    monkeypatch.setattr(log_verification, "_WORTH_A_PROCESS", 0)
    monkeypatch.setattr(log_verification, "_PROCESSES", 1)
    assert governed.json(*words) == one


def test_what_a_second_process_cannot_read_is_named_as_in_the_first(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    governed.begin()
    governed.stub(NAME)
    (governed.root / f".GOV/log/{NAME}/fifo").symlink_to("nowhere")
    one = governed("log", "verify")
    assert one.codes == ["file_unreadable"]
    monkeypatch.setattr(log_verification, "_WORTH_A_PROCESS", 0)
    monkeypatch.setattr(log_verification, "_PROCESSES", 1)
    assert governed("log", "verify") == one


def test_log_verify_names_a_signature_that_does_not_hold(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    governed.activate(NAME)
    *_, last = governed.state(NAME).history
    name, data = rewritten(last, at="2026-03-01T08:00:00Z")
    (governed.root / last.path).unlink()
    governed.write(f".GOV/log/{NAME}/{name}", data.decode())
    assert governed("log", "verify").status == 0
    found = governed("log", "verify", "--signatures")
    assert (found.status, "event_signature_invalid" in found.out) == (5, True)


def test_an_approval_key_that_the_policy_lists_as_an_event_key_signs_no_event(
    signed: Signed, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Ann's event key stands in allowed_signers for approvals too: what it signs counts on neither side."""
    governed = signed.governed
    found = keys(tmp_path_factory.mktemp("settings"), monkeypatch)
    key = tmp_path_factory.mktemp("both") / "alice"
    made = make_event_key("alice", "event", key)
    signed.begin(more=tables(found | {"alice": made.public.fingerprint}))
    line = signers_line(ALICE, made.public)
    governed.write(".GOV/policy/allowed_signers", governed.read(".GOV/policy/allowed_signers") + line + "\n")
    governed.commit("One key for both")
    governed.git("branch", "base")
    governed.git("switch", "--quiet", "--create", "work")
    monkeypatch.setenv("WORKPACKET_EVENT_KEY", str(key))
    governed.done("new", NAME, "--what", "x", "--why", "y", "--roadmap", "SPEC_v1 2", "--as", "alice")
    governed.commit("stub")
    found_errors = errors(governed, "--base", "base")
    assert "approval_key_in_event" in found_errors
    assert made.public.fingerprint in found_errors["approval_key_in_event"]


class NoGit:
    """Nobody is asked who committed the file."""

    def of(self, path: str) -> frozenset[str]:
        return frozenset({"Alice <alice@example.org>"})


def test_the_author_is_who_signed_the_draft_and_the_operator_is_behind_the_coder(
    governed: Governed, fingerprints: dict[str, str]
) -> None:
    begin(governed, fingerprints)
    submitted(governed)
    text = tables(fingerprints).replace("[actors.ann]", '[actors.ann]\nprincipal = "alice@example.org"')
    actors = read_actors(plain_toml(text)["actors"])
    rules = GatePolicy(
        ("approver",), 1, ("author", "coder", "operator"), "none", timedelta(days=1), legacy_tokens=False
    )
    matter = ApprovalSubject(((".GOV/x.md", b"x"),))
    log = join_events(NAME, governed.state(NAME).history)
    authors = cast("FirstAuthors", NoGit())

    parties = parties_of(authors, log, matter, rules, actors)
    assert parties == {
        "author": {"ann", "alice@example.org"},
        "coder": {"coder"},
        "operator": {"ann", "alice@example.org"},
    }
    drafted = [event._replace(actor=Actor("coder", "agent")) for event in log.events if event.type == "created"]
    unproven = parties_of(authors, join_events(NAME, drafted), matter, rules, actors)
    assert unproven["author"] == {"coder", "Alice <alice@example.org>"}
    assert parties_of(authors, log, matter, rules, Actors())["author"] == {"ann", "Alice <alice@example.org>"}


def test_policy_show_lists_who_may_act_as_whom(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    shown = governed.done("policy", "show").out
    assert f"coder           agent, operated by ann; author, coder, validator; {fingerprints['coder']}" in shown
    assert "judge differs from coder, operator" in shown
    listed = governed.json("policy", "show")["data"]["values"]["actors"]
    assert listed["coder"]["operator"] == listed["ann"]["principal"] == "ann"
    governed.replace(".GOV/policy/policy.toml", 'operator = "ben"', 'operator = "eve"')
    assert errors(governed)["actor_unfit"] == "eve, the operator of judge, is not a person in [actors]"
    governed.commit("A mistake")
    assert "not in effect: actors.judge has the operator 'eve'" in governed.done("policy", "show").out


def test_the_lines_on_the_page_verify_an_event_by_hand(governed: Governed, fingerprints: dict[str, str]) -> None:
    begin(governed, fingerprints)
    governed.stub(NAME)
    (event,) = governed.state(NAME).history
    page = (ROOT / "docs" / "approvals" / "format.md").read_text("utf-8")
    (script,) = re.findall(r"```sh\n(python3 -c 'import json.*?)```", page, re.DOTALL)
    by_hand = ["sh", "-c", script.replace("EVENT", event.path)]
    done = subprocess.run(by_hand, cwd=governed.root, capture_output=True, text=True, check=True)
    assert fingerprints["ann"] in done.stdout
    (governed.root / event.path).write_bytes(event.encode().replace(b"Greet", b"Beat"))
    assert subprocess.run(by_hand, cwd=governed.root, capture_output=True, check=False).returncode == 255


def test_key_doctor_finds_an_event_key_that_allowed_signers_lets_approve(
    signed: Signed, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    governed = signed.governed
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    keys(tmp_path_factory.mktemp("settings"), monkeypatch)
    signed.begin()
    assert governed.json("key", "doctor")["data"]["exposed"] is False
    line = signers_line("ann@example.org", find_key(str(key_path("ann"))).public)
    governed.write(".GOV/policy/allowed_signers", governed.read(".GOV/policy/allowed_signers") + line + "\n")
    governed.commit("A mistake")
    found = governed.json("key", "doctor")
    assert found["data"]["exposed"] is True
    assert str(key_path("ann")) in found["findings"][0]["message"]
