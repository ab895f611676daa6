"""SSH signatures: what `ssh-keygen` makes is accepted, and nothing that differs from it in a bit."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from softkeys import KINDS, TOUCHED, VERIFIED, SoftKey, make_key, minimal, packed, shared_key
from workpacket.approvals.keys import CurvePoint, PublicKey, RsaNumbers, ecdsa_holds, rsa_holds
from workpacket.approvals.sshsig import (
    CHECKPOINT_NAMESPACE,
    NAMESPACE,
    Fido,
    SshSignature,
    armor,
    check_signature,
    read_signature,
    unarmor,
)
from workpacket.problem import Problem

MESSAGE = b"the message"
FIDO_KINDS = [kind for kind in KINDS if kind.startswith("sk-")]


def judge(blob: bytes, message: bytes = MESSAGE) -> str:
    """Empty, or the code of the refusal."""
    signature = read_signature(blob)
    refusal = signature if isinstance(signature, Problem) else check_signature(signature, message)
    return "" if refusal is None else refusal.code


def read(blob: bytes) -> SshSignature:
    signature = read_signature(blob)
    assert isinstance(signature, SshSignature), signature
    return signature


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hash_name", ["sha256", "sha512"])
def test_a_signature_holds_over_its_message_and_no_other(kind: str, hash_name: str) -> None:
    blob = shared_key(kind).sign(MESSAGE, hash_name=hash_name)
    assert judge(blob) == ""
    assert judge(blob, MESSAGE + b"\n") == "signature_invalid"
    assert judge(blob, b"") == "signature_invalid"


@pytest.mark.parametrize("algorithm", ["rsa-sha2-256", "rsa-sha2-512"])
def test_rsa_may_use_either_sha2(algorithm: str) -> None:
    blob = shared_key("ssh-rsa").sign(MESSAGE, algorithm=algorithm)
    assert judge(blob) == ""
    assert read(blob).algorithm == algorithm


def test_rsa_signed_with_one_hash_and_labelled_with_the_other_does_not_hold() -> None:
    key = shared_key("ssh-rsa")
    blob = key.sign(MESSAGE, algorithm="rsa-sha2-256")
    assert judge(blob.replace(packed("rsa-sha2-256"), packed("rsa-sha2-512"))) == "signature_invalid"


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_of_another_does_not_hold(kind: str) -> None:
    blob = shared_key(kind).sign(MESSAGE, key_blob=shared_key(kind, "another").blob)
    assert judge(blob) == "signature_invalid"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"namespace": "git"}, "namespace_wrong"),
        ({"namespace": ""}, "namespace_wrong"),
        ({"namespace": NAMESPACE.upper()}, "namespace_wrong"),
        ({"hash_name": "sha1"}, "hash_forbidden"),
        ({"hash_name": "sha384"}, "hash_forbidden"),
        ({"reserved": b"x"}, "sshsig_malformed"),
        ({"version": 0}, "sshsig_malformed"),
        ({"version": 2}, "sshsig_malformed"),
        ({"trailing": b"\0"}, "sshsig_malformed"),
        ({"algorithm": "ssh-rsa"}, "algorithm_forbidden"),
        ({"algorithm": "ecdsa-sha2-nistp256"}, "algorithm_forbidden"),
    ],
)
def test_what_is_wrong_has_its_own_code(changes: dict[str, object], code: str) -> None:
    blob = shared_key("ssh-ed25519").sign(MESSAGE, **changes)  # type: ignore[arg-type]
    assert judge(blob) == code


def test_approvals_and_checkpoints_have_namespaces_of_their_own_by_which_others_know_them() -> None:
    assert (NAMESPACE, CHECKPOINT_NAMESPACE) == ("workpacket-approval@v1", "workpacket-checkpoint@v1")
    checkpoint = shared_key("ssh-ed25519").sign(MESSAGE, namespace=CHECKPOINT_NAMESPACE)
    assert isinstance(read_signature(checkpoint, CHECKPOINT_NAMESPACE), SshSignature)
    assert judge(checkpoint) == "namespace_wrong"


def test_a_long_namespace_is_not_repeated_in_full() -> None:
    refusal = read_signature(shared_key("ssh-ed25519").sign(MESSAGE, namespace="n" * 1000))
    assert isinstance(refusal, Problem)
    assert refusal.message == f"the signature was made for the namespace '{'n' * 80}', not '{NAMESPACE}'"


def test_a_namespace_is_shown_safely() -> None:
    refusal = read_signature(shared_key("ssh-ed25519").sign(MESSAGE, namespace="é\0"))
    assert isinstance(refusal, Problem)
    assert (
        refusal.message
        == "the signature was made for the namespace '\\\\xc3\\\\xa9\\x00', not 'workpacket-approval@v1'"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_rsa_algorithm_is_for_rsa_keys_only(kind: str) -> None:
    key = shared_key(kind)
    signature = packed("rsa-sha2-512", bytes(64))
    blob = b"SSHSIG\0\0\0\1" + packed(key.blob, NAMESPACE, b"", "sha512", signature)
    assert (judge(blob) == "algorithm_forbidden") == (kind != "ssh-rsa")


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_is_malformed(kind: str) -> None:
    blob = shared_key(kind).sign(MESSAGE)
    codes = {judge(blob[:length]) for length in range(len(blob))}
    assert codes == {"sshsig_malformed"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ssh-rsa"])
def test_no_flipped_bit_goes_unnoticed(kind: str) -> None:
    blob = shared_key(kind).sign(MESSAGE)
    flipped = (
        blob[: bit // 8] + bytes([blob[bit // 8] ^ 1 << bit % 8]) + blob[bit // 8 + 1 :] for bit in range(8 * len(blob))
    )
    assert all(judge(each) for each in flipped)


def rebuilt(key: SoftKey, signature: bytes) -> bytes:
    return b"SSHSIG\0\0\0\1" + packed(key.blob, NAMESPACE, b"", "sha512", signature)


@pytest.mark.parametrize("length", [0, 63, 65])
def test_an_ed25519_signature_has_64_bytes(length: int) -> None:
    assert judge(rebuilt(shared_key("ssh-ed25519"), packed("ssh-ed25519", bytes(length)))) == "sshsig_malformed"


@pytest.mark.parametrize("length", [383, 385])
def test_an_rsa_signature_is_as_long_as_its_key(length: int) -> None:
    assert judge(rebuilt(shared_key("ssh-rsa"), packed("rsa-sha2-512", bytes(length)))) == "sshsig_malformed"
    assert judge(rebuilt(shared_key("ssh-rsa"), packed("rsa-sha2-512", bytes(384)))) == "signature_invalid"


def test_an_rsa_signature_of_a_key_that_fills_no_whole_byte_is_rounded_up() -> None:
    blob = packed("ssh-rsa", minimal(65537), minimal((1 << 3072) | 1))
    for length, code in ((384, "sshsig_malformed"), (385, "signature_invalid"), (386, "sshsig_malformed")):
        signature = packed("rsa-sha2-512", bytes(length))
        assert judge(b"SSHSIG\0\0\0\1" + packed(blob, NAMESPACE, b"", "sha512", signature)) == code


@pytest.mark.parametrize("surplus", [b"\0", b"\0\0\0\0\0"])
def test_a_key_in_software_states_no_flags(surplus: bytes) -> None:
    key = shared_key("ssh-ed25519")
    wrapped = b"SSHSIG" + packed(NAMESPACE, b"", "sha512", hashlib.sha512(MESSAGE).digest())
    assert judge(rebuilt(key, key.raw_signature(wrapped, key.kind, 0, 0))) == ""
    assert judge(rebuilt(key, key.raw_signature(wrapped, key.kind, 0, 0) + surplus)) == "sshsig_malformed"


@pytest.mark.parametrize(
    "numbers", [b"", packed(b"\1"), packed(b"\1", b""), packed(b"\1", b"\1", b"\1"), packed(b"", b"\1")]
)
def test_an_ecdsa_signature_is_two_positive_numbers(numbers: bytes) -> None:
    key = shared_key("ecdsa-sha2-nistp256")
    assert judge(rebuilt(key, packed(key.kind, numbers))) == "sshsig_malformed"
    assert judge(rebuilt(key, packed(key.kind, packed(b"\1", b"\1")))) == "signature_invalid"


@pytest.mark.parametrize("kind", FIDO_KINDS)
@pytest.mark.parametrize(
    ("flags", "touched", "person_verified"),
    [
        (0, False, False),
        (TOUCHED, True, False),
        (VERIFIED, False, True),
        (TOUCHED | VERIFIED, True, True),
        (0xFE, False, True),
    ],
)
def test_touch_is_always_asked_of_a_token(kind: str, flags: int, touched: bool, person_verified: bool) -> None:
    blob = shared_key(kind).sign(MESSAGE, flags=flags, counter=300)
    fido = read(blob).fido
    assert fido == Fido(flags, 300)
    assert (fido.touched, fido.person_verified) == (touched, person_verified)
    assert judge(blob) == ("" if touched else "touch_missing")


@pytest.mark.parametrize("kind", FIDO_KINDS)
def test_flags_and_counter_are_under_the_signature(kind: str) -> None:
    blob = shared_key(kind).sign(MESSAGE, flags=TOUCHED, counter=5)
    assert blob.endswith(b"\1\0\0\0\5")
    assert judge(blob[:-1] + b"\6") == "signature_invalid"
    assert judge(blob[:-5] + b"\5\0\0\0\5") == "signature_invalid"


def test_the_application_is_under_the_signature() -> None:
    key = make_key("sk-ssh-ed25519@openssh.com", "ssh:a")
    other = SoftKey(key.private, key.kind, "ssh:b")
    assert judge(key.sign(MESSAGE)) == ""
    assert judge(key.sign(MESSAGE, key_blob=other.blob)) == "signature_invalid"


def test_a_faulty_key_in_a_signature_is_named_as_such() -> None:
    assert judge(shared_key("ssh-ed25519").sign(MESSAGE, key_blob=packed("ssh-dss"))) == "key_kind_unsupported"
    assert judge(shared_key("ssh-ed25519").sign(MESSAGE, key_blob=b"")) == "key_malformed"


def test_a_point_off_its_curve_holds_nothing() -> None:
    point = CurvePoint("nistp256", b"\4" + bytes(63) + b"\1")
    assert not ecdsa_holds(point, packed(b"\1", b"\1"), MESSAGE)


def test_numbers_that_are_no_rsa_key_hold_nothing() -> None:
    assert not rsa_holds(RsaNumbers(1, 65537), "sha256", bytes(384), MESSAGE)


def test_armor_is_what_ssh_keygen_writes(tmp_path: Path) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(path)]
    written = subprocess.run(sign, input=MESSAGE, capture_output=True, check=True).stdout.decode()
    blob = unarmor(written)
    assert isinstance(blob, bytes)
    assert judge(blob) == ""
    assert armor(blob) == written


GOOD = armor(b"some bytes that are more than one line of base64 can hold, which is seventy characters")


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD.strip(),
        GOOD + "\n",
        " " + GOOD,
        GOOD + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("BEGIN SSH", "BEGIN PGP"),
        GOOD.replace("=", ""),
        "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n",
        "-----BEGIN SSH SIGNATURE-----\n" + "A" * 80 + "\n-----END SSH SIGNATURE-----\n",
    ],
)
def test_other_armor_is_refused(text: str) -> None:
    refusal = unarmor(text)
    assert isinstance(refusal, Problem)
    assert refusal.code == "sshsig_malformed"


def test_unarmor_undoes_armor() -> None:
    assert all(unarmor(armor(bytes(length))) == bytes(length) for length in range(1, 200))


def test_the_key_of_a_signature_is_the_key_that_signed() -> None:
    for kind in KINDS:
        key: PublicKey = read(shared_key(kind).sign(MESSAGE)).key
        assert key == shared_key(kind).public
