"""All governance documents of a repository, each as its summary: what the rules across files look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import cast

from workpacket.documents.summary import (
    BatchSummary,
    BoardSummary,
    GateSummary,
    PackageSummary,
    RefinementSummary,
    RegistrySummary,
    RoleSummary,
    SignatureSummary,
    WorkSummary,
)
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.rules.work_index import WorkIndex
from workpacket.value import NOTHING


class RepositorySummaries:
    """Summaries by kind and path, and the lane of each packet that has a log.

    `known_lanes` are those of the policy beside the documents; `passed` counts the moves into each lane.
    """

    def __init__(
        self,
        summaries: Iterable[tuple[str, str, Mapping[str, object]]],
        lanes: Mapping[str, str] | None = None,
        known_lanes: LaneTable = BUILT_IN,
        passed: Mapping[str, int] = NOTHING,
    ) -> None:
        self.lanes: Mapping[str, str] = lanes or {}
        self.known_lanes = known_lanes
        self.passed = passed
        self._by_kind: dict[str, dict[str, Mapping[str, object]]] = {}
        for kind, path, summary in summaries:
            self._by_kind.setdefault(kind, {})[path] = summary

    def of_kind(self, kind: str) -> Mapping[str, Mapping[str, object]]:
        return self._by_kind.get(kind, {})

    @property
    def stubs(self) -> Mapping[str, WorkSummary]:
        return cast("Mapping[str, WorkSummary]", self.of_kind("stub"))

    @property
    def packets(self) -> Mapping[str, WorkSummary]:
        return cast("Mapping[str, WorkSummary]", self.of_kind("packet"))

    @property
    def work_packages(self) -> Mapping[str, PackageSummary]:
        return cast("Mapping[str, PackageSummary]", self.of_kind("work_package"))

    @property
    def boards(self) -> Mapping[str, BoardSummary]:
        return cast("Mapping[str, BoardSummary]", self.of_kind("task_board"))

    @property
    def registries(self) -> Mapping[str, RegistrySummary]:
        return cast("Mapping[str, RegistrySummary]", self.of_kind("registry"))

    @property
    def refinements(self) -> Mapping[str, RefinementSummary]:
        return cast("Mapping[str, RefinementSummary]", self.of_kind("refinement"))

    @property
    def signature_audits(self) -> Mapping[str, SignatureSummary]:
        return cast("Mapping[str, SignatureSummary]", self.of_kind("signature_audit"))

    @property
    def gate_logs(self) -> Mapping[str, GateSummary]:
        logs = {**self.of_kind("orchestrator_gates"), **self.of_kind("validator_gates")}
        return cast("Mapping[str, GateSummary]", logs)

    @cached_property
    def work(self) -> WorkIndex:
        """Stubs, packets, board and registry, related to one another."""
        return WorkIndex(self.stubs, self.packets, self.boards, self.registries)

    @property
    def roles(self) -> Mapping[str, RoleSummary]:
        return cast("Mapping[str, RoleSummary]", self.of_kind("role_progress"))

    def batch(self, kind: str) -> Mapping[str, BatchSummary]:
        return cast("Mapping[str, BatchSummary]", self.of_kind(kind))
