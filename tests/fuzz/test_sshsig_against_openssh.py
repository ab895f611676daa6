"""Mutated signatures, judged by us and by `ssh-keygen -Y verify`: we never accept what OpenSSH refuses.

Where OpenSSH accepts and we do not, our reason must be one of those that say so, and never "invalid signature".
`ssh-keygen` is asked about everything that we accept and about a sample of what we refuse, since a process for each of
100,000 mutants would take minutes. There are fifty mutants for each example that hypothesis would try: 5,000 in the
fast tests, 100,000 in a round of `nox -s fuzz`, whose seed is ours too. WORKPACKET_FUZZ_SIGNATURES sets another number.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from softkeys import KINDS, TOUCHED, SoftKey, make_key, minimal, packed, shared_key
from workpacket.approvals.fields import Reader, WireFault
from workpacket.approvals.sshsig import NAMESPACE, armor, check_signature, read_signature
from workpacket.problem import Problem

SAMPLE = 20  # one in so many refusals is put to ssh-keygen

MESSAGE = b"the message that was signed"
PRINCIPAL = "alice@example.org"
ORDERS = {
    "nistp256": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "nistp384": int("f" * 48 + "c7634d81f4372ddf581a0db248b0a77aecec196accc52973", 16),
    "nistp521": int("1" + "f" * 65 + "a51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409", 16),
}

# What we refuse although the signature is one: the token was not touched, the key is short or a web site's, a field is
# not in its only form. OpenSSH drops a zero byte at the end of names, so for it that namespace is still ours, and takes
# `ed25519` for `ssh-ed25519`.
STRICTER = {
    "key_kind_unsupported",
    *("touch_missing", "key_weak", "fido_application_wrong"),
    *("sshsig_malformed", "key_malformed", "namespace_wrong"),
}

Mutation = Callable[[random.Random, bytes], bytes]

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is the oracle")


def flip(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def overwrite(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + rng.choice((b"\0", b"\1", b"\x7f", b"\x80", b"\xff")) + data[place + 1 :]


def insert(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.randbytes(rng.randint(1, 4)) + data[place:]


def delete(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + data[place + rng.randint(1, 4) :]


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    end = rng.randint(start, len(data))
    return data[:end] + data[start:end] + data[end:]


def lengthen(rng: random.Random, data: bytes) -> bytes:
    """A piece of the right form at the end."""
    return data + rng.choice((b"\0", b"\0\0\0\0", packed(b"x"), rng.randbytes(5)))


def pad(_: random.Random, data: bytes) -> bytes:
    """A needless zero in front: another spelling of a number."""
    return b"\0" + data


def strip(_: random.Random, data: bytes) -> bytes:
    return data.lstrip(b"\0")


def empty(_: random.Random, __: bytes) -> bytes:
    return b""


BYTES: tuple[Mutation, ...] = (flip, overwrite, insert, delete, truncate, repeat, lengthen)
FIELD: tuple[Mutation, ...] = (*BYTES, pad, strip, empty)


def strings(data: bytes) -> list[bytes] | None:
    """The SSH strings that `data` consists of, if it does."""
    reader, parts, length = Reader(data), [], 0
    while length < len(data):
        try:
            parts.append(reader.string())
        except WireFault:
            return None
        length += 4 + len(parts[-1])
    return parts


def nested(rng: random.Random, data: bytes, head: int = 0) -> bytes:
    """A mutation of one field, at whatever depth, with all lengths around it made right."""
    tail = data[len(data) - 5 :] if head == 0 and len(data) > 9 and strings(data) is None else b""
    parts = strings(data[head : len(data) - len(tail)])
    if not parts or rng.random() < 0.3:
        return rng.choice(FIELD)(rng, data) if data else rng.randbytes(2)
    chosen = rng.randrange(len(parts))
    parts[chosen] = nested(rng, parts[chosen])
    return data[:head] + packed(*parts) + (rng.choice(BYTES)(rng, tail) if tail and rng.random() < 0.2 else tail)


def negated(key: SoftKey, blob: bytes) -> bytes:
    """ECDSA's other valid signature over the same message."""
    kind, proof, tail = _innermost(key, blob)
    reader = Reader(proof)
    r, s = reader.positive(), reader.positive()
    return _with_proof(
        blob, kind, proof, tail, packed(minimal(r), minimal(ORDERS[key.kind.partition("@")[0][-8:]] - s))
    )


def _innermost(key: SoftKey, blob: bytes) -> tuple[bytes, bytes, bytes]:
    signature = (strings(blob[10:]) or [])[-1]
    tail = signature[len(signature) - 5 :] if key.application else b""
    kind, proof = strings(signature[: len(signature) - len(tail)]) or []
    return kind, proof, tail


def _with_proof(blob: bytes, kind: bytes, proof: bytes, tail: bytes, other: bytes) -> bytes:
    old = packed(packed(kind, proof) + tail)
    assert blob.endswith(old)
    return blob[: -len(old)] + packed(packed(kind, other) + tail)


