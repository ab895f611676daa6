"""What can be done in the pages: each action is a command, with the same result and the same refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from audit.audited import STUB, STUCK, WORKED, Audited
from lifecycle.governed import Quiet
from live.serving import served
from workpacket.cli.commands import resolve
from workpacket.cli.live_actions import ACTS, APPROVE
from workpacket.cli.main import load
from workpacket.cli.options import parse

SAMPLES = {
    "verdict": "PASS", "answer": "yes", "question": "q1", "confirm": "0" * 64, "prove": "1=true\n2=src/a.py:1",
}  # fmt: skip


@pytest.mark.parametrize("action", [*ACTS, "approve"])
def test_each_action_types_a_command_that_exists(action: str) -> None:
    act = APPROVE if action == "approve" else ACTS[action]
    names = {"id", "question", "confirm", *(field.name for field in act.fields)}
    before, after = act.words({name: SAMPLES.get(name, "x") for name in names})
    own = ["--as", "ann"] if act.acting and action != "approve" else []
    name, count = resolve(before)
    arguments = parse(load(name), [*before[count:], *own, "--json", "--", *after])
    assert arguments.words == [*(word for word in before[count:] if not word.startswith("-")), *after]


def test_a_value_never_becomes_an_option() -> None:
    before, after = ACTS["note"].words({"id": WORKED, "text": "--as=eve"})
    name, count = resolve(before)
    arguments = parse(load(name), [*before[count:], "--", *after])
    assert arguments.words == [WORKED, "--as=eve"]
    assert not arguments.flag("as")
    before, _ = ACTS["block"].words({"id": WORKED, "reason": "--json", "waits-for": "-h"})
    assert before[2:] == ["--reason=--json", "--waits-for=-h"]


def events_of(root: Path, name: str) -> list[str]:
    return [event.type for event in Audited(root, None, Quiet(root, None).clock).events(name)]


def test_a_packet_is_taken_from_lane_to_lane(alone: Path) -> None:
    page = f"/0/packet/{STUCK}"
    with served(alone, options=("--write", "--as", "coder")) as running:
        browser = running.browser()

        def act(action: str, **fields: str) -> str:
            reply = browser.act(action, page, id=STUCK, **fields)
            assert reply.status == 200
            return "Done" if '<h1 class="good">' in reply.text else reply.text

        assert act("unblock") == "Done"
        assert act("claim", branch=f"wp/{STUCK}") == "Done"
        assert act("renew") == "Done"
        assert act("note", text="A note with <b>markup</b>.") == "Done"
        assert act("release", reason="someone else continues") == "Done"
        refused = act("release", reason="again")
        assert "Refused" in refused
        assert "wrong_lane" in refused
        judged = act("verdict", verdict="PASS")
        assert "Refused" in judged
        assert "&lt;b&gt;markup&lt;/b&gt;" in browser.get(page).text
        assert running.end() == (0, "")
    assert events_of(alone, STUCK)[-5:] == ["unblocked", "claimed", "lease.renewed", "noted", "released"]


def test_without_write_nothing_can_be_done(alone: Path) -> None:
    with served(alone) as running:
        browser = running.browser()
        page = browser.get(f"/0/packet/{WORKED}").text
        assert "read-only" in page
        assert "/act/" not in page
        assert "workpacket packet block" in page
        csrf = browser.csrf("/0/")
        reply = browser.ask("POST", "/0/act/note", f"csrf={csrf}&id={WORKED}&text=x".encode())
        assert reply.status == 403
        assert "--write" in reply.text
    assert "noted" not in events_of(alone, WORKED)


def test_a_module_in_the_repository_is_not_imported_by_an_action(alone: Path, tmp_path: Path) -> None:
    written = tmp_path / "imported"
    for name in ("json", "tomllib", "hashlib", "sitecustomize", "sqlite3", "workpacket"):
        (alone / f"{name}.py").write_text(f"open({str(written)!r}, 'a').write({name!r})\nraise ImportError\n")
    with served(alone, options=("--write", "--as", "coder")) as running:
        browser = running.browser()
        for text in ("first", "second"):
            assert "Done" in browser.act("note", f"/0/packet/{WORKED}", id=WORKED, text=text).text
        assert browser.get("/0/audit").status == 200
        assert running.end() == (0, "")
    assert not written.exists(), written.read_text()


def test_actions_that_come_at_once_are_all_done(alone: Path) -> None:
    """A process is ready for the first of them only."""
    with served(alone, options=("--write", "--as", "coder")) as running:
        browser = running.browser()
        csrf = browser.csrf(f"/0/packet/{WORKED}")
        before = events_of(alone, WORKED)
        with ThreadPoolExecutor(4) as several:
            forms = [f"csrf={csrf}&id={WORKED}&text=note{number}".encode() for number in range(4)]
            replies = list(several.map(lambda form: browser.ask("POST", "/0/act/note", form), forms))
        told = [browser.get(reply.header("Location")).text for reply in replies]
        done = sum('<h1 class="good">' in page for page in told)
        assert done >= 1
        assert all('<h1 class="good">' in page or "workpacket" in page for page in told)
        assert running.end() == (0, "")
    assert events_of(alone, WORKED)[len(before) :] == ["noted"] * done


def test_the_process_that_is_ready_ends_with_a_server_that_is_killed(alone: Path) -> None:
    with served(alone, options=("--write", "--as", "coder")) as running:
        assert "Done" in running.browser().act("note", f"/0/packet/{WORKED}", id=WORKED, text="x").text
        running.process.kill()
        running.wait_for_its_commands()


def test_an_approval_without_a_key_is_refused_with_its_reason(alone: Path) -> None:
    with served(alone, options=("--write", "--as", "ann")) as running:
        browser = running.browser()
        csrf = browser.csrf(f"/0/packet/{STUB}")
        reply = browser.ask("POST", "/0/act/approve", f"csrf={csrf}&id={STUB}".encode())
        assert reply.status == 409
        assert "Failed" in reply.text
        assert "unknown option" not in reply.text
        assert running.end() == (0, "")
