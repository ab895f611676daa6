"""`workpacket check` as people and CI call it."""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import STUB, STUB_PATH, Commands
from rules.canonical import PACKET
from workpacket.shell import cache

OLD = STUB.replace("2026-03-01T00:00:00Z", "2026-03-01")


def test_a_repository_without_fault_passes(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    shown = commands("check", STUB_PATH)
    assert (shown.status, "1 file checked, no findings" in shown.out) == (0, True)


def test_a_check_of_nothing_is_no_success(commands: Commands) -> None:
    shown = commands("check")
    assert shown.status == 6
    assert "0 files checked" in shown.out


def test_a_finding_shows_line_column_and_caret(commands: Commands) -> None:
    commands.write(STUB_PATH, OLD)
    shown = commands("check", STUB_PATH)
    assert "6:15  warning  date_only" in shown.out
    assert "6 | - CREATED_AT: 2026-03-01\n       |               ^^^^^^^^^^" in shown.out


def test_old_forms_are_warnings_and_errors_when_strict(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB.replace("STUB (NOT READY FOR DEV)", "STUB (not ready)"))
    assert commands("check", STUB_PATH).status == 0
    assert commands("check", STUB_PATH, "--fail-on", "warning").status == 1
    assert commands("check", STUB_PATH, "--profile", "strict").status == 1


def test_findings_below_a_severity_are_left_out_and_those_that_fail_the_check_cannot_be(commands: Commands) -> None:
    commands.write(STUB_PATH, OLD + "\x00\n")
    shown = commands("check", "--min-severity", "error")
    assert (shown.status, "control_character" in shown.out, "date_only" in shown.out) == (1, True, False)
    assert "date_only" in commands("check", "--min-severity", "warning", "--fail-on", "warning").out
    refused = commands("check", "--min-severity", "error", "--fail-on", "warning")
    assert refused.status == 2
    assert "would hide" in refused.err


@pytest.mark.parametrize("pattern", [STUB_PATH, ".GOV/task_packets/stubs", "./.GOV/task_packets/stubs/", "*/stubs/*"])
def test_findings_in_excluded_files_are_left_out(commands: Commands, pattern: str) -> None:
    commands.write(STUB_PATH, OLD)
    commands.write(".GOV/task_packets/WP-1-Parser-v1.md", PACKET + "\x00\n")
    found = json.loads(commands("check", "--exclude", pattern, "--format", "json").out)["findings"]
    assert {one["path"] for one in found} >= {".GOV/task_packets/WP-1-Parser-v1.md"}
    assert STUB_PATH not in {one["path"] for one in found}


def test_superseded_packets_are_not_changed_any_more_so_nothing_in_them_is_an_error(commands: Commands) -> None:
    path, text = ".GOV/task_packets/WP-1-Parser-v1.md", PACKET
    id_line = "- BASE_WP_ID: WP-1-Parser\n"
    status = next(line for line in text.splitlines() if line.startswith("- **Status:**"))
    assert id_line in text
    live = text.replace(id_line, "- BASE_WP_ID: WP-1-Parser (stable ID without -vN)\n")
    superseded = live.replace(status, "- **Status:** Superseded")

    def severities() -> dict[str, str]:
        found = json.loads(commands("check", "--format", "json").out)["findings"]
        return {one["code"]: one["severity"] for one in found}

    commands.write(path, live)
    assert severities()["hint_text_left"] == "error"
    commands.write(path, superseded)
    assert severities()["hint_text_left"] == "warning"
    # What could hide something from its readers is still an error.
    commands.write(path, superseded + "\x00\n")
    assert severities()["control_character"] == "error"


def test_a_file_that_cannot_be_read_is_a_finding_of_its_own(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    (commands.root / ".GOV/task_packets/WP-1-Gone-v1.md").symlink_to(commands.root / "nowhere.md")
    shown = commands("check")
    assert shown.status == 6
    assert "file_unreadable" in shown.out
    assert "is a symbolic link" in shown.out


def test_a_link_out_of_the_tree_is_not_followed(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "WP-1-Secret-v1.md").write_text("secret words")
    (commands.root / ".GOV").symlink_to(outside)
    shown = commands("check")
    assert shown.status == 6
    assert "secret" not in shown.out


def test_selecting_and_ignoring_by_code_or_family(commands: Commands) -> None:
    commands.write(STUB_PATH, OLD + "\n\n")
    assert "date_only" in commands("check", STUB_PATH, "--select", "date_*").out
    assert "blank_lines_at_end" not in commands("check", STUB_PATH, "--select", "date_*").out
    assert "date_only" not in commands("check", STUB_PATH, "--ignore", "date_only").out


def test_json_holds_what_text_shows(commands: Commands) -> None:
    commands.write(STUB_PATH, OLD)
    envelope = json.loads(commands("check", STUB_PATH, "--json").out)
    finding = next(finding for finding in envelope["findings"] if finding["code"] == "date_only")
    assert (finding["path"], finding["line"], finding["column"], finding["severity"]) == (STUB_PATH, 6, 15, "warning")
    assert envelope["ok"] is True


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github", "text"])
def test_every_form_can_be_written(commands: Commands, form: str) -> None:
    commands.write(STUB_PATH, OLD)
    assert "date_only" in commands("check", STUB_PATH, "--format", form).out


def test_fix_repairs_what_is_safe_and_nothing_else(commands: Commands) -> None:
    path = commands.write(STUB_PATH, b"\xef\xbb\xbf" + OLD.encode() + b"\n\n")
    shown = commands("check", STUB_PATH, "--fix")
    assert path.read_text(encoding="utf-8") == OLD
    assert "note: repaired 1 blank_lines_at_end, 1 byte_order_mark in 1 file" in shown.out
    assert shown.out.count("byte_order_mark") == 1
    assert "date_only" in shown.out


def test_unsafe_fixes_are_made_only_when_asked_for(commands: Commands) -> None:
    path = commands.write(STUB_PATH, OLD)
    commands("check", STUB_PATH, "--unsafe-fixes")
    assert path.read_text(encoding="utf-8") == STUB


def test_diff_shows_the_fix_and_changes_nothing(commands: Commands) -> None:
    path = commands.write(STUB_PATH, OLD)
    shown = commands("check", STUB_PATH, "--unsafe-fixes", "--diff")
    assert "+- CREATED_AT: 2026-03-01T00:00:00Z" in shown.out
    assert path.read_text(encoding="utf-8") == OLD


def test_a_fix_keeps_the_permissions_of_the_file(commands: Commands) -> None:
    path = commands.write(STUB_PATH, STUB + "\n\n")
    path.chmod(0o640)
    commands("check", STUB_PATH, "--fix")
    assert path.stat().st_mode & 0o777 == 0o640


def test_files_checked_alone_say_that_they_were(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    assert "on its own" in commands("check", STUB_PATH).out
    assert "on its own" not in commands("check").out


def test_a_kind_can_be_named_for_a_file_elsewhere(commands: Commands) -> None:
    commands.write("drafts/WP-1-Parser-v1.md", OLD)
    assert "date_only" in commands("check", "--kind", "stub", "drafts/WP-1-Parser-v1.md").out


def test_paths_are_relative_to_where_one_stands(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    commands.write(STUB_PATH, OLD)
    monkeypatch.chdir(commands.root / ".GOV/task_packets")
    assert f"{STUB_PATH}\n" in commands("check", "stubs").out


def test_a_path_outside_of_the_repository_is_refused(commands: Commands) -> None:
    failed = commands("check", "../elsewhere.md")
    assert (failed.status, "(path_outside_repository)" in failed.err) == (2, True)


def test_statistics_count_by_code(commands: Commands) -> None:
    commands.write(STUB_PATH, OLD)
    assert "1  warning  date_only" in commands("check", STUB_PATH, "--statistics").out


class TestPolicy:
    IGNORE = """
[check]
profile = "adopt"
[[check.ignore]]
code = "{code}"
paths = [".GOV/task_packets/stubs/*"]
reason = "{reason}"
"""

    def write(self, commands: Commands, code: str, reason: str = "Imported from the old tool as they were.") -> None:
        commands.write(".GOV/policy/policy.toml", self.IGNORE.format(code=code, reason=reason))

    def test_an_ignore_with_a_reason_hides_the_finding(self, commands: Commands) -> None:
        commands.write(STUB_PATH, OLD)
        self.write(commands, "date_only")
        shown = commands("check").out
        assert "date_only" not in shown
        assert "ignore_unused" not in shown

    def test_an_ignore_that_ignores_nothing_is_a_finding_at_its_line(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        self.write(commands, "date_only")
        assert "ignore_unused" in commands("check").out

    def test_an_ignore_without_a_reason_in_words_is_a_finding(self, commands: Commands) -> None:
        commands.write(STUB_PATH, OLD)
        self.write(commands, "date_only", reason="unimportant")
        assert "ignore_without_reason" in commands("check").out

    def test_a_setting_for_a_code_that_does_not_exist_is_a_finding(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        self.write(commands, "no_such_code")
        assert "setting_of_unknown_code" in commands("check").out

    def test_what_was_not_looked_at_cannot_be_ignored(self, commands: Commands) -> None:
        (commands.root / ".GOV/task_packets/stubs").mkdir(parents=True)
        (commands.root / STUB_PATH).symlink_to("/nowhere")
        self.write(commands, "file_unreadable")
        shown = commands("check")
        assert shown.status == 6
        assert "setting_of_protected_code" in shown.out
        assert "is a symbolic link" in shown.out

    def test_severity_can_be_raised_and_lowered(self, commands: Commands) -> None:
        commands.write(STUB_PATH, OLD)
        commands.write("pyproject.toml", '[tool.workpacket.severity]\ndate_only = "error"\n')
        assert commands("check", STUB_PATH).status == 1
        commands.write("pyproject.toml", '[tool.workpacket.severity]\ndate_only = "off"\n')
        assert "date_only" not in commands("check", STUB_PATH).out

    @pytest.mark.parametrize(
        ("path", "text"),
        [
            (".GOV/policy/policy.toml", "[check\nprofile = 'strict'\n"),
            (".GOV/policy/policy.toml", "\xff"),
            ("pyproject.toml", "[tool.workpacket]\nprofile = 'strict'\nprofile = 'adopt'\n"),
        ],
    )
    def test_settings_that_cannot_be_read_fail_every_check(self, commands: Commands, path: str, text: str) -> None:
        commands.write(STUB_PATH, STUB)
        commands.write(path, text.encode("latin-1"))
        for words in (["check"], ["check", STUB_PATH]):
            shown = commands(*words)
            assert shown.status == 1
            assert shown.out.count("settings_unread") == 1

    def test_a_policy_that_is_a_link_is_not_taken_for_none(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        commands.write("elsewhere.toml", "[check]\n")
        (commands.root / ".GOV/policy").mkdir()
        (commands.root / ".GOV/policy/policy.toml").symlink_to("../../elsewhere.toml")
        assert "settings_unread" in commands("check", STUB_PATH).out

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ('[tool.workpacket]\nprofil = "strict"\n', "2:10"),
            ('[tool.workpacket]\nprofile = "stric"\n', "2:11"),
            ('[tool.workpacket.check]\nprofile = "strict"\n', "1:1"),
        ],
    )
    def test_a_misspelt_setting_of_the_project_is_a_finding(self, commands: Commands, text: str, place: str) -> None:
        commands.write(STUB_PATH, STUB)
        commands.write("pyproject.toml", text)
        shown = commands("check", STUB_PATH)
        assert shown.status == 1
        assert f"pyproject.toml\n  {place} " in shown.out

    def test_a_misspelt_setting_of_the_policy_is_said_once(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        commands.write(".GOV/policy/policy.toml", '[check]\nprofil = "strict"\n')
        assert commands("check", STUB_PATH).out.count("field_unknown") == 1
        assert commands("check").out.count("field_unknown") == 1


class TestCache:
    def database(self, commands: Commands) -> Path:
        return next((commands.root / ".git/workpacket/cache").glob("*.sqlite"))

    @pytest.fixture(autouse=True)
    def at_rest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files written by a test count as being at rest: only their ctime would say otherwise."""
        monkeypatch.setattr(cache, "RACY_NS", -(10**18))

    def computed(self, commands: Commands, monkeypatch: pytest.MonkeyPatch, *words: str) -> bool:
        """Whether the command had to compute its output."""
        from workpacket.cli import checking

        calls: list[int] = []
        original = checking.check_and_render

        def counted(*arguments: object) -> object:
            calls.append(1)
            return original(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(checking, "check_and_render", counted)
        commands(*words)
        monkeypatch.setattr(checking, "check_and_render", original)
        return bool(calls)

    def test_what_has_not_changed_is_not_examined_again(
        self, commands: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commands.write(STUB_PATH, OLD)
        first = commands("check", STUB_PATH)
        assert not self.computed(commands, monkeypatch, "check", STUB_PATH)
        assert commands("check", STUB_PATH) == first

    @pytest.mark.parametrize("changed", [STUB_PATH, "pyproject.toml", ".GOV/policy/policy.toml"])
    def test_a_change_of_any_file_it_rests_on_is_seen(
        self, commands: Commands, monkeypatch: pytest.MonkeyPatch, changed: str
    ) -> None:
        commands.write(STUB_PATH, OLD)
        commands("check", STUB_PATH)
        commands.write(changed, STUB if changed == STUB_PATH else "")
        assert self.computed(commands, monkeypatch, "check", STUB_PATH)

    def test_another_terminal_or_other_options_are_another_request(
        self, commands: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commands.write(STUB_PATH, OLD)
        commands("check", STUB_PATH)
        assert self.computed(commands, monkeypatch, "check", STUB_PATH, "--profile", "strict")
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert self.computed(commands, monkeypatch, "check", STUB_PATH)

    def test_a_file_that_may_still_be_written_to_is_looked_at_again(
        self, commands: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cache, "RACY_NS", 10**18)
        commands.write(STUB_PATH, OLD)
        commands("check", STUB_PATH)
        assert self.computed(commands, monkeypatch, "check", STUB_PATH)

    @pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 4096])
    def test_a_damaged_cache_counts_as_empty(self, commands: Commands, damage: bytes) -> None:
        commands.write(STUB_PATH, OLD)
        first = commands("check", STUB_PATH)
        database = self.database(commands)
        for left in database.parent.iterdir():
            left.unlink()
        database.write_bytes(damage)
        assert commands("check", STUB_PATH) == first
        assert commands("check", STUB_PATH) == first

    def test_a_cache_deleted_in_the_middle_is_made_again(self, commands: Commands) -> None:
        commands.write(STUB_PATH, OLD)
        first = commands("check", STUB_PATH)
        for left in self.database(commands).parent.iterdir():
            left.unlink()
        assert commands("check", STUB_PATH) == first

    def test_a_locked_cache_does_not_stop_anybody(self, commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workpacket.shell.cache.PATIENCE", 0.2)
        commands.write(STUB_PATH, OLD)
        first = commands("check", STUB_PATH)
        holder = sqlite3.connect(self.database(commands))
        holder.execute("BEGIN EXCLUSIVE")
        commands.write(STUB_PATH, OLD + "\n\n")
        assert "blank_lines_at_end" in commands("check", STUB_PATH).out
        holder.rollback()
        holder.close()
        commands.write(STUB_PATH, OLD)
        assert commands("check", STUB_PATH) == first

    def test_a_folder_that_cannot_be_written_means_no_cache(self, commands: Commands) -> None:
        commands.write(STUB_PATH, OLD)
        (commands.root / ".git/workpacket").write_text("in the way")
        assert "date_only" in commands("check", STUB_PATH).out

    def test_several_processes_share_it(self, commands: Commands) -> None:
        for number in range(40):
            commands.write(f".GOV/task_packets/stubs/WP-1-P{number}-v1.md", OLD.replace("Parser", f"P{number}"))
        script = "from workpacket.cli.main import console; console()"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        running = [
            subprocess.Popen(
                [sys.executable, "-c", script, "check", "--format", "json", ".GOV"],
                cwd=commands.root,
                stdout=subprocess.PIPE,
                env=environment,
            )
            for _ in range(4)
        ]
        outputs = {process.communicate()[0] for process in running}
        assert len(outputs) == 1
        assert len(json.loads(outputs.pop())["findings"]) == 40


class TestContradictions:
    @pytest.mark.parametrize(
        "words",
        [
            ["--json", "--format", "text"],
            ["--diff", "--json"],
            ["--statistics", "--format", "sarif"],
            ["--kind", "stub"],
        ],
        ids=" ".join,
    )
    def test_options_of_which_one_would_be_passed_over_are_refused(self, commands: Commands, words: list[str]) -> None:
        commands.write(STUB_PATH, STUB)
        assert commands("check", *words).status == 2

    @pytest.mark.parametrize(
        "words", [["--json", "--format", "json"], ["--statistics", "--format", "text"]], ids=" ".join
    )
    def test_options_that_say_the_same_are_not(self, commands: Commands, words: list[str]) -> None:
        commands.write(STUB_PATH, STUB)
        assert commands("check", *words).status == 0

    def test_the_diff_of_nothing_is_no_success(self, commands: Commands) -> None:
        assert commands("check", "--diff").status == 6


def test_fmt_gives_one_object(commands: Commands) -> None:
    commands.write(STUB_PATH, b"\xef\xbb\xbf" + STUB.encode())
    shown = json.loads(commands("fmt", "--check", "--json").out)
    assert shown["exit_code"] == 1
    assert shown["data"] == {
        "changed": [STUB_PATH],
        "written": False,
        "files": 1,
        "repaired": {"byte_order_mark": 1},
        "upgraded": [],
    }


class TestInPipelines:
    BAD = STUB.replace("- Why: Hand edits must survive.\n", "- Why:\n")

    def test_quiet_prints_the_findings_alone(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        assert commands("check", "--quiet").out == ""
        commands.write(STUB_PATH, self.BAD)
        loud, quiet = commands("check"), commands("check", "--quiet")
        assert quiet.status == loud.status == 1
        assert loud.out.startswith(quiet.out.rstrip("\n"))
        assert loud.out.splitlines()[-1] not in quiet.out

    def test_exit_zero_forgives_findings_and_nothing_else(self, commands: Commands) -> None:
        commands.write(STUB_PATH, self.BAD)
        assert commands("check", "--exit-zero").status == 0
        assert commands("check", "--exit-zero", "nowhere.md").status == 2
        (commands.root / STUB_PATH).unlink()
        assert commands("check", "--exit-zero").status == 6

    def test_the_report_goes_into_a_file(self, commands: Commands) -> None:
        commands.write(STUB_PATH, self.BAD)
        printed = commands("check", "--format", "json")
        answer = commands("check", "--format", "json", "--output-file", "report.json")
        assert (answer.status, answer.out) == (1, "")
        assert (commands.root / "report.json").read_text() == printed.out
        assert commands("check", "--output-file", "none/such/report").status != 1
        assert commands("check", "--output-file", STUB_PATH).status == 2
        assert (commands.root / STUB_PATH).read_text() == self.BAD

    def test_a_list_of_changed_files_may_name_others(self, commands: Commands) -> None:
        commands.write(STUB_PATH, self.BAD)
        commands.write("src/main.py", "")
        answer = commands("check", "src/main.py", STUB_PATH)
        assert answer.status == 1
        assert "src/main.py was not checked" in answer.err
        assert commands("check", "src/main.py").status == 6


def test_the_text_of_an_editor_is_checked_in_the_place_of_its_file(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.write(STUB_PATH, STUB)

    def typed(text: str, *words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        shown = commands("check", *words)
        return shown.status, shown.out

    status, out = typed(OLD, "--stdin-filename", STUB_PATH, "--fail-on", "warning")
    assert status == 1
    assert "date_only" in out
    assert "6 | - CREATED_AT: 2026-03-01" in out
    assert typed(STUB, "--stdin-filename", STUB_PATH)[0] == 0
    assert typed(OLD, "--stdin-filename", "notes.md", "--kind", "stub", "--fail-on", "warning")[0] == 1
    assert typed(OLD, "--stdin-filename", "notes.md")[0] != 0
    assert typed(OLD, "--stdin-filename", STUB_PATH, "--fix")[0] == 2
    assert (commands.root / STUB_PATH).read_text() == STUB


def test_a_named_file_is_checked_outside_of_any_repository(
    commands: Commands, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "stub.md").write_text(OLD)
    monkeypatch.chdir(folder)
    shown = commands("check", "stub.md", "--kind", "stub", "--profile", "strict")
    assert (shown.status, "date_only" in shown.out) == (1, True)
    assert commands("check").status == 6


def test_a_cache_in_another_folder_serves_another_clone(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when CI restores it: other times, other inodes, another place; only the bytes are the same."""
    commands.write(STUB_PATH, OLD)
    kept = tmp_path / "kept"
    first = commands("check", "--cache-dir", str(kept))
    clone = tmp_path / "clone"
    shutil.copytree(commands.root, clone)
    shutil.rmtree(clone / ".git" / "workpacket", ignore_errors=True)
    moved = tmp_path / "moved"
    shutil.copytree(kept, moved)
    monkeypatch.chdir(clone)
    monkeypatch.setattr("workpacket.shell.checking.examine_bytes", None)  # fails if anything is examined

    again = commands("check", "--cache-dir", str(moved))
    monkeypatch.setenv("WORKPACKET_CACHE_DIR", str(moved))

    assert (first.status, first.out) == (again.status, again.out)
    assert commands("check").out == again.out
    assert "date_only" in again.out
    assert [path.suffix for path in kept.iterdir()] == [".sqlite"]
    assert not (clone / ".git" / "workpacket").exists()


@pytest.mark.parametrize("other", [["--no-cache"], ["--base", "HEAD"], ["--stdin-filename", STUB_PATH]])
def test_a_folder_for_the_cache_is_refused_where_none_is_used(commands: Commands, other: list[str]) -> None:
    shown = commands("check", "--cache-dir", "kept", *other)

    assert (shown.status, f"{other[0]}, which uses no cache" in shown.err) == (2, True)
    assert not (commands.root / "kept").exists()


def test_a_base_is_judged_without_the_cache_that_the_environment_names(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKPACKET_CACHE_DIR", str(tmp_path / "kept"))
    commands("check", "--base", "HEAD")

    assert not (tmp_path / "kept").exists()
