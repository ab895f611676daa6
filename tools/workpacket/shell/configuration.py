"""Reads the settings of a repository: `.GOV/policy/policy.toml`, else `[tool.workpacket]` in `pyproject.toml`."""

from __future__ import annotations

from workpacket.rules.settings import Settings, settings_of
from workpacket.shell.tree import read_bytes
from workpacket.text.limits import DATA
from workpacket.text.source import Source

POLICY = ".GOV/policy/policy.toml"
PROJECT = "pyproject.toml"


def read_settings(root: str) -> Settings:
    """The settings in force; the defaults where a policy cannot be read, which the check of that file reports."""
    from workpacket.text.toml_strict import load_toml

    for path, below in ((POLICY, ("check",)), (PROJECT, ("tool", "workpacket"))):
        try:
            source = Source.from_bytes(path, read_bytes(root, path, DATA.size))
        except OSError:
            continue
        if path == PROJECT and "[tool.workpacket" not in source.text:
            continue
        loaded = load_toml(source)
        node = loaded.root.get(*below) if loaded.root is not None else None
        if node is not None:
            return settings_of(node, source)
    return Settings()
