"""Where the policy of the base asks for it, an answer to a run counts only with the signature of a person."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from git.scratch import copy_of
from shell.approvals.story import ALICE, CAROL, POLICY, Story, begin
from workpacket.approvals.envelope import pae, write_envelope
from workpacket.bridges.signed_answers import SignedAnswers
from workpacket.model.canonical import Json
from workpacket.runtime import RunBlocked, Runtime, Settings
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.catalog import state_of
from workpacket.runtime.records.events import AnswerToJudge
from workpacket.runtime.resume.observe import OpenQuestion
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.shell.keys import find_key, sign

ANSWERS = '\n[approvals.gates.answer]\nroles = ["approver"]\nthreshold = 1\nseparation = []\n'
DELETE = """
import sys
from workpacket.bridges.signed_answers import SignedAnswers
from workpacket.runtime import RunBlocked, Runtime, Settings

try:
    settings = Settings(verifier=SignedAnswers.here())
    with Runtime.open(None, settings) as runtime, runtime.run("clean") as run:
        run.confirm("Delete the backups?", {"path": sys.argv[1]})
        print("deleted", sys.argv[1])
except RunBlocked as blocked:
    sys.exit(f"{blocked.code}: {blocked.message}")
"""


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    begin(folder / "repository", folder / "home", policy=POLICY + ANSWERS)
    return folder


@pytest.fixture
def story(beginnings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    home = beginnings / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv("WORKPACKET_KEY", raising=False)
    copy_of(beginnings / "repository", tmp_path / "repository")
    return Story(tmp_path / "repository", home)


@pytest.fixture
def runtime(story: Story) -> Iterator[Runtime]:
    """The runtime of a program that verifies answers."""
    store = SQLiteStore(story.root / ".git/workpacket/runs.db")
    with Runtime(store, Settings(verifier=SignedAnswers(story.repository))) as runtime:
        yield runtime


def ask(runtime: Runtime, path: str = "/backups", name: str = "clean") -> str:
    """What the program answers: that it did it, or what the person was asked."""
    try:
        with runtime.run(name) as run:
            run.confirm("Delete the backups?", {"path": path})
    except RunBlocked as blocked:
        return f"{blocked.code}: {blocked.message}"
    return "deleted"


def question(runtime: Runtime, run: str = "clean@00000001") -> OpenQuestion:
    (found,) = runtime.waiting(run)[1]
    return found


def by(story: Story, who: str = ALICE) -> Callable[[AnswerToJudge], str]:
    return SignedAnswers(story.repository).signing(find_key(str(story.keys[who])))


def smuggle(runtime: Runtime, answer: str, envelope: str, run: str = "clean@00000001", **more: str) -> None:
    """Write an answer into the log past everything that judges it, as anyone can who can write to the store."""
    state = state_of(runtime.store, run)
    data: dict[str, Json] = {"subject": question(runtime, run).digest, "answer": answer, "by": "alice", "note": ""}
    recorder = Settings().recorder(runtime.store, state, run)
    recorder.record(RecordDraft("confirmation.given", {**data, "envelope": envelope, **more}))


def envelope_of(runtime: Runtime, run: str = "clean@00000001") -> str:
    """The envelope of the last answer in the log."""
    answers = [one.values() for one in runtime.store.read(run) if one.type == "confirmation.given"]
    return str(answers[-1]["envelope"])


def test_a_signed_yes_counts_and_names_who_signed_it(story: Story, runtime: Runtime) -> None:
    assert ask(runtime).startswith("needs_confirmation: waiting for a person: Delete the backups?")
    runtime.confirm("clean@00000001", question(runtime).digest, yes=True, note="asked Bob", sign=by(story))
    (answer,) = runtime.state("clean@00000001").answers.values()
    assert answer.shown_by == f"{ALICE} (signed)"
    assert ask(runtime) == "deleted"


def test_an_answer_without_a_signature_is_not_stored(runtime: Runtime) -> None:
    ask(runtime)
    with pytest.raises(RunBlocked, match="was not stored: it is not signed"):
        runtime.confirm("clean@00000001", question(runtime).digest, yes=True)
    assert "confirmation.given" not in {one.type for one in runtime.store.read("clean@00000001")}


def test_an_answer_smuggled_into_the_log_does_not_count_and_the_question_stays_open(runtime: Runtime) -> None:
    ask(runtime)
    smuggle(runtime, "yes", "")
    assert "the last answer does not count: it is not signed" in ask(runtime)
    assert "not signed" in question(runtime).refused


def test_an_envelope_is_good_for_one_question_and_one_answer_only(story: Story, runtime: Runtime) -> None:
    ask(runtime)
    ask(runtime, name="other")
    runtime.confirm("clean@00000001", question(runtime).digest, yes=False, sign=by(story))
    no = envelope_of(runtime)
    assert "said no" in ask(runtime)
    for run, answer in (("clean@00000001", "yes"), ("other@00000001", "no"), ("other@00000001", "yes")):
        smuggle(runtime, answer, no, run)
        assert "differs from the text that was approved" in runtime.state(run).refused_answers.popitem()[1]
    assert "said no" in ask(runtime)


def test_a_yes_that_was_taken_back_cannot_be_repeated(story: Story, runtime: Runtime) -> None:
    ask(runtime)
    asked = question(runtime)
    runtime.confirm("clean@00000001", asked.digest, yes=True, sign=by(story))
    yes = envelope_of(runtime)
    runtime.confirm("clean@00000001", asked.digest, yes=False, sign=by(story))
    recorder = Settings().recorder(runtime.store, state_of(runtime.store, "clean@00000001"), "clean@00000001")
    said: dict[str, Json] = {"subject": asked.digest, "answer": "yes", "by": "user", "note": "", "envelope": yes}
    recorder.record(RecordDraft("confirmation.given", said))
    assert runtime.state("clean@00000001").confirmations[asked.digest] == "no"
    assert "already been used" in runtime.state("clean@00000001").refused_answers[asked.digest]


@pytest.mark.parametrize("changed", ["payload", "keyid", "sig"])
def test_a_changed_envelope_does_not_count(story: Story, runtime: Runtime, changed: str) -> None:
    ask(runtime)
    signed = by(story)

    def forged(answer: AnswerToJudge) -> str:
        envelope: dict[str, Any] = json.loads(signed(answer))
        place = envelope if changed == "payload" else envelope["signatures"][0]
        old = place[changed]
        place[changed] = old[:60] + ("A" if old[60:61] != "A" else "B") + old[61:] if changed != "keyid" else (
            "SHA256:" + "A" * 43)  # fmt: skip
        return json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n"

    with pytest.raises(RunBlocked, match="was not stored"):
        runtime.confirm("clean@00000001", question(runtime).digest, yes=True, sign=forged)


def test_who_lacks_the_role_or_is_not_listed_cannot_answer(story: Story, runtime: Runtime, tmp_path: Path) -> None:
    ask(runtime)
    digest = question(runtime).digest
    from workpacket.problem import WorkpacketError

    with pytest.raises(WorkpacketError, match="does not have the approver role"):
        runtime.confirm("clean@00000001", digest, yes=True, sign=by(story, CAROL))

    from shell.agents import make_key_file

    stranger = make_key_file(tmp_path / "stranger")
    honest = by(story)

    def by_a_stranger(answer: AnswerToJudge) -> str:
        """The statement of Alice, signed with another key."""
        from base64 import b64decode

        payload = b64decode(json.loads(honest(answer))["payload"])
        key = find_key(str(stranger))
        return write_envelope(payload, key.public.fingerprint, sign(pae(payload), key.path))[1].decode()

    with pytest.raises(RunBlocked, match="allowed_signers on the base does not list"):
        runtime.confirm("clean@00000001", digest, yes=True, sign=by_a_stranger)


def test_an_effect_of_unknown_outcome_is_settled_by_a_signed_answer_only(story: Story, runtime: Runtime) -> None:
    def cut_short() -> None:
        raise TimeoutError

    def pay() -> str:
        with runtime.run("pay") as run:
            return str(run.effect("pay", cut_short, recovery="manual"))

    with pytest.raises(TimeoutError):
        pay()
    asked = question(runtime, "pay@00000001")
    state = state_of(runtime.store, "pay@00000001")
    said: dict[str, Json] = {"effect": asked.digest, "choice": "mark_done", "by": "user", "note": ""}
    Settings().recorder(runtime.store, state, "pay@00000001").record(RecordDraft("effect.resolved", said))
    assert "not signed" in question(runtime, "pay@00000001").refused
    runtime.settle("pay@00000001", asked.digest, "mark_done", value="receipt 7", sign=by(story))
    assert pay() == "receipt 7"


def test_without_rules_for_answers_they_are_shown_as_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    story = begin(tmp_path / "repository", tmp_path / "home")
    store = SQLiteStore(story.root / ".git/workpacket/runs.db")
    with Runtime(store, Settings(actor="user:ann", verifier=SignedAnswers(story.repository))) as runtime:
        ask(runtime)
        runtime.confirm("clean@00000001", question(runtime).digest, yes=False)
        assert "user:ann (claimed) said no" in ask(runtime)
        assert (question(runtime).denied_by, question(runtime).proof) == ("user:ann", "claimed")


@pytest.mark.long
def test_at_a_terminal_a_person_signs_what_they_were_shown_and_the_program_goes_on(story: Story) -> None:
    import subprocess

    def program(path: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", DELETE, path],
            cwd=story.root, env=story.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert "needs_confirmation" in program("/backups").stderr
    with chdir(story.root):
        refused = story.run("resume", "clean", "--no")
    assert (refused.status, "approval_needs_terminal" in refused.err) == (3, True), refused.err
    typed = story.type(["resume", "clean", "--yes", "--key", str(story.keys[ALICE])])
    assert (typed.status, '{"path": "/backups"}' in typed.screen) == (0, True), typed.screen
    assert program("/other").returncode == 1, "a yes for one path is none for another"
    assert program("/backups").stdout == "deleted /backups\n"
