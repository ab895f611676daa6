"""The strict subset of allowed_signers, and that OpenSSH understands what we accept in the same sense."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from softkeys import KINDS, shared_key
from workpacket.approvals.sshsig import NAMESPACE, Signer, Signers, armor, read_allowed_signers

KEY = shared_key("ssh-ed25519", "alice")
OTHER = shared_key("ssh-ed25519", "bob")
OURS = f'namespaces="{NAMESPACE}"'


def read(text: str) -> tuple[Signer, ...]:
    signers = read_allowed_signers(text.encode())
    assert isinstance(signers, Signers), signers
    return tuple(signers.by_key.values())


def faults(text: str | bytes) -> list[tuple[int, str]]:
    data = text.encode() if isinstance(text, str) else text
    refusals = read_allowed_signers(data, "signers")
    assert isinstance(refusals, tuple), refusals
    assert {refusal.path for refusal in refusals} == {"signers"}
    return [(refusal.line, refusal.code) for refusal in refusals]


def test_a_line_names_a_person_a_key_and_what_for() -> None:
    (signer,) = read(f"# who may approve\n\n{KEY.line('alice@example.org')} her laptop, since 2026\n \t\n")
    assert (signer.principal, signer.key, signer.namespaces, signer.line) == (
        "alice@example.org",
        KEY.public,
        (NAMESPACE,),
        3,
    )
    assert signer.may_approve
    assert (signer.valid_after, signer.valid_before) == (None, None)


def test_an_empty_file_names_nobody() -> None:
    assert read("") == ()
    assert read("# nobody yet") == ()


def test_every_kind_of_key_may_stand_there() -> None:
    text = "".join(f"{shared_key(kind).line(f'person{number}')}\n" for number, kind in enumerate(KINDS))
    assert [signer.key.kind for signer in read(text)] == list(KINDS)


def test_keys_are_found_by_their_bytes() -> None:
    signers = read_allowed_signers(f"{KEY.line('a')}\n{OTHER.line('b')}\n".encode())
    assert isinstance(signers, Signers)
    assert signers.by_key[OTHER.blob].principal == "b"


def test_a_key_for_another_purpose_may_stand_there_but_not_approve() -> None:
    first, second = read(KEY.line("a", 'namespaces="git"') + "\n" + OTHER.line("b", f'namespaces="git,{NAMESPACE}"'))
    assert (first.may_approve, second.may_approve) == (False, True)
    assert second.namespaces == ("git", NAMESPACE)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20260131Z", datetime(2026, 1, 31, tzinfo=UTC)),
        ("202601312359Z", datetime(2026, 1, 31, 23, 59, tzinfo=UTC)),
        ("20260131235958Z", datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)),
    ],
)
def test_dates_are_read_in_utc(text: str, instant: datetime) -> None:
    (signer,) = read(KEY.line("a", f'{OURS},valid-after="{text}",valid-before="{text}"'))
    assert (signer.valid_after, signer.valid_before) == (instant, instant)


def test_a_key_is_valid_from_its_first_second_until_before_its_last() -> None:
    (signer,) = read(KEY.line("a", f'{OURS},valid-after="20260101Z",valid-before="20260201Z"'))
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    second = timedelta(seconds=1)
    instants = (first - second, first, last - second, last)
    assert [signer.valid_at(instant) for instant in instants] == [False, True, True, False]


def test_a_key_without_dates_is_always_valid() -> None:
    (signer,) = read(KEY.line("a"))
    assert signer.valid_at(datetime.min.replace(tzinfo=UTC))
    assert signer.valid_at(datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize("principal", ["*", "*@example.org", "alice?", "!alice", "alice,bob", "alice,*"])
def test_a_pattern_or_a_list_is_no_person(principal: str) -> None:
    assert faults(KEY.line(principal)) == [(1, "principal_pattern")]


def without_the_key(line: str) -> str:
    """A name for a case that is the same in every run; the key is made anew."""
    return line.replace(KEY.public_line.split()[1], "KEY")


@pytest.mark.parametrize(
    "line",
    [
        KEY.public_line,
        f"alice {KEY.public_line}",
        KEY.line("alice", ""),
        KEY.line("alice", 'namespaces=""'),
        KEY.line("alice", f"namespaces={NAMESPACE}"),
        KEY.line("alice", f'Namespaces="{NAMESPACE}"'),
        KEY.line("alice", 'namespaces="*"'),
        KEY.line("alice", f'namespaces="{NAMESPACE},"'),
        KEY.line("alice", f'namespaces="{NAMESPACE},!git"'),
        KEY.line("alice", f'namespaces="{NAMESPACE},git!"'),
        KEY.line("alice", f'namespaces="git, {NAMESPACE}"'),
        KEY.line("alice", f"{OURS},{OURS}"),
        KEY.line("alice", f"{OURS},"),
        KEY.line("alice", f",{OURS}"),
        KEY.line("alice", f"{OURS}valid-after=20260101Z"),
        KEY.line("alice", f'{OURS}valid-after="20260101Z"'),
        KEY.line("alice", f"cert-authority,{OURS}"),
        KEY.line("alice", f"{OURS},no-touch-required"),
        KEY.line("alice", f'{OURS},verify-required="yes"'),
        KEY.line("alice", 'valid-after="20260101Z"'),
        KEY.line("alice", f'{OURS},valid-after="20260101"'),
        KEY.line("alice", f'{OURS},valid-after="2026-01-01Z"'),
        KEY.line("alice", f'{OURS},valid-before="20260230Z"'),
        KEY.line("alice", f'{OURS},valid-before="2026010124Z"'),
        KEY.line("alice", f'{OURS},valid-before="202601012400Z"'),
        KEY.line("alice", f'{OURS},valid-before=""'),
        KEY.line('"alice bob"'),
        KEY.line("alice\\"),
        KEY.line("-alice"),
        KEY.line("alic\u00e9"),
        KEY.line("a" * 129),
        " " + KEY.line("alice"),
        KEY.line("alice") + "\r",
        KEY.line("alice") + " \0",
        KEY.line("alice") + " \x1b[2J",
        "@" + KEY.line("alice"),
        "alice",
    ],
    ids=without_the_key,
)
def test_a_line_outside_the_subset_is_refused(line: str) -> None:
    assert faults(line) == [(1, "signers_malformed")]


def test_bytes_that_are_not_utf8_are_refused_in_a_name_and_harmless_in_a_comment() -> None:
    assert faults(b"\xff" + KEY.line("alice").encode()) == [(1, "signers_malformed")]
    assert isinstance(read_allowed_signers(b"# \xff\n" + KEY.line("alice").encode() + b" caf\xe9"), Signers)


def test_a_key_that_cannot_approve_is_refused_with_its_own_reason() -> None:
    kind, encoded = KEY.public_line.split()
    assert faults(f"alice {OURS} ssh-rsa {encoded}") == [(1, "key_malformed")]
    assert faults(f"alice {OURS} {kind} {encoded[:-4]}") == [(1, "key_malformed")]


def test_a_fault_is_told_of_the_file_by_its_usual_name() -> None:
    refusals = read_allowed_signers(b"nonsense")
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["allowed_signers"]


def test_one_key_is_one_line() -> None:
    assert faults(f"{KEY.line('alice')}\n{OTHER.line('bob')}\n{KEY.line('zoe')}") == [(3, "key_shared")]
    assert faults(f"{KEY.line('alice')}\n{KEY.line('alice')}") == [(2, "key_shared")]


def test_one_person_has_one_spelling_and_may_have_several_keys() -> None:
    assert len(read(f"{KEY.line('alice')}\n{OTHER.line('alice')}")) == 2
    assert faults(f"{KEY.line('alice')}\n{OTHER.line('Alice')}") == [(2, "principal_ambiguous")]


def test_every_faulty_line_is_named_and_no_good_line_survives() -> None:
    refusals = read_allowed_signers(f"{KEY.line('*')}\n{OTHER.line('bob')}\nnonsense".encode())
    assert isinstance(refusals, tuple)
    assert [(refusal.line, refusal.code) for refusal in refusals] == [
        (1, "principal_pattern"),
        (3, "signers_malformed"),
    ]


@pytest.mark.parametrize(
    ("options", "at", "good"),
    [
        (OURS, "20260115Z", True),
        (f'namespaces="git,{NAMESPACE}"', "20260115Z", True),
        ('namespaces="git"', "20260115Z", False),
        (f'{OURS},valid-after="20260101Z",valid-before="20260201Z"', "20260115Z", True),
        (f'{OURS},valid-after="20260101Z"', "20251231Z", False),
        (f'{OURS},valid-before="20260201Z"', "20260202Z", False),
        (f'valid-before="202602010000Z",{OURS}', "20260131Z", True),
    ],
)
def test_openssh_understands_an_accepted_line_alike(options: str, at: str, good: bool, tmp_path: Path) -> None:
    text = KEY.line("alice@example.org", options) + " comment\n"
    (signer,) = read(text)
    instant = datetime.strptime(at, "%Y%m%dZ").replace(tzinfo=UTC)
    assert (signer.may_approve and signer.valid_at(instant)) == good
    (tmp_path / "signers").write_text(text)
    (tmp_path / "signature").write_text(armor(KEY.sign(b"m")))
    command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", "alice@example.org", "-O", f"verify-time={at}"]
    files = ["-f", str(tmp_path / "signers"), "-s", str(tmp_path / "signature")]
    done = subprocess.run([*command, *files], input=b"m", capture_output=True, check=False)
    assert (done.returncode == 0) == good, done
