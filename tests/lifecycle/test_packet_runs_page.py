"""docs/runtime/packets.md: its commands are run and must say what the page says."""

from __future__ import annotations

import json
import re
import shlex

from architecture.source_tree import ROOT
from lifecycle.governed import Governed
from lifecycle.test_run_links import in_progress, in_review, runs

PAGE = (ROOT / "docs/runtime/packets.md").read_text("utf-8")
COMMAND = re.compile(r"^\$ workpacket (?P<words>.+)\n(?P<said>(?:(?!\$ |```).*\n)*)", re.MULTILINE)


def test_the_page_says_what_the_commands_say(governed: Governed) -> None:
    in_progress(governed)
    in_review(governed)
    played = 0
    for match in COMMAND.finditer(PAGE):
        assert governed.done(*shlex.split(match["words"])).out == match["said"]
        played += 1
    assert played == 5


def test_the_page_shows_how_a_program_does_it(governed: Governed) -> None:
    in_progress(governed)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "packets.md", "exec"), {"fetch": int})
    assert [outcome for _, outcome in runs(governed)] == ["completed"]


def test_the_page_knows_every_outcome() -> None:
    schema = json.loads((ROOT / "schemas/event.schema.json").read_text("utf-8"))
    outcomes = schema["$defs"]["run_closed"]["properties"]["outcome"]["enum"]
    assert [outcome for outcome in outcomes if f"`{outcome}`" not in PAGE] == []
