"""The files that `init` installs, and those among them that a repository has.

Also the folders of the runtime that git does not ignore yet, and the file that could list them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from glob import glob

import workpacket
from workpacket.git.repository import Repository
from workpacket.git.revisions import is_ignored
from workpacket.lifecycle.init import FOLDERS, GITIGNORE, NAME, TEAM_SKILLS, ExistingFiles
from workpacket.lifecycle.starter_documents import MISSIONS, StarterTexts, schema_paths
from workpacket.model.canonical import Json
from workpacket.shell.package_files import STARTER, read_shipped, schema_folder
from workpacket.shell.tree import link_on_the_way, read_bytes
from workpacket.text.source import DATA, MARKDOWN


def read_package(instructions: str, skills: Mapping[str, str]) -> StarterTexts:
    """Read the texts of the package. `instructions` and `skills` depend on the commands, which only the command line
    knows.
    """
    return StarterTexts(
        gov_just=gov_just(),
        pre_commit=_read("pre-commit.yaml"),
        workflow=_read("workflow.yml"),
        replay=_read("replay.yml"),
        attest=_read("attest.yml"),
        instructions=instructions,
        skills=skills,
        schemas={kind: _schema(kind) for kind, _ in schema_paths()},
        shipped=read_shipped(),
    )


def running() -> tuple[Mapping[str, Json] | None, str]:
    """Return where the running package was installed from (PEP 610), and its version. A folder that was only put on the
    path has no such record, and counts as its own source.
    """
    import json
    from importlib import metadata

    folder = os.path.dirname(os.path.abspath(workpacket.__file__))
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return {"url": f"file://{folder}"}, workpacket.__version__
    record = found.read_text("direct_url.json")
    if record is None and not os.path.samefile(str(found.locate_file(NAME)), folder):
        return {"url": f"file://{folder}"}, workpacket.__version__
    return (json.loads(record) if record else None), found.version


def gov_just() -> str:
    """Return the recipes of `.GOV/gov.just`."""
    return _read("gov.just")


def look_around(root: str, paths: Iterable[str]) -> ExistingFiles:
    """List what is at these paths. A link is not followed: it counts as something other than a regular file."""
    files: dict[str, bytes | None] = {}
    for path in paths:
        if link_on_the_way(root, path):
            files[path] = None
        elif os.path.lexists(os.path.join(root, path)):
            files[path] = _bytes(root, path)
    return ExistingFiles(files, os.path.isdir(os.path.join(root, MISSIONS)))


# Where a repository may have its own skills, or those of plugins.
_SKILL_PLACES = (".claude/skills", ".agents/skills", "skills", "plugins/*/skills")


def skills_of_teams(root: str) -> dict[str, bytes]:
    """Return the skills of teams with which a session is started, by path. A link is left alone."""
    found: dict[str, bytes] = {}
    for place in _SKILL_PLACES:
        for name in TEAM_SKILLS:
            for path in sorted(glob(f"{place}/{name}/SKILL.md", root_dir=root)):
                data = None if link_on_the_way(root, path) else _bytes(root, path)
                if data is not None:
                    found[path] = data
    return found


def _bytes(root: str, path: str) -> bytes | None:
    try:
        data = read_bytes(root, path, MARKDOWN.size)
    except OSError:
        return None
    return data if len(data) <= MARKDOWN.size else None


def _schema(kind: str) -> str:
    with open(os.path.join(schema_folder(), "draft-07", f"{kind}.schema.json"), encoding="utf-8") as stream:
        return stream.read()


def _read(name: str) -> str:
    with open(os.path.join(STARTER, name), encoding="utf-8", newline="") as stream:
        return stream.read()


def not_ignored(repository: Repository) -> tuple[bytes | None, tuple[str, ...]]:
    """Return the bytes of `.gitignore`, or None if it is missing, and the folders that it should list. If the file is a
    link, it is left alone.
    """
    try:
        before = read_bytes(str(repository.root), GITIGNORE, DATA.size)
    except FileNotFoundError:
        before = None
    except OSError:
        return None, ()
    return before, tuple(folder for folder in FOLDERS if not is_ignored(repository, f"{folder}/x"))
