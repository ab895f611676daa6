"""Waiting for news from the server: NOTIFY wakes whoever waits, and looking again after a while is always enough.

A notification is a hint and nothing more. It is lost with its connection, and a standby or a pooler has none; so every
wait ends after some seconds whether there was one or not, and whoever waits looks for itself.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress

import psycopg

from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.stores.postgres.access import Connection, PostgresAccess, is_lent

FOLLOWED = 60.0  # seconds for which a stream is announced after somebody said that they follow it
POLL = 0.5  # seconds between two looks where there are no notifications
CONNECT_AGAIN = 5.0


class News:
    """One channel, on a connection of its own. `only` is the payload that counts; None: all of them.

    `poll`: after how many seconds at the latest one looks again where there are no notifications.
    """

    def __init__(self, access: PostgresAccess, channel: str, only: str | None = None, *, poll: float = POLL) -> None:
        self._access = access
        self._poll = poll
        self._listen = psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel))
        self._only = only
        self._connection: Connection | None = None
        self._next_try = 0.0

    @property
    def listening(self) -> bool:
        return self._connection is not None

    def wait(self, seconds: float) -> None:
        """Return when there may be news, after so many seconds at the latest."""
        if self._connection is None and time.monotonic() >= self._next_try and self._connect():
            return  # what was announced before is not told again, so one looks again
        if self._connection is None:
            time.sleep(min(seconds, self._poll))
            return
        try:
            for note in self._connection.notifies(timeout=seconds):
                if self._only in {None, note.payload}:
                    return
        except psycopg.Error:
            self.close()

    def _connect(self) -> bool:
        self._next_try = time.monotonic() + CONNECT_AGAIN
        try:
            self._connection = self._access.connect()
            if is_lent(self._connection):
                self.close()
                self._next_try = math.inf
            else:
                self._connection.execute(self._listen)
        except (RuntimeFault, psycopg.Error):
            self.close()
        return self._connection is not None

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


class Follower:
    """Waits for a stream to grow. The server announces only streams that somebody follows."""

    def __init__(self, access: PostgresAccess, project: int, stream: str) -> None:
        self._access = access
        self._asked = (project, stream, FOLLOWED)
        self._news: News | None = None
        self._ask_again = 0.0

    def wait(self, seconds: float) -> None:
        if time.monotonic() >= self._ask_again:
            self._follow()
        if self._news is None:
            time.sleep(min(seconds, POLL))
        else:
            self._news.wait(seconds)

    def _follow(self) -> None:
        self._ask_again = time.monotonic() + FOLLOWED / 2
        try:
            (number,) = self._access.one("SELECT {s}.follow_1(%s, %s, %s)", self._asked)
        except RuntimeFault:  # a standby cannot note it
            return
        if self._news is None and number is not None:
            self._news = News(self._access, "workpacket_streams", str(number))

    def close(self) -> None:
        if self._news is not None:
            self._news.close()