def mutant(rng: random.Random, keys: dict[str, SoftKey], originals: dict[str, bytes]) -> bytes:
    """A signature changed in its bytes, in a field, or made anew in a way that is nearly right; or not at all."""
    name = rng.choice(list(keys))
    key, blob = keys[name], originals[name]
    way = rng.random()
    if way < 0.35:
        return rng.choice(BYTES)(rng, blob)
    if way < 0.85:
        return nested(rng, blob, head=10)
    if way < 0.90 and "ecdsa" in name:
        return negated(key, blob)
    if way < 0.92:
        return blob
    return key.sign(
        rng.choice((MESSAGE, MESSAGE, MESSAGE + b" ")),
        hash_name=rng.choice(("sha256", "sha512", "sha512", "sha384", "sha1")),
        namespace=rng.choice((NAMESPACE, NAMESPACE, NAMESPACE, "git", NAMESPACE + "\0")),
        reserved=rng.choice((b"", b"", b"", b"x")),
        flags=rng.choice((TOUCHED, 0, 4, 5, 0xFF)),
        counter=rng.choice((0, 1, 2**32 - 1)),
    )


def our_code(blob: bytes) -> str:
    """Empty if we accept."""
    signature = read_signature(blob)
    refusal = signature if isinstance(signature, Problem) else check_signature(signature, MESSAGE)
    return "" if refusal is None else refusal.code


class OpenSsh:
    """`ssh-keygen -Y verify` with all keys allowed."""

    def __init__(self, folder: Path, keys: dict[str, SoftKey]) -> None:
        self.folder = folder
        (folder / "signers").write_text("".join(key.line(PRINCIPAL) + "\n" for key in keys.values()))

    def accepts(self, blob: bytes) -> bool:
        (self.folder / "signature").write_text(armor(blob))
        command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", PRINCIPAL]
        files = ["-f", str(self.folder / "signers"), "-s", str(self.folder / "signature")]
        done = subprocess.run([*command, *files], input=MESSAGE, capture_output=True, check=False)
        return done.returncode == 0


@pytest.fixture(scope="module")
def keys() -> dict[str, SoftKey]:
    short = {"rsa-2048": make_key("ssh-rsa", rsa_bits=2048)}
    foreign = {"foreign": make_key("sk-ssh-ed25519@openssh.com", "https://shop.example")}
    return {kind: shared_key(kind) for kind in KINDS} | short | foreign


def test_no_mutant_is_accepted_that_openssh_refuses(
    keys: dict[str, SoftKey], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    mutants = int(os.environ.get("WORKPACKET_FUZZ_SIGNATURES", 50 * settings().max_examples))
    rng = random.Random(int(request.config.getoption("--hypothesis-seed") or 1))
    openssh = OpenSsh(tmp_path, keys)
    originals = {name: key.sign(MESSAGE) for name, key in keys.items()}
    too_lax, unexplained, told = [], [], Counter[str]()
    asked: set[bytes] = set()
    for _ in range(mutants):
        blob = mutant(rng, keys, originals)
        code = our_code(blob)
        told[code] += 1
        if code == "":
            if blob not in asked and not openssh.accepts(blob):
                too_lax.append(blob.hex())
            asked.add(blob)
        elif rng.randrange(SAMPLE) == 0 and openssh.accepts(blob):
            told[f"{code} (OpenSSH accepts)"] += 1
            if code not in STRICTER:
                unexplained.append((code, blob.hex()))
    print(mutants, "mutants,", dict(told.most_common()))
    assert too_lax == []
    assert unexplained == []
    assert told[""] > 0
    assert len(told) > 5


STRICT_CASES = [
    ("a token that was not touched", "sk-ssh-ed25519@openssh.com", {"flags": 0}, "touch_missing"),
    ("a reserved field in use", "ssh-ed25519", {"reserved": b"x"}, "sshsig_malformed"),
    ("a short RSA key", "rsa-2048", {}, "key_weak"),
    ("a token's key of a web site", "foreign", {}, "fido_application_wrong"),
]


@pytest.mark.parametrize(
    ("name", "changes", "code"), [case[1:] for case in STRICT_CASES], ids=[case[0] for case in STRICT_CASES]
)
def test_we_are_stricter_than_openssh_and_say_why(
    name: str, changes: dict[str, object], code: str, keys: dict[str, SoftKey], tmp_path: Path
) -> None:
    blob = keys[name].sign(MESSAGE, **changes)  # type: ignore[arg-type]
    assert OpenSsh(tmp_path, keys).accepts(blob)
    assert our_code(blob) == code
    assert code in STRICTER


def test_the_other_ecdsa_signature_is_accepted_by_both(keys: dict[str, SoftKey], tmp_path: Path) -> None:
    """It can't be told from the first; that it is no second voice is the counting's business."""
    for name in (name for name in keys if "ecdsa" in name):
        blob = keys[name].sign(MESSAGE)
        other = negated(keys[name], blob)
        assert other != blob
        assert our_code(other) == ""
        assert OpenSsh(tmp_path, keys).accepts(other)
