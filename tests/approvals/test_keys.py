"""Which public keys are read, and what makes one refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from softkeys import KINDS, make_key, minimal, packed, shared_key
from workpacket.approvals.keys import CurvePoint, EdwardsPoint, RsaNumbers, read_key_blob, read_key_fields
from workpacket.problem import WorkpacketError

P = 2**255 - 19
# The eighth roots, as the curve's arithmetic gives them: points that eight times give the neutral element.
ORDER_EIGHT = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
ORDER_EIGHT_TOO = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"


def code_of(blob: bytes) -> str:
    with pytest.raises(WorkpacketError) as caught:
        read_key_blob(blob)
    return caught.value.code


def little(number: int) -> bytes:
    return number.to_bytes(32, "little")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_and_its_fingerprint_is_that_of_ssh_keygen(kind: str, tmp_path: Path) -> None:
    key = shared_key(kind)
    path = tmp_path / "key.pub"
    path.write_text(key.public_line + "\n")
    told = subprocess.run(["ssh-keygen", "-l", "-f", str(path)], capture_output=True, text=True, check=True).stdout
    assert told.split()[1] == key.public.fingerprint
    assert key.public.kind == kind
    assert key.public.in_hardware == kind.startswith("sk-")


def test_the_material_is_what_the_scheme_needs() -> None:
    expected = (EdwardsPoint, CurvePoint, CurvePoint, CurvePoint, RsaNumbers, EdwardsPoint, CurvePoint)
    assert tuple(type(shared_key(kind).public.material) for kind in KINDS) == expected


@pytest.mark.parametrize("height", [0, 1, P - 1])
def test_a_point_of_small_order_is_weak(height: int) -> None:
    assert code_of(packed("ssh-ed25519", little(height))) == "key_weak"
    assert code_of(packed("ssh-ed25519", little(height | 1 << 255))) == "key_weak"


@pytest.mark.parametrize("point", [ORDER_EIGHT, ORDER_EIGHT_TOO])
def test_a_point_of_order_eight_is_weak(point: str) -> None:
    assert code_of(packed("ssh-ed25519", bytes.fromhex(point))) == "key_weak"
    assert code_of(packed("sk-ssh-ed25519@openssh.com", bytes.fromhex(point), "ssh:")) == "key_weak"


@pytest.mark.parametrize("height", [P, P + 1, 2**255 - 1])
def test_a_point_in_another_spelling_is_malformed(height: int) -> None:
    assert code_of(packed("ssh-ed25519", little(height))) == "key_malformed"


@pytest.mark.parametrize("length", [0, 31, 33])
def test_an_ed25519_key_has_32_bytes(length: int) -> None:
    assert code_of(packed("ssh-ed25519", b"\5" * length)) == "key_malformed"


def rsa_blob(modulus: int, exponent: int = 65537) -> bytes:
    return packed("ssh-rsa", minimal(exponent), minimal(modulus))


@pytest.mark.parametrize("bits", [1024, 2048, 3071, 16385])
def test_an_rsa_key_of_the_wrong_length_is_weak(bits: int) -> None:
    assert code_of(rsa_blob((1 << bits - 1) | 1)) == "key_weak"


@pytest.mark.parametrize("bits", [3072, 16384])
def test_the_shortest_and_the_longest_rsa_key_are_read(bits: int) -> None:
    modulus = (1 << bits - 1) | 1
    assert read_key_blob(rsa_blob(modulus)).material == RsaNumbers(modulus, 65537)


@pytest.mark.parametrize("exponent", [1, 3, 65535, 65539, 2**40 + 1])
def test_an_unusual_rsa_exponent_is_weak(exponent: int) -> None:
    assert code_of(rsa_blob((1 << 3071) | 1, exponent)) == "key_weak"


def test_an_even_modulus_is_weak() -> None:
    assert code_of(rsa_blob(1 << 3071)) == "key_weak"


def ecdsa_blob(curve: str, point: bytes) -> bytes:
    return packed("ecdsa-sha2-nistp256", curve, point)


@pytest.mark.parametrize(
    ("curve", "point"),
    [
        ("nistp384", b"\4" + bytes(64)),
        ("nistp256", b"\2" + bytes(32)),
        ("nistp256", b"\3" + bytes(64)),
        ("nistp256", b"\4" + bytes(63)),
        ("nistp256", b"\4" + bytes(96)),
        ("nistp256", b"\0"),
        ("nistp256", b""),
    ],
)
def test_an_ecdsa_key_is_an_uncompressed_point_of_its_own_curve(curve: str, point: bytes) -> None:
    assert code_of(ecdsa_blob(curve, point)) == "key_malformed"


@pytest.mark.parametrize("application", ["https://shop.example", "ssh", "SSH:", "xssh:"])
def test_a_token_key_of_another_application_is_refused(application: str) -> None:
    key = make_key("sk-ssh-ed25519@openssh.com", application)
    assert code_of(key.blob) == "fido_application_wrong"


def test_a_token_key_of_a_named_ssh_application_is_read() -> None:
    assert make_key("sk-ssh-ed25519@openssh.com", "ssh:work").public.application == "ssh:work"


@pytest.mark.parametrize(
    "kind",
    ["ssh-dss", "ssh-ed25519-cert-v01@openssh.com", "ssh-ed448", "ssh-rsa-cert-v01@openssh.com", "rsa-sha2-512"],
)
def test_other_kinds_cannot_approve(kind: str) -> None:
    assert code_of(packed(kind, bytes(32))) == "key_kind_unsupported"


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_behind_the_key_and_bytes_missing_are_malformed(kind: str) -> None:
    blob = shared_key(kind).blob
    assert code_of(blob + b"\0") == "key_malformed"
    assert code_of(blob[:-1]) == "key_malformed"


def test_a_line_whose_kind_is_not_that_of_its_key_is_refused() -> None:
    kind, encoded = shared_key("ssh-ed25519").public_line.split()
    assert read_key_fields(kind, encoded) == shared_key("ssh-ed25519").public
    with pytest.raises(WorkpacketError, match="the line says ssh-rsa, but its key is of type ssh-ed25519") as caught:
        read_key_fields("ssh-rsa", encoded)
    assert caught.value.code == "key_malformed"


@pytest.mark.parametrize("spoil", [lambda text: text + "=", lambda text: text[:-1], lambda text: text + "\n"])
def test_a_line_with_another_spelling_of_base64_is_refused(spoil: object) -> None:
    assert callable(spoil)
    kind, encoded = shared_key("ssh-ed25519").public_line.split()
    with pytest.raises(WorkpacketError) as caught:
        read_key_fields(kind, spoil(encoded))
    assert caught.value.code == "key_malformed"
