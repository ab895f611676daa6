"""What must hold of any schema and any value, for the fast tests and the long ones."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry

from draft07 import twin
from text.schema_files import loaded, reading
from text.schema_strategies import for_python
from workpacket.model.reason_tables.document import FIELDS
from workpacket.text.schema import compile_acceptor
from workpacket.text.schema_loading import UnusableSchema
from workpacket.text.schema_messages import complaints
from workpacket.text.schema_violations import violations
from workpacket.text.source import Plain

CODES = {reason.code for reason in FIELDS}


def assert_one_verdict(schema: Any, value: Plain) -> None:
    """Acceptor, judge and plain `jsonschema` agree. The schema has no `format`, which `jsonschema` would overlook."""
    verdict = Draft202012Validator({"allOf": [for_python(schema)]}, registry=Registry()).is_valid(value)
    accepts = compile_acceptor(loaded({"allOf": [schema]}))

    assert accepts is not None
    assert accepts(value) is verdict
    assert (complaints(loaded({"allOf": [schema]}), value) == []) is verdict


def assert_told_well(schema: Any, value: Plain) -> None:
    """There are violations exactly if there are complaints; each has a place, a code and a short message."""
    ready = loaded({"allOf": [schema]})
    told = violations(ready, value)

    assert (told == ()) is (complaints(ready, value) == [])
    assert told == violations(ready, value)
    for violation in told:
        node: Any = value
        for step in violation.location.keys:
            node = node[step]
        assert violation.code in CODES
        assert 0 < len(violation.message) < 1_000


def assert_twin_agrees(schema: Any, value: Plain) -> None:
    """The draft-07 twin has the verdict of the schema, or there is none."""
    try:
        made = json.loads(twin("it", reading(it={"allOf": [schema]})))
    except UnusableSchema:
        return
    verdict = Draft7Validator(for_python(made), registry=Registry()).is_valid(value)

    assert (complaints(loaded({"allOf": [schema]}), value) == []) is verdict
