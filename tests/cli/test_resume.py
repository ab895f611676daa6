"""What a program or a changed value asks is shown with what it is about, and answered for exactly that."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cli.places import CONSOLE, Ended, Place, environment, run_here

pytestmark = pytest.mark.share(4)

DELETE = """
import sys
from pathlib import Path
from workpacket.runtime import RunBlocked, Runtime

def delete(path, depth):
    Path("deleted").write_text(path)
    return path

try:
    with Runtime.open() as runtime, runtime.run("clean") as run:
        print(run.effect("delete", delete, sys.argv[1], depth=3, target="backup-store", confirm=True))
except RunBlocked as blocked:
    print(blocked.message)
    sys.exit(15)
"""
ASK = """
import sys
from pathlib import Path
from workpacket.runtime import RunBlocked, Runtime

try:
    with Runtime.open() as runtime, runtime.run("deploy") as run:
        run.confirm("Deploy?", {"to": sys.argv[1], "token": "ghp_" + "A" * 36})
        run.step("deploy", lambda: Path("deployed").write_text(sys.argv[1]))
except RunBlocked as blocked:
    print(blocked.message)
    sys.exit(15 if blocked.code == "needs_confirmation" else 16)
"""
MONTH = """
import os, signal, sys
from workpacket.runtime import RunBlocked, Runtime

month, crash = sys.argv[1], sys.argv[2:] == ["crash"]
try:
    with Runtime.open() as runtime, runtime.run("import", inputs={"month": month}) as run:
        run.step("load", lambda month: month, month)
        if crash:
            os.kill(os.getpid(), signal.SIGKILL)
        print(run.step("report", lambda month: f"report of {month}", month))
except RunBlocked as blocked:
    print(f"{blocked.code}: {blocked.message}")
    sys.exit(15)
