"""Ten pull requests in flight, landed in thirty orders, each merged, squashed or rebased as it comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from lifecycle.governed import Governed, Quiet, govern
from lifecycle.landings import Hub, full_in_flight, in_flight, name_of, order
from proof.share import share

COUNT, ORDERS = 10, 30


def made(factory: pytest.TempPathFactory, fill: Callable[[Governed], None]) -> tuple[Hub, Quiet]:
    with pytest.MonkeyPatch.context() as patch:
        source = govern(factory.mktemp("source"), patch, None)
        quiet = Quiet(source.root, None, source.clock)
        fill(quiet)
        return Hub(source.root, factory.mktemp("hub")), quiet


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hub, Quiet]:
    return made(tmp_path_factory, lambda quiet: in_flight(quiet, COUNT))


@pytest.fixture(scope="module", params=["base", "branch"])
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Hub, Quiet]:
    """Full packets, with the setting [board] commit."""
    return request.param, *made(tmp_path_factory, partial(full_in_flight, count=COUNT, board=request.param))


@pytest.mark.parametrize("seed", share(range(ORDERS)))
def test_ten_packets_land_in_any_order_without_a_conflict(light: tuple[Hub, Quiet], seed: int) -> None:
    forge, quiet = light
    forge.begin("origin/main")
    clone = Quiet(forge.root, None, quiet.clock)
    for landed, (name, how) in enumerate(order(seed, COUNT), 1):
        before = forge.git("rev-parse", "HEAD").stdout.strip()
        assert forge.land(name, how) == [], (name, how)
        assert clone("check", "--base", before).status == 0, (name, how)
        assert clone.json("status")["data"]["lanes"] == {"MERGED": landed}
    assert {path.name for path in (forge.root / ".GOV" / "log").iterdir()} == {name_of(n) for n in range(1, COUNT + 1)}


@pytest.mark.parametrize("seed", share(range(ORDERS)))
def test_ten_full_packets_land_and_one_command_settles_what_conflicts(full: tuple[str, Hub, Quiet], seed: int) -> None:
    board, forge, quiet = full
    forge.begin("origin/main")
    clone = Quiet(forge.root, None, quiet.clock)
    conflicts = 0
    for name, how in order(seed, COUNT):
        before = forge.git("rev-parse", "HEAD").stdout.strip()
        if forge.land(name, how):
            conflicts += 1
            assert clone("board", "sync").status == 0
            forge.go_on(how)
        assert clone("check", "--base", before).status == 0, (name, how)
    print(f"{board}: {conflicts} conflicts")
    assert conflicts <= (COUNT // 10 if board == "branch" else 0)
