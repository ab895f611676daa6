"""Runs and the packet they work on: no verdict while one is unfinished, and nobody needs the store to see that."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress

import pytest

from lifecycle.governed import Governed, forge, remembered
from workpacket.bridges.run_links import governed_runtime
from workpacket.ledger.fold import LinkedRun
from workpacket.model.canonical import Json
from workpacket.runtime import Runtime
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.model_sessions.session import open_session
from workpacket.runtime.stores.place import store_path

NAME, NEXT = "WP-1-Greeting-v1", "WP-1-Greeting-v2"
RUN = f"{NAME}/translate@00000001"
VERDICT = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")


def start(governed: Governed, name: str = NAME, *, owner: int = 0) -> str:
    words = ("runtime", "run", "start", "translate", "--packet", name, "--owner", str(owner or os.getpid()))
    return governed.done(*words).out.strip()


def gone() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


def lose(governed: Governed) -> None:
    """The store is gone, with the machine or in another clone."""
    shutil.rmtree(store_path(governed.root).parent)


def runs(governed: Governed, name: str = NAME) -> list[tuple[str, str]]:
    """Each run of the packet by its log, with its outcome, '' of one that is open."""
    return [(run.run, outcome(run)) for run in governed.state(name).runs]


def outcome(run: LinkedRun) -> str:
    return (run.closed.text("outcome") or "") if run.closed is not None else ""


@remembered
def in_progress(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)


@remembered
def in_review(governed: Governed) -> None:
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.write("report.md", "Good.\n")


def test_no_verdict_is_given_while_a_run_is_unfinished(governed: Governed) -> None:
    in_progress(governed)
    handle = start(governed)
    assert runs(governed) == [(RUN, "")]
    in_review(governed)
    refused = governed(*VERDICT)
    assert (refused.status, refused.codes, refused.next) == (3, ["run_unfinished"], f"workpacket runtime cancel {RUN}")
    assert governed.refused("verdict", NAME, "CHANGES", "--reference", "x", "--as", "judge") == ["run_unfinished"]
    governed.done("runtime", "run", "stop", handle)
    assert runs(governed) == [(RUN, "completed")]
    governed.done(*VERDICT)
    assert governed.state(NAME).lane == "MERGE_PENDING"


def test_the_link_closed_holds_the_end_of_the_stream(governed: Governed) -> None:
    in_progress(governed)
    handle = start(governed)
    governed.done("runtime", "run", "stop", handle)
    (run,) = governed.state(NAME).runs
    assert run.closed is not None
    lines = governed.json("runtime", "runs", "export", RUN)["data"]["lines"]
    assert run.closed.text("stream_sha256") in lines[-1]
    assert run.closed.data["events"] == len(governed.json("runtime", "runs", "show", RUN)["data"]["events"])
    assert run.store


def test_ci_judges_it_from_the_log_alone(governed: Governed) -> None:
    """The verdict was written by hand, in a clone that has no store."""
    in_progress(governed)
    start(governed)
    in_review(governed)
    governed.commit("submitted")
    lose(governed)
    state = governed.state(NAME)
    forge(governed, NAME, "verdict.given", {
        "lane_from": state.lane, "lane_to": "MERGE_PENDING", "verdict": "PASS",
        "report": {"path": "report.md", "sha256": "1bb3a9e58ec3ffc9cb9a5a6e5f4bb3bd0ee53b2d4b3ef5fb1f3e0c2a7d1e0000"},
    })  # fmt: skip
    messages = [f["message"] for f in governed.json("check", "--base", "main")["findings"]
                if f["code"] == "move_without_gate"]  # fmt: skip
    assert any(f"run {RUN} is still working on {NAME}" in message for message in messages)


def test_a_verdict_after_the_run_ended_is_a_change_that_holds(governed: Governed) -> None:
    in_progress(governed)
    handle = start(governed)
    governed.done("runtime", "run", "stop", handle)
    in_review(governed)
    governed.done(*VERDICT)
    governed.commit("judged")
    assert [f for f in governed.json("check", "--base", "main")["findings"] if f["severity"] == "error"] == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("runtime", "run", "stop", "HANDLE"), "completed"),
        (("runtime", "run", "stop", "HANDLE", "--code", "verification_failed"), "stopped"),
        (("runtime", "run", "stop", "HANDLE", "--code", "run_cancelled"), "cancelled"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_end_of_a_run_closes_its_link(governed: Governed, words: tuple[str, ...], found: str) -> None:
    in_progress(governed)
    handle = start(governed)
    governed(*(handle if word == "HANDLE" else word for word in words))
    assert runs(governed) == [(RUN, found)]
    (run,) = governed.state(NAME).runs
    assert run.closed is not None
    assert run.closed.text("code") == ("verification_failed" if found == "stopped" else None)


def test_a_run_that_goes_on_is_linked_again(governed: Governed) -> None:
    in_progress(governed)
    governed("runtime", "run", "stop", start(governed), "--code", "stalled")
    assert runs(governed) == [(RUN, "stopped")]
    assert start(governed) == f"{RUN}#2"
    assert runs(governed) == [(RUN, "")]


def test_a_run_that_goes_on_while_it_is_linked_writes_nothing(governed: Governed) -> None:
    in_progress(governed)
    start(governed, owner=gone())
    count = len(governed.state(NAME).history)
    assert start(governed) == f"{RUN}#2"
    assert len(governed.state(NAME).history) == count


def test_a_cancelled_run_is_closed_at_its_next_boundary(governed: Governed) -> None:
    in_progress(governed)
    handle = start(governed)
    governed.done("runtime", "cancel", RUN)
    assert runs(governed) == [(RUN, "")]
    assert governed("runtime", "run", "step", handle, "one", "--", "true").status == 130
    assert runs(governed) == [(RUN, "cancelled")]


@pytest.mark.parametrize("lane", ["STUB", "BLOCKED", "ABANDONED", "FAIL", "SUPERSEDED"])
def test_no_run_begins_for_a_packet_that_is_not_worked_on(governed: Governed, lane: str) -> None:
    if lane == "STUB":
        governed.begin()
        governed.stub(NAME)
    else:
        in_progress(governed)
    if lane == "BLOCKED":
        governed.done("block", NAME, "--reason", "x", "--until", "y")
    elif lane == "ABANDONED":
        governed.done("packet", "abandon", NAME, "--reason", "x")
    elif lane == "SUPERSEDED":
        governed.stub(NEXT)
        governed.done("packet", "supersede", NAME, "--by", NEXT)
    elif lane == "FAIL":
        in_review(governed)
        governed.done("verdict", NAME, "FAIL", "--report", "report.md", "--as", "judge")
    before = governed.files()
    refused = governed("runtime", "run", "start", "translate", "--packet", NAME)
    assert (refused.status, "packet_not_active" in refused.err) == (3, True)
    assert governed.files() == before
    assert governed.json("runtime", "runs", "list")["data"]["runs"] == []


def test_a_finished_run_that_is_asked_for_again_closes_its_link(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress(governed)
    words = ("runtime", "run", "start", "translate", "--packet", NAME, "--key", "once")
    handle = governed.done(*words).out.strip()
    with monkeypatch.context() as dying:
        dying.setattr("workpacket.bridges.run_links.close", die)
        with pytest.raises(Death):
            governed("runtime", "run", "stop", handle)
    governed.done(*words)
    assert runs(governed) == [(f"{NAME}/translate@once", "completed")]


@pytest.mark.parametrize("command", ["abandon", "supersede"])
def test_the_end_of_a_packet_closes_the_links_of_its_runs(governed: Governed, command: str) -> None:
    in_progress(governed)
    start(governed)
    governed.stub(NEXT)
    words = ("--reason", "x") if command == "abandon" else ("--by", NEXT)
    said = governed.done(command, NAME, *words)
    assert f"if it is still running: workpacket runtime cancel {RUN}" in said.out
    assert runs(governed) == [(RUN, "abandoned" if command == "abandon" else "superseded")]
    governed.done("log", "verify")


@pytest.mark.parametrize("words", [("release", NAME), ("handover", NAME, "--to", "bob")], ids=lambda words: words[0])
def test_whoever_passes_a_packet_on_is_told_of_its_runs(governed: Governed, words: tuple[str, ...]) -> None:
    in_progress(governed)
    start(governed)
    said = governed.done(*words, "--as", "coder", "--reason", "ill")
    assert f"run {RUN} is unfinished: the next holder can resume it" in said.out
    assert runs(governed) == [(RUN, "")]


def test_a_program_is_told_of_runs_and_roles_too(governed: Governed) -> None:
    in_progress(governed)
    start(governed)
    governed.done("runtime", "progress", "claimed", NAME, "backend", "--team", "build", "--instance", "one")
    told = governed.json("packet", "release", NAME, "--as", "coder", "--reason", "ill")["data"]["notes"]
    assert [note.partition(":")[0] for note in told] == [
        f"run {RUN} is unfinished",
        f"the role in docs/progress/{NAME}-backend.md is still open; when its writer has finished, run",
    ]


def test_a_link_that_came_from_another_branch_stops_the_merge(governed: Governed) -> None:
    """The validator's branch knew nothing of the run, so that the verdict was given; it is seen at the end."""
    in_progress(governed)
    in_review(governed)
    governed.commit("submitted")
    governed.git("switch", "--quiet", "--create", "other")
    start(governed)
    governed.commit("a run")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.done(*VERDICT)
    governed.commit("judged")
    governed.git("merge", "--quiet", "other")
    governed.commit("merged the branches")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", f"wp/{NAME}")
    assert governed.refused("merged", NAME) == ["run_unfinished"]
    governed.done("runtime", "cancel", RUN)


