"""Pull requests as they are: packets in flight land in any order and by any button, and no landing needs another."""

from __future__ import annotations

import pytest

from lifecycle.governed import Governed, Quiet
from lifecycle.landings import Hub, in_flight, name_of, order

# All thirty orders of ten packets are played by `tests/proof/lifecycle/test_landings.py`.
COUNT, SEED = 3, 7


@pytest.fixture
def hub(governed: Governed, tmp_path_factory: pytest.TempPathFactory) -> Hub:
    in_flight(governed, COUNT)
    return Hub(governed.root, tmp_path_factory.mktemp("hub"))


def test_packets_in_flight_land_without_a_conflict_and_are_merged_at_once(hub: Hub, governed: Governed) -> None:
    clone = Quiet(hub.root, None, governed.clock)
    for landed, (name, how) in enumerate(order(SEED, COUNT), 1):
        before = hub.git("rev-parse", "HEAD").stdout.strip()
        assert hub.land(name, how) == [], (name, how)
        assert clone("check", "--base", before).status == 0, (name, how)
        assert clone.json("status")["data"]["lanes"] == {"MERGED": landed}
    assert {name_of(number) for number in range(1, COUNT + 1)} == {
        path.name for path in (hub.root / ".GOV" / "log").iterdir()
    }


def test_nothing_that_packets_share_is_written_on_their_branches(hub: Hub) -> None:
    for number in range(1, COUNT + 1):
        changed = hub.git("diff", "--name-only", "main", f"origin/wp/{name_of(number)}").stdout.split()
        assert not any(path.startswith(".GOV/roles_shared/") for path in changed)
