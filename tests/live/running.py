"""Runs in the store of a repository, in every state that a page tells of."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

SECRET = "sk-live-1234567890abcdefghijklmnop"
SCRIPT = f'''
import contextlib, sys
from workpacket.cli.open_store import open_runtime

packet, extra = sys.argv[1], sys.argv[2]

def work(n):
    return {{"fetched": n, "api_key": "{SECRET}"}}

def part(run, n):
    run.step("parse", work, n)
    run.publish("rows", n)
    run.child("inner", lambda inner: inner.step("deep", work, 1))

with open_runtime(create=True) as runtime:
    with runtime.run("nightly", packet=packet, inputs={{"month": "2026-10", "password": "hunter2"}}) as run:
        run.step("fetch", work, 3)
        run.child("parts", part, 1)
        run.checkpoint({{"page": 1}}, name="half")
        run.effect("mail", lambda key: {{"id": "m1"}}, "team@example.org")
    with contextlib.suppress(Exception), runtime.run("import") as run:
        run.step("fetch", work, 3)
        run.checkpoint({{"page": 1}}, name="half")
        run.step("bad", lambda: [][0])
    with contextlib.suppress(BaseException), runtime.run("ask") as run:
        run.confirm("Send 3 mails?", {{"to": ["a", "b"]}})
    with contextlib.suppress(BaseException), runtime.run("pay") as run:
        def charge(key):
            raise KeyboardInterrupt
        run.effect("charge", charge, "order 7")
    if extra:
        with contextlib.suppress(BaseException), runtime.run("odd") as run:
            run.step(extra, work, 1)
            run.publish(extra, extra)
            run.confirm(extra, {{"to": extra}})
'''


def with_runs(root: Path, packet: str, extra: str = "") -> Path:
    """`extra` is the name of a step, a value and a question of one more run."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", SCRIPT, packet, extra], cwd=root, check=True, env=environment)
    return root


WAITS = """
import sys
from workpacket.cli.open_store import open_runtime
with open_runtime(create=True) as runtime, runtime.run("order") as run:
    print("begun", flush=True)
    print(run.wait_for("paid", timeout=60), flush=True)
"""


@contextlib.contextmanager
def waiting_run(root: Path):  # type: ignore[no-untyped-def]  # an iterator of the process
    """A run in a process of its own that waits for the signal `paid`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", WAITS], cwd=root, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.communicate()
