"""What a call of a tool takes beyond the command that it runs: `python -m bench.mcp_call`.

The server and the command alone take turns, on the same packet. `cpu_ms` is the processor time of the server itself,
without that of the command; `wall_ms` is the difference of the medians, and includes the time in which neither runs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.governed_trees import write_governed

ROUNDS: Final = 15
_HELLO: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    def __init__(self, root: Path) -> None:
        command = [sys.executable, "-m", "workpacket", "mcp", "--as", "bench"]
        self._process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        self._ask("initialize", _HELLO)
        self._write({"method": "notifications/initialized"})

    def call(self, name: str, **given: Any) -> Any:
        return self._ask("tools/call", {"name": name, "arguments": given})

    def cpu(self) -> float:
        """Return the milliseconds of processor time of this process alone."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            answer = json.loads(self._process.stdout.readline())
            if answer.get("id") == self._number:
                return answer["result"]


def measured(root: Path, packet: str) -> dict[str, float]:
    server = Server(root)
    command = [sys.executable, "-m", "workpacket", "show", "--json", "--", packet]
    alone, called, before = [], [], 0.0
    try:
        for number in range(ROUNDS + 2):
            if number == 2:  # warm
                before = server.cpu()
            began = time.perf_counter()
            subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
            between = time.perf_counter()
            result = server.call("show", id=packet)
            ended = time.perf_counter()
            if result.get("isError"):
                raise RuntimeError(result["content"][0]["text"])
            alone.append(between - began)
            called.append(ended - between)
        own = (server.cpu() - before) / ROUNDS
    finally:
        server.close()
    wall = (statistics.median(called[2:]) - statistics.median(alone[2:])) * 1e3
    return {"wall_ms": wall, "cpu_ms": own, "command_ms": statistics.median(alone[2:]) * 1e3}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="workpacket-bench-") as folder:
        root = Path(folder) / "governed"
        packet = write_governed(root, 20)[0]
        found = measured(root, packet)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
