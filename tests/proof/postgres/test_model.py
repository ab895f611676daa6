"""The random sequences of tests/postgres/test_store_model.py, many more of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis.stateful import run_state_machine_as_test

from postgres.conftest import running_server
from postgres.server import Server
from postgres.test_store_model import machine
from proof.share import bounded
from runtime.stores.test_store_model import steps


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def test_whatever_is_asked_the_answers_are_those_of_the_reference(server: Server) -> None:
    run_state_machine_as_test(machine(server), settings=steps(15 if bounded() else 500))
