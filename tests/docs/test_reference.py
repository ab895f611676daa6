"""What is generated from the code is as the code would generate it now, and `just reference` writes all of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reference
from architecture.source_tree import ROOT, relative
from workpacket.lifecycle.init import known_digest

GENERATED = reference.generated()
# Files that are generated in part: the command needs the other part, so a test alters them where others are deleted.
IN_PART = {
    "AGENTS.md": ("workpacket status", "workpacket stutas"),
    "schemas/common.schema.json": ('"MERGE_PENDING",', '"MERGED",'),
    "schemas/policy.schema.json": ('"verdict PASS",', '"verdict AGAIN",'),
    "tools/workpacket/starter/shipped.sha256": ("  .GOV/gov.just\n", "  .GOV/another.just\n"),
}


@pytest.mark.parametrize("path", GENERATED, ids=relative)
def test_a_generated_file_is_current(path: Path) -> None:
    assert path.exists(), "run `just reference`"
    assert path.read_bytes() == GENERATED[path], "run `just reference`"


def test_no_generated_file_is_left_over() -> None:
    assert list(reference.left_over()) == [], "run `just reference`"
    assert set((ROOT / "docs" / "reference").iterdir()) <= set(GENERATED)


@pytest.mark.long
def test_one_run_writes_every_generated_file_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    for name in ("tools", "schemas", "docs", ".GOV", "AGENTS.md"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for path in map(relative, GENERATED):
        old, new = IN_PART.get(path, ("", ""))
        if not old:
            (tmp_path / path).unlink()
            continue
        text = (tmp_path / path).read_text("utf-8")
        assert old in text, path
        (tmp_path / path).write_text(text.replace(old, new), "utf-8")
    (tmp_path / "schemas/draft-07/gone.schema.json").write_text("{}\n")

    once, twice = written(tmp_path), written(tmp_path)

    shipped = "tools/workpacket/starter/shipped.sha256"
    recipes = known_digest((tmp_path / ".GOV/gov.just").read_text("utf-8"))
    assert f"{recipes}  .GOV/gov.just\n".encode() in once.pop(shipped)
    assert once == {relative(path): content for path, content in GENERATED.items() if relative(path) != shipped}
    assert {path: twice[path] for path in once} == once
    assert not (tmp_path / "schemas/draft-07/gone.schema.json").exists()


def written(root: Path) -> dict[str, bytes]:
    subprocess.run([sys.executable, root / "tools" / "reference.py"], cwd=root, check=True)
    return {path: (root / path).read_bytes() for path in map(relative, GENERATED)}
