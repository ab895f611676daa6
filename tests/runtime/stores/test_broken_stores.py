"""A suite for the suite: each store that is broken on purpose is caught by the check that it names, and a correct store
that is slow passes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from runtime.stores.broken_stores import BROKEN, Broken, ReadingHoldsTheLock, opener_of
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.testing import ManualClock, StoreConformance, several_handles
from workpacket.runtime.testing.folder_store import FolderStore


def suite_of(store: type[FolderStore], folder: Path) -> StoreConformance:
    class Suite(StoreConformance):
        def open_store(self, clock: ManualClock) -> Store:
            return store(folder, clock=clock)

    suite = Suite()
    suite.folder = folder
    suite.opener = opener_of(store, str(folder))
    return suite


@pytest.mark.share(4)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.what.replace(" ", "_"))
def test_a_broken_store_is_caught_by_name(
    broken: Broken, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken.store is ReadingHoldsTheLock:
        monkeypatch.setattr(several_handles, "PATIENCE", 2.0)  # it never writes, however long it is waited for
    check = getattr(suite_of(broken.store, tmp_path / "runs"), broken.caught_by)

    with pytest.raises((AssertionError, Exception)) as caught:
        check()

    assert "define `" not in str(caught.value)  # the suite itself was set up
    assert "strace" not in str(caught.value)
    capfd.readouterr()


def test_no_store_is_broken_twice_in_the_same_way() -> None:
    assert len(BROKEN) >= 25
    for names in ([one.what for one in BROKEN], [one.store.__name__ for one in BROKEN]):
        assert Counter(names).most_common(1)[0][1] == 1


def test_each_named_check_is_one_that_the_template_passes() -> None:
    assert {one.caught_by for one in BROKEN} <= set(dir(StoreConformance))
