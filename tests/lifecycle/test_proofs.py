"""What proves a criterion was run at the commit that is judged, within limits, and left it as it was."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from git.scratch import copy_of
from lifecycle.governed import Governed, Quiet, forge, govern
from workpacket.shell.governing.proof_process import run_limited

NAME = "WP-1-Greeting-v1"
PYTHON = sys.executable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the proofs are written for a POSIX system")


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Governed]:
    """Work was done and committed."""
    with pytest.MonkeyPatch.context() as patch:
        governed = govern(tmp_path_factory.mktemp("worked"), patch, None)
        made = Quiet(governed.root, None, governed.clock)
        made.begin()
        made.activate(NAME)
        made.work(NAME)
        yield made


@pytest.fixture
def at_work(worked: Governed, governed: Governed) -> Governed:
    """A copy of it for this test alone."""
    copy_of(worked.root, governed.root)
    governed.clock.now, governed.clock.count = worked.clock.now, worked.clock.count + 1000
    return governed


@pytest.fixture
def heeded(number: signal.Signals) -> Iterator[None]:
    """The signal has its usual effect here: tests that nohup started would inherit that it is ignored."""
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    signal.signal(number, before)


def submit(governed: Governed, *proofs: str, only: bool = False) -> Any:
    options = [word for proof in proofs for word in ("--prove", proof)]
    return governed("submit", NAME, "--as", "coder", *(("--record-only",) if only else ()), *options)


def row_of(governed: Governed, proof: str) -> dict[str, Any]:
    """What the log holds of a proof."""
    result = submit(governed, f"1={proof}", only=True)
    assert result.status == 0, result
    return last_row(governed)


def last_row(governed: Governed) -> dict[str, Any]:
    rows = governed.state(NAME).evidence[-1].data["evidence"]
    assert isinstance(rows, list)
    assert isinstance(rows[-1], dict)
    return dict(rows[-1])


def kept(governed: Governed) -> list[Path]:
    return sorted((governed.root / ".git" / "workpacket" / "proofs").glob("*"))


def allow(governed: Governed, table: str) -> None:
    """A policy on the main branch that says this of proofs."""
    governed.git("switch", "--quiet", "main")
    path = ".GOV/policy/policy.toml"
    governed.write(path, f"{governed.read(path)}\n[evidence]\n{table}\n")
    governed.commit("policy")
    governed.git("switch", "--quiet", f"wp/{NAME}")


# --- what enters the log ---


def test_the_log_holds_no_output_and_says_at_which_commit_something_was_proved(at_work: Governed) -> None:
    row = row_of(at_work, "echo well done")
    measured = {"exit_code", "log_length", "log_sha256", "milliseconds"}
    assert set(row) == {"criterion", "result", "command", "commit", *measured}
    assert row["commit"] == at_work.git("rev-parse", "HEAD").strip()


def test_the_log_says_how_long_a_proof_ran(at_work: Governed) -> None:
    assert row_of(at_work, "sleep 0.3")["milliseconds"] >= 300


def test_the_end_of_the_output_is_kept_outside_of_the_history_for_its_owner_alone(at_work: Governed) -> None:
    row = row_of(at_work, "seq 100")
    (path,) = kept(at_work)
    assert path.name == row["log_sha256"]
    assert path.read_text("utf-8").splitlines()[-1] == "100"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert at_work.git("status", "--porcelain", "--ignored", "--", ".git") == ""


def test_of_the_kept_outputs_the_oldest_are_forgotten(at_work: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workpacket.shell.governing.proof_process.MOST", 3)
    for number in range(6):
        row_of(at_work, f"echo {number}")
        time.sleep(0.01)
    assert sorted(path.read_text("utf-8") for path in kept(at_work)) == ["3\n", "4\n", "5\n"]


def test_secrets_are_taken_out_before_the_end_is_cut_off(
    at_work: Governed, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    printed = tmp_path_factory.mktemp("outside") / "printed"
    secret = "sk-ant-" + "x9" * 2100
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    printed.write_text(f"{'-' * 5000}{secret}\ncorrect-horse-battery\n{'-' * 2000}\n", "utf-8")
    row_of(at_work, f"cat {printed}")
    (path,) = kept(at_work)
    text = path.read_text("utf-8")
    assert "x9" not in text
    assert "correct-horse" not in text
    assert "[redacted:environment]" in text


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_secret_at_the_limit_of_the_output_is_kept_in_no_part(
    at_work: Governed, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    allow(at_work, "output_bytes = 5000")
    printed = tmp_path_factory.mktemp("outside") / "printed"
    printed.write_text(f"{'-' * (5000 - cut)}ghp_{'Zq7' * 20}\n", "utf-8")
    row = row_of(at_work, f"cat {printed}")
    assert (row["limit"], row["log_length"]) == ("output", 5000 - cut + 65)
    (path,) = kept(at_work)
    assert "Zq7" not in path.read_text("utf-8")


def test_a_secret_in_the_command_is_refused(at_work: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    url = "1=psql postgres://app:Zq7Zq7@db.invalid/app"
    for proof in ("1=curl -H correct-horse-battery x", f"1=echo ghp_{'Zq7' * 20}", url):
        result = submit(at_work, proof)
        assert (result.status, result.codes) == (2, ["secret_in_proof"])
        assert "Zq7" not in result.err
    reason = at_work("submit", NAME, "--as", "coder", "--not-applicable", "1=see correct-horse-battery")
    assert reason.codes == ["secret_in_proof"]
    assert "horse" not in reason.err


# --- what a command comes to ---


@pytest.mark.parametrize(
    ("command", "result", "exit_code"),
    [
        ("true", "met", 0),
        ("false", "not_met", 1),
        ("sh -c 'exit 77'", "not_met", 77),
        ("sh -c 'kill -9 $$'", "not_met", -9),
        ("sh -c 'no-such-program-here'", "not_met", 127),
        ("echo collected 0 items", "not_met", 0),
        ("echo 3 passed", "met", 0),
    ],
)
def test_a_command_proves_by_its_exit_code_unless_it_ran_nothing(
    at_work: Governed, command: str, result: str, exit_code: int
) -> None:
    row = row_of(at_work, command)
    assert (row["result"], row["exit_code"]) == (result, exit_code)


def test_what_failed_is_told_with_its_last_words(at_work: Governed) -> None:
    said = submit(at_work, "1=sh -c 'echo first; echo last >&2; exit 3'", "2=true").err
    assert "the evidence failed: sh -c 'echo first; echo last >&2; exit 3' ended with 3, saying 'last'" in said
    said = submit(at_work, "1=echo no tests ran", "2=true").err
    assert "ended with 0, saying 'no tests ran'" in said


@pytest.mark.parametrize(
    "command", ["no-such-program-here", "./src/greet.py", "src", "echo 'a\0b'", f"echo {'x' * 2000}"]
)
def test_what_cannot_be_run_proves_nothing_and_is_not_recorded(at_work: Governed, command: str) -> None:
    before = at_work.files()
    result = submit(at_work, f"1={command}", only=True)
    assert (result.status, result.codes) == (2, ["proof_not_run"])
    assert at_work.files() == before


@pytest.mark.parametrize(
    "place",
    [
        "{outside}:1",
        "../outside:1",
        ".git/config:1",
        "left-out.txt:1",
        "link:1",
        "linked.py:1",
        "src/../src/greet.py:1",
    ],
)
def test_a_place_that_is_not_in_the_commit_proves_nothing_of_it(at_work: Governed, place: str) -> None:
    (at_work.root / ".git" / "info").mkdir(exist_ok=True)
    (at_work.root / ".git" / "info" / "exclude").write_text("left-out.txt\nlink\n", "utf-8")
    outside = at_work.root.parent / "outside"
    for path in (outside, at_work.root / "left-out.txt"):
        path.write_text("a line\n", "utf-8")
    (at_work.root / "link").symlink_to(outside)
    (at_work.root / "linked.py").symlink_to("src/greet.py")
    at_work.commit("A link")
    before = at_work.files()
    result = submit(at_work, "1=touch .git/ran", f"1={place.format(outside=outside)}", only=True)
    assert (result.status, result.codes) == (2, ["proof_not_run"])
    assert "is not a file in the commit" in result.err
    assert at_work.files() == before
    assert not (at_work.root / ".git" / "ran").exists()


def test_what_is_written_for_a_shell_is_refused_before_anything_is_run(at_work: Governed) -> None:
    result = submit(at_work, "1=touch ran", "2=echo Eve | python3 src/greet.py")
    assert (result.status, result.codes) == (2, ["proof_needs_shell"])
    assert "sh -c 'echo Eve | python3 src/greet.py'" in result.err
    assert not (at_work.root / "ran").exists()


def test_a_command_for_several_criteria_is_run_once(
    at_work: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = tmp_path_factory.mktemp("outside") / "runs"
    assert submit(at_work, f"all=sh -c 'echo x >> {runs}'").status == 0
    assert runs.read_text("utf-8") == "x\n"


def test_it_reads_nothing_from_the_terminal(at_work: Governed) -> None:
    command = [PYTHON, "-m", "workpacket", "submit", NAME, "--as", "coder", "--record-only", "--prove", "1=cat"]
    subprocess.run(command, cwd=at_work.root, input=b"typed", check=True, capture_output=True, env=os.environ)
    assert last_row(at_work)["log_length"] == 0


def test_more_proofs_than_an_event_holds_are_a_wrong_command_line(at_work: Governed) -> None:
    result = submit(at_work, *(["1=src/greet.py:1"] * 200), "2=src/greet.py:1")
    assert (result.status, result.codes) == (2, ["invalid_value"])


# --- environment and limits ---


def test_a_proof_sees_of_the_environment_what_the_policy_allows(
    at_work: Governed, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen = tmp_path_factory.mktemp("outside") / "seen"
    for name in ("GITHUB_TOKEN", "DATABASE_URL", "JAVA_HOME", "PYTHONPATH", "SSH_AUTH_SOCK", "GIT_DIR_X"):
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.setenv("LC_TIME", "C")
    row_of(at_work, f"sh -c 'env > {seen}'")
    names = {line.partition("=")[0] for line in seen.read_text("utf-8").splitlines()}
    assert {"PATH", "LC_TIME"} <= names
    assert not names & {"GITHUB_TOKEN", "DATABASE_URL", "JAVA_HOME", "PYTHONPATH", "SSH_AUTH_SOCK", "GIT_DIR_X"}
    allow(at_work, 'env = ["JAVA_HOME"]')
    row_of(at_work, f"sh -c 'env > {seen}'")
    assert "JAVA_HOME=value of JAVA_HOME" in seen.read_text("utf-8")


def test_the_policy_of_the_base_decides_not_that_of_the_branch(
    at_work: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/java")
    path = ".GOV/policy/policy.toml"
    at_work.write(path, f'{at_work.read(path)}\n[evidence]\nenv = ["JAVA_HOME"]\n')
    at_work.commit("on the branch")
    assert row_of(at_work, "printenv JAVA_HOME")["exit_code"] == 1


def test_a_proof_that_takes_too_long_is_stopped_with_all_that_it_started(
    at_work: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    late = tmp_path_factory.mktemp("outside") / "late"
    child = late.with_name("child")
    allow(at_work, "timeout_seconds = 1")
    began = time.monotonic()
    row = row_of(at_work, f"sh -c '(sleep 60; touch {late}) & echo $! > {child}; sleep 60'")
    assert time.monotonic() - began < 20
    assert (row["result"], row["limit"]) == ("not_met", "time")
    said = submit(at_work, "1=sleep 60", "2=true").err
    assert "was stopped after 1 s, its time limit" in said
    wait_until_gone(child)
    assert not late.exists()


def wait_until_gone(named: Path) -> None:
    """Until the process whose number this file holds does nothing any more, though it may not be waited for yet."""
    number = int(named.read_text())
    state = Path("/proc", str(number), "stat")
    for _ in range(200):
        try:
            os.kill(number, 0)
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.05)
    raise AssertionError(f"{number} still runs: {state.read_text()}")


def test_one_that_ends_well_only_because_it_was_stopped_proves_nothing(at_work: Governed) -> None:
    allow(at_work, "timeout_seconds = 1")
    row = row_of(at_work, "sh -c 'trap \"exit 0\" TERM; sleep 60 & wait'")
    assert (row["exit_code"], row["limit"], row["result"]) == (0, "time", "not_met")


@pytest.mark.long
def test_one_that_ignores_being_asked_is_stopped_as_well(at_work: Governed) -> None:
    allow(at_work, "timeout_seconds = 1")
    assert row_of(at_work, "sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'")["limit"] == "time"


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid leaves the group")
def test_what_has_left_the_group_is_not_waited_for(at_work: Governed) -> None:
    began = time.monotonic()
    assert row_of(at_work, "sh -c 'setsid sleep 30 & echo done'")["log_length"] == len("done\n")
    assert time.monotonic() - began < 20


def test_what_a_proof_leaves_behind_ends_with_it(at_work: Governed) -> None:
    began = time.monotonic()
    assert row_of(at_work, "sh -c 'sleep 60 & echo done'")["result"] == "met"
    assert time.monotonic() - began < 30


def test_of_much_output_the_beginning_is_searched_and_the_rest_counted(at_work: Governed) -> None:
    command = [PYTHON, "-c", MEASURED]
    allow(at_work, "output_bytes = 1000")
    done = subprocess.run(command, cwd=at_work.root, capture_output=True, text=True, check=True)
    length, kept_bytes, peak = map(int, done.stdout.split())
    assert (length, kept_bytes) == (300_000_000, 1000)
    assert peak < 100_000


MEASURED = """
import os, re
from workpacket.shell.governing.proof_process import run_limited
ended = run_limited(["head", "-c", "300000000", "/dev/zero"], ".", dict(os.environ), seconds=60, most_output=1000)
# ru_maxrss would be that of the process which started this one, if it was larger.
print(ended.length, len(ended.output), *re.findall("VmHWM:[^0-9]*([0-9]+)", open("/proc/self/status").read()))
"""


# --- the commit and the tree ---


def test_nothing_is_run_in_a_tree_that_is_not_committed(at_work: Governed) -> None:
    at_work.write("src/more.py", "y\n")
    result = submit(at_work, "1=touch ran", "2=src/greet.py:1")
    assert result.codes == ["work_uncommitted", "evidence_missing", "evidence_missing"]
    assert "the evidence was not run: src/more.py is not committed" in result.err
    assert submit(at_work, "1=touch ran", only=True).codes == ["work_uncommitted"]
    assert not (at_work.root / "ran").exists()


CHANGES = {
    "a tracked file": "sh -c 'echo x >> src/greet.py'",
    "a tracked file, removed": "rm src/greet.py",
    "a tracked file, made executable": "chmod +x src/greet.py",
    "a new file": "touch src/new.py",
    "the index": "git rm --quiet --cached src/greet.py",
    "a governed file": "sh -c 'echo >> .GOV/roles_shared/TASK_BOARD.md'",
    "a new event": "touch .GOV/log/WP-1-Greeting-v1/x.json",
    "HEAD": "git commit --quiet --allow-empty --message x",
    "the branch": "git switch --quiet --create other",
    "the branch, detached": "git switch --quiet --detach",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_proof_that_changes_the_tree_is_refused(at_work: Governed, what: str) -> None:
    log = sorted((at_work.root / ".GOV" / "log" / NAME).glob("*[0-9a-f].json"))
    result = submit(at_work, f"1={CHANGES[what]}", "2=true")
    assert (result.status, result.codes) == (3, ["proof_changed_tree"])
    assert ("moved HEAD" in result.err) == (what.startswith(("HEAD", "the branch")))
    assert [path for path in log if not path.exists()] == []
    assert at_work.state(NAME).lane == "IN_PROGRESS" if what != "a new event" else True


def test_files_that_git_ignores_may_come_and_go(at_work: Governed) -> None:
    information = at_work.root / ".git" / "info"
    information.mkdir(exist_ok=True)
    (information / "exclude").write_text("*.log\n", "utf-8")
    assert row_of(at_work, "touch src/test.log")["result"] == "met"


def test_governed_files_that_are_not_committed_yet_are_in_nobodys_way(at_work: Governed) -> None:
    row_of(at_work, "true")
    assert at_work.git("status", "--porcelain") != ""
    assert row_of(at_work, "true")["result"] == "met"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_was_told_not_to_look_at_is_not_taken_for_the_committed_one(
    at_work: Governed, flag: str
) -> None:
    at_work.git("update-index", flag, "src/greet.py")
    at_work.write("src/greet.py", "pass\n")
    result = submit(at_work, "1=true", "2=true")
    assert (result.status, result.codes) == (3, ["proof_tree_differs"])
    assert "src/greet.py" in result.err


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_proof_that_tells_git_not_to_look_at_its_change_is_refused(at_work: Governed, flag: str) -> None:
    command = f"sh -c 'git update-index {flag} src/greet.py; echo pass > src/greet.py'"
    result = submit(at_work, f"1={command}", "2=python3 src/greet.py")
    assert (result.status, result.codes) == (3, ["proof_changed_tree"])
    assert "src/greet.py" in result.err


def test_another_commit_is_not_proved_here(at_work: Governed) -> None:
    at_work.write("src/greet.py", "print('later')\n")
    at_work.commit("Later")
    result = at_work("submit", NAME, "--as", "coder", "--commit", "HEAD~1", "--prove", "all=true")
    assert (result.status, result.codes) == (3, ["proof_tree_differs"])
    assert "git worktree add" in result.err
    at_work.done("submit", NAME, "--as", "coder", "--commit", "HEAD", "--prove", "all=true")


def test_evidence_of_other_work_does_not_count(at_work: Governed) -> None:
    row_of(at_work, "true")
    at_work.write("src/greet.py", "print('later')\n")
    at_work.commit("Later")
    assert submit(at_work, "2=true").codes == ["evidence_of_other_commit"]
    assert at_work("why", NAME).out.count("evidence_of_other_commit") == 1
    assert submit(at_work, "all=true").status == 0


def test_evidence_counts_when_only_governed_files_were_committed_since(at_work: Governed) -> None:
    row_of(at_work, "true")
    at_work.commit("Recorded")
    assert submit(at_work, "2=true").status == 0


@pytest.mark.share(3)
@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_is_stopped_together_with_the_command_that_runs_it(
    at_work: Governed, tmp_path_factory: pytest.TempPathFactory, number: signal.Signals
) -> None:
    late = tmp_path_factory.mktemp("outside") / "late"
    began = late.with_name("began")
    proof = f"1=sh -c 'echo $$ > {began}.new; mv {began}.new {began}; sleep 60; touch {late}'"
    command = [PYTHON, "-m", "workpacket", "submit", NAME, "--as", "coder", "--record-only", "--prove", proof]
    with subprocess.Popen(command, cwd=at_work.root, stderr=subprocess.DEVNULL, env=os.environ) as process:
        for _ in range(200):
            if began.exists():
                break
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(20) != 0
    wait_until_gone(began)
    assert not late.exists()


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_proof_is_being_started_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self)
            os.kill(os.getpid(), number)

    monkeypatch.setattr("workpacket.shell.governing.proof_process.subprocess.Popen", Interrupted)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        run_limited(["sleep", "60"], str(tmp_path), dict(os.environ), seconds=30, most_output=10)
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getsignal(number) is before


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGHUP])
def test_what_nohup_started_goes_on_when_its_terminal_is_closed(tmp_path: Path, number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    ended = run_limited(
        ["sh", "-c", f"kill -{number.name[3:]} {os.getpid()}"],
        str(tmp_path),
        dict(os.environ),
        seconds=30,
        most_output=10,
    )
    assert (ended.exit_code, signal.getsignal(number)) == (0, signal.SIG_IGN)


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"exit_code": 0}, 0), ({"exit_code": 1}, 1), ({"exit_code": 0, "limit": "time"}, 1), ({}, 1)],
    ids=str,
)
def test_a_submission_that_calls_a_failed_command_met_is_refused_with_the_change(
    at_work: Governed, fields: dict[str, Any], status: int
) -> None:
    rows: list[Any] = [{"criterion": "The name is printed.", "result": "met", "command": "x", **fields}]
    rows += [{"criterion": "It ends with a line feed.", "result": "met", "command": "x", "exit_code": 0}]
    commit = at_work.git("rev-parse", "HEAD")
    data = {"lane_from": "IN_PROGRESS", "lane_to": "IN_REVIEW", "commit": commit, "evidence": rows}
    forge(at_work, NAME, "submitted", data, by="coder")
    at_work.done("board", "sync")
    at_work.commit("forged")
    codes = [one["code"] for one in at_work.json("check", "--base", "main")["findings"]]
    assert codes.count("move_without_gate") == status
