"""Paths that are no UTF-8, in what `trace` and `audit` say with --json: strict readers take it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lifecycle.governed import govern

NAME = "WP-1-Greeting-v1"


@pytest.mark.parametrize("words", [("trace", NAME), ("trace",), ("audit",), ("impact", "src/a")], ids=" ".join)
def test_a_path_that_is_no_utf_8_is_told_visibly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    governed = govern(tmp_path, monkeypatch, capsys)
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    strange = os.fsencode(governed.root) + b"/.GOV/log/" + NAME.encode() + b"/\xff\xed\xa0\x80.json"
    Path(os.fsdecode(strange)).write_bytes(b"{}\n")
    refinement = governed.root / f".GOV/refinements/{NAME}.md"
    refinement.write_bytes(refinement.read_bytes().replace(b"SPEC_v1.md", b"SPEC_\xff.md"))
    answer = governed(*words, "--json")
    json.dumps(json.loads(answer.out), ensure_ascii=False).encode("utf-8")
    assert ("xff" in answer.out) == (words[0] != "impact")
