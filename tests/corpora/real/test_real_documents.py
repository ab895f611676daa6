"""Every real file is read; old fashions are warnings; what is wrong is found; repairing changes nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import remembered
from workpacket.cli.fmt import formatted, repaired
from workpacket.documents.document import read_document
from workpacket.problem import Problem
from workpacket.report.catalogue import catalogue
from workpacket.rules.repair import untouched_change
from workpacket.rules.settings import CheckSettings, Profile
from workpacket.shell import checking
from workpacket.shell.cache import Cache
from workpacket.shell.checking import check, examine_bytes, load_findings
from workpacket.shell.tree import find_documents
from workpacket.text.source import Source

# Forms that people used before the present ones. A stub that shows nothing else is only old-fashioned.
OLD_FASHIONED = {
    "byte_order_mark",
    "line_ends",
    "blank_lines_at_end",
    "no_final_newline",
    "mojibake",
    "date_only",
    "stub_old_family",
    "stub_status_not_canonical",
    "spec_target_trailing_text",
    "checklist_numbered",
    "checklist_length",
    "nested_too_deep",
    "old_heading",
    "section_unknown",
    "metadata_field_unknown",
    "field_syntax",
}


def all_findings(root: Path, profile: Profile = "adopt") -> list[Problem]:
    files = find_documents(str(root))
    return check(
        str(root),
        files,
        whole=True,
        cache=Cache(None, ""),
        reasons=catalogue(),
        settings=CheckSettings(profile=profile),
        progress=lambda _done, _all: None,
    ).findings


@pytest.fixture(scope="module")
def findings(laid_out: Path) -> list[Problem]:
    return all_findings(laid_out)


def documents(root: Path) -> list[tuple[str, Source]]:
    found = find_documents(str(root))
    return [(file.kind, Source.from_bytes(file.path, (root / file.path).read_bytes())) for file in found]


def test_every_stub_packet_refinement_board_and_registry_is_read(laid_out: Path) -> None:
    for kind, source in documents(laid_out):
        if kind in {"stub", "packet", "refinement", "task_board", "registry"}:
            assert read_document(kind, source).root is not None, source.path


def test_every_finding_points_into_its_file(laid_out: Path, findings: list[Problem]) -> None:
    for finding in findings:
        lines = Source.from_bytes(finding.path, (laid_out / finding.path).read_bytes()).line_count
        assert 0 <= finding.line <= lines, finding


@pytest.mark.parametrize(
    "code",
    [
        "hint_text_left",
        "signature_malformed",
        "approved_unsigned",
        "status_contradicts_board",
        "registry_board_stale",
        "stub_without_row",
        "superseded_still_live",
        "board_blank_lines",
        "role_zombie",
        "role_phase_foreign",
        "role_identity_mismatch",
        "deferred_issue_mapping",
    ],
)
def test_the_defects_that_such_repositories_have_are_found(findings: list[Problem], code: str) -> None:
    assert any(finding.code == code and finding.line > 0 for finding in findings)


def test_a_stub_that_is_only_old_fashioned_gets_warnings(findings: list[Problem]) -> None:
    stubs = [finding for finding in findings if finding.path.startswith(".GOV/task_packets/stubs/")]
    assert stubs
    graver = [finding for finding in stubs if finding.code in OLD_FASHIONED and finding.severity == "error"]
    assert graver == []


# A reader called these true, but not errors: they change how a document looks, not what it says.
COSMETIC = {"byte_order_mark", "blank_lines_at_end", "date_only", "spec_target_trailing_text", "old_heading"}


def test_under_the_strict_profile_old_fashions_are_errors(laid_out: Path) -> None:
    strict = [finding for finding in all_findings(laid_out, "strict") if "/stubs/" in finding.path]
    milder = {finding.code for finding in strict if finding.severity != "error" and finding.fix}
    assert milder <= COSMETIC


@pytest.mark.share(8)
@pytest.mark.parametrize("part", range(8))
def test_formatting_twice_is_formatting_once(laid_out: Path, part: int) -> None:
    codes = frozenset(catalogue())
    for kind, source in documents(laid_out)[part::8]:
        once = formatted(source, kind, codes, upgrade=True).source
        # Where nothing is changed, the second time would be the first one again.
        if once.encode() != source.encode():
            assert formatted(once, kind, codes, upgrade=True).source.encode() == once.encode(), source.path


@pytest.mark.share(8)
@pytest.mark.parametrize("part", range(8))
def test_repairing_changes_only_what_was_reported_and_only_once(laid_out: Path, part: int) -> None:
    """With the safe repairs and with all. Where nothing is repaired, once more would be the same once more."""
    codes = frozenset(catalogue())
    for kind, source in documents(laid_out)[part::8]:
        found = load_findings(source.path, examine_bytes(source.path, kind, source.encode()).findings)
        edits = [edit for finding in found if finding.fix for edit in finding.fix.edits]
        old = read_document(kind, source).root
        for unsafe in (False, True):
            after, _ = repaired(source, kind, found, codes, unsafe=unsafe)
            if after.encode() == source.encode():
                continue
            left = load_findings(source.path, examine_bytes(source.path, kind, after.encode()).findings)
            assert repaired(after, kind, left, codes, unsafe=unsafe)[0].encode() == after.encode(), (
                source.path,
                unsafe,
            )
            new = read_document(kind, after).root
            if old is not None and new is not None:
                assert untouched_change(old, new, edits) is None, (source.path, unsafe)


def test_what_is_not_repaired_keeps_every_byte(laid_out: Path) -> None:
    for _, source in documents(laid_out):
        assert source.encode() == (laid_out / source.path).read_bytes()


def test_the_same_check_twice_says_the_same(
    laid_out: Path, findings: list[Problem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "examine_bytes", remembered.really_examine)
    copy = tmp_path / "copy"
    shutil.copytree(laid_out, copy)
    assert all_findings(copy) == findings
