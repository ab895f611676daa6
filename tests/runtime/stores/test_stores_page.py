"""The page about stores: its template and its tests, as a reader would copy them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from workpacket.runtime.testing import folder_store

PAGE = Path(__file__).parents[3] / "docs" / "runtime" / "stores.md"


def test_the_template_is_copied_and_passes_the_tests_of_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shutil.copy(folder_store.__file__, tmp_path / "my_store.py")
    for number, block in enumerate(blocks):
        (tmp_path / f"test_{number}.py").write_text(block)

    chosen = "test_an_erased or test_processes or test_a_kill"  # test_store_model.py runs the model
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-k", chosen]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stdout
    assert re.search(r"^6 passed", done.stdout, re.MULTILINE), done.stdout


def test_the_page_tells_how_many_broken_stores_there_are() -> None:
    from runtime.stores.broken_stores import BROKEN

    assert f"contains {len(BROKEN)} stores" in PAGE.read_text(encoding="utf-8")
