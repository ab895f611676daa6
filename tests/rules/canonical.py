"""One canonical document of each kind that people write by hand: without a finding, and the ground for dirty ones."""

from __future__ import annotations

from cli.commands import STUB

PACKET = """\
# Task Packet: WP-1-Parser-v1

## METADATA
- TASK_ID: WP-1-Parser-v1
- WP_ID: WP-1-Parser-v1
- BASE_WP_ID: WP-1-Parser
- DATE: 2026-03-01T00:00:00Z
- MERGE_BASE_SHA: 0123456789012345678901234567890123456789
- REQUESTOR: User
- AGENTIC_MODE: NO
- CODER_REASONING_STRENGTH: EXTRA_HIGH
- **Status:** Ready for Dev
- RISK_TIER: LOW
- USER_SIGNATURE: ada010320261200

## TECHNICAL_REFINEMENT (MASTER SPEC)
- REFINEMENT_FILE: .GOV/refinements/WP-1-Parser-v1.md

## SCOPE
- What: Read fields without loss.
- Why: Hand edits must survive.
- IN_SCOPE_PATHS:
  - src/parser.py
- OUT_OF_SCOPE:
  - The writer.

## QUALITY_GATE
### TEST_PLAN
```bash
just test
```

### DONE_MEANS
- Every byte is given back.

### ROLLBACK_HINT
```bash
git revert X
```

## AUTHORITY
- SPEC_BASELINE: Spec_v1.md
- SPEC_ANCHOR: Spec_v1.md 4.2

## BOOTSTRAP
- FILES_TO_OPEN:
  - src/parser.py
- RISK_MAP:
  - "a" -> "b"

## EVIDENCE_MAPPING
- REQUIREMENT: "Every byte is given back."
  - EVIDENCE: `src/parser.py:12`
"""

REFINEMENT = """\
## TECHNICAL_REFINEMENT (MASTER SPEC)

### METADATA
- WP_ID: WP-1-Parser-v1
- CREATED_AT: 2026-03-01T00:00:00Z
- SPEC_TARGET_RESOLVED: .GOV/roles_shared/SPEC_CURRENT.md -> Spec_v1.md
- SPEC_TARGET_SHA1: 5ccd46d7cfc3f533ffb106819d6e5b384a79b6e6
- USER_REVIEW_STATUS: APPROVED
- USER_SIGNATURE: ada010320261200
- USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT WP-1-Parser-v1

### GAPS_IDENTIFIED
- None.

### FLIGHT_RECORDER_INTERACTION (event IDs + telemetry triggers)
- None.

### RED_TEAM_ADVISORY (security failure modes)
- Hostile bytes.

### PRIMITIVES (traits/structs/enums)
- Source

### CLEARLY_COVERS (5-point checklist)
- Appears in Main Body: [x] PASS
- Explicitly named: [x] PASS
- Specific: [x] PASS
- Measurable acceptance criteria: [x] PASS
- No ambiguity: [x] PASS
- CLEARLY_COVERS_VERDICT: PASS
- CLEARLY_COVERS_REASON: Chapter 4.2 states it.
- AMBIGUITY_FOUND: NO
- AMBIGUITY_REASON: N/A

### ENRICHMENT
- ENRICHMENT_NEEDED: NO
- REASON_NO_ENRICHMENT: Chapter 4.2 states it.

#### PROPOSED_SPEC_ENRICHMENT (VERBATIM) (required if ENRICHMENT_NEEDED=YES)
```md
<not applicable>
```

### SPEC_ANCHORS (REQUIRED: one or more)

#### ANCHOR 1
- SPEC_ANCHOR: Spec_v1.md 4.2 Parser
- CONTEXT_START_LINE: 4
- CONTEXT_END_LINE: 6
- CONTEXT_TOKEN: keep every byte
- EXCERPT_ASCII_ESCAPED:
  ```text
  A parser   MUST keep every byte
  ...
  It MUST name the line of a fault.
  ```
"""

CANONICAL = {
    "stub": (".GOV/task_packets/stubs/WP-1-Parser-v1.md", STUB),
    "packet": (".GOV/task_packets/WP-1-Parser-v1.md", PACKET),
    "refinement": (".GOV/refinements/WP-1-Parser-v1.md", REFINEMENT),
}