"""


def started(place: Place, program: str, *words: str) -> Ended | subprocess.CompletedProcess[str]:
    """A program to its end: one that kills itself in a process of its own."""
    if "crash" not in words:
        return run_here(program, place, *words)
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=place.root, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def asked(place: Place, run: str) -> list[dict[str, Any]]:
    said = place.json("resume", run)
    assert said["exit_code"] != 0
    return list(said["data"]["questions"])


@pytest.fixture
def deleting(place: Place) -> Callable[[str], Ended]:
    return lambda path: run_here(DELETE, place, path)


def test_what_an_effect_would_do_is_shown_before_anybody_agrees(place: Place, deleting: Any) -> None:
    assert deleting("/old").returncode == 15
    shown = place("resume", "clean")
    assert shown.returncode == 15
    assert "question q1: delete: backup-store" in shown.stdout
    for words in ('{"0": "/old", "depth": 3}', "backup-store", "delete", "--yes, --no"):
        assert words in shown.stdout
    (question,) = asked(place, "clean")
    assert (question["name"], question["target"], question["kind"]) == ("delete", "backup-store", "effect")
    assert question["arguments"] == {"0": "/old", "depth": 3}
    assert f"next: workpacket resume clean@00000001 q1 --yes --confirm {question['digest']}" in shown.stdout


def test_a_yes_holds_for_exactly_the_effect_that_was_shown(place: Place, deleting: Any) -> None:
    deleting("/old")
    (question,) = asked(place, "clean")
    assert place("resume", "clean", "--yes", "--confirm", question["digest"]).returncode == 0
    assert not (place.root / "deleted").exists()
    assert deleting("/old").stdout == "/old\n"
    assert place("resume", "clean").returncode == 0


def test_a_changed_argument_is_asked_about_again_and_both_are_named(place: Place, deleting: Any) -> None:
    deleting("/old")
    (old,) = asked(place, "clean")
    assert place("resume", "clean", "--yes", "--confirm", old["digest"]).returncode == 0
    again = deleting("/home")
    assert (again.returncode, (place.root / "deleted").exists()) == (15, False)
    assert "/old" in again.stdout
    assert "/home" in again.stdout
    (new,) = asked(place, "clean")
    assert (new["before"]["0"], new["arguments"]["0"]) == ("/old", "/home")
    refused = place("resume", "clean", "--yes", "--confirm", old["digest"])
    assert (refused.returncode, "has changed: its digest is" in refused.stderr) == (15, True)
    assert place("resume", "clean", new["id"], "--yes", "--confirm", new["digest"]).returncode == 0
    assert deleting("/home").stdout == "/home\n"


def test_a_no_needs_no_digest_and_is_remembered(place: Place, deleting: Any) -> None:
    deleting("/old")
    assert place("resume", "clean", "q1", "--no", "--note", "still needed").returncode == 0
    assert "said no: delete: backup-store" in deleting("/old").stdout
    assert not (place.root / "deleted").exists()


def test_a_no_is_shown_with_who_said_it_and_can_be_taken_back(place: Place, deleting: Any) -> None:
    deleting("/old")
    assert place("resume", "clean", "q1", "--no", "--note", "still needed").returncode == 0
    assert deleting("/old").returncode == 15
    shown = place("resume", "clean")
    assert shown.returncode == 16
    (question,) = asked(place, "clean")
    assert question["denied_by"] == place.json("runtime", "runs", "show", "clean")["data"]["events"][0]["actor"]
    assert f"denied by  {question['denied_by']}" in shown.stdout
    assert "answers    --yes (withdraws the answer 'no')" in shown.stdout
    assert f"q1 --yes --confirm {question['digest']}\n" in shown.stdout
    assert place("resume", "clean", "q1", "--no").returncode == 2
    assert place("resume", "clean", "q1", "--yes", "--confirm", question["digest"]).returncode == 0
    assert deleting("/old").stdout == "/old\n"


def test_the_questions_of_all_runs_are_listed_with_the_commands_that_answer_them(place: Place, deleting: Any) -> None:
    assert place("runtime", "questions").stdout == "no questions\n"
    deleting("/old")
    started(place, ASK, "production")
    listed = place("runtime", "questions")
    assert listed.returncode == 15
    assert [line for line in listed.stdout.splitlines() if line.startswith("question")] == [
        "question q1 of clean@00000001: delete: backup-store", "question q1 of deploy@00000001: Deploy?"
    ]  # fmt: skip
    first, second = place.json("runtime", "questions")["data"]["questions"]
    assert (first["run"], second["run"]) == ("clean@00000001", "deploy@00000001")
    assert f"next: workpacket resume clean@00000001 q1 --yes --confirm {first['digest']}" in listed.stdout
    assert [one["run"] for one in place.json("runtime", "questions", "dep")["data"]["questions"]] == ["deploy@00000001"]
    assert place("resume", "clean", "q1", "--no").returncode == 0
    assert place("resume", "deploy", "--yes", "--confirm", second["digest"]).returncode == 0
    assert started(place, ASK, "production").returncode == 0
    assert [one["run"] for one in place.json("runtime", "questions")["data"]["questions"]] == []
    assert place("runtime", "questions", "a", "b").returncode == 2


def test_runs_that_wait_for_an_answer_come_first(place: Place, deleting: Any) -> None:
    assert run_here(MONTH, place, "1").returncode == 0
    started(place, MONTH, "2", "crash")
    started(place, ASK, "production")
    listed = [run["attention"] for run in place.json("runtime", "runs", "list")["data"]["runs"]]
    assert listed == ["needs_confirmation", "", "worker_lost"]


def test_what_a_program_asks_is_stored_without_its_secrets(place: Place) -> None:
    assert started(place, ASK, "production").returncode == 15
    (question,) = asked(place, "deploy")
    assert (question["question"], question["kind"]) == ("Deploy?", "program")
    assert question["arguments"] == {"to": "production", "token": "[redacted:github-token]"}
    assert place("resume", "deploy", "--yes", "--confirm", question["digest"]).returncode == 0
    assert started(place, ASK, "production").returncode == 0
    assert (place.root / "deployed").read_text() == "production"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--yes"], "--yes requires --confirm DIGEST"),
        (["--confirm", "0" * 64], "--confirm requires an answer"),
        (["--yes", "--no"], "cannot be used together"),
        (["--yes", "--retry"], "cannot be used together"),
        (["q9", "--no"], "'q9' is not an open question of clean@00000001; the open questions are: q1"),
        (["q1", "q2", "--no"], "expected one run and at most one of its questions"),
        (["--mark-done"], "no open question of clean@00000001 can be answered with --mark-done; q1 by --yes, --no"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_line_that_answers_nothing_is_a_usage_error(place: Place, deleting: Any, words: list[str], said: str) -> None:
    deleting("/old")
    ended = place("resume", "clean", *words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(asked(place, "clean")) == 1


def test_a_yes_where_nothing_is_asked_is_a_usage_error(place: Place) -> None:
    place("runtime", "run", "stop", place.start("nightly"), "--code", "stalled")
    assert place("resume", "nightly", "--yes", "--confirm", "0" * 64).returncode == 2


def test_a_plan_shows_the_questions_and_answers_none(place: Place, deleting: Any) -> None:
    deleting("/old")
    planned = place.json("resume", "clean", "--plan", "--no")
    assert (planned["exit_code"], len(planned["data"]["questions"])) == (15, 1)
    assert len(asked(place, "clean")) == 1


def test_a_waiting_run_is_listed_with_the_command_that_shows_its_question(place: Place, deleting: Any) -> None:
    deleting("/old")
    (work,) = place.json("resume")["data"]["unfinished"]
    assert work["blocked_by"] == [{
        "code": "needs_confirmation", "message": "delete: backup-store", "command": "workpacket resume clean@00000001",
    }]  # fmt: skip


def test_a_changed_value_is_shown_old_and_new_and_then_accepted_to_the_end(place: Place) -> None:
    assert started(place, MONTH, "2026-10", "crash").returncode == -signal.SIGKILL
    refused = started(place, MONTH, "2026-11")
    assert (refused.returncode, '"2026-10" -> "2026-11"' in refused.stdout) == (15, True)
    shown = place("resume", "import")
    assert shown.returncode == 60
    assert 'month: "2026-10" -> "2026-11"' in shown.stdout
    (question,) = asked(place, "import")
    assert (question["kind"], question["changes"]) == ("change", {"month": {"old": "2026-10", "new": "2026-11"}})
    assert place("resume", "import", "--yes", "--confirm", question["digest"]).returncode == 0
    other = started(place, MONTH, "2026-12")
    assert (other.returncode, '"2026-10" -> "2026-12"' in other.stdout) == (15, True)
    assert started(place, MONTH, "2026-11").stdout == "report of 2026-11\n"


def test_a_second_change_names_the_value_that_was_confirmed_last(place: Place) -> None:
    started(place, MONTH, "2026-10", "crash")
    started(place, MONTH, "2026-11")
    (question,) = asked(place, "import")
    place("resume", "import", "--yes", "--confirm", question["digest"])
    assert started(place, MONTH, "2026-11", "crash").returncode == -signal.SIGKILL
    assert '"2026-11" -> "2026-10"' in started(place, MONTH, "2026-10").stdout


MAIL = """
import os, signal, sys
from workpacket.runtime import RunBlocked, Runtime

