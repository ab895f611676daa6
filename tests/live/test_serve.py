"""`board serve`: how it begins and ends, what it needs, and that nothing else needs it."""

from __future__ import annotations

import builtins
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from audit.audited import DONE, STUB, STUCK, WORKED, Audited
from cli.commands import Commands
from live.serving import Browser, Server, served
from workpacket.cli.commands import COMMANDS
from workpacket.report.live_packet import packet_trace


def test_it_says_its_address_and_ends_cleanly_at_both_signals(town: Audited) -> None:
    for how in (signal.SIGINT, signal.SIGTERM):
        with served(town.root) as running:
            assert running.told["repositories"] == [town.root.name]
            assert running.told["write"] is False
            assert running.address.startswith("http://localhost:")
            browser = running.browser()
            assert browser.get("/0/").status == 200
            assert running.end(how) == (0, "")
            with pytest.raises(ConnectionRefusedError):
                browser.get("/0/")


def test_a_port_that_is_taken_is_named(town: Audited) -> None:
    with served(town.root) as running:
        command = [sys.executable, "-m", "workpacket", "serve", "--port", str(running.port), "--json"]
        said = subprocess.run(command, cwd=town.root, capture_output=True, text=True, check=False)
    assert said.returncode == 6
    finding = json.loads(said.stdout)["findings"][0]
    assert finding["code"] == "page_port_taken"
    assert str(running.port) in finding["message"]


@pytest.mark.parametrize("words", [("--port", "65536"), ("--port", "1.5"), ("--port", "x"), ("no-such-folder",)])
def test_wrong_words_are_refused_before_anything_listens(words: tuple[str, ...], commands: Commands) -> None:
    assert commands("board", "serve", *words).status == 2


