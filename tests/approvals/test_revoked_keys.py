"""The list of revoked keys: a line that is not understood is never skipped."""

from __future__ import annotations

import pytest

from softkeys import shared_key
from workpacket.approvals.fields import encode_base64
from workpacket.approvals.sshsig import read_revoked_keys

KEY = shared_key("ssh-ed25519")


def test_keys_are_listed_one_a_line_with_comments() -> None:
    data = f"# lost\n\n{KEY.public_line} old laptop\n  {shared_key('ssh-rsa').public_line}\n".encode()
    assert read_revoked_keys(data) == frozenset({KEY.blob, shared_key("ssh-rsa").blob})


def test_an_empty_list_revokes_nothing() -> None:
    assert read_revoked_keys(b"") == frozenset()


def test_a_fault_is_told_of_the_file_by_its_usual_name() -> None:
    refusals = read_revoked_keys(b"nonsense")
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["revoked_keys"]


def test_a_key_too_weak_to_approve_can_be_revoked() -> None:
    weak = "ssh-dss AAAAB3NzaC1kc3MAAAAA"
    assert read_revoked_keys(weak.encode()) == frozenset({bytes.fromhex("000000077373682d64737300000000")})


@pytest.mark.parametrize(
    "line",
    [
        "ssh-ed25519",
        "SHA256:" + "A" * 43,
        "hash: SHA256:abc",
        f"alice {KEY.public_line}",
        KEY.public_line.replace("ssh-ed25519", "ssh-rsa"),
        KEY.public_line[:-1],
        "ssh-ed25519 AAAA",
        "SSHKRL\x00\x01",
        f"ssh-ed25519 {encode_base64(KEY.blob + b'x')}",
    ],
    # Names that are the same in every run; the key is made anew.
    ids=(
        "only a kind",
        "a fingerprint",
        "a hash",
        "a signer",
        "another kind",
        "a key cut short",
        "no key",
        "a binary list",
        "a byte behind the key",
    ),
)
def test_a_line_that_is_no_key_refuses_the_list(line: str) -> None:
    refusals = read_revoked_keys(f"{KEY.public_line}\n{line}\n".encode(), "revoked")
    assert isinstance(refusals, tuple)
    assert [(refusal.code, refusal.path, refusal.line) for refusal in refusals] == [
        ("revoked_keys_malformed", "revoked", 2)
    ]