def mail(to):
    with open("mails", "a") as file:
        file.write(to)
    return to

try:
    with Runtime.open() as runtime, runtime.run("mails", inputs={"to": sys.argv[1]}) as run:
        print(run.effect("mail", mail, sys.argv[1]))
        sys.argv[2:] == ["crash"] and os.kill(os.getpid(), signal.SIGKILL)
except RunBlocked as blocked:
    print(blocked.message)
    sys.exit(15)
"""


def test_an_effect_done_for_the_old_value_is_done_for_the_new_one_only_with_leave(place: Place) -> None:
    started(place, MAIL, "ann", "crash")
    started(place, MAIL, "eve")
    (question,) = asked(place, "mails")
    place("resume", "mails", "--yes", "--confirm", question["digest"])
    assert started(place, MAIL, "eve").returncode == 15
    (question,) = asked(place, "mails")
    assert (question["kind"], question["arguments"]) == ("effect", {"0": "eve"})
    place("resume", "mails", "--yes", "--confirm", question["digest"])
    assert started(place, MAIL, "eve").stdout == "eve\n"
    assert (place.root / "mails").read_text() == "anneve"


UNKNOWN = """
import sys
from pathlib import Path
from workpacket.runtime import Runtime, RunBlocked

def post(to):
    Path("posted").write_text(to)
    raise TimeoutError("no answer")

try:
    with Runtime.open() as runtime, runtime.run("post", key="one") as run:
        try:
            run.effect("post", post, "ann")
        except TimeoutError:
            pass
        run.step("after", lambda: None)
except RunBlocked as blocked:
    print(blocked.message)
    sys.exit(74)
"""


def test_a_run_with_an_effect_of_unknown_outcome_is_not_finished_anywhere(place: Place) -> None:
    ended = started(place, UNKNOWN)
    assert (ended.returncode, "it is unknown whether post: post happened" in ended.stdout) == (74, True)
    (row,) = place.json("runtime", "runs", "list")["data"]["runs"]
    assert (row["state"], row["attention"]) == ("stopped", "effect_outcome_unknown")
    assert place.json("resume")["data"]["unfinished"][0]["blocked_by"][0]["code"] == "effect_outcome_unknown"
    shown = place("resume", "post")
    assert (shown.returncode, "question post: did post happen?" in shown.stdout) == (74, True)
    assert "next: workpacket resume post@one post --mark-done\n" in shown.stdout


@pytest.mark.parametrize(
    "words", [["--mark-done"], ["post", "--mark-done"], ["--mark-done", "post"], ["--mark-done", "--note", "seen"]]
)
def test_an_effect_of_unknown_outcome_is_settled_and_the_run_ends(place: Place, words: list[str]) -> None:
    started(place, UNKNOWN)
    assert place("resume", "post", *words).returncode == 0
    assert started(place, UNKNOWN).returncode == 0
    (row,) = place.json("runtime", "runs", "list")["data"]["runs"]
    assert (row["state"], row["attention"]) == ("completed", "")
    assert place("resume").stdout == "nothing is unfinished\n"
    assert place("resume", "post").returncode == 0
    assert started(place, UNKNOWN).returncode == 0


LETTERS = """
import os, signal, sys
from pathlib import Path
from workpacket.runtime import RunBlocked, Runtime

