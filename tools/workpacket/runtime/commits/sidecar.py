"""Writing the sidecar of a checkpoint commit: best effort, whole or not at all.

The sidecar is a view of the log for other tools. A run never fails because it cannot be written; the log says so then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from workpacket.model.canonical import Json
from workpacket.model.checkpoint_commit import SIDECAR_VERSION, sidecar_bytes, sidecar_path
from workpacket.runtime.records.milestones import Prepared


def sidecar_values(run: str, prepared: Prepared, sha: str, tree: str) -> dict[str, Json]:
    """The fields of the format, and two more by which the commit is found again after its sha has changed."""
    made = datetime.fromtimestamp(prepared.event.occurred_at / 1_000_000, UTC)
    return {
        "schema_version": SIDECAR_VERSION,
        "sha": sha,
        "run_id": run,
        "milestone_index": prepared.milestone_index,
        "milestone_title": prepared.title,
        "created_at": made.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "checkpoint_id": prepared.checkpoint,
        "tree": tree,
    }


def write_sidecar(root: Path, sha: str, values: Mapping[str, Json]) -> None:
    """Write `.runr/checkpoints/<sha>.json`, or raise OSError. Nothing is written through a symbolic link."""
    path = root / sidecar_path(sha)
    for folder in (path.parent.parent, path.parent):
        if folder.is_symlink():
            raise OSError(f"{folder} is a symbolic link")
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with waiting.open("xb") as file:
            file.write(sidecar_bytes(values))
            file.flush()
            os.fsync(file.fileno())
        waiting.replace(path)
    except OSError:
        waiting.unlink(missing_ok=True)
        raise
