"""Rules about single sidecars of checkpoint commits. `checkpoints` compares those of a run."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.commit_sidecar import SCHEMA_VERSION, CommitSidecar
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule

SidecarRule = DocumentRule[CommitSidecar]


class SidecarVersionNewer(SidecarRule):
    """Sidecar in a newer version than this tool supports

    The fields may have a different meaning, so the sidecar is skipped and the commit messages are used instead.

    Remedy: update workpacket.
    """

    def check(self, document: CommitSidecar) -> Iterator[Problem]:
        version, node = document.schema_version, document.at("schema_version")
        if version is not None and node is not None and version > SCHEMA_VERSION:
            message = f"the sidecar has schema_version {version}; this tool supports up to {SCHEMA_VERSION}"
            yield self.fault(node.span, message, hint="update workpacket")


class SidecarShaMismatch(SidecarRule):
    """Sidecar whose file name does not match its commit

    The file was copied or damaged. It is unknown which commit was verified, so the sidecar is skipped.

    Remedy: delete the sidecar; the commit message contains the same information.
    """

    def check(self, document: CommitSidecar) -> Iterator[Problem]:
        sha = document.sha
        if sha is not None and sha.value != document.stem:
            message = f"sha is {sha.value}, but the file name is {document.stem}"
            yield self.fault(sha.span, message)
