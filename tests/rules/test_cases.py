"""Every rule, on files that it must complain of and on files that it must leave alone.

`cases/<code>/bad*.txt` hold what is wrong, with the places where the rule must say so: there and nowhere else.
`cases/<code>/good*.txt` come as near to it as possible without being wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from git.scratch import bare_bones
from rules.archive import Case, read_case
from workpacket.cli.fmt import fix_files
from workpacket.problem import Problem
from workpacket.report.catalogue import catalogue
from workpacket.rules.rule import all_rules
from workpacket.rules.settings import CheckSettings
from workpacket.shell.cache import Cache
from workpacket.shell.checking import check
from workpacket.shell.tree import find_documents

CASES = Path(__file__).parent / "cases"
BAD = sorted(CASES.glob("*/bad*.txt"))
GOOD = sorted(CASES.glob("*/good*.txt"))
CODES = [rule.code() for rule in all_rules()]


def findings_of(root: Path) -> list[Problem]:
    files = find_documents(str(root))
    return check(
        str(root),
        files,
        whole=True,
        cache=Cache(None, ""),
        reasons=catalogue(),
        settings=CheckSettings(),
        progress=lambda _done, _all: None,
    ).findings


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def written(path: Path, root: Path) -> Case:
    case = read_case(path)
    case.write(root)
    return case


@pytest.mark.parametrize("path", BAD, ids=name)
def test_the_rule_complains_there_and_nowhere_else(path: Path, tmp_path: Path) -> None:
    case = written(path, tmp_path)
    found = [
        (finding.path, finding.line, finding.column)
        for finding in findings_of(tmp_path)
        if finding.code == path.parent.name
    ]
    assert case.expected
    assert sorted(found) == sorted(case.expected)


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_the_rule_leaves_it_alone(path: Path, tmp_path: Path) -> None:
    case = written(path, tmp_path)
    assert not case.expected
    assert [finding for finding in findings_of(tmp_path) if finding.code == path.parent.name] == []


@pytest.mark.parametrize("path", BAD, ids=name)
def test_repairing_twice_is_repairing_once(path: Path, tmp_path: Path) -> None:
    """First what is safe, then, of the file as it was, everything."""
    for unsafe in (False, True):
        root = tmp_path / ("unsafe" if unsafe else "safe")
        written(path, root)
        bare_bones(root)
        kinds = {found.path: found.kind for found in find_documents(str(root))}
        found = findings_of(root)
        if repairable(found, unsafe):
            fix_files(str(root), kinds, found, unsafe=unsafe)
            assert repairable(findings_of(root), unsafe) == []


def repairable(findings: list[Problem], unsafe: bool) -> list[Problem]:
    return [finding for finding in findings if finding.fix is not None and (finding.fix.safe or unsafe)]


def test_every_rule_has_a_file_it_complains_of_and_one_it_leaves_alone() -> None:
    assert set(CODES) - {path.parent.name for path in BAD} == set(), "write tests/rules/cases/<code>/bad.txt"
    assert set(CODES) - {path.parent.name for path in GOOD} == set(), "write tests/rules/cases/<code>/good.txt"


def test_every_case_belongs_to_a_rule() -> None:
    assert {path.name for path in CASES.iterdir()} <= set(CODES)
