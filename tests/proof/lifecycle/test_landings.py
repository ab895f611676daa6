"""Ten pull requests in flight, landed in thirty orders, each merged, squashed or rebased as it comes."""

from __future__ import annotations

import pytest

from lifecycle.governed import Quiet, govern
from lifecycle.landings import Hub, in_flight, name_of, order
from proof.share import share

COUNT, ORDERS = 10, 30


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hub, Quiet]:
    with pytest.MonkeyPatch.context() as patch:
        source = govern(tmp_path_factory.mktemp("source"), patch, None)
        quiet = Quiet(source.root, None, source.clock)
        in_flight(quiet, COUNT)
        return Hub(source.root, tmp_path_factory.mktemp("hub")), quiet


@pytest.mark.parametrize("seed", share(range(ORDERS)))
def test_ten_packets_land_in_any_order_without_a_conflict(hub: tuple[Hub, Quiet], seed: int) -> None:
    forge, quiet = hub
    forge.begin("origin/main")
    clone = Quiet(forge.root, None, quiet.clock)
    for landed, (name, how) in enumerate(order(seed, COUNT), 1):
        before = forge.git("rev-parse", "HEAD").stdout.strip()
        assert forge.land(name, how) == [], (name, how)
        assert clone("check", "--base", before).status == 0, (name, how)
        assert clone.json("status")["data"]["lanes"] == {"MERGED": landed}
    assert {path.name for path in (forge.root / ".GOV" / "log").iterdir()} == {name_of(n) for n in range(1, COUNT + 1)}
