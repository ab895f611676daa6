"""Parameters pasted into a command line are found; those handed on, or quoted, are left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workpacket.cli.audits import pasted_parameters
from workpacket.cli.main import main
from workpacket.text.source import Source

ROOT = Path(__file__).parents[2]


def places(text: str) -> list[tuple[int, int]]:
    source = Source("justfile", text)
    return [source.line_and_column(fault.start) for fault in pasted_parameters(source)]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("build target:\n    make {{target}}\n", [(2, 10)]),
        ("build target:\n    make '{{ target }}'\n", [(2, 11)]),
        ("@build *args:\n    a\n    b {{args}} {{ args }}\n", [(3, 7), (3, 16)]),
        ("build mode='x' +rest: clean\n    make {{mode}} {{uppercase(rest)}}\n", [(2, 10), (2, 19)]),
        ("a x:\n    echo\n\n    echo {{x}}\n", [(4, 10)]),
    ],
)
def test_a_pasted_parameter_is_found(text: str, where: list[tuple[int, int]]) -> None:
    assert places(text) == where


@pytest.mark.parametrize(
    "text",
    [
        'build *args:\n    make "$@"\n',
        "build target:\n    make {{quote(target)}}\n",
        "name := 'x'\nbuild target:\n    make {{name}}\n",
        "build target:\n    make {{{{target}}\n",
        "build target:\n    make\nother:\n    echo {{target}}\n",
        "target := 'x'\nbuild:\n    make {{target}}\n",
    ],
)
def test_what_is_handed_on_is_left_alone(text: str) -> None:
    assert places(text) == []


def test_a_pasted_parameter_is_quoted_as_the_help_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("justfile").write_text("build target:\n    make {{target}}\n")
    assert main(["audit", "justfile"]) == 1
    said = capsys.readouterr().out
    assert "justfile:2:10: recipe build pastes its parameter target into a command line (just_parameter_pasted)" in said
    (written,) = re.findall(r"or write (\{\{.*\}\})$", said, re.MULTILINE)
    Path("justfile").write_text(f"build target:\n    make {written}\n")
    assert main(["audit", "justfile"]) == 0
    assert "\n    make {{ quote(target) }}\n" in Path("justfile").read_text()


@pytest.mark.parametrize("path", ["justfile", ".GOV/gov.just"])
def test_our_own_recipes_paste_nothing(path: str) -> None:
    assert places((ROOT / path).read_text("utf-8")) == []
