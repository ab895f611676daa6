"""Signing by the real ssh-keygen."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shell.agents import add_to_agent, make_key_file, running_agent, second_opinion
from softkeys import shared_key
from workpacket.approvals.sshsig import NAMESPACE, SshSignature, check_signature, read_signature
from workpacket.model.reason_tables.approval import SIGNING
from workpacket.problem import WorkpacketError
from workpacket.shell.keys import WAITED, _in_path, _other_writer, find_ssh_keygen, run_openssh, sign

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MESSAGE = b"what is signed\0\xff"


@pytest.mark.parametrize(("kind", "options"), [("ed25519", ()), ("ecdsa", ()), ("rsa", ("-b", "3072"))])
def test_a_key_file_signs_and_we_accept_it(kind: str, options: tuple[str, ...], tmp_path: Path) -> None:
    key = make_key_file(tmp_path / "key with space", "", kind, *options)
    signature = read_signature(sign(MESSAGE, str(key)))
    assert isinstance(signature, SshSignature)
    assert check_signature(signature, MESSAGE) is None


def test_a_key_in_the_agent_signs_by_its_public_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key_file(tmp_path / "key")
    with running_agent(monkeypatch):
        add_to_agent(key)
        key.unlink()
        signature = read_signature(sign(MESSAGE, f"{key}.pub"))
    assert isinstance(signature, SshSignature)


def test_a_missing_tool_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkpacketError) as caught:
        sign(MESSAGE, "key")
    assert caught.value.code == "ssh_keygen_missing"
    assert "apt install openssh-client" in caught.value.hint
    assert second_opinion(b"", b"", "alice", b"", NOW) is None


def test_a_missing_key_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorkpacketError, match=r"failed to sign with .*nowhere") as caught:
        sign(MESSAGE, str(tmp_path / "nowhere"))
    assert caught.value.code == "signing_failed"
    assert "No such file" in capfd.readouterr().err


def test_a_key_whose_name_looks_like_an_option_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_key_file(tmp_path / "key").rename(tmp_path / "-Y")
    (tmp_path / "key.pub").rename(tmp_path / "-Y.pub")
    monkeypatch.chdir(tmp_path)
    assert isinstance(read_signature(sign(MESSAGE, "-Y")), SshSignature)


def test_a_key_that_is_too_short_is_found_out_before_anything_is_written(tmp_path: Path) -> None:
    key = make_key_file(tmp_path / "key", "", "rsa", "-b", "2048")
    with pytest.raises(WorkpacketError, match="are not valid here: the RSA key has 2048 bits") as caught:
        sign(MESSAGE, str(key))
    assert caught.value.code == "signing_key_unfit"


@pytest.mark.parametrize("body", ["echo nonsense", "cat", "true"])
def test_a_tool_that_writes_something_else_is_not_believed(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "ssh-keygen"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(WorkpacketError, match="not the armored text") as caught:
        sign(MESSAGE, "key")
    assert caught.value.code == "signing_key_unfit"


def test_a_tool_that_signs_other_bytes_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key_file(tmp_path / "key")
    tool = tmp_path / "ssh-keygen"
    tool.write_text(f'#!/bin/sh\necho other bytes | {find_ssh_keygen()} "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(WorkpacketError, match="does not match these bytes"):
        sign(MESSAGE, str(key))


def test_the_second_opinion_agrees_on_good_and_bad() -> None:
    key = shared_key("ssh-ed25519")
    blob, signers = key.sign(MESSAGE), key.line("alice").encode()
    assert second_opinion(blob, MESSAGE, "alice", signers, NOW) is True
    assert second_opinion(blob, b"other", "alice", signers, NOW) is False
    assert second_opinion(blob, MESSAGE, "bob", signers, NOW) is False


def test_the_second_opinion_is_of_the_time_asked_for() -> None:
    key = shared_key("ssh-ed25519")
    signers = key.line("alice", f'namespaces="{NAMESPACE}",valid-before="20260430Z"').encode()
    blob = key.sign(MESSAGE)
    assert second_opinion(blob, MESSAGE, "alice", signers, NOW) is False
    assert second_opinion(blob, MESSAGE, "alice", signers, NOW.replace(month=4)) is True


def test_a_program_that_waits_is_stopped() -> None:
    assert run_openssh(["sleep", "5"], patience=0.05) == (WAITED, b"")


@pytest.mark.parametrize("size", [0, 10, 100_000], ids=str)
def test_a_program_has_a_session_of_its_own_and_reads_the_whole_message(size: int) -> None:
    said = "import os, sys; print(os.getsid(0) == os.getpid(), len(sys.stdin.buffer.read()))"
    assert run_openssh([sys.executable, "-c", said], b"x" * size) == (0, f"True {size}\n".encode())


def test_the_tool_is_the_one_that_a_shell_would_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, mode in (("folder", None), ("text", 0o644), ("first", 0o755), ("second", 0o755)):
        place = tmp_path / folder / "ssh-keygen"
        place.parent.mkdir()
        place.mkdir() if mode is None else place.write_text("#!/bin/sh\n")
        place.chmod(mode or 0o755)
    folders = [str(tmp_path / name) for name in ("missing", "folder", "text", "first", "second")]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    assert _in_path("ssh-keygen") == shutil.which("ssh-keygen") == f"{tmp_path}/first/ssh-keygen"

    monkeypatch.setenv("PATH", os.pathsep.join(folders[:3]))
    assert _in_path("ssh-keygen") is shutil.which("ssh-keygen") is None


def test_every_code_is_explained() -> None:
    asked_here = {"ssh_keygen_missing", "ssh_keygen_doubtful", "signing_failed", "signing_key_unfit"}
    of_events = {"event_key_missing", "event_key_unfit", "event_key_in_repository"}
    of_pages, of_machines = {"page_port_taken", "page_answer_unfit"}, {"machine_key_unfit"}
    assert {reason.code for reason in SIGNING} == asked_here | of_events | of_pages | of_machines


def put(folder: Path, mode: int = 0o755) -> Path:
    """A program called ssh-keygen in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / "ssh-keygen"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    folder.chmod(mode)
    return tool


