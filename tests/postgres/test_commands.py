"""The commands about runs on a server that WORKPACKET_STORE names, and moving runs between it and a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from git.scratch import begin_repository
from postgres.server import Server
from workpacket.cli.main import main
from workpacket.runtime.stores.sqlite.store import SQLiteStore

CONSOLE = "from workpacket.cli.main import console; console()"
JOBS = """
def double(run):
    run.step("double", lambda: 2)

def bad(run):
    run.step("bad", lambda: 1 // 0)

def slow(run):
    import time
    for number in range(100):
        run.step(f"step {number}", lambda: (open("log", "a").write(f"{number}\\n"), time.sleep(0.1)) and None)

TASKS = {"double": double, "bad": bad, "slow": slow}
"""


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Call = Callable[..., Ended]


@pytest.fixture
def call(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """A command in a repository of its own, with its runs on the server."""
    begin_repository(tmp_path)
    (tmp_path / "jobs.py").write_text(JOBS, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKPACKET_STORE", url)

    def call(*words: str) -> Ended:
        capsys.readouterr()
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            return Ended(main(list(words)), *capsys.readouterr())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            sys.path[:] = [entry for entry in sys.path if entry != str(tmp_path)]
            sys.modules.pop("jobs", None)

    return call


def data(ended: Ended) -> Any:
    return json.loads(ended.stdout)["data"]


def a_run(call: Call) -> str:
    """A finished run with a step and a checkpoint; its id."""
    handle = call("runtime", "run", "start", "nightly", "--owner", str(os.getpid())).stdout.strip()
    assert call("runtime", "run", "step", handle, "fetch", "--result", '{"rows": 3}').returncode == 0
    assert call("runtime", "run", "checkpoint", handle, "--cursor", "7").returncode == 0
    assert call("runtime", "run", "stop", handle).returncode == 0
    return handle[:-2]


def test_runs_are_where_the_variable_says_and_nowhere_else(call: Call, tmp_path: Path) -> None:
    run = a_run(call)

    assert [line["state"] for line in data(call("runtime", "runs", "list", "--json"))["runs"]] == ["completed"]
    assert call("runtime", "runs", "show", run).returncode == 0
    assert call("runtime", "runs", "verify").stdout == "1 run verified\n"
    assert call("runtime", "runs", "verify", run).returncode == 0
    assert call("resume").stdout == "nothing is unfinished\n"
    assert not list(tmp_path.rglob("runs.db"))


def test_the_variable_may_name_a_file(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPACKET_STORE", str(tmp_path / "elsewhere.db"))
    a_run(call)
    store = SQLiteStore(tmp_path / "elsewhere.db")
    assert len(store.heads()) == 1
    store.close()


def test_a_run_moves_to_a_file_and_back_with_every_byte(call: Call, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(call)
    assert call("runtime", "runs", "export", run, "--out", "there").returncode == 0
    monkeypatch.setenv("WORKPACKET_STORE", "moved.db")
    assert call("runtime", "runs", "import", "there").returncode == 0
    assert call("runtime", "runs", "verify").stdout == "1 run verified\n"
    assert call("runtime", "runs", "export", run, "--out", "back").returncode == 0
    monkeypatch.setenv("WORKPACKET_STORE", f"{url}-other")
    assert call("runtime", "runs", "import", "back").returncode == 0
    assert call("runtime", "runs", "export", run, "--out", "again").returncode == 0

    assert Path("there").read_bytes() == Path("back").read_bytes() == Path("again").read_bytes()
    assert call("runtime", "runs", "import", "again").returncode == 69  # it is there already


def test_a_damaged_record_is_found_on_the_server(call: Call, server: Server, url: str) -> None:
    run = a_run(call)
    project = url.rpartition("=")[2]
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER TABLE workpacket.events DISABLE TRIGGER events_stay_as_they_are")
        connection.execute(
            "UPDATE workpacket.events SET actor = 'mallory' WHERE version = 2 AND project = "
            "(SELECT id FROM workpacket.projects WHERE name = %s)", (project,),
        )  # fmt: skip
        connection.execute("ALTER TABLE workpacket.events ENABLE TRIGGER events_stay_as_they_are")

    assert call("runtime", "runs", "verify", run).returncode == 70
    assert "log_damaged: nightly@00000001, version 2" in call("runtime", "runs", "verify").stdout
    assert call("runtime", "doctor").returncode == 70


def test_the_doctor_looks_at_the_server(call: Call) -> None:
    found = data(call("runtime", "doctor", "--json"))
    checks = {check["check"]: check for check in found["checks"]}

    # The server of the tests is told not to sync, which is just what a doctor has to say.
    assert (checks["durability"]["result"], checks["durability"]["code"]) == ("block", "storage_unsuitable")
    assert "fsync is off" in checks["durability"]["details"][0]
    assert checks["server"]["details"][0].startswith("PostgreSQL ")
    assert checks["isolation"]["details"] == ["read committed"]
    assert checks["clock"]["details"] == ["as here"]
    assert "owner owns schema workpacket" in checks["rights"]["details"][0]
    assert {name for name, check in checks.items() if check["result"] == "block"} == {"durability"}


def test_the_doctor_says_what_is_unsafe_in_this_connection_and_no_password(
    call: Call, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsafe = url.replace("owner@", "owner:geheim@") + "&options=-csynchronous_commit%3Doff"
    monkeypatch.setenv("WORKPACKET_STORE", unsafe)
    ended = call("runtime", "doctor")
    assert "synchronous_commit is off" in ended.stdout
    assert "geheim" not in ended.stdout + ended.stderr


def test_a_clock_that_is_wrong_is_named_and_nothing_fails(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    really = time.time
    monkeypatch.setattr("workpacket.runtime.stores.postgres.reader.time.time", lambda: really() - 3600)
    checks = {check["check"]: check for check in data(call("runtime", "doctor", "--json"))["checks"]}
    assert checks["clock"]["result"] == "pass"
    assert "3600 s ahead of this machine" in checks["clock"]["details"][0]


def test_what_is_offered_is_done_by_a_worker(call: Call) -> None:
    assert (
        call("runtime", "queue", "offer", "double", "--once", "a", "--input", "n=4").stdout.splitlines()[0]
        == "double@a"
    )
    assert call("runtime", "queue", "offer", "bad", "--once", "b", "--tries", "1", "--priority", "-3").returncode == 0
    assert [job["state"] for job in data(call("runtime", "queue", "list", "--json"))["jobs"]] == ["waiting", "waiting"]

    assert call("runtime", "worker", "jobs:TASKS", "--until-empty").stdout == "1 run done\n"

    (dead,) = data(call("runtime", "queue", "list", "--json"))["jobs"]
    assert (dead["run"], dead["state"], dead["reason"]) == ("bad@b", "dead", "worker_failed")
    assert "division" in dead["detail"]
    assert call("runtime", "queue", "revive", str(dead["job"])).returncode == 0
    assert call("runtime", "queue", "revive", str(dead["job"])).returncode == 2
    assert data(call("runtime", "queue", "list", "--json"))["jobs"][0]["state"] == "waiting"


def test_a_worker_that_is_terminated_ends_at_a_boundary_and_another_goes_on(call: Call, tmp_path: Path) -> None:
    call("runtime", "queue", "offer", "slow", "--once", "a")
    words = [sys.executable, "-c", CONSOLE, "worker", "jobs:TASKS"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    worker = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (tmp_path / "log").exists() and worker.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    worker.send_signal(signal.SIGTERM)
    said, complaint = worker.communicate(timeout=60)

    assert (worker.returncode, said) == (0, "0 runs done\n"), complaint
    (job,) = data(call("runtime", "queue", "list", "--json"))["jobs"]
    assert (job["state"], job["reason"], job["tries"]) == ("waiting", "handed_over", 0)
    done = (tmp_path / "log").read_text().splitlines()
    assert done == [str(number) for number in range(len(done))]


def test_the_tables_are_made_and_roles_let_in_by_command(
    call: Call, server: Server, schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"role_{os.getpid()}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    monkeypatch.setenv("WORKPACKET_STORE", schema_url)
    assert data(call("runtime", "store", "show", "--json"))["schema_version"] == 0
    assert "next: workpacket runtime store upgrade" in call("runtime", "store", "show").stdout
    assert call("runtime", "store", "upgrade").stdout.startswith("3 migrations made\n")
    assert call("runtime", "store", "upgrade").stdout.startswith("0 migrations made\n")
    assert call("runtime", "store", "let-in", role, "reader").returncode == 0
    monkeypatch.setenv("WORKPACKET_STORE", schema_url.replace("owner@", f"{role}@"))
    assert call("runtime", "runs", "list").stdout == "no runs\n"
    assert call("runtime", "run", "start", "nightly").returncode == 54
    monkeypatch.setenv("WORKPACKET_STORE", schema_url)
    assert call("runtime", "store", "shut-out", role).stdout.startswith(f"{role} is shut out\n")
    assert call("runtime", "store", "shut-out", role).stdout.startswith(f"{role} did not have access\n")
    monkeypatch.setenv("WORKPACKET_STORE", schema_url.replace("owner@", f"{role}@"))
    assert call("runtime", "runs", "list").returncode == 54


@pytest.mark.parametrize(
    "words",
    [
        ["runtime", "queue", "offer"],
        ["runtime", "queue", "offer", "a", "--priority", "high"],
        ["runtime", "queue", "offer", "a/b"],
        ["runtime", "queue", "revive", "x"],
        ["worker"],
        ["runtime", "worker", "jobs"],
        ["runtime", "worker", "jobs:NOTHING"],
        ["runtime", "worker", "jobs:JOBS.none"],
        ["runtime", "worker", "nowhere:TASKS"],
        ["runtime", "worker", "json:loads"],
        ["runtime", "worker", "jobs:TASKS", "--lease", "0"],
        ["runtime", "store", "let-in", "somebody", "god"],
        ["runtime", "store", "let-in", "somebody"],
        ["runtime", "store", "upgrade", "now"],
        ["runs", "export", "--raw"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_does_not_fit_is_refused(call: Call, words: list[str]) -> None:
    assert call(*words).returncode == 2


@pytest.mark.parametrize(
    "words",
    [["runtime", "queue", "list"], ["runtime", "worker", "jobs:TASKS"], ["runtime", "store", "show"]],
    ids=" ".join,
)
def test_what_needs_a_server_says_so_where_there_is_none(
    call: Call, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKPACKET_STORE")
    ended = call(*words)
    assert ended.returncode == 2
    assert "WORKPACKET_STORE" in ended.stderr
