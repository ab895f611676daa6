"""A run of this store as a snapshot for tools that read `state.json`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from workpacket.bridges.runstate_fields import SCHEMA_VERSION
from workpacket.model.canonical import Json
from workpacket.runtime.records.state import RunState, Status
from workpacket.runtime.stop_reasons import reason_of
from workpacket.runtime.stores.contract import Store

# Our runs have no phases: their steps are the program's own. A run at work is in the phase in which work is done.
_PHASES: Final[dict[Status, str]] = {
    "running": "IMPLEMENT", "stopped": "STOPPED", "cancelled": "STOPPED", "completed": "FINALIZE", "none": "INIT",
}  # fmt: skip


def snapshot(store: Store, state: RunState) -> dict[str, Json]:
    """Everything that the format has a place for, of version "1.0.0"."""
    reached = sorted(state.milestones.reached.values(), key=lambda one: one.milestone_index)
    last = state.milestones.last
    values: dict[str, Json] = {
        "schema_version": SCHEMA_VERSION,
        "run_id": state.stream,
        "phase": _PHASES[state.status],
        "milestone_index": max((one.milestone_index + 1 for one in reached), default=0),
        "scope_lock": {"allowlist": list(state.scope), "denylist": []},
        "auto_resume_count": max(state.attempt - 1, 0),
        **_times(store, state),
    }
    if state.workdir:
        values["repo_path"] = state.workdir
    if last is not None:
        values["checkpoint_commit_sha"] = last.commit
    if state.status in {"stopped", "cancelled"}:
        values["stop_reason"] = reason_of(state.stop_code or "run_cancelled").code
    return values


def _times(store: Store, state: RunState) -> dict[str, Json]:
    first = next(iter(store.read(state.stream)))
    return {"started_at": _time(first.recorded_at), "updated_at": _time(state.last_recorded_at)}


def _time(micros: int) -> str:
    moment = datetime.fromtimestamp(micros / 1_000_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