@pytest.mark.skipif(os.name == "nt", reason="the modes of POSIX")
def test_a_program_of_the_work_tree_or_of_a_folder_open_to_all_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_tree = tmp_path / "work"
    (work_tree / ".git").mkdir(parents=True)
    (work_tree / "deep").mkdir()
    monkeypatch.chdir(work_tree / "deep")
    outside = put(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(outside.parent))
    assert find_ssh_keygen() == str(outside)

    inside = put(work_tree / "tools")
    link = tmp_path / "links" / "ssh-keygen"
    link.parent.mkdir()
    link.symlink_to(inside)
    open_to_all = put(tmp_path / "open", 0o777)
    shared = put(tmp_path / "shared", 0o1777)
    below = put(tmp_path / "open" / "below")
    for tool, reason in (
        (inside, "it is in the work tree"),
        (link, "it is in the work tree"),
        (open_to_all, "everyone can write to"),
        (shared, "everyone can write to"),
        (below, "everyone can write to"),
    ):
        monkeypatch.setenv("PATH", str(tool.parent))
        with pytest.raises(WorkpacketError, match=f"{tool} is not used: {reason}") as caught:
            find_ssh_keygen()
        assert caught.value.code == "ssh_keygen_doubtful"


@pytest.mark.skipif(os.name == "nt", reason="accounts and groups are those of POSIX")
@pytest.mark.parametrize(
    ("mode", "owner", "group", "said"),
    [
        (0o755, 0, 0, ""),
        (0o755, 1234, 1234, ""),
        (0o755, 65534, 65534, ""),
        (0o777, 0, 0, "everyone"),
        (0o755, 4321, 0, "the account eve"),
        (0o755, 9999, 0, "the account 9999"),
        (0o775, 0, 1234, ""),
        (0o775, 0, 77, ""),
        (0o775, 0, 50, "the account eve, by its group,"),
        (0o775, 0, 4321, "the account eve, by its group,"),
        (0o755, 0, 50, ""),
    ],
)
def test_who_besides_oneself_could_exchange_the_program(
    mode: int, owner: int, group: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of its own, or one without members, as many systems have it, gives the folder to no one else."""
    import grp
    import pwd

    me = pwd.struct_passwd(("ann", "x", 1234, 1234, "", "", ""))
    eve = pwd.struct_passwd(("eve", "x", 4321, 4321, "", "", ""))
    groups = {50: ["eve"], 77: ["ann"], 1234: [], 4321: []}

    def group_of(identity: int) -> grp.struct_group:
        return grp.struct_group(("g", "x", identity, groups[identity]))

    def account(identity: int) -> pwd.struct_passwd:
        return {1234: me, 4321: eve}[identity]

    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(pwd, "getpwall", lambda: [me, eve])
    monkeypatch.setattr(pwd, "getpwuid", account)
    monkeypatch.setattr(grp, "getgrgid", group_of)
    status = os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
    assert _other_writer(status) == said
