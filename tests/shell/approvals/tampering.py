"""Hands that meddle with a governed repository at random, and a check that remembers beside one that does not."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from git.scratch import git
from shell.approvals.story import ALICE, BOB, POLICY, REFINEMENT_PATH, WP, Story
from workpacket.model.plan import Moment
from workpacket.problem import WorkpacketError
from workpacket.shell import actor as clock
from workpacket.shell import cache

SEPARATED = POLICY.replace("separation = []", 'separation = ["author"]', 1)
_ENVELOPES, _LOG = ".GOV/attestations", f".GOV/log/{WP}"
_POLICY, _REVOKED = ".GOV/policy/policy.toml", ".GOV/policy/revoked_keys"
# As if all files had been at rest for long, and as if none had been.
AT_REST, RESTLESS = -(10**18), 10**18


class Meddler:
    """Each act leaves the repository in some state, sound or not; `undo` takes back what was done to files."""

    def __init__(self, story: Story, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.story = story
        self.later = timedelta()
        self._random = random.Random(seed)
        monkeypatch.setattr(cache, "RACY_NS", self._random.choice((AT_REST, RESTLESS)))
        genuine = clock.read_clock
        monkeypatch.setattr(clock, "read_clock", lambda: _moved(genuine(), self.later))

    def begin(self, *, settled: bool) -> None:
        self.story.write(_POLICY, SEPARATED)
        self.story.commit("authors do not approve")
        self.story.activate(self.story.approve())
        if settled:
            self.story.commit("activated")

    def act(self) -> str:
        acts: list[Callable[[], object]] = [
            self.edit_an_envelope,
            self.delete_an_envelope,
            self.copy_an_envelope,
            self.edit_an_event,
            self.leave_a_stray_event,
            self.edit_the_refinement,
            self.change_the_policy_here,
            self.change_the_policy_of_the_base,
            self.revoke_the_key,
            self.revoke_the_approval,
            self.say_no,
            self.have_alice_commit_the_refinement_first,
            self.set_main_back,
            self.see_the_policy,
            self.let_time_pass,
            self.commit,
            self.undo,
            self.undo,
        ]
        act = self._random.choice(acts)
        act()
        return act.__name__

    def differs(self) -> tuple[Any, Any]:
        """What a check finds that remembers, twice, and what one finds that does not."""
        warm = [self._found("check"), self._found("check")]
        cold = self._found("check", "--no-cache")
        return warm, [cold, cold]

    def _found(self, *words: str) -> tuple[int, str]:
        done = self.story.run(*words, "--json")
        return done.status, done.out

    def edit_an_envelope(self) -> None:
        for path in self._some(_ENVELOPES):
            text = self.story.read(path)
            at = self._random.randrange(len(text))
            other = self._random.choice("Aa0 ".replace(text[at], ""))
            self.story.write(path, text[:at] + other + text[at + 1 :])

    def delete_an_envelope(self) -> None:
        for path in self._some(_ENVELOPES):
            (self.story.root / path).unlink()

    def copy_an_envelope(self) -> None:
        for path in self._some(_ENVELOPES):
            self.story.write(f"{_ENVELOPES}/{'c' * 64}.dsse.json", self.story.read(path))

    def edit_an_event(self) -> None:
        for path in self._some(_LOG):
            self.story.write(path, self.story.read(path) + " ")

    def leave_a_stray_event(self) -> None:
        self.story.write(f"{_LOG}/{'d' * 64}.json", "{}")

    def edit_the_refinement(self) -> None:
        self.story.write(REFINEMENT_PATH, self.story.read(REFINEMENT_PATH) + "- and more\n")

    def change_the_policy_here(self) -> None:
        threshold = self._random.choice(("1", "2"))
        self.story.write(_POLICY, SEPARATED.replace("threshold = 1", f"threshold = {threshold}", 1))

    def change_the_policy_of_the_base(self) -> None:
        self.undo()
        self.change_the_policy_here()
        self.commit()

    def revoke_the_key(self) -> None:
        """On the base, or not any more."""
        self.undo()
        there = (self.story.root / _REVOKED).exists() and self.story.read(_REVOKED) != ""
        self.story.write(_REVOKED, "" if there else Path(f"{self.story.keys[ALICE]}.pub").read_text("utf-8"))
        self.commit()

    def revoke_the_approval(self) -> None:
        for path in self._some(_ENVELOPES):
            self._try(partial(self.story.revoke, path.rpartition("/")[2].partition(".")[0]))

    def say_no(self) -> None:
        self._try(lambda: self.story.approve(BOB, decision="reject"))

    def have_alice_commit_the_refinement_first(self) -> None:
        self.undo()
        before = self.story.read(REFINEMENT_PATH)
        (self.story.root / REFINEMENT_PATH).unlink()
        self.commit()
        self.story.write(REFINEMENT_PATH, before)
        git(self.story.root, "add", "--all")
        git(self.story.root, "commit", "--quiet", "--allow-empty", "-m", "again", "--author", f"Alice <{ALICE}>")

    def set_main_back(self) -> None:
        """As if somebody had pushed an older policy by force; the work tree stays as it is."""
        git(self.story.root, "checkout", "--quiet", "-B", "work")
        git(self.story.root, "update-ref", "refs/heads/main", "work~2", check=False)

    def see_the_policy(self) -> None:
        self.story.run("approvals", "verify")

    def let_time_pass(self) -> None:
        self.later += timedelta(days=self._random.choice((-1, 2, 60)))

    def commit(self) -> None:
        git(self.story.root, "add", "--all")
        git(self.story.root, "commit", "--quiet", "--allow-empty", "-m", "work")
        git(self.story.root, "update-ref", "refs/heads/main", "HEAD")

    def undo(self) -> None:
        git(self.story.root, "reset", "--quiet", "--hard")
        git(self.story.root, "clean", "--quiet", "-fd", ".GOV")

    def _some(self, folder: str) -> list[str]:
        names = sorted(path.name for path in (self.story.root / folder).glob("*.json"))
        return [f"{folder}/{self._random.choice(names)}"] if names else []

    @staticmethod
    def _try(decide: Callable[[], object]) -> None:
        """A decision that can no longer be given, such as one about an envelope that cannot be read, is none."""
        with contextlib.suppress(WorkpacketError, KeyError):
            decide()


def _moved(now: Moment, later: timedelta) -> Moment:
    from workpacket.approvals.fields import read_instant, write_instant
    from workpacket.value import replace

    instant = read_instant(now.now)
    assert instant is not None
    return replace(now, now=write_instant(instant + later))
