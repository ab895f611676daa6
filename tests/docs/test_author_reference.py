"""The reference for authors: every public name has an example, which prints what the page says."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from author_reference import examples, names, page, signature_of
from workpacket import runtime

EXAMPLES = examples()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_prints_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKPACKET_STORE", raising=False)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(EXAMPLES[name].program(name), name, "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == EXAMPLES[name].printed


def test_every_public_name_has_an_example_and_no_other_has() -> None:
    assert sorted(EXAMPLES) == sorted(names())
    assert {name.partition(".")[0] for name in names()} >= set(runtime.__all__)


def test_signatures_are_as_they_are_written() -> None:
    text = page()
    assert "0x" not in text
    assert "'" not in signature_of("Run.sleep", runtime.Run.sleep)
    assert signature_of("Run.sleep", runtime.Run.sleep) == "Run.sleep(seconds: float) -> None"
    assert all(f"\n### {name}\n" in text for name in names())
