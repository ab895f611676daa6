"""Filling in the person's word: three fields change, and not a byte beside them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.refinement import Refinement, fill, tokens_of
from workpacket.documents.registry import SignatureAudit, with_row
from workpacket.model.layout import AUDIT_PATH
from workpacket.text.formats import legacy_signature
from workpacket.text.source import Source

AT = datetime(2026, 1, 31, 12, 5, tzinfo=UTC)
WP = "WP-1-Parser-v1"
PATH = f".GOV/refinements/{WP}.md"


TOKEN = next(tokens_of("ann@example.org", AT))


def filled(text: str) -> Source | str:
    return fill(Source.from_bytes(PATH, text.encode()), WP, TOKEN)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- USER_REVIEW_STATUS: PENDING\n- USER_SIGNATURE: <pending>\n- USER_APPROVAL_EVIDENCE: <pending>\n",
            (
                f"- USER_REVIEW_STATUS: APPROVED\n- USER_SIGNATURE: ann310120261205\n"
                f"- USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT {WP}\n"
            ),
        ),
        (
            "* **USER_REVIEW_STATUS:** PENDING\r\n* **USER_SIGNATURE:**\r\n* **USER_APPROVAL_EVIDENCE:** x\r\n",
            (
                f"* **USER_REVIEW_STATUS:** APPROVED\r\n* **USER_SIGNATURE:** ann310120261205\r\n"
                f"* **USER_APPROVAL_EVIDENCE:** APPROVE REFINEMENT {WP}\r\n"
            ),
        ),
        (
            "- USER_REVIEW_STATUS:\n- USER_SIGNATURE: bob010120260900\n- OTHER: kept\n",
            (
                f"- USER_REVIEW_STATUS: APPROVED\n- USER_SIGNATURE: ann310120261205\n"
                f"- USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT {WP}\n- OTHER: kept\n"
            ),
        ),
    ],
    ids=["as the template has it", "bold, with CRLF and an empty field", "without a field for the evidence"],
)
def test_the_fields_are_filled_in_as_the_file_is_written(before: str, after: str) -> None:
    head = "### METADATA\n"
    result = filled(head + before)
    assert isinstance(result, Source), result
    assert result.text == head + after


@pytest.mark.parametrize("text", ["", "### METADATA\n", "### METADATA\n- USER_SIGNATURE: x\n", "no fields at all"])
def test_a_text_without_the_fields_is_not_filled_in(text: str) -> None:
    assert isinstance(filled(text), str)


@given(st.text(max_size=40), st.text(max_size=60))
def test_whatever_stands_around_the_fields_stays(value: str, more: str) -> None:
    line = " ".join(value.split())
    fields = f"- USER_REVIEW_STATUS: {line}\n- USER_SIGNATURE: <pending>\n- USER_APPROVAL_EVIDENCE: x\n"
    text = f"### METADATA\n{fields}\n{more}"
    source = Source.from_bytes(PATH, text.encode("utf-8", "surrogatepass"))
    result = fill(source, WP, TOKEN)
    if isinstance(result, Source):
        document = Refinement(result)
        assert document.review_status is not None
        assert document.review_status.value == "APPROVED"
        assert result.text.endswith(source.text[source.text.index("EVIDENCE: x") + len("EVIDENCE: x") :])
        again = fill(result, WP, TOKEN)
        assert isinstance(again, Source)
        assert again.text == result.text


@given(st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._+@-]{0,127}\Z"))
def test_the_token_of_any_person_has_the_form_of_the_old_signatures(approver: str) -> None:
    assert [legacy_signature(token) for token in tokens_of(approver, AT)] == [""] * 60


HEAD = "| Signature | Notes | Used By | Date/Time | Purpose | Master Spec Version |\n|---|---|---|---|---|---|\n"


def test_the_row_follows_the_columns_of_the_table_and_comes_first() -> None:
    source = Source.from_bytes(AUDIT_PATH, f"# Audit\n\n{HEAD}| bob010120260900 | | User | x | y | z |\n".encode())
    rows = SignatureAudit(with_row(source, "ann310120261205", WP, "Spec_v1|x.md", "f" * 64, AT)).rows
    first = rows[0]
    assert len(rows) == 2
    assert first.signature is not None
    assert first.signature.value == "ann310120261205"
    assert [packet.value for packet in first.packets()] == [WP]
    assert first.spec_version is not None
    assert first.spec_version.value == "Spec_v1/x.md"


@pytest.mark.parametrize("text", ["", "# no table\n", f"{HEAD}| ann310120261205 | | User | x | y | z |\n"])
def test_without_a_table_or_with_the_token_in_it_the_audit_stays(text: str) -> None:
    source = Source.from_bytes(AUDIT_PATH, text.encode())
    assert with_row(source, "ann310120261205", WP, "", "f" * 64, AT).text == text
