"""One canonical file of every foreign form. A form without one here fails the tests."""

from __future__ import annotations

import json
from typing import Any

from workpacket.runtime.commit_checkpoint import sidecar_bytes
from workpacket.runtime.model_sessions.record import artifact_id

STEP_EVENT: dict[str, Any] = {
    "event_type": "StepCheckpointed",
    "event_id": "a key that we do not know",
    "mission_id": "041-mission",
    "run_id": "run/1",
    "step_id": "specify",
    "strictness": "medium",
    "scope_refs": [{"scope": "team_domain", "version_id": "v3"}],
    "input_hash": "0" * 64,
    "cursor": "pre_generation_gate",
    "retry_token": "6fa459ea-ee8a-4ca4-894e-db77e160355e",
    "timestamp": "2026-02-16T12:00:00+00:00",
}


def lines(*events: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(event, sort_keys=True)}\n" for event in events).encode()


STEP = lines(
    {"event_type": "GlossaryScopeActivated", "mission_id": "041-mission", "scope_id": "größe", "rate": 1.50},
    STEP_EVENT,
    {**STEP_EVENT, "step_id": "plan"},
    {**STEP_EVENT, "retry_token": "6fa459ea-ee8a-4ca4-894e-db77e160355f"},
    {"event_type": "SomethingElse"},
)


def artifact(**more: Any) -> bytes:
    body = {"schema_version": 1, "session_id": "review-42", "kind": "periodic", "state": {"å": 0.5}, "own": [], **more}
    whole = {**body, "artifact_id": artifact_id(body)}
    return (json.dumps(whole, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


BATCH = b"""\
checkpoint:
  spec_name: auth
  spec_path: ./specs/active/auth
  note: a key that we do not know
  branch: main
  timestamp: "2026-03-01T10:00:00Z"
  last_batch: 2a
  last_commit: "1234567"
  tasks:
    completed:
      - T001
    in_progress: []
    pending:
      - T002
  next_batch:
    number: 2b
    tasks:
      - T002
  deferred_issues:
    - names could be clearer
tool:
  of: ours
"""

ROLE = """\
---
feature: "auth"
team: "build"
agent: "backend-eng"
phase: "implementation"
status: "in_progress"
last_action: "Drafted the plan: größe first"
updated: "2026-03-01T10:30:00Z"
reviewers:
  - ann
run: 7
---

## Progress Notes

- [10:00] Claimed the task
- [10:30] Drafted the plan
""".encode()

COMMIT = sidecar_bytes({
    "schema_version": 1, "sha": "a" * 40, "run_id": "20260131/å", "milestone_index": 0, "milestone_title": "Größe",
    "created_at": "2026-01-31T09:30:00.250Z", "tier": "tier0", "own": {"rate": 1.5, "list": []},
})  # fmt: skip

RUN_STATE: dict[str, Any] = {
    "auto_resume_count": 1, "checkpoint_commit_sha": "b" * 40, "last_successful_phase": "VERIFY",
    "last_verification_evidence": {
        "commands_missing": [], "commands_required": ["npm test"],
        "commands_run": [{"command": "npm test", "exit_code": 0}], "tiers_run": ["tier0"],
    },
    "milestone_index": 1, "milestone_retries": {"0": 2}, "milestones": [
        {"done_checks": ["it runs"], "files_expected": ["a.ts"], "goal": "Größe", "risk_level": "low"},
        {"done_checks": [], "goal": "More", "risk_level": "high"},
    ],
    "own": {"rate": 1.5}, "owned_paths": ["src/"], "phase": "REVIEW", "repo_path": "/there/repo", "retries": 0,
    "run_id": "20260131-093000", "schema_version": "1.0.0", "scope_lock": {"allowlist": ["src/**"], "denylist": []},
    "started_at": "2026-01-31T09:30:00Z", "stop_reason": "review_rejected", "updated_at": "2026-01-31T10:30:00.250Z",
}  # fmt: skip


def run_state(**more: Any) -> bytes:
    """A snapshot; a field that is given as None is left out."""
    values = {key: value for key, value in {**RUN_STATE, **more}.items() if value is not None}
    return (json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


SAMPLES: dict[str, bytes] = {
    "batch": BATCH, "commit": COMMIT, "role": ROLE, "runstate": run_state(), "session": artifact(), "step": STEP,
}  # fmt: skip
