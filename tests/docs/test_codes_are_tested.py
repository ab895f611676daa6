"""Every reason code is raised by some test: a case of a rule, or a test that names the code."""

from __future__ import annotations

from architecture.source_tree import ROOT
from workpacket.report.catalogue import catalogue

TESTS = ROOT / "tests"


def untested() -> set[str]:
    own = TESTS / "docs" / "test_codes_are_tested.py"
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py") if path != own]
    texts += [path.read_text(encoding="utf-8") for path in (TESTS / "corpora" / "attacks").rglob("expected.json")]
    everything = "\n".join(texts)
    cases = {path.name for path in (TESTS / "rules" / "cases").iterdir()}
    return {code for code in catalogue() if code not in cases and code not in everything}


def test_every_code_is_raised_by_some_test() -> None:
    assert untested() == set(), "write a test that quotes each of these codes, or a case in tests/rules/cases"
