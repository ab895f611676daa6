"""Each guarantee names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PAGE = (ROOT / "docs" / "runtime" / "guarantees.md").read_text("utf-8")


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE))))
def test_a_named_test_exists(file: str, name: str) -> None:
    assert re.search(rf"^\s*(def {name}\(|class {name}\b|{name} = )", (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_each_guarantee_names_a_test() -> None:
    for guarantee in re.split(r"^- ", PAGE, flags=re.MULTILINE)[1:]:
        assert NAMED.search(guarantee), guarantee
