"""Every command gives one JSON object of the published form, and one line that says what to do next."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from lifecycle.governed import Governed

NAME = "WP-1-Greeting-v1"
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "output.schema.json").read_text("utf-8"))

COMMANDS = (
    ("status",), ("next",), ("why", NAME), ("why", NAME, "--exit-code"), ("show", NAME), ("history", NAME),
    ("board", "show"), ("board", "sync"), ("registry", "show"), ("registry", "sync"), ("policy", "show"),
    ("policy", "test"), ("log", "verify"), ("recover",), ("adopt",), ("create-task-packet", NAME), ("activate", NAME),
    ("claim", NAME), ("prepare", NAME), ("refine", NAME), ("init",),
    ("new", "WP-1-Song-v1"), ("lint-justfile", ".GOV/gov.just"), ("abandon", NAME, "--reason", "x"),
)  # fmt: skip


def test_json_is_of_the_published_form(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    published = Draft202012Validator(SCHEMA)
    for words in COMMANDS:
        value = governed.json(*words)
        published.validate(value)
        assert value["command"] == words[0]
        assert value["ok"] == (value["exit_code"] == 0)


def test_text_ends_with_what_to_do_next(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    for words in COMMANDS:
        assert governed(*words).next, words
