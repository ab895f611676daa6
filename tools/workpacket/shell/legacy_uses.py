"""Where old-style tokens (a name with a date) stand, for gates whose policy accepts them in words."""

from __future__ import annotations

from datetime import UTC, datetime

from workpacket.approvals.facts import LegacyUse
from workpacket.approvals.instants import read_instant
from workpacket.approvals.legacy import LegacyToken, read_token
from workpacket.approvals.policy import GatePolicy
from workpacket.documents.document import stem_of
from workpacket.documents.refinement import Refinement
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.git.run import run_git
from workpacket.ledger.log import Log
from workpacket.shell.approval_matter import ACTIVATION_GATE, refinement_paths
from workpacket.shell.attestations import read_file
from workpacket.shell.safe_paths import Tree
from workpacket.text.source import Source

_FOLDERS = (".GOV/refinements", ".GOV/task_packets")


def legacy_uses(
    repository: Repository, tree: Tree, log: Log, packet: str, gate: str, now: datetime, rules: GatePolicy | None
) -> tuple[LegacyUse, ...]:
    """The token in the refinement of the packet, and every other packet in whose history the same token stands."""
    if gate != ACTIVATION_GATE:
        return ()
    token = _token(tree, packet)
    if token is None:
        return ()
    shown = [read_instant(event.at) for event in log.events if event.type == "refinement.presented"]
    presented = max((instant for instant in shown if instant is not None), default=None)
    if rules is None or not rules.legacy_tokens:
        return (LegacyUse(token, packet, gate, now, presented),)
    found = _history(repository, token)
    recorded = min((time for name, time in found if name == packet), default=now)
    others = {name for name, _ in found} - {packet}
    elsewhere = tuple(LegacyUse(token, name, gate, recorded, None) for name in sorted(others))
    return (LegacyUse(token, packet, gate, recorded, presented), *elsewhere)


def require_unused(tree: Tree, token: str, packet: str) -> None:
    """A token holds a minute, and the same one on two packets would look as if one had been copied."""
    for folder in _FOLDERS:
        for name in sorted(tree.names(folder)):
            if name.endswith(".md") and name != f"{packet}.md":
                data = read_file(tree, f"{folder}/{name}")
                if data is not None and token.encode() in data:
                    raise WorkpacketError(
                        "signature_minute_taken",
                        f"{token} stands in {folder}/{name} already: another packet was approved in this minute",
                        hint="run the command again in a minute",
                    )


def _token(tree: Tree, packet: str) -> str | None:
    for path in refinement_paths(packet):
        data = read_file(tree, path)
        if data is not None:
            signature = Refinement(Source.from_bytes(path, data)).signature
            text = signature.value if signature is not None else ""
            return text if isinstance(read_token(text), LegacyToken) else None
    return None


def _history(repository: Repository, token: str) -> list[tuple[str, datetime]]:
    """Packets whose files ever gained the token, on any branch, each with the time of that commit."""
    if head_commit(repository) is None:
        return []
    answer = run_git(
        repository.root, "log", "--all", "--no-renames", "--name-only", "-z", "--format=%x01%ct", f"-S{token}",
        "--", *_FOLDERS,
    )  # fmt: skip
    found = []
    for block in answer.text.split("\x01")[1:]:
        time, *paths = block.replace("\n", "\0").split("\0")
        found += [(stem_of(path), datetime.fromtimestamp(int(time), UTC)) for path in paths if path]
    return found
