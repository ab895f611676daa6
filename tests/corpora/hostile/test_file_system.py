"""What may stand in the place of a document: each is a finding, none stops the check, none is read from elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cli.commands import STUB, STUB_PATH, Commands
from workpacket.shell import cache

STUBS = ".GOV/task_packets/stubs"


@pytest.fixture
def stubs(commands: Commands) -> Path:
    """The folder of the stubs, with one good one in it."""
    commands.write(STUB_PATH, STUB)
    return commands.root / STUBS


def assert_one_finding_beside_the_good_stub(commands: Commands, *words: str) -> None:
    shown = commands("check")
    assert shown.status == 6, shown.out
    assert shown.out.count("file_unreadable") == 1
    for word in words:
        assert word in shown.out
    assert "in 1 of 2 files" in shown.out
    assert "WP-1-Parser-v1" in commands("list").out


def test_a_link_to_itself(commands: Commands, stubs: Path) -> None:
    (stubs / "loop").symlink_to("loop")
    assert_one_finding_beside_the_good_stub(commands, f"{STUBS}/loop", "symbolic link")


def test_a_link_to_a_folder_outside(commands: Commands, stubs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "WP-1-Secret-v1.md").write_text("# secret\n")
    (stubs.parent / "linked").symlink_to(outside)
    assert_one_finding_beside_the_good_stub(commands, ".GOV/task_packets/linked", "symbolic link")
    assert "secret" not in commands("check").out


def test_a_folder(commands: Commands, stubs: Path) -> None:
    (stubs / "WP-1-Folder-v1.md").mkdir()
    assert_one_finding_beside_the_good_stub(commands, "WP-1-Folder-v1.md", "not a regular file")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_a_pipe_that_nobody_writes_to(commands: Commands, stubs: Path) -> None:
    os.mkfifo(stubs / "WP-1-Pipe-v1.md")
    assert_one_finding_beside_the_good_stub(commands, "WP-1-Pipe-v1.md", "not a regular file")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse to make such a file")
def test_a_name_that_is_not_utf_8(commands: Commands, stubs: Path) -> None:
    (stubs / os.fsdecode(b"WP-1-\xff\xfe.md")).write_text("x")
    assert_one_finding_beside_the_good_stub(commands, "WP-1-\\xff\\xfe.md", "not UTF-8")
    assert_one_finding_beside_the_good_stub(commands)  # also from the cache
    for form in ("json", "sarif", "junit", "github"):
        assert "file_unreadable" in commands("check", "--format", form).out


class TestDocumentsBehindALink:
    @pytest.fixture
    def named(self, commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Path:
        outside = tmp_path_factory.mktemp("outside")
        secret = outside / "WP-1-Parser-v1.md"
        secret.write_bytes(b"\xef\xbb\xbf" + STUB.encode())
        (commands.root / STUBS).parent.mkdir(parents=True)
        (commands.root / STUBS).symlink_to(outside)
        return secret

    def test_one_that_is_named_is_not_read(self, commands: Commands, named: Path) -> None:
        shown = commands("check", STUB_PATH)
        assert shown.status == 6
        assert "behind the symbolic link" in shown.out
        assert "byte_order_mark" not in shown.out

    @pytest.mark.parametrize("words", [["fmt", STUB_PATH], ["check", "--fix", STUB_PATH]], ids=["fmt", "check --fix"])
    def test_one_that_is_named_is_not_written(self, commands: Commands, named: Path, words: list[str]) -> None:
        before = named.read_bytes()
        assert commands(*words).status == 6
        assert named.read_bytes() == before


def test_formatting_says_what_it_left_out(commands: Commands, stubs: Path) -> None:
    (stubs / "WP-1-Link-v1.md").symlink_to("WP-1-Parser-v1.md")
    (stubs / "WP-1-Long-v1.md").write_bytes(b"\xef\xbb\xbf" + b"a\n" * 1_500_000)
    shown = commands("fmt", "--check")
    assert shown.status == 6
    assert "WP-1-Link-v1.md" in shown.err
    assert "limit_size" in shown.err
    assert "0 files would be formatted, 1 file unchanged" in shown.out


def test_the_list_says_what_it_left_out(commands: Commands, stubs: Path) -> None:
    (stubs / "WP-1-Link-v1.md").symlink_to("WP-1-Parser-v1.md")
    assert f"not listed because unreadable: {STUBS}/WP-1-Link-v1.md" in commands("list").out


@pytest.mark.parametrize("specification", ["../../../secret.md", "/etc/passwd", "a\x00b.md", "a\udcffb.md", "n" * 300])
def test_a_specification_that_is_no_path_in_the_repository(commands: Commands, specification: str) -> None:
    text = f"### METADATA\n- WP_ID: WP-1-Parser-v1\n- SPEC_TARGET_RESOLVED: x -> {specification}\n"
    path = commands.root / ".GOV/refinements/WP-1-Parser-v1.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    for _ in range(2):
        shown = commands("check", "--select", "specification_elsewhere", ".GOV/refinements")
        assert shown.status == 0
        assert shown.out.count("specification_elsewhere") == 1


def test_a_specification_behind_a_link_is_not_read_and_that_is_said(commands: Commands) -> None:
    text = "### METADATA\n- WP_ID: WP-1-Parser-v1\n- SPEC_TARGET_RESOLVED: x -> Spec.md\n"
    commands.write(".GOV/refinements/WP-1-Parser-v1.md", text)
    (commands.root / "Other.md").write_text("A specification\n")
    (commands.root / "Spec.md").symlink_to("Other.md")
    assert "is not a readable file" in commands("check", ".GOV/refinements").out


def test_a_path_over_a_link_to_the_repository_is_the_same_path(
    commands: Commands, stubs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "repository"
    link.symlink_to(commands.root)
    assert commands("check", str(link / STUB_PATH)).status == 0
    assert commands("check", str(link)).status == 0
    assert commands("check", str(link.parent)).status == 2


def test_what_was_not_read_cannot_be_switched_off(commands: Commands, stubs: Path) -> None:
    (stubs / "WP-1-Long-v1.md").write_bytes(b"a\n" * 1_500_000)
    commands.write(".GOV/policy/policy.toml", '[check.severity]\nlimit_size = "off"\n')
    shown = commands("check")
    assert shown.status == 1
    assert "larger than 2,097,152 bytes" in shown.out
    assert "setting_of_protected_code" in shown.out


def test_a_link_that_went_away_is_no_longer_shown_from_the_cache(
    commands: Commands, stubs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "RACY_NS", -(10**18))  # as if all files had been at rest for long
    settings = commands.root / "pyproject.toml"
    settings.symlink_to("elsewhere.toml")
    assert "settings_unread" in commands("check").out
    settings.unlink()
    assert "settings_unread" not in commands("check").out