def test_without_its_extra_it_says_what_to_install(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: object, **named: object) -> object:
        if name == "workpacket.cli.live_listener":
            raise ImportError("No module named 'uvicorn'")
        return real(name, *others, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    said = commands("board", "serve")
    assert "workpacket[serve]" in said.err


def test_no_other_command_imports_what_serves() -> None:
    """Every module of the package but those of the server, in a process of its own."""
    script = """
import importlib, pkgutil, sys, workpacket
for found in pkgutil.walk_packages(workpacket.__path__, "workpacket."):
    if not found.name.startswith(("workpacket.cli.live_", "workpacket.cli.mcp_", "workpacket.__main__",
                                  "workpacket.shell.governing.probe")):
        importlib.import_module(found.name)
loaded = {"starlette", "uvicorn", "h11", "anyio"} & sys.modules.keys()
sys.exit(f"imported: {loaded}" if loaded else 0)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-500:]
    assert "serve" in COMMANDS


def test_several_repositories_are_served_side_by_side(town: Audited, alone: Path) -> None:
    with served(town.root, alone) as running:
        browser = running.browser()
        home = browser.get("/").text
        assert town.root.name in home
        assert alone.name in home
        assert WORKED in browser.get("/0/").text
        assert WORKED in browser.get("/1/").text


def test_the_board_shows_every_packet_with_what_it_waits_for(browser: Browser) -> None:
    board = browser.get("/0/").text
    for name in (DONE, WORKED, STUCK, STUB):
        assert f'id="{name}"' in board
    assert "No melody is licensed." in board
    assert f'waits for <a href="{browser.prefix}/0/packet/{WORKED}"' in board
    assert "0/2 proved" in board


def test_the_board_can_be_searched_and_grouped(browser: Browser) -> None:
    found = browser.get("/0/?q=melody").text
    assert f'id="{STUCK}"' in found
    assert f'id="{WORKED}"' not in found
    assert "1 of 4 packets" in found
    assert "Not held" in browser.get("/0/?group=holder").text


def test_the_board_as_of_a_commit_shows_the_lanes_of_that_commit(browser: Browser, town: Audited) -> None:
    first = town.git("rev-list", "--max-parents=0", "HEAD").split()[0]
    assert f'id="{DONE}"' not in browser.get(f"/0/?at={first}").text
    now = browser.get("/0/?at=HEAD").text
    assert f'id="{DONE}"' in now
    assert "data-changes" not in now


def test_a_packet_page_says_what_the_commands_say(browser: Browser) -> None:
    page = browser.get(f"/0/packet/{WORKED}").text
    for words in ("The name is printed.", "3 conditions not met", "evidence_missing", "held by coder", "not proven"):
        assert words in page
    assert browser.get("/0/packet/WP-1-Nowhere-v1").status == 404
    fragment = browser.get(f"/0/packet/{WORKED}/why").text
    assert "workpacket submit" in fragment
    assert "<html" not in fragment


def test_what_waits_for_a_person_is_listed(browser: Browser) -> None:
    page = browser.get("/0/waiting").text
    assert "The licence is signed." in page
    assert STUCK in page
    assert "The runs are not known" not in page


def test_no_page_shows_an_error_of_a_command(browser: Browser) -> None:
    for path in ("/0/", f"/0/packet/{WORKED}", f"/0/packet/{DONE}", f"/0/packet/{WORKED}/why", "/0/waiting", "/0/runs"):
        page = browser.get(path).text
        for words in ("unknown command", "unexpected argument", "internal_error", "Traceback"):
            assert words not in page, path


def test_the_audit_is_the_page_that_the_command_writes(browser: Browser, server: Server) -> None:
    reply = browser.get("/0/audit")
    assert reply.status == 200
    assert not reply.header("Content-Security-Policy")
    assert 'http-equiv="Content-Security-Policy"' in reply.text
    assert "Is anything wrong?" in reply.text


def test_it_works_through_a_tunnel_whose_port_differs(browser: Browser) -> None:
    """As with `ssh -L 9000:localhost:PORT`: the browser names the port at its own end."""
    there = {"Host": "localhost:9000"}
    assert browser.ask("GET", "/0/", headers=there).status == 200
    csrf = browser.csrf(f"/0/packet/{WORKED}")
    form = f"csrf={csrf}&id={WORKED}&text=".encode()  # a note needs a text
    reply = browser.ask("POST", "/0/act/note", form, {**there, "Origin": "http://localhost:9000"})
    assert (reply.status, "a value is needed" in reply.text) == (400, True)
    foreign = browser.ask("POST", "/0/act/note", form, {**there, "Origin": "http://localhost:9001"})
    assert foreign.status == 403


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.1])
def test_a_signal_that_comes_as_soon_as_the_address_is_printed_ends_it(town: Audited, delay: float) -> None:
    with served(town.root) as running:
        time.sleep(delay)
        assert running.end() == (0, "")


def test_the_commits_of_a_packet_lead_to_the_forge(town: Audited) -> None:
    subprocess.run(["git", "remote", "add", "origin", "git@github.com:acme/town.git"], cwd=town.root, check=True)
    with served(town.root) as running:
        browser = running.browser()
        for path in (f"/0/packet/{DONE}", f"/0/packet/{DONE}/trace"):
            assert 'href="https://github.com/acme/town/commit/' in browser.get(path).text, path
        assert running.end() == (0, "")


def test_what_changed_since_the_approval_is_marked_word_by_word(town: Audited) -> None:
    packet = town.root / f".GOV/task_packets/{WORKED}.md"
    packet.write_text(packet.read_text().replace("The name is printed", "The <name> is {+shouted"))
    with served(town.root) as running:
        page = running.browser().get(f"/0/packet/{WORKED}").text
    assert "The <del>name</del> <ins>&lt;name&gt;</ins> is <del>printed.</del> <ins>{+shouted.</ins>" in page
    assert page.count("<del>") == 2


def test_what_check_finds_in_the_files_of_a_packet_is_shown_with_its_lines(town: Audited) -> None:
    packet = town.root / f".GOV/task_packets/{WORKED}.md"
    packet.write_text(packet.read_text().replace("RISK_TIER", "RISK_TEER"))
    with served(town.root) as running:
        page = running.browser().get(f"/0/packet/{WORKED}").text
    assert "2 findings in its files" in page
    assert "unknown field RISK_TEER" in page
    assert re.search(r"<mark> +\d+  - RISK_TEER: LOW</mark>", page)


def test_the_lines_of_a_requirement_are_not_joined() -> None:
    anchor = {"name": "SPEC.md 1", "state": "holds", "excerpt": "A gate MUST answer.\nA person MUST <open> it."}
    shown = "".join(packet_trace({"anchors": [anchor]}, ""))
    assert "A gate MUST answer.<br>\nA person MUST &lt;open&gt; it." in shown
