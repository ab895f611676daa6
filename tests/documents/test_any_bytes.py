"""For any bytes, reading ends with a document, and checking with findings; never with an exception."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from documents.hostile_text import hostile_bytes
from workpacket.cli.fmt import repaired
from workpacket.documents.document import KINDS
from workpacket.report.catalogue import catalogue
from workpacket.rules.repair import RepairRefused
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.text.source import Source

CODES = frozenset(catalogue())
ENDINGS = {"policy": "toml", "orchestrator_gates": "json", "validator_gates": "json", "commit_sidecar": "json"}
kinds = st.sampled_from([kind.name for kind in KINDS])


@given(kinds, hostile_bytes)
def test_any_bytes_end_with_findings_that_the_catalogue_knows(kind: str, data: bytes) -> None:
    row = examine_bytes(f"x/WP-1-A-v1.{ENDINGS.get(kind, 'md')}", kind, data)
    source = Source.from_bytes(row.path, data)
    for finding in load_findings(row.path, row.findings):
        assert finding.code in CODES
        assert 1 <= finding.line <= source.line_count
        assert finding.message
    assert row.summary == "" or json.loads(row.summary) is not None


@example(kind="registry", data=b"Base\x00WP\x00ID|Active\n\xe2\x80\xa8", unsafe=False)
@given(kind=kinds, data=hostile_bytes, unsafe=st.booleans())
def test_repairing_any_bytes_comes_to_rest(kind: str, data: bytes, unsafe: bool) -> None:
    path = f"x/WP-1-A-v1.{ENDINGS.get(kind, 'md')}"

    def repair(data: bytes) -> bytes:
        findings = load_findings(path, examine_bytes(path, kind, data).findings)
        try:
            return repaired(Source.from_bytes(path, data), kind, findings, CODES, unsafe=unsafe)[0].encode()
        except RepairRefused:  # the file is left as it is
            return data

    once = repair(data)
    assert repair(once) == once


@given(hostile_bytes)
def test_a_source_gives_back_its_bytes(data: bytes) -> None:
    assert Source.from_bytes("x", data).encode() == data
