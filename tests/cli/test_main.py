"""The front door: commands, help, options, failures."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import STUB, STUB_PATH, Commands
from workpacket import __version__
from workpacket.cli import check
from workpacket.cli.commands import COMMANDS, GROUPS, below, resolve
from workpacket.cli.failure import GITS, OTHER_NAMES
from workpacket.cli.help import command_help, overview
from workpacket.cli.main import load, main
from workpacket.cli.options import Command
from workpacket.model.wording import FORMER, SILENT, typed_as

STARTER = Path(check.__file__).parents[1] / "starter"
ROWS = [row for _, rows in GROUPS for row in rows]
TOP = [(typed, summary) for typed, _, summary in ROWS if " " not in typed]
FAMILIES = [typed for typed, module, _ in ROWS if not module]
# So many first words can be read at a glance.
MOST_FIRST_WORDS = 35


def test_the_version_is_printed(commands: Commands) -> None:
    assert commands("--version").out == f"workpacket {__version__}\n"


def test_help_lists_every_command(commands: Commands) -> None:
    shown = commands("--help")
    assert shown.status == 0
    for typed, summary in TOP:
        assert f"\n  {typed} " in shown.out
        assert summary in shown.out
    assert len(TOP) <= MOST_FIRST_WORDS


@pytest.mark.parametrize("family", FAMILIES)
def test_the_help_of_a_family_lists_its_commands(commands: Commands, family: str) -> None:
    shown = commands(family, "--help")
    assert shown.status == 0
    for word, summary in below(family):
        assert f"\n  {word} " in shown.out
        assert summary in shown.out


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"help"}))
def test_a_family_alone_is_a_usage_error_that_shows_its_help(commands: Commands, family: str) -> None:
    alone = commands(family)
    assert (alone.status, alone.out) == (2, commands(family, "--help").out)


@pytest.mark.parametrize(("old", "new"), FORMER.items())
def test_an_old_spelling_does_what_the_present_one_does(commands: Commands, old: str, new: str) -> None:
    """With a wrong option, so that nothing is written."""
    before, now = commands(*old.split(), "--zzz"), commands(*new.split(), "--zzz")
    notice = "" if old in SILENT else f"note: `workpacket {old}` is now `workpacket {new}`\n"
    assert before.err == notice + now.err
    assert "--zzz" in now.err
    assert (before.status, before.out) == (now.status, now.out) == (2, "")


@pytest.mark.parametrize("old", FORMER)
def test_an_old_spelling_answers_with_json_under_its_name_and_without_notice(commands: Commands, old: str) -> None:
    answered = commands(*old.split(), "--json", "--zzz")
    assert answered.err == ""
    assert json.loads(answered.out)["command"] == old.split(maxsplit=1)[0]


def test_what_recipes_and_founding_documents_type_prints_no_notice() -> None:
    recipes = (STARTER / "gov.just").read_text("utf-8")
    typed = set(re.findall(r"@workpacket ([a-z-]+)", recipes)) | {"create-task-packet"}
    assert {old for old in FORMER if old.split()[0] in typed} <= SILENT


def test_help_fits_a_narrow_terminal() -> None:
    assert [line for line in overview(60).splitlines() if len(line) > 60] == []
    assert "".join(overview(60).split()) == "".join(overview().split())


@pytest.mark.parametrize("name", ["check", "show"])
def test_help_with_a_word_is_the_help_of_the_command(commands: Commands, name: str) -> None:
    assert commands("help", name).out == commands(name, "--help").out


@pytest.mark.parametrize(("other", "ours"), OTHER_NAMES.items())
def test_the_words_of_other_tools_lead_to_ours(commands: Commands, other: str, ours: str) -> None:
    assert other not in {*COMMANDS, *FORMER}
    assert resolve(ours.split())[0] or ours == "--version"
    assert f"did you mean `workpacket {ours}`?" in commands(other).err


@pytest.mark.parametrize("word", GITS)
def test_what_git_does_is_left_to_git(commands: Commands, word: str) -> None:
    assert word not in {*COMMANDS, *FORMER}
    assert f"git {word}" in commands(word).err


@pytest.mark.parametrize(
    "words", [["status"], ["next"], ["list"], ["board", "show"], ["why", "X"], ["check"], ["audit"]]
)
def test_a_repository_that_is_not_governed_hears_of_init(commands: Commands, words: list[str]) -> None:
    assert "to start: workpacket init" in commands(*words).err
    (commands.root / "below").mkdir()
    commands.write(STUB_PATH, STUB)
    assert "workpacket init" not in commands(*words).err


def test_no_command_is_a_usage_error_that_shows_the_help(commands: Commands) -> None:
    assert commands().status == 2
    assert "usage: workpacket COMMAND" in commands().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(commands: Commands, name: str) -> None:
    shown = commands(*typed_as(name).split(), "--help")
    assert shown.status == 0
    assert f"workpacket {typed_as(name)}" in shown.out.partition("examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_fits_a_narrow_terminal(name: str) -> None:
    narrow, wide = command_help(load(name), 60), command_help(load(name))
    text = narrow.partition("\nexamples:")[0]
    assert [line for line in text.splitlines() if len(line) > 60] == []
    assert "".join(narrow.split()) == "".join(wide.split())


@pytest.mark.parametrize(("typed", "module", "summary"), [row for row in ROWS if row[1]])
def test_the_table_and_the_declaration_say_the_same(typed: str, module: str, summary: str) -> None:
    declared = importlib.import_module(f"workpacket.cli.{module}")
    name, count = resolve(typed.split())
    command: Command = load(name)
    assert count == len(typed.split())
    assert (command.name, command.typed, command.summary) == (name, typed, summary)
    assert command is (declared.DECLARED[name] if hasattr(declared, "DECLARED") else declared.COMMAND)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["chek"], "unknown_command", "did you mean `workpacket check`?"),
        (["frobnicate"], "unknown_command", "unknown command: 'frobnicate'"),
        (["check", "--formt", "json"], "unknown_option", "did you mean --format?"),
        (["check", "--zzz"], "unknown_option", "unknown option: --zzz"),
        (["check", "--format"], "missing_argument", "--format needs a value: text|json|sarif|junit|github"),
        (["check", "--format", "xml"], "invalid_value", "not 'xml'"),
        (["check", "--format=text", "--format=json"], "conflicting_options", "--format was given twice"),
        (["check", "--fix=yes"], "unexpected_argument", "--fix does not take a value"),
        (["check", "--select", "no_such*"], "unknown_code", "no code matches 'no_such*'"),
        (["check", "README.md"], "path_not_found", "README.md does not exist"),
        (["list", "--lane", "NOWHERE"], "invalid_value", "unknown lane 'NOWHERE'"),
        (["explain"], "missing_argument", "expected one CODE"),
        (["explain", "byte_order_marks"], "unknown_code", "did you mean byte_order_mark"),
        (["help", "schema", "nothing"], "invalid_value", "unknown schema: 'nothing'"),
        (["help", "schema", "a", "b"], "unexpected_argument", "expected one schema"),
        (["board", "drow"], "invalid_value", "invalid argument 'drow': expected one of show, sync, move, export"),
        (["board", "registry", "drow"], "invalid_value", "invalid argument 'drow': expected one of show, audit, sync"),
        (["policy", "drow"], "invalid_value", "invalid argument 'drow': expected one of show, test, trust"),
        (["log", "drow"], "invalid_value", "invalid argument 'drow': expected one of verify, checkpoint"),
        (["approvals", "drow"], "invalid_value", "invalid argument 'drow': expected one of list, verify"),
        (["key", "drow"], "invalid_value", "invalid argument 'drow': expected one of init, doctor, list"),
        (["board"], "missing_argument", "say which: show, sync, move, export"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(commands: Commands, words: list[str], code: str, said: str) -> None:
    failed = commands(*words)
    assert failed.status == 2
    assert f"({code})" in failed.err
    assert said in failed.err
    assert failed.out == ""


def test_a_failure_is_one_json_object_when_json_is_asked_for(commands: Commands) -> None:
    failed = commands("check", "--json", "--zzz")
    envelope = json.loads(failed.out)
    assert (envelope["ok"], envelope["exit_code"], failed.status) == (False, 2, 2)
    assert envelope["findings"][0]["code"] == "unknown_option"


def test_outside_of_a_repository_nothing_is_checked(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("nowhere"))
    assert main(["check"]) == 6
    assert "(no_repository)" in capsys.readouterr().err
    assert main(["new", "WP-1-Parser-v1"]) == 6
    assert capsys.readouterr().err.count(str(Path.cwd())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="nobody can take a folder away there in which somebody stands")
def test_a_folder_that_is_gone_is_no_defect_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for words in (["check"], ["new", "WP-1-Parser-v1", "--what", "a", "--why", "b"], ["runtime", "run", "start", "a"]):
        assert main(words) == 6, words
        assert "no longer exists (no_repository)" in capsys.readouterr().err


def test_a_defect_of_ours_leaves_a_log_to_paste(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(check, "chosen_files", broken)
    failed = commands("check")
    assert failed.status == 9
    log = failed.err.rsplit(" ", 1)[1].strip()
    assert "ZeroDivisionError: on purpose" in Path(log).read_text(encoding="utf-8")


def test_an_interrupted_command_says_so_by_its_status(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "chosen_files", interrupted)
    assert commands("check").status == 130


def test_a_reader_that_goes_away_is_no_failure(commands: Commands) -> None:
    for number in range(1, 400):
        commands.write(f".GOV/task_packets/stubs/WP-1-P{number}-v1.md", STUB.replace("Parser", f"P{number}"))
    script = "from workpacket.cli.main import console; console()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, "list"],
        cwd=commands.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.read(10)
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 0


def test_words_behind_two_dashes_are_arguments(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    assert commands("check", "--", STUB_PATH).status == 0
    assert "--fix does not exist" in commands("check", "--", "--fix").err


def run(commands: Commands, shell: str) -> subprocess.CompletedProcess[str]:
    command = f"'{sys.executable}' -m workpacket"
    environment = {**os.environ, "PYTHONPATH": str(Path(main.__code__.co_filename).parents[2])}
    environment.pop("FORCE_COLOR", None)
    return subprocess.run(
        ["/bin/sh", "-c", shell.replace("WORKPACKET", command)],
        cwd=commands.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell is needed")
class TestOutputThatGoesNowhere:
    def test_a_check_whose_findings_nobody_read_has_not_passed(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        # The reader is gone before the first word: it has closed its end, and only then the check begins.
        shown = run(commands, "{ sleep 0.3; WORKPACKET check; echo $? >&2; } | true")
        assert shown.stderr.split() == ["141"]

    def test_with_closed_output_the_status_still_tells(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        assert run(commands, "WORKPACKET check >&-").returncode == 0
        commands.write(STUB_PATH, STUB.replace("CREATED_AT: 2026", "CREATED_AT: 9"))
        assert run(commands, "WORKPACKET check >&-").returncode == 1

    def test_with_closed_errors_the_output_is_there(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        shown = run(commands, "WORKPACKET check 2>&-")
        assert (shown.returncode, "1 file checked" in shown.stdout) == (0, True)

    def test_text_that_is_not_utf_8_is_refused_before_anything_is_written(self, commands: Commands) -> None:
        shown = run(commands, "WORKPACKET note WP-1-A-v1 x --as \"$(printf 'bad\\377')\"")
        assert shown.returncode == 2
        assert "the value of --as is not valid UTF-8" in shown.stderr

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("WORKPACKET new \"$(printf 'bad\\377')\" --what x --why x", "'bad\\udcff' is not valid UTF-8"),
            ("WORKPACKET packet note WP-1-A-v1 \"$(printf 'bad\\377')\"", "'bad\\udcff' is not valid UTF-8"),
            ("WORKPACKET show \"$(printf 'bad\\377')\"", "'bad\\udcff' is not valid UTF-8"),
            ("WORKPACKET check \"$(printf 'bad\\377')\"", "does not exist"),
        ],
    )
    def test_a_word_that_is_not_utf_8_is_refused_unless_it_is_a_path(
        self, commands: Commands, line: str, said: str
    ) -> None:
        shown = run(commands, line)
        assert (shown.returncode, said in shown.stderr) == (2, True)

    def test_a_name_that_is_not_utf_8_does_not_sign_an_event(self, commands: Commands) -> None:
        git = "git init -q && git config user.name \"$(printf 'bad\\377')\""
        shown = run(commands, f"{git} && WORKPACKET adopt")
        said = "the name of the actor, 'bad\\udcff', is not valid UTF-8"
        assert (shown.returncode, said in shown.stderr) == (2, True)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
    def test_a_full_disk_is_no_defect_of_ours(self, commands: Commands) -> None:
        commands.write(STUB_PATH, STUB)
        shown = run(commands, "WORKPACKET check > /dev/full")
        assert shown.returncode == 6
        assert "cannot write the output" in shown.stderr
        assert "please report" not in shown.stderr


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["help", "schema"], "schemas"),
        (["help", "schema", "stub"], "schema"),
        (["help", "schema", "stub", "--draft-07"], "schema"),
        (["explain", "--all"], "codes"),
        (["list"], "work"),
        (["check"], "files_checked"),
        (["fmt"], "files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_every_command_gives_one_object_where_json_is_asked_for(commands: Commands, words: list[str], key: str) -> None:
    commands.write(STUB_PATH, STUB)
    shown = commands(*words, "--json")
    assert shown.out.count("\n") == 1
    answer = json.loads(shown.out)
    assert answer["command"] == resolve(words)[0]
    assert answer["ok"] is True
    assert answer["data"][key]


def test_output_that_cannot_be_written_is_said_and_is_no_defect_of_ours(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(check, "chosen_files", full)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    failed = commands("check")
    sys.stdout.close()  # the null device, which took its place
    assert (failed.status, "(file_unwritable)" in failed.err) == (6, True)