# ---- seen --------------------------------------------------------------------------------------------------------


def shown(governed: Governed) -> set[str]:
    """How `why`, `show`, `status` and the board tell of the one run: all alike."""
    answers = [
        governed.json("why", NAME)["data"]["runs"],
        governed.json("show", NAME)["data"]["runs"],
        governed.json("status")["data"]["runs"].get(NAME, []),
        governed.json("board", "show")["data"]["runs"].get(NAME, []),
    ]
    assert [one["run"] for answer in answers for one in answer] in ([RUN] * 4, [])
    return {f"{one['state']} {one['code']}".strip() for answer in answers for one in answer}


def test_a_run_is_shown_as_it_stands(governed: Governed) -> None:
    in_progress(governed)
    assert shown(governed) == set()
    handle = start(governed)
    assert shown(governed) == {"live"}
    governed("runtime", "run", "stop", handle, "--code", "verification_failed")
    assert shown(governed) == {"blocked verification_failed"}
    start(governed, owner=gone())
    assert shown(governed) == {"stale"}
    lose(governed)
    assert shown(governed) == {"open"}


def test_people_read_of_a_run_where_they_look_at_its_packet(governed: Governed) -> None:
    in_progress(governed)
    start(governed)
    assert (
        f"run: {RUN} is live: a process is running\n     -> workpacket runtime runs tail {RUN}\n"
        in governed("why", NAME).out
    )
    assert f"run          {RUN} is live: a process is running" in governed("show", NAME).out
    assert f"run: {RUN} is live" in governed("status").out
    assert f"- **[{NAME}]** - [IN_PROGRESS] - runs: 1 live" in governed("board", "show").out
    assert "runs: 1 open" in governed("board", "export").out


