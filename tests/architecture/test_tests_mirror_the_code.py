"""The tests of a module can be found by its name, or in a table."""

from __future__ import annotations

from fnmatch import fnmatchcase

from architecture.source_tree import PACKAGE, ROOT, python_files

TABLE = ROOT / "tests" / "architecture" / "tested_by.txt"
ROWS = [line.split() for line in TABLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
NAMES = {path.stem for path in python_files(ROOT / "tests") if path.stem.startswith("test_")}
WITHOUT_NAMESAKE = [
    path.relative_to(PACKAGE).as_posix()
    for path in python_files(PACKAGE)
    if not path.stem.startswith("__") and f"test_{path.stem}" not in NAMES
]


def test_a_module_without_a_test_of_its_name_says_where_its_tests_are() -> None:
    listed = [pattern for pattern, *_ in ROWS]
    missing = [name for name in WITHOUT_NAMESAKE if not any(fnmatchcase(name, each) for each in listed)]
    assert missing == [], "name its test file test_<module>.py, or add a row to tests/architecture/tested_by.txt"


def test_every_row_is_needed_and_its_tests_exist() -> None:
    unused = [each for each, *_ in ROWS if not any(fnmatchcase(name, each) for name in WITHOUT_NAMESAKE)]
    assert unused == [], "remove the row from tests/architecture/tested_by.txt"
    gone = [place for _, *places in ROWS for place in places if not (ROOT / "tests" / place).exists()]
    assert gone == [], "update tests/architecture/tested_by.txt"


def test_the_rows_are_sorted() -> None:
    assert sorted(ROWS) == ROWS
