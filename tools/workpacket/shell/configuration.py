"""Reads the settings of a repository: `.GOV/policy/policy.toml`, else `[tool.workpacket]` in `pyproject.toml`."""

from __future__ import annotations

from collections.abc import Callable

from workpacket.git.repository import Repository
from workpacket.rules.settings import Settings, settings_of
from workpacket.shell.tree import read_bytes
from workpacket.text.limits import DATA
from workpacket.text.source import Source

POLICY = ".GOV/policy/policy.toml"
PROJECT = "pyproject.toml"


def read_settings(root: str) -> Settings:
    """The settings in force; the defaults where a policy cannot be read, which the check of that file reports."""

    def read(path: str) -> bytes | None:
        try:
            return read_bytes(root, path, DATA.size)
        except OSError:
            return None

    return _settings(read)


def read_settings_at(repository: Repository, base: str) -> Settings:
    """The settings as a revision has them, so that a change cannot lower what it is judged by."""
    from workpacket.git.objects import read_file_at
    from workpacket.git.revisions import commit_of

    commit = commit_of(repository, base)
    return _settings(lambda path: read_file_at(repository, commit, path))


def _settings(read: Callable[[str], bytes | None]) -> Settings:
    from workpacket.text.toml_strict import load_toml

    for path, below in ((POLICY, ("check",)), (PROJECT, ("tool", "workpacket"))):
        data = read(path)
        if data is None:
            continue
        source = Source.from_bytes(path, data)
        if path == PROJECT and "[tool.workpacket" not in source.text:
            continue
        loaded = load_toml(source)
        node = loaded.root.get(*below) if loaded.root is not None else None
        if node is not None:
            return settings_of(node, source)
    return Settings()
