"""The signature audit and the two gate logs as values."""

from __future__ import annotations

import json

from workpacket.documents.gate_logs import OrchestratorGates, ValidatorGates
from workpacket.documents.registry import SignatureAudit
from workpacket.text.source import Source

AUDIT = """| Signature | Used By | Date/Time | Purpose | Master Spec Version | Notes |
|---|---|---|---|---|---|
| `mara310120260930` | Orchestrator | 2026-01-31 09:30 | Work packet creation: WP-1-A-v1 | v1 | see WP-1-A-v1.md, WP07 |
| zoe300120260930 | Orchestrator |
"""


def test_the_audit_knows_which_packets_a_row_names() -> None:
    document = SignatureAudit(Source("audit.md", AUDIT))
    assert document.summary() == {
        "has_table": True,
        "rows": [
            {"signature": ("mara310120260930", 3, 4), "packets": [("WP-1-A-v1", 3, 80)]},
            {"signature": ("zoe300120260930", 4, 3), "packets": []},
        ],
    }
    assert document.rows[1].purpose is None


def test_an_audit_without_a_table_says_so() -> None:
    assert SignatureAudit(Source("audit.md", "# None\n")).summary() == {"has_table": False, "rows": []}


def test_the_orchestrator_log_is_one_history() -> None:
    log = {"gate_logs": [{"wpId": "WP-1-A-v1", "type": "REFINEMENT", "timestamp": "t"}, {"wp_id": "WP-1-B-v1"}, 3]}
    document = OrchestratorGates(Source("gates.json", json.dumps(log)))
    names = [event.name.value if event.name is not None else None for event in document.histories[0]]
    assert names == ["REFINEMENT", None, None]
    assert [name for name, _, _ in document.summary()["packets"]] == ["WP-1-A-v1", "WP-1-B-v1"]


def test_sessions_of_validators_stand_in_three_places() -> None:
    gates = [{"gate": "WP_APPENDED", "timestamp": "t"}]
    log = {
        "wpId": "WP-1-A-v1",
        "gates": gates,
        "validation_sessions": {
            "WP-1-B-v1": {"wpId": "WP-1-B-v1", "gates": gates},
            "WP-1-C-v1": {"gates": gates},
            "WP-1-D-v1": {"wpId": "WP-1-E-v1"},
        },
        "sessions": [{"wp_id": "WP-1-F-v1", "gates": gates}, "no session"],
        "archived_sessions": [{"gates": gates}],
    }
    document = ValidatorGates(Source("gates.json", json.dumps(log)))
    assert len(document.histories) == 5
    named = sorted(name for name, _, _ in document.summary()["packets"])
    assert named == [f"WP-1-{letter}-v1" for letter in "ABCDEF"]


def test_a_log_that_is_no_json_is_a_document_with_faults() -> None:
    for reader in (OrchestratorGates, ValidatorGates):
        document = reader(Source("gates.json", '{"gate_logs": ['))
        assert document.root is None
        assert document.faults
        assert document.summary() == {"packets": [], "stated": []}
