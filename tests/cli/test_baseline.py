"""`check --baseline`: a repository with many findings adopts the tool, and only new ones are reported."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest

from cli.commands import STUB, STUB_PATH, Commands
from workpacket.rules.settings import KnownPlace, baseline_text, read_baseline
from workpacket.shell.package_files import schemas

BASELINE = ".GOV/policy/baseline.json"
# Two findings: an older form of a date, and an empty field.
OLD = STUB.replace("2026-03-01T00:00:00Z", "2026-03-01").replace("Spec_v1.md 7, item 3", "")
STRICT = '[check]\nprofile = "strict"\n'


@pytest.fixture
def legacy(commands: Commands) -> Commands:
    """A repository whose stub has findings, all of them in the baseline."""
    commands.write(".GOV/policy/policy.toml", STRICT)
    commands.write(STUB_PATH, OLD)
    assert commands("check").status == 1
    assert commands("check", "--baseline").status == 0
    return commands


def entries(commands: Commands) -> list[dict[str, object]]:
    known: list[dict[str, object]] = json.loads((commands.root / BASELINE).read_text())["findings"]
    return known


def commit(commands: Commands, message: str) -> None:
    for words in (("add", "-A"), ("commit", "-qm", message)):
        subprocess.run(["git", *words], cwd=commands.root, check=True)


def test_after_one_command_the_check_passes_and_says_what_it_leaves_out(legacy: Commands) -> None:
    shown = legacy("check")
    assert shown.status == 0
    assert f"{len(entries(legacy))} known findings in {BASELINE} not shown; use --no-baseline to show them" in shown.out


def test_a_new_finding_is_reported_and_the_known_ones_are_not(legacy: Commands) -> None:
    legacy.write(STUB_PATH, OLD.replace("- STUB_STATUS: STUB (NOT READY FOR DEV)", "- STUB_STATUS: SOMETHING"))
    shown = legacy("check")
    assert shown.status == 1
    assert "STUB_STATUS" in shown.out
    assert "date_only" not in shown.out


def test_a_known_finding_stays_known_when_its_line_moves(legacy: Commands) -> None:
    legacy.write(
        STUB_PATH, OLD.replace("## INTENT", "<!-- a comment -->\n\n## INTENT").replace("- BASE_WP_ID", "\n- BASE_WP_ID")
    )
    assert "date_only" not in legacy("check").out


def test_a_finding_is_new_when_its_line_changes(legacy: Commands) -> None:
    legacy.write(STUB_PATH, OLD.replace("2026-03-01", "2026-03-02"))
    shown = legacy("check", "--fail-on", "warning")
    assert (shown.status, "date_only" in shown.out) == (1, True)


def test_a_second_finding_on_an_equal_line_is_new(legacy: Commands) -> None:
    other = STUB_PATH.replace("Parser", "Reader")
    legacy.write(other, OLD.replace("WP-1-Parser", "WP-1-Reader"))
    shown = legacy("check")
    assert shown.status == 1
    assert other in shown.out
    assert STUB_PATH not in shown.out


def test_all_findings_are_shown_on_request(legacy: Commands) -> None:
    assert "date_only" in legacy("check", "--no-baseline").out


def test_entries_without_a_finding_are_named_and_only_prune_removes_them(legacy: Commands) -> None:
    before = (legacy.root / BASELINE).read_bytes()
    legacy.write(STUB_PATH, STUB)
    assert "no longer apply; `workpacket check --prune` removes them" in legacy("check").out
    assert (legacy.root / BASELINE).read_bytes() == before
    assert legacy("check", "--prune").status == 0
    assert entries(legacy) == []
    assert "baseline" not in legacy("check").out


def test_a_check_of_a_part_does_not_say_that_the_rest_is_gone(
    legacy: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["--exclude", STUB_PATH], ["--min-severity", "error"], ["--select", "key_bold"], [STUB_PATH]):
        assert "no longer" not in legacy("check", *words).out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(STUB.encode())))
    assert "no longer" not in legacy("check", "--stdin-filename", STUB_PATH.replace("Parser", "Other")).out


def test_a_damaged_baseline_hides_nothing_and_is_named(legacy: Commands) -> None:
    legacy.write(BASELINE, '{"version": 1, "findings": [{"path": "*"}]}')
    shown = legacy("check")
    assert shown.status == 1
    assert "baseline_unread" in shown.out
    assert "date_only" in shown.out
    assert legacy("check", "--prune").status == 1
    assert legacy("check", "--baseline").status == 0


def test_damage_to_the_log_is_never_recorded(legacy: Commands) -> None:
    legacy.write(".GOV/log/WP-1-Parser-v1/0.json", "{}")
    assert "cannot be recorded, and will be reported" in legacy("check", "--baseline").out
    assert legacy("check").status not in {0, 1}


@pytest.mark.parametrize(
    "line",
    ["--baseline --prune", "--baseline --base HEAD", f"--baseline {STUB_PATH}", "--prune --fix", "--baseline --json"],
)
def test_a_baseline_is_that_of_the_whole_repository(legacy: Commands, line: str) -> None:
    assert legacy("check", *line.split()).status == 2


def test_a_repair_leaves_known_findings_alone(legacy: Commands) -> None:
    legacy("check", "--fix")
    assert (legacy.root / STUB_PATH).read_text() == OLD


def test_a_change_cannot_add_its_own_findings_to_the_baseline(legacy: Commands) -> None:
    commit(legacy, "adopt")
    legacy.write(STUB_PATH, OLD.replace("2026-03-01", "2026-03-02"))
    legacy("check", "--baseline")
    commit(legacy, "hide a new finding")
    shown = legacy("check", "--base", "HEAD~1", "--fail-on", "warning")
    assert (shown.status, "date_only" in shown.out, "not_committed" in shown.out) == (1, True, False), shown.out


def test_the_change_that_begins_the_baseline_passes(commands: Commands) -> None:
    commands.write(".GOV/policy/policy.toml", STRICT)
    commands.write(STUB_PATH, OLD)
    commit(commands, "legacy")
    commands("check", "--baseline")
    commit(commands, "adopt")
    shown = commands("check", "--base", "HEAD~1")
    assert "date_only" not in shown.out, shown.out


def test_the_file_is_merged_line_by_line(legacy: Commands) -> None:
    lines = (legacy.root / BASELINE).read_text().splitlines()
    assert sum('"path"' in line for line in lines) == len(entries(legacy))


def test_a_legacy_tree_becomes_green_with_one_command(commands: Commands, tmp_path: Path) -> None:
    for number in range(40):
        name = f"WP-1-Old{number}-v1"
        commands.write(STUB_PATH.replace("WP-1-Parser-v1", name), OLD.replace("WP-1-Parser-v1", name))
    assert commands("check", "--profile", "strict").status == 1
    commands("check", "--baseline")
    assert commands("check", "--profile", "strict").status == 0


def test_only_what_a_revision_did_not_have_is_reported(commands: Commands) -> None:
    commands.write(".GOV/policy/policy.toml", STRICT)
    commands.write(STUB_PATH, OLD)
    commit(commands, "as it was")
    commands.write(STUB_PATH, OLD.replace("- STUB_STATUS: STUB (NOT READY FOR DEV)", "- STUB_STATUS: SOMETHING"))
    shown = commands("check", "--new-since", "HEAD")
    assert (shown.status, "STUB_STATUS" in shown.out, "date_only" in shown.out) == (1, True, False)
    assert "not shown because HEAD already had them" in shown.out
    assert commands("check", STUB_PATH, "--new-since", "HEAD").status == 1
    commands.write(STUB_PATH, OLD)
    assert commands("check", "--new-since", "HEAD").status == 0
    assert commands("check", "--new-since", "nowhere").status == 2


def test_a_baseline_of_thousands_of_findings_is_read_back() -> None:
    known = {KnownPlace(f".GOV/task_packets/WP-1-Packet-{n}-v1.md", "field_empty", f"{n:016x}"): 1 for n in range(2500)}
    data = baseline_text(known).encode()
    assert len(data) > 256 * 1024  # the limit of other JSON files
    assert read_baseline(data, schemas()) == known
