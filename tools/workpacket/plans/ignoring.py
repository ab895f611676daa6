"""What `init` tells git to leave out: the folders in which runs keep their views and, outside of git, their store."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from workpacket.model.canonical import Json
from workpacket.model.plan import FileChange, digest
from workpacket.plans.drafting import Planned
from workpacket.value import replace

GITIGNORE: Final = ".gitignore"
FOLDERS: Final = (".runr", ".workpacket")


def also_ignoring(planned: Planned, before: bytes | None, folders: Collection[str]) -> Planned:
    """The plan, with a line in `.gitignore` for each of `folders`, which git does not ignore yet. Everything else in
    the file (None: there is none) stays as it is."""
    if not folders:
        return planned
    old = before or b""
    end = b"\r\n" if b"\r\n" in old else b"\n"
    joint = end if old and not old.endswith(b"\n") else b""
    new = old + joint + b"".join(f"/{folder}/".encode() + end for folder in folders)
    written = planned.data.get("written")
    listed: list[Json] = [*written, GITIGNORE] if isinstance(written, list) else [GITIGNORE]
    change = FileChange(GITIGNORE, None if before is None else digest(before), new)
    return replace(
        planned,
        plan=replace(planned.plan, changes=(*planned.plan.changes, change)),
        then=planned.then.replace("git add ", f"git add {GITIGNORE} ", 1),
        data={**planned.data, "written": listed},
        notes=(*planned.notes, f"{GITIGNORE} leaves out {' and '.join(f'/{folder}/' for folder in folders)}"),
    )
