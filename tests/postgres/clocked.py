"""A store whose server tells the time of a `ManualClock`: the function `moment` is replaced, as only its owner can."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from workpacket.runtime.stores.postgres.access import Connection
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import ManualClock

T = TypeVar("T")

REPLACED = (
    "CREATE TABLE IF NOT EXISTS {s}.test_clock(seconds float8)",
    "INSERT INTO {s}.test_clock SELECT 0 WHERE NOT EXISTS (SELECT FROM {s}.test_clock)",
    """CREATE OR REPLACE FUNCTION {s}.moment() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$ SELECT '2020-01-01'::timestamptz + make_interval(secs => seconds) FROM {s}.test_clock $$""",
)


class ClockedPostgres(PostgresStore):
    def __init__(self, url: str, clock: ManualClock) -> None:
        self.clock = clock
        self.set_to = -1.0
        super().__init__(url, patience=5.0, connections=2)
        for text in REPLACED:
            self.access.doing(lambda connection, text=text: connection.execute(self.access.statement(text)))  # type: ignore[misc]  # constants of this module
        really_doing = self.access.doing

        def doing(action: Callable[[Connection], T]) -> T:
            if self.clock.ticks() != self.set_to:
                self.set_to = self.clock.ticks()
                update = self.access.statement("UPDATE {s}.test_clock SET seconds = %s")
                really_doing(lambda connection: connection.execute(update, (self.set_to,)))
            return really_doing(action)

        self.access.doing = doing  # type: ignore[method-assign]  # every call of the store goes through it
