"""What `init` writes agrees with the lifecycle, and with what this repository uses itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lifecycle.governed import Governed
from workpacket.cli.init import gov_just
from workpacket.lifecycle.activation import ITEMS
from workpacket.lifecycle.starter_documents import GOV_JUST, STUB_TEMPLATE, protocols
from workpacket.lifecycle.transitions import TRANSITIONS

ROOT = Path(__file__).parents[2]
PAGES = dict(protocols())


def test_our_recipes_are_those_that_users_get(governed: Governed) -> None:
    governed.done("init")
    assert governed.read(GOV_JUST) == gov_just() == (ROOT / GOV_JUST).read_text("utf-8")


def test_the_protocols_hold_every_transition_of_the_table() -> None:
    text = "\n".join(PAGES.values())
    missing = [row.typed for row in TRANSITIONS if f"| `{row.typed}` |" not in text]
    assert missing == [], "`by` of the row, tools/workpacket/lifecycle/transitions.py, names the protocols that list it"
    missing = [item for item in ITEMS if f"`{item}`" not in text]
    assert missing == [], "add a line to CHECKLIST in tools/workpacket/documents/stub.py"


@pytest.mark.parametrize("path", PAGES)
def test_our_own_protocols_are_those_of_the_lifecycle(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == PAGES[path], "run `just reference`"


@pytest.mark.parametrize("path", PAGES)
def test_a_protocol_names_only_recipes_that_there_are(path: str) -> None:
    recipes = {line.split(" ")[0] for line in gov_just().splitlines() if line.endswith("*arguments:")}
    named = {part.split(" ")[0].rstrip("`") for part in PAGES[path].split("`just ")[1:]}
    assert named <= recipes


def test_init_leaves_alone_what_is_there_and_lints_clean(governed: Governed) -> None:
    governed.write(STUB_TEMPLATE, "ours\n")
    governed.done("init")
    assert governed.read(STUB_TEMPLATE) == "ours\n"
    before = governed.files()
    governed.done("init")
    assert governed.files() == before
    governed.done("check", "--fail-on", "warning")


def test_arguments_reach_the_command_as_they_were_given(governed: Governed) -> None:
    just = shutil.which("just")
    if just is None:
        pytest.skip("just is not installed")
    governed.done("init")
    governed.write("justfile", "import '.GOV/gov.just'\n")
    governed.write("bin/workpacket", '#!/bin/sh\nprintf "<%s>" "$@"\n')
    (governed.root / "bin" / "workpacket").chmod(0o755)
    hostile = 'WP-1-$(touch pwned)\'; "`id`" {{x}}'
    done = subprocess.run(
        [just, "create-task-packet", hostile],
        cwd=governed.root,
        env={"PATH": f"{governed.root / 'bin'}:/usr/bin:/bin", "HOME": str(governed.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"<create-task-packet><{hostile}>"
    assert not (governed.root / "pwned").exists()
