"""The doctor's answer, found by a real ssh-agent and real keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shell.agents import add_to_agent, make_key_file, running_agent
from workpacket.approvals.keys import read_key_fields
from workpacket.approvals.sshsig import read_signature, unarmor
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell.keys import (
    LADDER,
    TRIAL_NAMESPACE,
    Diagnosis,
    examine,
    find_ssh_keygen,
    private_keys,
    run_openssh,
)

YES = "an agent on this account could approve: YES"
NO = "an agent on this account could approve: NO"

pytestmark = pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="a real agent is asked")


@pytest.fixture(autouse=True)
def no_agent_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of keys like `~/.ssh`."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    return folder


def blob(path: Path) -> bytes:
    kind, encoded, _ = Path(f"{path}.pub").read_text().split(" ")
    return read_key_fields(kind, encoded).blob


def told(diagnosis: Diagnosis) -> list[tuple[str, bool]]:
    return [(trial.place, trial.signed) for trial in diagnosis.trials]


def test_a_key_in_the_agent_means_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key_file(tmp_path / "key", "")
    with running_agent(monkeypatch):
        add_to_agent(key)
        diagnosis = examine((), frozenset({blob(key)}))
    assert (diagnosis.sentence, told(diagnosis)) == (YES, [("agent", True)])
    assert diagnosis.remedies == LADDER


def test_a_dedicated_key_with_a_passphrase_means_no(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key_file(home / "approvals", "correct horse")
    with running_agent(monkeypatch):
        diagnosis = examine(private_keys(str(home)), frozenset({blob(key)}))
    assert (diagnosis.sentence, told(diagnosis)) == (NO, [("file", False)])
    assert diagnosis.remedies == ()


def test_a_dedicated_key_beside_a_key_for_other_things_in_the_agent_means_no(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedicated, daily = make_key_file(home / "approvals", "correct horse"), make_key_file(home / "id_ed25519")
    with running_agent(monkeypatch):
        add_to_agent(daily)
        diagnosis = examine(private_keys(str(home)), frozenset({blob(dedicated)}))
        nobody_named_yet = examine(private_keys(str(home)), None)
    assert diagnosis.sentence == NO
    assert told(diagnosis) == [("agent", True), ("file", False), ("file", True)]
    assert nobody_named_yet.sentence == YES


def test_a_key_that_the_agent_confirms_first_means_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    key = make_key_file(tmp_path / "key")
    with running_agent(monkeypatch):
        add_to_agent(key, "-c")
        diagnosis = examine((), frozenset({blob(key)}))
    assert (diagnosis.sentence, told(diagnosis)) == (NO, [("agent", False)])


def test_the_agent_is_asked_and_not_the_file_beside_the_public_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked agent still lists nothing; an emptied one neither."""
    key = make_key_file(tmp_path / "key")
    with running_agent(monkeypatch):
        diagnosis = examine((), frozenset({blob(key)}))
    assert (diagnosis.sentence, diagnosis.trials) == (NO, ())


def test_a_key_file_without_passphrase_means_yes_even_without_its_public_half(home: Path) -> None:
    key = make_key_file(home / "id_ed25519")
    wanted = frozenset({blob(key)})
    assert examine(private_keys(str(home)), wanted).sentence == YES
    Path(f"{key}.pub").unlink()
    assert told(examine(private_keys(str(home)), wanted)) == [("file", True)]


def test_a_key_with_passphrase_and_without_its_public_half_cannot_be_used(home: Path) -> None:
    key = make_key_file(home / "id_ed25519", "correct horse")
    Path(f"{key}.pub").unlink()
    assert examine(private_keys(str(home)), None).trials == ()


def test_only_private_keys_are_tried(home: Path) -> None:
    make_key_file(home / "id_ed25519")
    (home / "config").write_text("Host *\n")
    (home / "empty").write_bytes(b"")
    (home / "folder").mkdir()
    assert private_keys(str(home)) == (str(home / "id_ed25519"),)
    assert private_keys(str(home / "nowhere")) == ()


def test_a_key_that_could_not_approve_anyway_is_left_out(home: Path) -> None:
    make_key_file(home / "id_rsa", "", "rsa", "-b", "2048")
    assert examine(private_keys(str(home)), None).trials == ()


def test_a_key_of_a_weak_kind_in_the_agent_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key_file(tmp_path / "key", "", "rsa", "-b", "2048")
    with running_agent(monkeypatch):
        add_to_agent(key)
        assert examine((), None).trials == ()


def test_without_ssh_add_no_agent_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh-keygen").symlink_to(find_ssh_keygen())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert examine((), None).trials == ()


def test_without_ssh_keygen_the_doctor_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkpacketError) as caught:
        examine((), None)
    assert caught.value.code == "ssh_keygen_missing"


def test_what_a_trial_signs_opens_no_gate(home: Path) -> None:
    key = make_key_file(home / "key")
    command = [find_ssh_keygen(), "-q", "-Y", "sign", "-n", TRIAL_NAMESPACE, "-f", str(key)]
    _, output = run_openssh(command, b"anything")
    signature = unarmor(output.decode())
    assert isinstance(signature, bytes)
    refusal = read_signature(signature)
    assert isinstance(refusal, Problem)
    assert refusal.code == "namespace_wrong"