crash, undo = "crash" in sys.argv, "undo" in sys.argv

def send(to, text):
    with open("sent", "a") as file:
        file.write(to + " ")
    if crash and to == "Eve":
        os.kill(os.getpid(), signal.SIGKILL)

def take_back():
    Path("sent").write_text("")

try:
    with Runtime.open() as runtime, runtime.run("letters", key="may") as run:
        for name in ("Ann", "Eve", "Bob"):
            how = {"compensate": take_back} if undo else {}
            run.effect("send", send, name, text="token=ghp_" + "A1b2" * 9, key=f"letter-{name}", target="outbox", **how)
        print("done")
except RunBlocked as blocked:
    print(f"{blocked.code} {blocked}")
"""


def test_a_killed_effect_is_asked_about_by_key_arguments_and_time(place: Place) -> None:
    started(place, LETTERS, "crash")
    (question,) = asked(place, "letters")
    assert (question["id"], question["key"], question["answers"]) == ("send#2", "letter-Eve", ["mark-done", "retry"])
    assert (question["arguments"]["0"], question["begun_at"] > 0) == ("Eve", True)
    (listed,) = place.json("runtime", "questions")["data"]["questions"]
    assert listed["key"] == "letter-Eve"
    for words in (["resume", "letters"], ["runtime", "questions"], ["runtime", "runs", "show", "letters"]):
        shown = place(*words).stdout
        assert "letter-Eve" in shown
        assert "ghp_" not in shown
    for words in (["resume", "letters"], ["runtime", "questions"]):
        shown = place(*words).stdout
        assert '"0": "Eve"' in shown
        assert "begun at   20" in shown
        assert "compensate" not in shown


@pytest.mark.parametrize("words", [["--compensate"], ["send#2", "--compensate"], ["--compensate", "send#2"]])
def test_an_effect_that_its_program_cannot_undo_is_settled_in_another_way(place: Place, words: list[str]) -> None:
    started(place, LETTERS, "crash")
    refused = place("resume", "letters", *words)
    assert refused.returncode != 0
    assert "retry" in refused.stdout + refused.stderr
    assert place("resume", "letters", "--mark-done").returncode == 0
    assert started(place, LETTERS).stdout == "done\n"
    assert (place.root / "sent").read_text() == "Ann Eve Bob "


def test_an_effect_that_was_undone_waits_for_a_person_before_it_is_done_again(place: Place) -> None:
    started(place, LETTERS, "crash", "undo")
    (question,) = asked(place, "letters")
    assert question["answers"] == ["mark-done", "retry", "compensate"]
    assert place("resume", "letters", "--compensate").returncode == 0
    for _ in range(2):
        stopped = started(place, LETTERS, "undo")
        assert "effect_failed send#2 was undone" in stopped.stdout
        assert (place.root / "sent").read_text() == ""
        shown = place("resume", "letters")
        assert "question send#2: send#2 was undone; do it again?" in shown.stdout
        assert shown.returncode == 45
    stopped_runs = place.json("resume")["data"]["unfinished"]
    assert [stop["code"] for stop in stopped_runs[0]["blocked_by"]] == ["effect_failed"]
    assert place("resume", "letters", "--retry").returncode == 0
    assert started(place, LETTERS, "undo").stdout == "done\n"
    assert (place.root / "sent").read_text() == "Eve Bob "


RECEIVED = """
import sys
from workpacket.runtime import Runtime, RunBlocked

def post(to):
    with open("posted", "a") as file:
        file.write(to)
    if sys.argv[1] == "unknown":
        raise TimeoutError("no answer")
    return {"unkept": {1}, "redacted": "ghp_" + "A1b2" * 9}[sys.argv[1]]

try:
    with Runtime.open() as runtime, runtime.run("post", key="one") as run:
        print(run.effect("post", post, "ann", key="k"))
        sys.argv[2:] == ["stop"] and sys.exit("stopped")
