"""What is generated from the code is as the code would generate it now."""

from __future__ import annotations

from pathlib import Path

import pytest

import reference
from architecture.source_tree import ROOT, relative

GENERATED = reference.generated()


@pytest.mark.parametrize("path", GENERATED, ids=relative)
def test_a_generated_file_is_current(path: Path) -> None:
    assert path.exists(), "run `just reference`"
    assert path.read_bytes() == GENERATED[path], "run `just reference`"


def test_no_generated_file_is_left_over() -> None:
    twins = set((ROOT / "schemas" / "draft-07").iterdir())
    pages = set((ROOT / "docs" / "reference").iterdir())
    assert twins | pages <= set(GENERATED)
