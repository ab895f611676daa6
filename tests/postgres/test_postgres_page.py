"""docs/runtime/postgres.md is what happens: its commands are run on a server and their output compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg

from postgres.server import Server

PAGE = Path(__file__).parents[2] / "docs" / "runtime" / "postgres.md"
BLOCK = re.compile(r"^```(?P<info>\S+(?: [^\n]*)?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = "from workpacket.cli.main import console; console()"


def told(shown: str) -> re.Pattern[str]:
    """`…` stands for what is different on each server."""
    return re.compile(".*".join(map(re.escape, shown.split("…"))))


def test_the_page_about_postgresql_is_what_happens(server: Server, schema_url: str, tmp_path: Path) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS app")
        connection.execute("CREATE ROLE app LOGIN")
    environment = {
        **os.environ, "WORKPACKET_STORE": schema_url, "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
    }  # fmt: skip
    played = 0
    for match in BLOCK.finditer(PAGE.read_text("utf-8")):
        named = re.search(r"file=(\S+)", match["info"])
        if named is not None:
            (tmp_path / named[1]).write_text(match["body"], "utf-8")
        if not match["info"].startswith("console"):
            continue
        for part in match["body"].split("$ workpacket ")[1:]:
            words, *expected = part.splitlines()
            ended = subprocess.run(
                [sys.executable, "-c", CONSOLE, *shlex.split(words)],
                cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert ended.returncode == 0, ended.stderr
            lines = ended.stdout.splitlines()
            assert len(lines) == len(expected), ended.stdout
            for line, shown in zip(lines, expected, strict=True):
                assert told(shown).fullmatch(line), (words, line, shown)
            played += 1
    assert played == 8
