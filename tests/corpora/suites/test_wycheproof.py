"""Project Wycheproof's signature vectors, through the very path that an approval's signature takes.

Each vector's key and signature are put into the SSH encoding and read back by our readers. A signature that has no SSH
encoding (a DER that is not strict, a length that is not the scheme's) counts as refused, since it cannot reach us.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from softkeys import minimal, packed
from workpacket.approvals.fields import Reader, WireFault
from workpacket.approvals.keys import (
    CurvePoint,
    EdwardsPoint,
    RsaNumbers,
    ecdsa_holds,
    ed25519_holds,
    read_key_blob,
    rsa_holds,
)
from workpacket.problem import WorkpacketError

SUITES = os.environ.get("WORKPACKET_SUITES")

Group = dict[str, Any]
Verifier = Callable[[Group, bytes, bytes], bool]


def vectors(name: str) -> Iterator[tuple[Group, Any]]:
    if SUITES is None:
        assert not os.environ.get("CI"), "WORKPACKET_SUITES must point at the published suites"
        pytest.skip("WORKPACKET_SUITES is not set")
    content = json.loads((Path(SUITES) / "wycheproof" / name).read_text("utf-8"))
    for group in content["testGroups"]:
        for test in group["tests"]:
            yield group, test


def ed25519(group: Group, message: bytes, signature: bytes) -> bool:
    point = read_key_blob(packed("ssh-ed25519", bytes.fromhex(group["publicKey"]["pk"]))).material
    assert isinstance(point, EdwardsPoint)
    return len(signature) == 64 and ed25519_holds(point, signature, message)


def ecdsa(group: Group, message: bytes, signature: bytes) -> bool:
    curve = {"secp256r1": "nistp256", "secp384r1": "nistp384", "secp521r1": "nistp521"}[group["publicKey"]["curve"]]
    point = bytes.fromhex(group["publicKey"]["uncompressed"])
    key = read_key_blob(packed(f"ecdsa-sha2-{curve}", curve, point)).material
    assert isinstance(key, CurvePoint)
    numbers = der_integers(signature)
    if numbers is None:
        return False
    proof = packed(*numbers)
    try:
        reader = Reader(proof)
        reader.positive()
        reader.positive()
        reader.end()
    except WireFault:
        return False
    return ecdsa_holds(key, proof, message)


def rsa(group: Group, message: bytes, signature: bytes) -> bool:
    modulus, exponent = (int(group["publicKey"][name], 16) for name in ("modulus", "publicExponent"))
    key = RsaNumbers(modulus, exponent)
    blob = packed("ssh-rsa", minimal(exponent), minimal(modulus))
    if exponent == 3:
        # One vector a file has it. No such key may approve, but the scheme is judged all the same.
        with pytest.raises(WorkpacketError):
            read_key_blob(blob)
    else:
        assert read_key_blob(blob).material == key
    hash_name = group["sha"].lower().replace("-", "")
    return len(signature) * 8 == group["keySize"] and rsa_holds(key, hash_name, signature, message)


def der_integers(data: bytes) -> list[bytes] | None:
    """The contents of the two integers of a strict DER sequence, else None."""
    body = der_element(data, 0x30)
    if body is None or body[1]:
        return None
    first = der_element(body[0], 0x02)
    second = der_element(first[1], 0x02) if first else None
    if first is None or second is None or second[1]:
        return None
    return [first[0], second[0]]


def der_element(data: bytes, tag: int) -> tuple[bytes, bytes] | None:
    """Content of the first element and what follows it, if it has the tag and the shortest length."""
    if len(data) < 2 or data[0] != tag:
        return None
    length, start = data[1], 2
    if length == 0x81 and len(data) > 2 and data[2] >= 0x80:
        length, start = data[2], 3
    elif length >= 0x80:
        return None
    end = start + length
    return (data[start:end], data[end:]) if end <= len(data) else None


FILES: list[tuple[str, Verifier]] = [
    ("ed25519_test.json", ed25519),
    ("ecdsa_secp256r1_sha256_test.json", ecdsa),
    ("ecdsa_secp384r1_sha384_test.json", ecdsa),
    ("ecdsa_secp521r1_sha512_test.json", ecdsa),
    ("rsa_signature_3072_sha256_test.json", rsa),
    ("rsa_signature_3072_sha512_test.json", rsa),
    ("rsa_signature_4096_sha512_test.json", rsa),
]


@pytest.mark.parametrize(("name", "holds"), FILES, ids=[name for name, _ in FILES])
def test_no_vector_gets_a_wrong_verdict(name: str, holds: Verifier) -> None:
    """An "acceptable" vector may be judged either way; for these schemes those are leniencies that we do not have."""
    wrong, counted = [], 0
    for group, test in vectors(name):
        counted += 1
        verdict = holds(group, bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"]))
        if test["result"] != "acceptable" and verdict != (test["result"] == "valid"):
            wrong.append((test["tcId"], test["comment"]))
    assert wrong == []
    assert counted > 100
