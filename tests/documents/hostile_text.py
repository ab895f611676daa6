"""Texts that look enough like governance documents to get deep into the readers, and are wrong in every way."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    "# Work Packet Stub: WP-1-A-v1",
    "## STUB_METADATA",
    "## METADATA",
    "### METADATA",
    "## INTENT (DRAFT)",
    "## SCOPE",
    "### SPEC_ANCHORS",
    "#### ANCHOR 1",
    "- WP_ID: WP-1-A-v1",
    "- **Status:** Done",
    "- CREATED_AT:",
    "  - nested",
    "      - deeper",
    "1. numbered",
    "- [x] ticked",
    "```",
    "~~~text",
    "| Base WP ID | Active Packet | Task Board | Notes |",
    "|---|---|---|---|",
    "| WP-1-A | x | Done: WP-1-A-v1 | active=WP-1-A-v1 |",
    "- **[WP-1-A-v1]** - [STUB]",
    "## Ready for Dev",
    "---",
    "...",
    "work_package_id: WP01",
    "dependencies: [WP02, WP01]",
    "checkpoint:",
    "  last_commit: 0123456",
    "tasks: [{id: a}, {id: a}]",
    "feature: x",
    "&a *a !!python/object:x",
    "<<: *x",
    '{"gate_logs": [{"wpId": 1}]}',
    '{"a": 1, "a": 2}',
    "[[[[[[[[",
    "profile = 'x'",
    "[check",
    ">>>>>>> other",
    "=======",
    "<!-- comment",
    "> quoted",
    "\t\ttabbed",
    "\ufeff",
    "\u202e",
    "\x00",
    "\r",
    "\u2028",
    "",
)

any_bytes = st.binary(max_size=400)
document_like = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=40).map(
    lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")
)
broken = st.builds(
    lambda data, at, junk: data[: at % (len(data) + 1)] + junk + data[at % (len(data) + 1) :],
    document_like,
    st.integers(0, 2000),
    st.binary(max_size=6),
)
hostile_bytes = st.one_of(any_bytes, document_like, broken)
