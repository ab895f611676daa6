"""Two people on two clones cannot both claim a packet where the policy names a store that both can ask."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from git.scratch import commit, git, make_repository
from lifecycle.world import adopted
from postgres.server import Server
from workpacket.cli.main import main
from workpacket.lifecycle.board_sync import sync
from workpacket.runtime.stores.postgres.store import PostgresStore

NAME = "WP-1-Parser-v1"
POLICY = '[lifecycle]\nclaim_store = "TEAM_STORE"\n'


@pytest.fixture
def shared(url: str) -> Iterator[PostgresStore]:
    """The store of the team, as it is."""
    store = PostgresStore(url, patience=5.0, connections=1)
    yield store
    store.close()


class Ended(NamedTuple):
    status: int
    out: str
    err: str


class Clones:
    """The work trees of two people, `ann` and `bob`."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capture, self.monkeypatch = folder, capture, monkeypatch
        make_repository(folder / "ann")
        world = adopted({NAME: "READY_FOR_DEV"})
        world.do(sync)
        for path, data in (world.files | {".GOV/policy/policy.toml": POLICY.encode()}).items():
            (folder / "ann" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "ann" / path).write_bytes(data)
        commit(folder / "ann", "start")
        git(folder, "clone", "--quiet", "ann", "bob")

    def __call__(self, who: str, *words: str) -> Ended:
        self.monkeypatch.chdir(self.folder / who)
        self.capture.readouterr()
        return Ended(main([*words, "--as", who]), *self.capture.readouterr())

    def claim(self, who: str, *words: str) -> Ended:
        return self(who, "claim", NAME, "--branch", "work", *words)


@pytest.fixture
def clones(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Clones:
    monkeypatch.setenv("TEAM_STORE", url)
    return Clones(tmp_path, capsys, monkeypatch)


def data(ended: Ended) -> Any:
    return json.loads(ended.out)["data"]


def test_the_second_to_claim_is_told_who_was_first(clones: Clones) -> None:
    assert clones.claim("ann").status == 0
    refused = clones.claim("bob")

    assert refused.status == 3
    assert "ann holds WP-1-Parser-v1 in another clone" in refused.err
    assert "(claimed_by_other)" in refused.err
    assert git(clones.folder / "bob", "status", "--porcelain") == ""


def test_who_gives_it_back_lets_the_other_have_it(clones: Clones) -> None:
    clones.claim("ann")
    assert clones("ann", "release", NAME, "--reason", "tired").status == 0
    taken = clones.claim("bob", "--json")

    assert taken.status == 0
    assert data(taken)["shared_claim"] == "taken"


def test_work_that_is_blocked_holds_nothing_until_it_goes_on(clones: Clones, shared: PostgresStore) -> None:
    clones.claim("ann")
    assert clones("ann", "block", NAME, "--reason", "no", "--until", "yes").status == 0
    assert shared.leases() == ()

    assert clones("ann", "unblock", NAME, "--reason", "yes").status == 0
    assert [lease.holder for lease in shared.leases()] == ["ann"]
    assert clones.claim("bob").status == 3


def test_who_goes_on_with_what_somebody_else_claimed_by_then_is_told_so(clones: Clones, shared: PostgresStore) -> None:
    clones.claim("ann")
    clones("ann", "block", NAME, "--reason", "no", "--until", "yes")
    assert clones.claim("bob").status == 0
    back = clones("ann", "unblock", NAME, "--reason", "yes")
    assert back.status == 0
    assert "bob holds WP-1-Parser-v1 in another clone, and ann holds it in this one" in back.err
    assert [lease.holder for lease in shared.leases()] == ["bob"]


def test_a_clone_that_knows_nothing_of_a_claim_does_not_give_it_up(clones: Clones, shared: PostgresStore) -> None:
    clones.claim("ann")
    assert clones("bob", "abandon", NAME, "--reason", "nobody needs it").status == 0
    assert [lease.holder for lease in shared.leases()] == ["ann"]


def test_the_holder_renews_and_loses_nothing_by_it(clones: Clones) -> None:
    clones.claim("ann")
    assert clones("ann", "claim", NAME, "--renew").status == 0
    assert clones.claim("bob").status == 3


def test_a_claim_that_its_gate_refuses_holds_nothing(clones: Clones) -> None:
    assert clones("ann", "block", NAME, "--reason", "no", "--until", "yes").status == 0, clones.capture
    assert clones.claim("ann").status == 3
    assert clones.claim("bob").status == 0


@pytest.mark.parametrize("url", ["", "postgresql://ann@127.0.0.1:1/none"], ids=["not set", "away"])
def test_without_the_store_a_claim_is_made_and_says_what_is_not_certain(
    clones: Clones, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("TEAM_STORE", url)
    monkeypatch.setattr("workpacket.cli.claim.PATIENCE", 0.2)
    made = clones.claim("ann")
    assert made.status == 0
    assert "this clone and others cannot see each other's claims" in made.out
    assert data(clones("bob", "claim", NAME, "--branch", "work", "--json"))["shared_claim"] == "unseen"
    assert (
        "in other clones, the claim expires with its lease" in clones("ann", "release", NAME, "--reason", "tired").err
    )


def test_a_store_that_lets_nobody_in_is_no_store_that_is_away(
    clones: Clones, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_STORE", os.environ["TEAM_STORE"].replace("owner@", "nobody_knows@"))
    assert clones.claim("ann").status != 0
    assert git(clones.folder / "ann", "status", "--porcelain") == ""
