"""The PostgreSQL store against the reference, by random sequences of calls: the machine of the SQLite store."""

from __future__ import annotations

from itertools import count

from hypothesis.stateful import run_state_machine_as_test

from postgres.clocked import ClockedPostgres
from postgres.server import Server
from runtime.stores.test_store_model import steps
from workpacket.runtime.testing.model import StoreModel

_NUMBERS = count(1)


def machine(server: Server) -> type[StoreModel]:
    class PostgresStores(StoreModel):
        def prepare(self) -> None:
            self.url = server.url(workpacket_schema="model", workpacket_project=f"p{next(_NUMBERS)}")

        def opened(self) -> ClockedPostgres:
            return ClockedPostgres(self.url, self.clock)

        def payload_for(self, stream: str, payload: bytes | None) -> bytes | None:
            """A payload that two streams share is kept, and erased, for each of them: see docs/runtime/postgres.md."""
            return None if payload is None else payload + stream.encode()

    return PostgresStores


def test_whatever_is_asked_the_answers_are_those_of_the_reference(server: Server) -> None:
    run_state_machine_as_test(machine(server), settings=steps(5))
