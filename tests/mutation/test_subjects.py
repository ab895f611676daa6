"""The modules that are changed, and the tests that have to notice, are there."""

from __future__ import annotations

from mutation.subjects import GROUPS, LEFT_OUT, PACKAGE, TESTS


def test_every_module_and_every_file_of_tests_exists() -> None:
    modules = [PACKAGE / module for group in GROUPS for module in group.modules]
    tests = [TESTS / test.partition("::")[0] for group in GROUPS for test in (*group.tests, *LEFT_OUT)]
    assert [path for path in (*modules, *tests) if not path.exists()] == []


def test_a_module_belongs_to_one_group() -> None:
    modules = [module for group in GROUPS for module in group.modules]
    assert len(modules) == len(set(modules))


def test_all_of_the_approvals_and_of_the_log_is_changed() -> None:
    named = {module for group in GROUPS for module in group.modules}
    folders = ("approvals", "evidence", "ledger")
    there = {path.relative_to(PACKAGE).as_posix() for each in folders for path in (PACKAGE / each).glob("[!_]*.py")}
    assert there == {module for module in named if module.startswith(folders)}
