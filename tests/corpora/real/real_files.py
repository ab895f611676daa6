"""Real governance documents of other people, laid out as a repository.

They are not part of this project: `WORKPACKET_CORPUS` names the folder that holds them. What is asserted about them are
facts that hold for any such files, not the files themselves, so that other folders of the same kinds can be tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from git.scratch import bare_bones

# Folder of the corpus (a file name, where one file is meant) and where its files live in a repository.
PLACES = {
    "handshake/stubs": ".GOV/task_packets/stubs",
    "handshake/packets": ".GOV/task_packets",
    "handshake/refinements": ".GOV/refinements",
    "handshake/TASK_BOARD.md": ".GOV/roles_shared/TASK_BOARD.md",
    "handshake/WP_TRACEABILITY_REGISTRY.md": ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md",
    "agent-teams-progress": "docs/progress",
}
WORK_PACKAGES = "spec-kitty-work-packages"
BATCHES = "batch-checkpoints"
BATCH_COMPANIONS = ("tasks.yaml", "dependencies.yaml", "validation.yaml")


def corpus() -> Path:
    folder = os.environ.get("WORKPACKET_CORPUS")
    if not folder:
        pytest.skip("WORKPACKET_CORPUS names no folder")
    return Path(folder)


def lay_out(root: Path) -> int:
    """Copies the corpus into `root` and returns the number of files."""
    source = corpus()
    bare_bones(root)
    for path, target in _targets(source):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, root / target)
    return sum(1 for path in root.rglob("*") if path.is_file())


def _targets(source: Path) -> Iterator[tuple[Path, str]]:
    for place, target in PLACES.items():
        if (source / place).is_file():
            yield source / place, target
        else:
            yield from ((path, f"{target}/{path.name}") for path in sorted((source / place).glob("*")))
    for path in sorted((source / WORK_PACKAGES).glob("*__*.md")):
        mission, _, name = path.name.partition("__")
        yield path, f"kitty-specs/{mission}/tasks/{name}"
    for path in sorted((source / BATCHES).glob("*.yaml")):
        if path.name not in BATCH_COMPANIONS:
            scope = f"specs/active/{path.stem}"
            yield path, f"{scope}/checkpoint.yaml"
            for name in BATCH_COMPANIONS:
                yield source / BATCHES / name, f"{scope}/{name}"
