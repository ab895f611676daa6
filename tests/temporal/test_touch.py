"""A yes by touch, on Temporal: only the signature of a security key that was touched counts, for one question."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from shell.approvals.story import ALICE, POLICY, Story, begin
from softkeys import TOUCHED, SoftKey, shared_key
from temporal.conftest import played
from temporal.server import TemporalServer
from temporal.test_worker import asked, working
from workpacket.bridges import signed_answers
from workpacket.bridges.signed_answers import SignedAnswers
from workpacket.runtime.records.events import AnswerToJudge
from workpacket.temporal import answer, start
from workpacket.temporal.decisions import ANSWER

RULES = '\n[approvals.gates.answer]\nroles = ["approver"]\nthreshold = 1\nseparation = []\nhardware = "touch"\n'
TOKEN = "sk-ssh-ed25519@openssh.com"
SIGNERS = ".GOV/policy/allowed_signers"
Sign = Callable[[AnswerToJudge], str]


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """A repository whose policy wants a touch, and in which Alice also has a key in a token."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv("WORKPACKET_KEY", raising=False)
    begin(tmp_path / "repository", tmp_path / "home", policy=POLICY + RULES)
    story = Story(tmp_path / "repository", tmp_path / "home")
    story.write(SIGNERS, story.read(SIGNERS) + shared_key(TOKEN).line(ALICE) + "\n")
    story.commit("A key in a token")
    return story


def by_token(story: Story, monkeypatch: pytest.MonkeyPatch, *, flags: int = TOUCHED, owner: str = "") -> Sign:
    """Sign as ssh-keygen does with a token, which does or does not say that it was touched."""
    key: SoftKey = shared_key(TOKEN, owner)
    place = story.root.parent / f"token-{owner}"
    place.with_name(f"{place.name}.pub").write_text(key.public_line)

    def signed(asked: AnswerToJudge) -> str:
        with monkeypatch.context() as token:
            token.setattr(signed_answers, "sign", lambda message, path: key.sign(message, flags=flags))
            return SignedAnswers(story.repository).signing(str(place))(asked)

    return signed


async def refusals(client: Client, run: WorkflowHandle[Any, Any], before: int) -> list[str]:
    """What the question says about answers that do not count, once there is one more."""
    while len(said := (await asked(client, run.id))["refused"]) == before:
        await asyncio.sleep(0.05)
    return list(said)


def test_only_a_touch_says_yes(
    temporal_server: TemporalServer, world: str, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Sign | None] = [
        None,
        SignedAnswers(story.repository).signing(str(story.keys[ALICE])),  # a key in a file
        by_token(story, monkeypatch, flags=0),
    ]

    async def play() -> Any:
        async with working(temporal_server, verifier=SignedAnswers(story.repository)) as (client, queue):
            run = await start(client, "asks", key=f"touch-{queue}", task_queue=queue)
            question = await asked(client, run.id)
            refused: list[str] = []
            for sign in answers:
                await answer(client, run.id, question["subject"], "yes", sign=sign)
                refused = await refusals(client, run, len(refused))
            assert not (await run.describe()).close_time
            await answer(client, run.id, question["subject"], "yes", sign=by_token(story, monkeypatch))
            return refused, await run.result()

    refused, result = played(play)
    assert result == "deployed"
    assert [word in said for word, said in zip(("not signed", "FIDO", "touch"), refused, strict=True)] == [True] * 3, (
        refused
    )


def test_a_touch_is_for_one_run_one_question_and_one_answer(
    temporal_server: TemporalServer, world: str, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can signal the workflow can send any envelope, so each part of what was signed is changed."""
    sign, kept = by_token(story, monkeypatch), list[str]()

    def keeping(asked: AnswerToJudge) -> str:
        kept.append(sign(asked))
        return kept[0]

    async def play() -> Any:
        async with working(temporal_server, verifier=SignedAnswers(story.repository)) as (client, queue):
            first = await start(client, "asks", key=f"touch-{queue}-1", task_queue=queue)
            second = await start(client, "asks", key=f"touch-{queue}-2", task_queue=queue)
            subject = (await asked(client, first.id))["subject"]
            await answer(client, first.id, subject, "no", sign=keeping)
            sent = [("no", ""), ("yes", ""), ("no", "a note that was not signed")]
            refused: list[str] = []
            subject = (await asked(client, second.id))["subject"]
            for choice, note in sent:
                said = {"subject": subject, "answer": choice, "note": note, "envelope": kept[0]}
                await second.signal(ANSWER, said)
                refused = await refusals(client, second, len(refused))
            await second.cancel()
            return refused

    assert ["differs from" in said for said in played(play)] == [True] * 3


def test_a_key_that_is_revoked_while_the_worker_runs_does_not_count(
    temporal_server: TemporalServer, world: str, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = by_token(story, monkeypatch)

    def revoked(asked: AnswerToJudge) -> str:
        """Sign just before the key is revoked: the signature itself is in order."""
        envelope = sign(asked)
        revoke(story)
        return envelope

    async def play() -> Any:
        async with working(temporal_server, verifier=SignedAnswers(story.repository)) as (client, queue):
            first = await start(client, "asks", key=f"touch-{queue}-1", task_queue=queue)
            await answer(client, first.id, (await asked(client, first.id))["subject"], "yes", sign=sign)
            done = await first.result()
            second = await start(client, "asks", key=f"touch-{queue}-2", task_queue=queue)
            await answer(client, second.id, (await asked(client, second.id))["subject"], "yes", sign=revoked)
            refused = await refusals(client, second, 0)
            await second.cancel()
            return done, refused

    done, refused = played(play)
    assert done == "deployed"
    assert "revoked" in refused[0]


def revoke(story: Story) -> None:
    story.write(".GOV/policy/revoked_keys", shared_key(TOKEN).public_line + "\n")
    story.commit("The token was lost")
