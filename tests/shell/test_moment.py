"""What a command knows of the moment it runs in."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from ledger.stories import PACKET, data_of
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.model.events import Actor
from workpacket.shell.actor import moment


def test_a_moment_has_the_time_a_version_7_id_and_sixteen_random_bytes() -> None:
    made = moment()
    assert abs(datetime.fromisoformat(made.now) - datetime.now(UTC)) < timedelta(seconds=5)
    identity = uuid.UUID(made.tx)
    assert (identity.version, identity.variant, str(identity)) == (7, uuid.RFC_4122, made.tx)
    assert abs((identity.int >> 80) / 1000 - datetime.now(UTC).timestamp()) < 5
    assert len(bytes.fromhex(made.nonce)) == 16


def test_no_two_moments_are_alike() -> None:
    made = [moment() for _ in range(200)]
    assert len({one.tx for one in made}) == len({one.nonce for one in made}) == 200


def test_an_event_takes_a_moment_as_it_is() -> None:
    made = moment()
    writer = EventWriter(Actor("ann", "human"), made.now, made.tx, "workpacket test")
    assert next_event(writer, PACKET, NewLogEvent("created", data_of("created")), after=[]).tx == made.tx
