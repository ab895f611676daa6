"""The same as tests/lifecycle, as long as was promised: 100 packets for 8 processes, 1,000 pairs of branches."""

from __future__ import annotations

from pathlib import Path

from lifecycle.test_branches import tried_pairs
from lifecycle.test_parallel import claim_all
from proof.share import stride
from trust.enumerate_moves import differences


def test_eight_processes_claim_a_hundred_packets(tmp_path: Path) -> None:
    claim_all(tmp_path, 100)


def test_a_thousand_random_pairs_of_branches(tmp_path: Path) -> None:
    forks = tried_pairs(1000 // stride(8), seed=2, folder=tmp_path)
    print(f"{forks} packets forked, each listed")
    assert forks > 0


def test_product_and_model_agree_on_every_history_up_to_three_branches_and_four_moves() -> None:
    asked = list(differences(stride(7)))
    print(f"{len(asked)} histories")
    assert len(asked) > 70_000 // stride(7)
    assert [difference for difference in asked if difference[0]] == []