except (RunBlocked, TimeoutError) as error:
    sys.exit(str(error))
"""
GIVEN = ["--mark-done", "--value", '{"id": 7}']


@pytest.mark.parametrize("words", [["post", *GIVEN], GIVEN, ["--mark-done", "post", *GIVEN[1:]]], ids=" ".join)
@pytest.mark.parametrize(
    ("outcome", "code", "status", "answers"),
    [
        ("unknown", "effect_outcome_unknown", 74, ["mark-done", "retry"]),
        ("unkept", "receipt_unkept", 82, ["mark-done"]),
        ("redacted", "receipt_redacted", 81, ["mark-done"]),
    ],
)
def test_what_an_effect_gave_is_asked_and_answered_with_a_value(
    place: Place, outcome: str, code: str, status: int, answers: list[str], words: list[str]
) -> None:
    for _ in range(2):
        started(place, RECEIVED, outcome, "stop")
    (question,) = asked(place, "post")
    assert (question["id"], question["code"], question["answers"]) == ("post", code, answers)
    assert place("resume", "post").returncode == status
    assert place("resume", "post", *words).returncode == 0
    assert started(place, RECEIVED, outcome).stdout == "{'id': 7}\n"
    assert (place.root / "posted").read_text() == "ann"


def test_a_run_that_stopped_for_another_reason_does_not_ask_what_a_probe_may_still_find(place: Place) -> None:
    started(place, RECEIVED, "redacted", "stop")
    said = place.json("resume", "post")
    assert (said["exit_code"], said["data"]["questions"]) == (0, [])


@pytest.mark.parametrize("outcome", ["unkept", "redacted"])
def test_an_effect_that_is_known_to_have_happened_is_answered_by_its_value_only(place: Place, outcome: str) -> None:
    for _ in range(2):
        started(place, RECEIVED, outcome, "stop")
    shown = place("resume", "post")
    assert "next: workpacket resume post@one post --mark-done --value JSON" in shown.stdout
    assert place("resume", "post", "post", "--mark-done").returncode == shown.returncode
    assert place("resume", "post", "post", "--retry").returncode == 2
    assert len(asked(place, "post")) == 1


@pytest.mark.parametrize(
    "words", [["--value", "1"], ["--yes", "--value", "1"], ["--retry", "post", "--value", "1"],
              ["--mark-done", "post", "--mark-done", "post", "--value", "1"], ["post", "--mark-done", "--value", "{"],
              ["post", "--mark-done", "--value", "NaN"]],
    ids=" ".join,
)  # fmt: skip
def test_a_value_belongs_to_one_effect_that_is_marked_as_done(place: Place, words: list[str]) -> None:
    started(place, RECEIVED, "unknown")
    assert place("resume", "post", *words).returncode == 2
    assert len(asked(place, "post")) == 1


def test_the_result_that_a_finished_run_lacks_is_given_by_a_person(place: Place) -> None:
    assert started(place, RECEIVED, "redacted").stdout == "ghp_" + "A1b2" * 9 + "\n"
    assert "post happened and is not repeated" in started(place, RECEIVED, "redacted").stderr
    assert place("resume", "post", "--mark-done", "post", *GIVEN[1:]).returncode == 0
    assert started(place, RECEIVED, "redacted").stdout == "{'id': 7}\n"
    assert (place.root / "posted").read_text() == "ann"


def at_terminal(place: Place, typed: str, *words: str) -> tuple[int, str]:
    """The command at a terminal of its own; its exit status, and what was shown there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place.root)
        os.execve(sys.executable, [sys.executable, "-c", CONSOLE, *words], environment())
    os.write(terminal, typed.encode())
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


@pytest.mark.parametrize(("typed", "words"), [("y\n", ()), ("", ("--yes",))], ids=["asked", "yes"])
def test_at_a_terminal_the_same_call_shows_what_it_asks(
    place: Place, deleting: Any, typed: str, words: tuple[str, ...]
) -> None:
    deleting("/old")
    status, shown = at_terminal(place, typed, "resume", "clean", *words)
    assert (status, '"0": "/old"' in shown) == (0, True)
    assert deleting("/old").stdout == "/old\n"


def test_at_a_terminal_no_answer_is_no(place: Place, deleting: Any) -> None:
    deleting("/old")
    at_terminal(place, "\n", "resume", "clean")
    assert "said no: delete: backup-store" in deleting("/old").stdout


def test_only_a_run_has_questions(place: Place) -> None:
    for words in (["--confirm", "0" * 64], ["--value", "1"], ["--mark-done", "post"], ["batch/specs/active/a", "q1"]):
        assert place("resume", *words).returncode == 2
