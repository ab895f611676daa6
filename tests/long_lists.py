"""What `just test` leaves to `nox -s proof`: tests with the mark `long`, and most cases of those with `share(8)`, which
play a list: all but the first case, the last and one in eight between.

The session runs all of them, in CI of each list one in eight, beginning elsewhere in every run. A run that names a file
or folder below tests/ runs everything there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from zlib import crc32

import pytest

FIXED, FRESH, WHOLE = "fixed", "fresh", "whole"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lists", choices=(FIXED, FRESH, WHOLE), help="run a fixed share of long lists, a fresh one, or everything"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    which = config.getoption("lists") or (FIXED if [*config.args] == config.getini("testpaths") else WHOLE)
    left_out = set(_left_out(items, which))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _left_out(items: Iterable[pytest.Item], which: str) -> Iterator[pytest.Item]:
    seed = _seed() if which == FRESH else None
    for _, found in groupby(items, lambda item: item.nodeid.partition("[")[0]):
        cases = list(found)
        if which == FIXED:
            yield from (case for case in cases if case.get_closest_marker("long"))
        if which != WHOLE and (mark := cases[0].get_closest_marker("share")):
            yield from (case for at, case in enumerate(cases) if not chosen(at, len(cases), *mark.args, seed=seed))


def _seed() -> int:
    """The same in all workers of a run, and another one in the next run."""
    return crc32(os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid())).encode())


def chosen(at: int, cases: int, one_in: int, *, seed: int | None = None) -> bool:
    """Whether the case at this place is in the share: the fixed one, with both ends, or that of a seed."""
    if seed is None:
        return at % one_in == 0 or at == cases - 1
    return at % one_in == seed % min(one_in, cases)
