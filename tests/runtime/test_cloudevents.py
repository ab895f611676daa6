"""What `runs export --format cloudevents` writes is CloudEvents 1.0: by the specification's rules, and by its SDK."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from workpacket.runtime import Runtime
from workpacket.runtime.records.events import Event, sealed_event
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.transfer import cloudevent, cloudevent_lines

# The rules of the JSON format of CloudEvents 1.0.2 (https://github.com/cloudevents/spec), in our own words and tighter:
# the published schema lets every further member pass, and the specification does not.
SCHEMA = {
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1, "format": "uri-reference", "pattern": r"^[\x21-\x7e]+$"},
        "type": {"type": "string", "minLength": 1},
        "subject": {"type": "string", "minLength": 1},
        "time": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"},
        "datacontenttype": {"type": "string", "pattern": r"^[a-z]+/[a-z0-9.+-]+$"},
        "dataschema": {"type": "string", "format": "uri"},
        "data": {"type": "object"},
        "data_base64": {"type": "string"},
    },
    "patternProperties": {"^[a-z0-9]{1,20}$": {"type": ["string", "integer", "boolean", "object"]}},
    "additionalProperties": False,
}


def valid(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    read = JSONFormat().read(CloudEvent, line)  # the SDK of the project that wrote the specification
    assert read.get_id() == found["id"]
    assert read.get_source() == found["source"]
    assert read.get_data() == found["data"]
    return found


def test_every_event_of_a_run_is_a_valid_cloudevent() -> None:
    with Runtime(MemoryStore()) as runtime:
        with runtime.run("nightly", inputs={"month": "10"}) as run:
            run.step("fetch", lambda: {"password": "swordfish"})
            run.effect("mail", lambda: "sent", key="mail-1")
            run.checkpoint(cursor={"at": 1})
        events = [valid(line) for line in cloudevent_lines(runtime.store, run.id)]
        stored = list(runtime.store.read(run.id))
    assert [event["type"] for event in events] == [f"dev.workpacket.{event.type}" for event in stored]
    assert [event["data"]["hash"] for event in events] == [event.hash for event in stored]
    assert len({(event["source"], event["id"]) for event in events}) == len(events)
    assert {event["source"] for event in events} == {"/workpacket/nightly%4000000001"}
    assert "swordfish" not in json.dumps(events)


def an_event(**fields: Any) -> Event:
    plain = Event("a@1", 2, "step.completed", 1, 0, 0, "ann", "w", 1, None, 0, "{}", None, "0" * 64, "")
    return sealed_event(plain._replace(**fields)[:-1])


@pytest.mark.parametrize(
    ("fields", "member", "said"),
    [
        ({"key": "invoice-7"}, "id", "invoice-7"),
        ({}, "id", "a@1#2"),
        ({"key": "a@1#1"}, "id", "a@1#2"),
        ({"stream": "pa per/ä@1"}, "source", "/workpacket/pa%20per/%C3%A4%401"),
        ({"data": '{"step":"fetch"}'}, "subject", "fetch"),
        ({}, "subject", "a@1"),
        ({"occurred_at": 1_700_000_000_000_001}, "time", "2023-11-14T22:13:20.000001Z"),
        ({"occurred_at": 2**62}, "time", "9999-12-31T23:59:59.999999Z"),
        ({"occurred_at": -(2**62)}, "time", "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_each_attribute_says_what_the_event_says(fields: dict[str, Any], member: str, said: str) -> None:
    assert valid(json.dumps(cloudevent(an_event(**fields))))[member] == said
