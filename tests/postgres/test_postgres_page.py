"""docs/runtime/postgres.md is what happens: its commands are run on a server and their output compared."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from pathlib import Path

import psycopg
import pytest

from postgres.server import Server
from workpacket.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "runtime" / "postgres.md"
BLOCK = re.compile(r"^```(?P<info>\S+(?: [^\n]*)?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def told(shown: str) -> re.Pattern[str]:
    """`…` stands for what is different on each server."""
    return re.compile(".*".join(map(re.escape, shown.split("…"))))


def test_the_page_about_postgresql_is_what_happens(
    server: Server, schema_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS app")
        connection.execute("CREATE ROLE app LOGIN")
    monkeypatch.setenv("WORKPACKET_STORE", schema_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "jobs", raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    played = 0
    for match in BLOCK.finditer(PAGE.read_text("utf-8")):
        named = re.search(r"file=(\S+)", match["info"])
        if named is not None:
            (tmp_path / named[1]).write_text(match["body"], "utf-8")
        if not match["info"].startswith("console"):
            continue
        for part in match["body"].split("$ workpacket ")[1:]:
            words, *expected = part.splitlines()
            capsys.readouterr()
            status = main(shlex.split(words))
            out, err = capsys.readouterr()
            assert status == 0, err
            lines = out.splitlines()
            assert len(lines) == len(expected), out
            for line, shown in zip(lines, expected, strict=True):
                assert told(shown).fullmatch(line), (words, line, shown)
            played += 1
    assert played == 8
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sys.modules.pop("jobs", None)
