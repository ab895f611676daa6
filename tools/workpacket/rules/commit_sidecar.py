"""Rules about sidecars of checkpoint commits: single ones, and all of a run."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.commit_sidecar import SCHEMA_VERSION, CommitSidecar
from workpacket.documents.summary import SidecarSummary
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import DocumentRule, RepositoryRule, out_of_order, repeated
from workpacket.text.formats import date_time

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


class SidecarMilestoneTwice(RepositoryRule):
    """Two checkpoints of a run with the same milestone

    One of them was copied or edited; a resumed run would repeat a milestone, or skip one.

    Remedy: correct `milestone_index`, or delete the sidecar that is wrong: the commit message names the milestone.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for run in _runs(repository):
            for (path, sidecar), (earlier, _) in repeated(run, lambda one: one[1]["milestone"]):
                message = f"milestone {sidecar['milestone']} already has a checkpoint: {earlier}"
                yield self.finding(path, sidecar["milestone_place"], message)


class SidecarOrder(RepositoryRule):
    """Checkpoint that is older than an earlier milestone

    The order of the milestones decides where a run resumes, so a wrong number resumes it in the wrong place.

    Remedy: correct `milestone_index` or `created_at`.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for run in _runs(repository):
            timed = [one for one in run if not date_time(one[1]["created"]) and one[1]["created"].endswith("Z")]
            for (path, sidecar), (_, earlier) in out_of_order(timed, lambda one: one[1]["created"][:19]):
                message = (
                    f"created {sidecar['created']}, before milestone {earlier['milestone']} ({earlier['created']})"
                )
                yield self.finding(path, sidecar["created_place"], message)


def _runs(repository: RepositorySummaries) -> Iterator[list[tuple[str, SidecarSummary]]]:
    """Yield the checkpoints of each run, in the order of their milestones."""
    runs: dict[str, list[tuple[str, SidecarSummary]]] = {}
    for path, sidecar in sorted(repository.sidecars.items()):
        if sidecar["run"] and sidecar["milestone"] >= 0:
            runs.setdefault(sidecar["run"], []).append((path, sidecar))
    for run in runs.values():
        yield sorted(run, key=lambda one: one[1]["milestone"])
