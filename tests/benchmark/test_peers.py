"""Peers are of one version each, so that a figure beside them means the same tomorrow."""

from __future__ import annotations

import re

import pytest
from bench import peers
from bench.peers import Peer

PEERS = [value for value in vars(peers).values() if isinstance(value, Peer)]


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_requirement_of_a_peer_is_pinned(peer: Peer) -> None:
    for requirement in peer.requirements:
        assert re.fullmatch(r"(@[a-z]+/)?[a-z.\-]+(\[[a-z]+\])?(==|@)\d+(\.\d+)+", requirement)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_another_version_is_another_installation(peer: Peer) -> None:
    *others, last = peer.requirements
    newer = type(peer)(peer.name, (*others, f"{last}.1"), peer.program)

    assert newer.folder != peer.folder


def test_a_linter_reads_every_file_and_no_configuration_of_the_machine() -> None:
    assert {"--no-config", "--no-cache"} <= set(peers.RUMDL.options)
