"""Read the settings of a repository: `.GOV/policy/policy.toml`, or else `[tool.workpacket]` in `pyproject.toml`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.layout import POLICY_PATH
from workpacket.problem import Location, Problem
from workpacket.rules.settings import PROJECT, SETTINGS, CheckSettings, settings_of
from workpacket.shell.package_files import schemas
from workpacket.shell.tree import may_name, read_bytes, refusal
from workpacket.text.source import DATA, Node, Source
from workpacket.value import replace

if TYPE_CHECKING:
    from workpacket.git.repository import Repository

# Returns the bytes of a file, None if it is missing; OSError if it cannot be read.
Read = Callable[[str], bytes | None]


def read_settings(root: str) -> CheckSettings:
    """Return the current settings. If the file cannot be read, the settings are empty, and `faults` say why."""

    def read(path: str) -> bytes | None:
        try:
            return read_bytes(root, path, DATA.size)
        except FileNotFoundError:
            return None

    return _settings(read)


def read_settings_at(repository: Repository, base: str) -> CheckSettings:
    """Return the settings at a revision, so that a change cannot relax its own checks."""
    from workpacket.git.objects import read_file_at
    from workpacket.git.repository import commit_of

    commit = commit_of(repository, base)
    return _settings(lambda path: read_file_at(repository, commit, path))


def _settings(read: Read) -> CheckSettings:
    for path, below in SETTINGS:
        try:
            data = read(path)
        except OSError as error:
            return CheckSettings(faults=(_unread(path, refusal(error)),))
        source = Source.from_bytes(path, data) if data is not None else None
        if source is None or (path == PROJECT and "tool.workpacket" not in source.text):
            continue
        from workpacket.documents.policy import PolicyDocument  # not every repository has settings
        from workpacket.text.toml_strict import load_toml

        loaded = PolicyDocument(source) if path == POLICY_PATH else load_toml(source)
        if loaded.root is None:
            return CheckSettings(faults=(_unread(path, f"{loaded.faults[0].message}"),))
        node = loaded.root.get(*below)
        if node is not None:
            return replace(settings_of(node, source), faults=tuple(_misfits(node, source)))
    return CheckSettings()


def _unread(path: str, why: str) -> Problem:
    return Problem("settings_unread", f"the settings in it are ignored: {why}", Location(path))


def _misfits(node: Node, source: Source) -> Iterator[Problem]:
    """Yield the settings that do not match the schema and are therefore ignored."""
    for violation in schemas().violations("policy", {"check": node.plain()}):
        place = node.nearest(violation.location.keys[1:])
        yield violation.at(source.path, *source.line_and_column(place.start))


def lanes_here(root: str) -> LaneTable:
    """Return the lanes for the documents in the work tree: those of the policy there.

    Commands that move a packet use the base's policy instead. A policy without added lanes, which is the usual case, is
    not even parsed.
    """
    try:
        data = read_bytes(root, POLICY_PATH, DATA.size)
    except OSError:
        return BUILT_IN
    if not may_name(data, b"lanes"):
        return BUILT_IN
    from workpacket.shell.base import lifecycle_of

    return lifecycle_of(data).lanes


def board_here(root: str) -> str:
    """Return the `[board] commit` setting of the policy in the work tree; '' if it is not set."""
    try:
        data = read_bytes(root, POLICY_PATH, DATA.size)
    except OSError:
        return ""
    if not may_name(data, b"board"):
        return ""
    from workpacket.shell.base import lifecycle_of

    return lifecycle_of(data).packets.board
