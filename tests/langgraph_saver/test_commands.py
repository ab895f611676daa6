"""The commands know threads of LangGraph: verified, examined, followed, moved; never taken for runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.places import Place
from git.scratch import bare_bones, begin_repository
from langgraph_saver.worlds import SETTINGS, conversation, put, texts, thread, values
from workpacket.runtime.langgraph import WorkpacketSaver


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("WORKPACKET_STORE", raising=False)
    begin_repository(tmp_path / "one")
    return Place(tmp_path / "one", capsys)


def saver_of(place: Place) -> WorkpacketSaver:
    return WorkpacketSaver.open(place.root / ".git" / "workpacket" / "runs.db", settings=SETTINGS)


def test_a_thread_is_verified_followed_and_moved_and_is_no_run(place: Place, tmp_path: Path) -> None:
    with saver_of(place) as saver:
        made = conversation(saver, "t", 5)
        saver.delete_for_runs(["none"])
        conversation(saver, "gone", 2)
        saver.delete_thread("gone")
    assert place("runtime", "runs", "verify").stdout == "2 runs verified\n"
    assert place.json("runtime", "runs", "list")["data"]["runs"] == []
    assert place("resume").stdout.startswith("nothing is unfinished")
    assert [event["type"] for event in place.json("runtime", "runs", "tail", "langgraph/t")["data"]["events"]] == [
        "langgraph.checkpoint"
    ] * 5
    shown = place("runtime", "runs", "show", "langgraph/t")
    assert "is a LangGraph thread, not a run" in shown.stderr
    assert "workpacket runtime runs tail langgraph/t" in shown.stderr
    assert place("runtime", "runs", "export", "langgraph/t", "--out", "t.jsonl").returncode == 0
    bare_bones(tmp_path / "two")
    two = Place(tmp_path / "two", place.capture)
    assert "runs tail langgraph/t" in two("runtime", "runs", "import", str(place.root / "t.jsonl")).stdout
    with saver_of(two) as saver:
        assert values(saver, made[-1])["text"] == texts(4)
    lines = place("runtime", "runs", "export", "langgraph/t", "--format", "cloudevents").stdout.splitlines()
    assert {json.loads(line)["type"] for line in lines} == {"dev.workpacket.langgraph.checkpoint"}


def test_an_export_that_was_tampered_with_is_not_taken_over(place: Place, tmp_path: Path) -> None:
    with saver_of(place) as saver:
        conversation(saver, "t", 2)
    lines = place("runtime", "runs", "export", "langgraph/t").stdout
    for number, found in (("no base64", '"base64":"%%'), ("another payload", '"base64":"eA==')):
        (tmp_path / "bad.jsonl").write_text(lines.replace('"base64":"', found, 1), "utf-8")
        bare_bones(tmp_path / number)
        other = Place(tmp_path / number, place.capture)
        assert other("runtime", "runs", "import", str(tmp_path / "bad.jsonl")).returncode == 70
        assert other("runtime", "runs", "verify").returncode == 0


def test_doctor_finds_a_secret_that_was_none_when_it_was_stored(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with saver_of(place) as saver:
        first = put(saver, thread("t"), {"text": ["lorem ipsum " * 50]})
        put(saver, first, {"text": ["lorem ipsum " * 50, "open-sesame-7"]})
    assert "version 2" not in place("runtime", "doctor").stdout
    monkeypatch.setenv("DOOR_PASSWORD", "open-sesame-7")
    told = place("runtime", "doctor").stdout
    assert "langgraph/t, version 2" in told
    assert "langgraph/t, version 1" not in told
