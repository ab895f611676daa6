"""`mcp` as a program meets it that does not keep to the protocol: lines of JSON on its standard input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from git.scratch import git

REQUESTS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "corpora/agents/requests.jsonl").read_text("utf-8").splitlines()
]
NAME = "WP-1-Greet-The-User-v1"
_PATIENCE = 20
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Server:
    """A server, and the lines that it writes."""

    def __init__(self, root: Path) -> None:
        environment = {**os.environ, "WORKPACKET_ACTOR": "ann", "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workpacket", "mcp"], cwd=root, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._number = 0
        self._lines: Queue[bytes] = Queue()
        Thread(target=self._read, daemon=True).start()
        self.ask({"method": "initialize", "params": _HELLO})
        self.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return its answer; {} if there is none, but one to a `ping` that was sent after it."""
        self._number += 2
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._number, **request}))
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._number + 1, "method": "ping"}))
        return self._answered({self._number, self._number + 1}).get(self._number, {})

    def say(self, line: str) -> dict[str, Any]:
        self._number += 2
        self.write(line)
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": "ping"}))
        return self._answered({self._number}).get(self._number, {})

    def _answered(self, wanted: set[int]) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        while wanted - found.keys():
            line = self._lines.get(timeout=_PATIENCE)
            assert line, "the server has ended"
            answer = json.loads(line)
            if answer.get("id") in wanted:
                found[answer["id"]] = answer
            elif answer.get("id") is None and "error" in answer:  # to a line that has no id, or one that cannot be read
                found.setdefault(min(wanted), answer)
        return found

    def close(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode()
        assert self._process.wait(20) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.stderr.close()
        return said


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("asked") / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")

    def type_(*words: str) -> None:
        environment = {**os.environ, "WORKPACKET_ACTOR": "ann", "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-m", "workpacket", *words], cwd=root, env=environment, check=True)

    type_("init", "--dialect", "plain")
    told = ("--criterion", "It greets.", "--prove", "grep -q hello src/greeting", "--scope", "src/")
    type_("new", "Greet the user", *told, "--requirement", "It greets.", "--refinement", "It gets the word hello.")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "begun")
    server = Server(root)
    yield server
    assert "Traceback" not in server.close()


def filled(value: Any) -> Any:
    """Replace `<x 300>` by 300 letters."""
    text = json.dumps(value)
    return json.loads(re.sub(r"<(\w) (\d+)>", lambda found: found[1] * int(found[2]), text))


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case["id"])
def test_the_server_answers_as_listed(case: dict[str, Any], server: Server) -> None:
    request = filled(case["request"])
    answer = server.say(request) if isinstance(request, str) else server.ask(request)
    text = json.dumps(answer, ensure_ascii=False)
    result = answer.get("result", {})
    failed = bool(result.get("isError"))
    kinds = {
        "success": "result" in answer and not failed,
        "failure": failed,
        "error": "error" in answer,
        "refused": failed or "error" in answer or not answer,
        "any": True,
        "none": True,
    }
    assert kinds[case["expect"]], text[:2000]
    assert "Traceback" not in text
    assert "internal_error" not in text
    assert "nternal error" not in text
    if case["expect"] in {"error", "failure"}:
        assert len(json.dumps(answer.get("error", result.get("content")))) < 4000
    says = case["says"]
    assert says[4:] not in text if says.startswith("not ") else says in text, text[:2000]
    assert server.ask({"method": "tools/call", "params": {"name": "show", "arguments": {"id": NAME}}})["result"]
