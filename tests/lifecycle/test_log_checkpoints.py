"""Checkpoints of the log that CI signs: what they vouch for, what they find, and signatures that count for nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from git.scratch import copy_of
from lifecycle.governed import Governed, Quiet, govern
from shell.agents import make_key_file
from softkeys import SoftKey, make_key
from workpacket.approvals.sshsig import CHECKPOINT_NAMESPACE, NAMESPACE, armor

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
CI, OLD_CI, INTERN, ADA = "ci@example.org", "old-ci@example.org", "intern@example.org", "ada@example.org"
POLICY = f"""
[approvals]
repository = "example/greeter"

[approvals.roles]
approver = ["{ADA}"]
ci = ["{CI}", "{OLD_CI}", "{ADA}"]

[approvals.gates.policy]
roles = ["approver"]
threshold = 1
separation = []
"""
SIGNERS, REVOKED = ".GOV/policy/allowed_signers", ".GOV/policy/revoked_keys"


@dataclass
class Vouched:
    """A repository with two packets and a signed checkpoint of them, committed; and keys of others."""

    governed: Governed
    key: Path
    soft: dict[str, SoftKey] = field(default_factory=dict)

    @property
    def event(self) -> Path:
        (path,) = (self.governed.root / ".GOV/log/_checkpoints").iterdir()
        return path

    @property
    def signature(self) -> Path:
        (path,) = (self.governed.root / ".GOV/checkpoints").iterdir()
        return path

    def codes(self, *words: str) -> list[str]:
        result = self.governed.json("log", "verify", *words)
        assert result["exit_code"] == (5 if result["findings"] else 0)
        return sorted({finding["code"] for finding in result["findings"]})

    def vouched(self, *words: str) -> dict[str, tuple[int, str]]:
        rows = self.governed.json("log", "verify", *words)["data"]["packets"]
        return {row["packet"]: (row["vouched"], row["vouched_by"]) for row in rows}

    def sign_as(self, who: str, namespace: str = CHECKPOINT_NAMESPACE) -> None:
        signature = self.soft[who].sign(self.event.read_bytes(), namespace=namespace)
        self.signature.write_text(armor(signature))

    def end_of(self, name: str) -> Path:
        return self.governed.root / ".GOV/log" / name / f"{self.governed.state(name).heads[0]}.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, datetime, Path, dict[str, SoftKey]]:
    """What each test begins with, made once: repository, the time it is there, the key of CI, keys of others."""
    folder = tmp_path_factory.mktemp("vouched")
    key = make_key_file(folder / "ci")
    soft = {who: make_key("ssh-ed25519") for who in (OLD_CI, INTERN, ADA, "nobody")}
    with pytest.MonkeyPatch.context() as patch:
        clock = govern(folder / "repository", patch, None).clock
        governed = Quiet(folder / "repository", None, clock)
        governed.begin(policy=POLICY)
        lines = [
            f'{CI} namespaces="{CHECKPOINT_NAMESPACE}" {public_half(key)}',
            soft[INTERN].line(INTERN, f'namespaces="{CHECKPOINT_NAMESPACE}"'),
            soft[ADA].line(ADA, f'namespaces="{NAMESPACE}"'),
            soft[OLD_CI].line(OLD_CI, f'namespaces="{CHECKPOINT_NAMESPACE}",valid-before="20260301Z"'),
        ]
        governed.write(SIGNERS, "".join(f"{line}\n" for line in lines))
        governed.commit("Anchor")
        governed.stub(NAME)
        governed.stub(OTHER)
        governed.commit("Two stubs")
        governed.done("log", "checkpoint", "--key", str(key), "--as", "ci", "--actor-kind", "ci")
    return folder / "repository", clock.now, key, soft


@pytest.fixture
def vouched(
    made: tuple[Path, datetime, Path, dict[str, SoftKey]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Vouched:
    repository, now, key, soft = made
    governed = govern(copy_of(repository, tmp_path / "repository"), monkeypatch, capsys)
    governed.clock.now = now
    return Vouched(governed, key, soft)


def public_half(key: Path) -> str:
    return " ".join(Path(f"{key}.pub").read_text().split()[:2])


def test_a_checkpoint_says_how_much_is_vouched_for_and_by_whom(vouched: Vouched) -> None:
    governed = vouched.governed
    assert vouched.codes() == []
    assert vouched.vouched() == {NAME: (1, CI), OTHER: (1, CI)}
    governed.commit("checkpoint")
    assert governed.json("check", "--base", "HEAD")["findings"] == []
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    said = governed.done("log", "verify", NAME).out
    assert f"{NAME}: 1 of {len(governed.state(NAME).history)} events vouched for by {CI} (checkpoint " in said
    assert f"vouched for by {CI}" in governed.done("log", "verify").out


def test_the_next_checkpoint_names_what_has_changed_since_and_nothing_twice(vouched: Vouched) -> None:
    governed = vouched.governed
    again = ("log", "checkpoint", "--key", str(vouched.key), "--as", "ci")
    governed.commit("checkpoint")
    assert "an existing checkpoint already covers everything" in governed.done(*again).out
    governed.done("packet", "abandon", NAME, "--reason", "r")
    assert governed(*again).codes == ["work_uncommitted"]
    governed.commit("abandoned")
    (made,) = governed.json(*again)["data"]["checkpoints"]
    assert made["packets"] == 1
    assert vouched.vouched() == {NAME: (2, CI), OTHER: (1, CI)}


def test_an_end_that_was_cut_off_is_found_without_a_base(vouched: Vouched) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    governed.done("packet", "abandon", NAME, "--reason", "r")
    governed.commit("abandoned")
    governed.done("log", "checkpoint", "--key", str(vouched.key), "--as", "ci")
    governed.commit("checkpoint")
    end = vouched.end_of(NAME)
    end.unlink()
    assert vouched.codes() == ["log_truncated"]
    found = governed.json("check")["findings"]
    assert end.relative_to(governed.root).as_posix() in {f["path"] for f in found if f["code"] == "log_truncated"}
    # A log that is taken away as a whole is found as well.
    shutil.rmtree(governed.root / ".GOV/log" / OTHER)
    assert vouched.vouched() == {NAME: (1, CI)}
    assert len(governed.json("log", "verify")["findings"]) == 2


def test_nothing_is_vouched_for_while_the_log_has_faults(vouched: Vouched) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    end = vouched.end_of(OTHER)
    end.write_bytes(end.read_bytes() + b" ")
    governed.commit("edited")
    result = governed("log", "checkpoint", "--key", str(vouched.key), "--as", "ci")
    assert result.status == 5
    assert "event_edited" in result.out
    assert governed.json("log", "checkpoint", "--key", str(vouched.key))["data"] == {"checkpoints": []}


def test_a_key_that_would_not_count_writes_nothing(vouched: Vouched, tmp_path_factory: pytest.TempPathFactory) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    governed.done("packet", "abandon", NAME, "--reason", "r")
    governed.commit("abandoned")
    stranger = make_key_file(tmp_path_factory.mktemp("stranger") / "key")
    before = governed.files()
    result = governed("log", "checkpoint", "--key", str(stranger), "--as", "ci")
    assert (result.status, result.codes) == (5, ["log_checkpoint_signer"])
    assert governed.files() == before


# --- signatures that count for nothing: what somebody does, and how it is named ---


def edited(vouched: Vouched) -> None:
    text = vouched.signature.read_text()
    at = len(text) // 2
    vouched.signature.write_text(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :])


def revoked(vouched: Vouched) -> None:
    vouched.governed.commit("checkpoint")
    vouched.governed.write(REVOKED, f"{public_half(vouched.key)}\n")
    vouched.governed.commit("revoked")


ATTACKS: dict[str, tuple[Callable[[Vouched], object], str]] = {
    "signature taken away": (lambda it: it.signature.unlink(), "log_checkpoint_unsigned"),
    "signature emptied": (lambda it: it.signature.write_bytes(b""), "log_checkpoint_invalid"),
    "signature edited": (edited, "log_checkpoint_invalid"),
    "signature that is not text": (lambda it: it.signature.write_bytes(b"\xff" * 300), "log_checkpoint_invalid"),
    "made for approvals": (lambda it: it.sign_as(ADA, NAMESPACE), "log_checkpoint_invalid"),
    "made for git": (lambda it: it.sign_as(ADA, "git"), "log_checkpoint_invalid"),
    "key of nobody": (lambda it: it.sign_as("nobody"), "log_checkpoint_signer"),
    "signer without the role": (lambda it: it.sign_as(INTERN), "log_checkpoint_signer"),
    "key that is for approvals only": (lambda it: it.sign_as(ADA), "log_checkpoint_signer"),
    "key that has expired": (lambda it: it.sign_as(OLD_CI), "log_checkpoint_out_of_time"),
    "key that was revoked since": (revoked, "log_checkpoint_revoked"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_signature_that_does_not_count_is_named_and_vouches_for_nothing(vouched: Vouched, attack: str) -> None:
    do, code = ATTACKS[attack]
    do(vouched)
    assert vouched.codes() == [code]
    assert vouched.vouched() == {NAME: (0, ""), OTHER: (0, "")}
    assert code in {finding["code"] for finding in vouched.governed.json("check")["findings"]}
    # And so nothing stands in the way of an end that is cut off.
    vouched.end_of(NAME).unlink()
    assert vouched.codes() == [code]


def test_a_signature_whose_checkpoint_is_gone_is_named(vouched: Vouched) -> None:
    vouched.event.unlink()
    assert vouched.codes() == ["log_checkpoint_missing"]
    assert "log_checkpoint_missing" in {finding["code"] for finding in vouched.governed.json("check")["findings"]}


def test_a_checkpoint_may_not_be_dated_in_the_future(vouched: Vouched) -> None:
    vouched.governed.clock.turn(days=-2)
    assert vouched.codes() == ["log_checkpoint_out_of_time"]


def test_signatures_are_written_once(vouched: Vouched) -> None:
    vouched.governed.commit("checkpoint")
    vouched.signature.unlink()
    assert vouched.codes("--base", "HEAD") == ["log_checkpoint_unsigned", "log_file_deleted"]


def test_a_new_key_vouches_for_what_a_revoked_one_signed(
    vouched: Vouched, tmp_path_factory: pytest.TempPathFactory
) -> None:
    governed = vouched.governed
    revoked(vouched)
    new = make_key_file(tmp_path_factory.mktemp("new") / "ci")
    lines = [line for line in governed.read(SIGNERS).splitlines() if not line.startswith(f"{CI} ")]
    lines.append(f'{CI} namespaces="{CHECKPOINT_NAMESPACE}" {public_half(new)}')
    governed.write(SIGNERS, "".join(f"{line}\n" for line in lines))
    governed.commit("new key")
    assert vouched.codes() == ["log_checkpoint_revoked"]
    governed.done("log", "checkpoint", "--key", str(new), "--as", "ci")
    assert vouched.codes() == []
    assert vouched.vouched() == {NAME: (1, CI), OTHER: (1, CI)}


def test_an_old_key_stays_good_for_what_came_to_the_base_in_its_time(vouched: Vouched) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    governed.clock.turn(days=30)
    day = f"{governed.clock.now:%Y%m%d}Z"
    governed.write(
        SIGNERS,
        governed.read(SIGNERS).replace(
            f'{CI} namespaces="{CHECKPOINT_NAMESPACE}"',
            f'{CI} namespaces="{CHECKPOINT_NAMESPACE}",valid-before="{day}"',
            1,
        ),
    )
    governed.commit("the key has had its time")
    governed.clock.turn(days=30)
    assert vouched.codes() == []
    governed.done("packet", "abandon", NAME, "--reason", "r")
    governed.commit("abandoned")
    assert governed("log", "checkpoint", "--key", str(vouched.key), "--as", "ci").codes == [
        "log_checkpoint_out_of_time"
    ]


def test_without_a_policy_at_the_base_nobody_can_vouch(vouched: Vouched) -> None:
    governed = vouched.governed
    for path in (".GOV/policy/policy.toml", SIGNERS):
        governed.git("rm", "--quiet", "--cached", path)
    governed.git("commit", "--quiet", "--message", "no policy")
    assert vouched.codes() == ["log_checkpoint_signer"]


@pytest.mark.parametrize("words", [(), ("sign",), ("checkpoint", NAME)])
def test_what_log_does_not_know_to_do_is_a_mistake_in_the_command_line(
    vouched: Vouched, words: tuple[str, ...]
) -> None:
    assert vouched.governed("log", *words).status == 2


# --- what a checkpoint is judged by, and when none is made ---


def messages(vouched: Vouched, *words: str) -> str:
    return " ".join(finding["message"] for finding in vouched.governed.json("log", "verify", *words)["findings"])


def test_a_checkpoint_is_judged_by_the_base_that_is_named(vouched: Vouched) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    governed.git("switch", "--quiet", "--create", "stricter")
    revoked(vouched)
    governed.git("switch", "--quiet", "main")
    assert vouched.codes("--base", "main") == []
    assert vouched.codes("--base", "stricter") == ["log_checkpoint_revoked"]


def test_a_key_counts_for_what_reached_the_base_before_its_end(vouched: Vouched) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    until = f'{CI} namespaces="{CHECKPOINT_NAMESPACE}",valid-before="20260401Z"'
    governed.write(SIGNERS, governed.read(SIGNERS).replace(f'{CI} namespaces="{CHECKPOINT_NAMESPACE}"', until, 1))
    governed.commit("the key has a month")
    governed.done("packet", "abandon", NAME, "--reason", "r")
    governed.commit("abandoned")
    governed.done("log", "checkpoint", "--key", str(vouched.key), "--as", "ci")
    governed.clock.turn(days=60)
    late = vouched.codes()
    assert late == ["log_checkpoint_out_of_time"], "the second checkpoint is on no base yet"
    governed.clock.turn(days=-60)
    governed.commit("checkpoint")
    governed.clock.turn(days=60)
    assert vouched.codes() == []


def test_why_a_checkpoint_does_not_count_is_said(vouched: Vouched) -> None:
    vouched.signature.unlink()
    assert re.search(r"it is not signed\b", messages(vouched))


def test_a_base_that_was_rolled_back_has_no_signers(vouched: Vouched) -> None:
    governed = vouched.governed
    governed.commit("checkpoint")
    before = governed.git("rev-parse", "HEAD")
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + "\n# newer\n")
    governed.commit("another policy")
    governed("approvals", "verify")
    governed.git("reset", "--quiet", "--hard", before)
    governed.write("README.md", "another history\n")
    governed.commit("another history")
    assert vouched.codes() == ["log_checkpoint_signer"]
    assert re.search(r"no trusted signers: base \w+ has a different policy and does not contain ", messages(vouched))


def test_a_base_without_a_policy_has_no_signers(vouched: Vouched) -> None:
    governed = vouched.governed
    for path in (".GOV/policy/policy.toml", SIGNERS):
        governed.git("rm", "--quiet", "--cached", path)
    governed.git("commit", "--quiet", "--message", "no policy")
    assert re.search(r"no trusted signers: the base main \(\w+\) has no \.GOV/policy/policy\.toml", messages(vouched))


def checkpoint(governed: Governed, key: Path) -> tuple[list[str], str]:
    result = governed("log", "checkpoint", "--key", str(key), "--as", "ci")
    return result.codes, result.err


def test_a_checkpoint_is_made_of_what_is_committed(
    vouched: Vouched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes, said = checkpoint(vouched.governed, vouched.key)
    assert codes == ["work_uncommitted"]
    assert re.search(r"\.GOV/\S+ is not committed", said)
    assert "git commit, then: workpacket log checkpoint\n" in said
    empty = govern(tmp_path / "empty", monkeypatch, capsys)
    codes, said = checkpoint(empty, vouched.key)
    assert codes == ["work_uncommitted"]
    assert "nothing is committed yet (" in said


def test_no_checkpoint_is_made_during_a_merge(vouched: Vouched) -> None:
    governed = vouched.governed
    (governed.root / ".git/MERGE_HEAD").write_text(governed.git("rev-parse", "HEAD") + "\n")
    codes, _ = checkpoint(governed, vouched.key)
    assert codes == ["operation_in_progress"], "which is asked before what is uncommitted"


def test_who_may_not_sign_is_told_what_the_policy_lacks(
    vouched: Vouched, tmp_path_factory: pytest.TempPathFactory
) -> None:
    vouched.governed.commit("checkpoint")
    vouched.governed.done("packet", "abandon", NAME, "--reason", "r")
    vouched.governed.commit("abandoned")
    codes, said = checkpoint(vouched.governed, make_key_file(tmp_path_factory.mktemp("stranger") / "key"))
    assert codes == ["log_checkpoint_signer"]
    assert "add the key to allowed_signers for workpacket-checkpoint@v1, and give its owner the ci role\n" in said