def test_the_board_opens_no_store_where_no_run_is_unfinished(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress(governed)
    governed.done("runtime", "run", "stop", start(governed))

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the store was opened")

    monkeypatch.setattr("workpacket.runtime.stores.sqlite.store.SQLiteStore.__init__", opened)
    for words in (("board", "show"), ("status",), ("why", NAME), ("show", NAME)):
        governed.done(*words)
    governed.commit("as it stands")


def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as left alone for a while, however new they are."""
    monkeypatch.setattr("workpacket.shell.cache.RACY_NS", -(10**12))


def test_the_board_does_not_remember_which_process_was_at_work(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_rest(monkeypatch)
    in_progress(governed)
    with subprocess.Popen(["sleep", "60"]) as process:
        start(governed, owner=process.pid)
        assert "1 live" in governed("board", "show").out
        process.kill()
        process.wait()
    for _ in range(3):  # the third time from memory
        assert "1 stale" in governed("board", "show").out
    with Runtime.open() as runtime:
        runtime.cancel(RUN, "by a program that knows no log")
    assert "1 ended" in governed("board", "show").out


def test_a_board_with_a_stale_run_is_remembered(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    at_rest(monkeypatch)
    in_progress(governed)
    start(governed, owner=gone())
    said = governed.done("board", "show").out
    assert governed.done("board", "show").out == said

    def computed(*_: object) -> None:
        raise AssertionError("nothing changed, and it was computed again")

    monkeypatch.setattr("workpacket.cli.overview.compute", computed)
    assert governed.done("board", "show").out == said


# ---- where log and store part ------------------------------------------------------------------------------------


def settled(governed: Governed) -> list[tuple[str, str]]:
    return [(one["what"], one["run"]) for one in governed.json("runtime", "runs", "settle")["data"]["settled"]]


def doubts(governed: Governed) -> list[str]:
    """What `doctor` says about links, which is what `resume` lists too."""
    checks = governed.json("runtime", "doctor")["data"]["checks"]
    found: list[str]
    (found,) = [check["details"] for check in checks if check["check"] == "links to packets"]
    listed = [stop["message"] for one in governed.json("resume")["data"]["unfinished"] for stop in one["blocked_by"]
              if stop["code"] == "run_links_disagree"]  # fmt: skip
    assert [detail.partition(": workpacket")[0] for detail in found if "has no open link" not in detail] == listed
    return found


class Death(BaseException):
    """The process is gone: nothing behind it is done."""


def die(*_: object, **__: object) -> None:
    raise Death


def killed_at_its_beginning(governed: Governed, monkeypatch: pytest.MonkeyPatch, *, owner: int = 0) -> None:
    """The link is made, the attempt is not recorded, and nobody is left to give the lease back."""
    with monkeypatch.context() as dying:
        dying.setattr("workpacket.runtime.attempts.recorder.Recorder.record", die)
        dying.setattr("workpacket.runtime.attempts.starter.RunStarter._give_up", die)
        with pytest.raises(Death):
            start(governed, owner=owner)


def test_killed_before_the_run_began_there_is_an_open_link_that_is_settled(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress(governed)
    killed_at_its_beginning(governed, monkeypatch, owner=gone())
    assert runs(governed) == [(RUN, "")]
    assert doubts(governed) == [f"{RUN} is linked to {NAME} but was never started: workpacket runtime runs settle"]
    assert settled(governed) == [("not_begun", RUN)]
    assert (runs(governed), doubts(governed)) == ([(RUN, "not_begun")], [])


def test_killed_before_the_run_began_the_next_start_takes_its_link(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress(governed)
    with monkeypatch.context() as dying:
        dying.setattr("workpacket.runtime.attempts.recorder.Recorder.record", die)
        with pytest.raises(Death):
            start(governed)
    assert start(governed) == f"{RUN}#1"
    assert (runs(governed), doubts(governed)) == ([(RUN, "")], [])


def test_a_link_is_not_settled_away_while_its_run_is_beginning(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is held by a living process that has not recorded the attempt yet."""
    in_progress(governed)
    killed_at_its_beginning(governed, monkeypatch)
    assert settled(governed) == []
    assert runs(governed) == [(RUN, "")]


def test_killed_after_the_run_ended_the_verdict_waits_until_it_is_settled(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress(governed)
    handle = start(governed)
    with monkeypatch.context() as dying:
        dying.setattr("workpacket.bridges.run_links.close", die)
        with pytest.raises(Death):
            governed("runtime", "run", "stop", handle)
    in_review(governed)
    assert governed(*VERDICT).codes == ["run_unfinished"]
    assert doubts(governed) == [
        f"{RUN} is completed, but the link to it in the log of {NAME} is still open: workpacket runtime runs settle"
    ]
    assert settled(governed) == [("late", RUN)]
    assert runs(governed) == [(RUN, "completed")]
    governed.done(*VERDICT)


def test_what_cannot_be_written_at_the_end_of_a_run_is_said(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As during a merge: the run has ended all the same."""
    in_progress(governed)
    handle = start(governed)
    (governed.root / ".git/MERGE_HEAD").write_text(governed.git("rev-parse", "HEAD"))
    ended = governed("runtime", "run", "stop", handle)
    assert (ended.status, ended.out) == (4, f"{RUN} completed\n")
    assert (
        f"note: {RUN} has ended, but its link in the log of {NAME} is still open: a merge is in progress" in ended.err
    )
    assert "-> workpacket runtime runs settle" in ended.err
    (governed.root / ".git/MERGE_HEAD").unlink()
    assert settled(governed) == [("late", RUN)]


def test_a_run_of_a_program_that_knows_no_log_is_found(governed: Governed) -> None:
    in_progress(governed)
    with Runtime.open() as runtime, pytest.raises(ZeroDivisionError), runtime.run("translate", packet=NAME):
        _ = 1 // 0
    assert doubts(governed) == []
    with Runtime.open() as runtime, runtime.resume(RUN):
        assert doubts(governed) == [
            f"{RUN} is live, but the local log of {NAME} has no open link to it: workpacket runtime cancel {RUN}"
        ]
        assert settled(governed) == [("unlinked", RUN)]
        assert runs(governed) == [(RUN, "")]
    assert settled(governed) == [("late", RUN)]


def test_a_program_has_its_runs_linked_by_the_bridge(governed: Governed) -> None:
    in_progress(governed)
    with governed_runtime() as runtime:
        with runtime.run("translate", packet=NAME) as run:
            run.step("one", int)
            assert runs(governed) == [(RUN, "")]
        assert runs(governed) == [(RUN, "completed")]
        with pytest.raises(RunBlocked, match="only a stub"), runtime.run("translate", packet=stub(governed)):
            pass


def test_a_model_session_is_linked_like_any_run(governed: Governed) -> None:
    in_progress(governed)
    session = f"{NAME}/session@s"
    with governed_runtime() as runtime:
        with suppress(Death), open_session(runtime, "s", model="m", packet=NAME) as opened:
            opened.add("user", "hello")
            assert runs(governed) == [(session, "")]
            die()
        assert runs(governed) == [(session, "stopped")]
        with open_session(runtime, "s", model="m", packet=NAME) as opened:
            assert runs(governed) == [(session, "")]
            assert opened.messages
    assert runs(governed) == [(session, "completed")]


def stub(governed: Governed) -> str:
    governed.stub(NEXT)
    return NEXT


# ---- the end of a run, as log and store have it ------------------------------------------------------------------


def ends(governed: Governed) -> tuple[int, list[str]]:
    """The exit status of `doctor`, and what it says about how runs ended."""
    told = governed.json("runtime", "doctor")
    (row,) = [check for check in told["data"]["checks"] if check["check"] == "ends of runs"]
    return told["exit_code"], row["details"]


def test_an_end_that_somebody_wrote_by_hand_is_not_that_of_the_stream(governed: Governed) -> None:
    in_progress(governed)
    start(governed)
    (run,) = governed.state(NAME).runs
    wrong: dict[str, Json] = {"run": RUN, "store": run.store, "outcome": "completed"}
    forge(governed, NAME, "run.closed", {**wrong, "stream_sha256": "f" * 64, "events": 1})
    status, (message,) = ends(governed)
    assert status == 70
    assert message.startswith(
        f"{RUN}: according to the log of {NAME}, it ended with digest ffffffffffff, but the store has "
    )


def test_a_store_that_was_put_back_does_not_reach_the_end_that_the_log_keeps(governed: Governed) -> None:
    in_progress(governed)
    handle = start(governed)
    place = store_path(governed.root).parent
    shutil.copytree(place, governed.root / ".git/kept")
    governed.done("runtime", "run", "stop", handle)
    shutil.rmtree(place)
    shutil.copytree(governed.root / ".git/kept", place)
    assert ends(governed)[0] == 70
    assert ends(governed)[1] == [f"{RUN}: according to the log of {NAME}, it ended with 2 events, but the store has 1"]


@pytest.mark.on_disk
def test_a_run_that_went_on_or_was_removed_ended_as_the_log_says(governed: Governed) -> None:
    in_progress(governed)
    assert governed("runtime", "run", "stop", start(governed), "--code", "needs_confirmation").status == 15
    handle = start(governed)
    assert ends(governed) == (0, [])
    governed.done("runtime", "run", "stop", handle)
    governed.clock.turn(days=1)
    governed.done("runtime", "runs", "prune", "--older-than", "0", "--yes")
    assert governed.json("runtime", "runs", "list")["data"]["runs"] == []
    assert ends(governed) == (0, [])


def test_a_run_of_a_lost_machine_is_given_up_by_a_person_with_a_reason(governed: Governed) -> None:
    in_progress(governed)
    start(governed)
    in_review(governed)
    here = governed("runtime", "runs", "unlink", RUN, "--reason", "x")
    assert (here.status, "the run can be resumed or cancelled (run_not_lost)" in here.err) == (3, True)
    lose(governed)
    assert governed(*VERDICT).codes == ["run_unfinished"]
    assert doubts(governed) == [
        (
            f"{RUN} is linked to {NAME} in the packet's log, but the run is in a different store: "
            f"workpacket runtime runs unlink {RUN} --reason TEXT"
        )
    ]
    refused = governed(
        "runtime", "runs", "unlink", RUN, "--reason", "it is in my way", "--as", "bot", "--actor-kind", "agent"
    )
    assert (refused.status, "person_needed" in refused.err) == (3, True)
    assert governed("runtime", "runs", "unlink", RUN).status == 2
    assert governed("runtime", "runs", "unlink", f"{NAME}/other@1", "--reason", "x").status == 68
    governed.done("runtime", "runs", "unlink", RUN, "--reason", "the laptop was stolen", "--as", "ada")
    (run,) = governed.state(NAME).runs
    assert run.closed is not None
    assert (outcome(run), run.closed.text("reason"), run.closed.actor.id) == ("lost", "the laptop was stolen", "ada")
    governed.done(*VERDICT)


def test_two_clones_may_have_runs_of_one_name(governed: Governed) -> None:
    in_progress(governed)
    start(governed)
    lose(governed)
    governed.done("runtime", "run", "stop", start(governed))
    assert runs(governed) == [(RUN, ""), (RUN, "completed")]


def test_retention_closes_a_link_before_the_run_is_forgotten(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress(governed)
    handle = start(governed)
    with monkeypatch.context() as dying:
        dying.setattr("workpacket.bridges.run_links.close", die)
        with pytest.raises(Death):
            governed("runtime", "run", "stop", handle)
    governed.done("runtime", "runs", "prune", "--older-than", "0", "--yes")
    assert runs(governed) == [(RUN, "completed")]


# ---- a run whose packet is over ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        (("abandon", NAME, "--reason", "x"), f"workpacket show {NAME}"),
        (("block", NAME, "--reason", "x", "--until", "y"), f"workpacket packet unblock {NAME}"),
    ],
    ids=["abandoned", "blocked"],
)
def test_a_run_whose_packet_is_over_is_named_and_not_gone_on_with(
    governed: Governed, words: tuple[str, ...], choice: str
) -> None:
    in_progress(governed)
    start(governed, owner=gone())
    governed.done(*words)
    (work,) = governed.json("resume", "--yes")["data"]["unfinished"]
    stops = {stop["code"]: stop["command"] for stop in work["blocked_by"]}
    assert stops["packet_not_active"] == f"{choice}, or: workpacket runtime cancel {RUN}"
    for way in (("resume", RUN), ("resume", RUN, "--yes"), ("runtime", "run", "start", "translate", "--packet", NAME)):
        assert governed(*way).status == 3
    governed.done("runtime", "cancel", RUN)
    assert outcome(governed.state(NAME).runs[0]) in {"abandoned", "cancelled"}


ENDS: dict[str, tuple[str, ...]] = {
    "release": ("release", NAME, "--reason", "x", "--as", "coder"),
    "handover": ("handover", NAME, "--to", "bob", "--reason", "x", "--as", "coder"),
    "abandon": ("abandon", NAME, "--reason", "x"),
    "supersede": ("supersede", NAME, "--by", NEXT),
}


@pytest.mark.parametrize("words", ENDS.values(), ids=ENDS)
def test_the_open_roles_of_a_packet_are_named_and_left_to_their_writers(
    governed: Governed, words: tuple[str, ...]
) -> None:
    in_progress(governed)
    governed.stub(NEXT)
    governed.done("runtime", "progress", "claimed", NAME, "backend", "--team", "build", "--instance", "one")
    path = f"docs/progress/{NAME}-backend.md"
    before = governed.read(path)
    said = governed.done(*words)
    assert (
        f"the role in {path} is still open; when its writer has finished, run: workpacket runtime progress close {NAME}"
        in said.out
    )
    assert governed.read(path) == before
