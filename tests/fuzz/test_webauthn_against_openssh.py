"""Signatures made in pages, changed in some way: judged by us, by the written rules, and by `ssh-keygen -Y verify`.

The rules are those of docs/approvals/format.md, written down here once more by other means. We accept exactly what they
accept, and nothing that OpenSSH refuses, which is asked about everything that we accept and about a sample of the rest.
Most mutants are signed again after they were changed, since one whose proof does not fit tells nothing of the rules.
There are 100 for each example of hypothesis: 2,000 in the fast tests, 20,000 in each round of `nox -s fuzz`, which has
a seed of its own. WORKPACKET_FUZZ_PAGES sets another number.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import settings

from fuzz.test_sshsig_against_openssh import BYTES, MESSAGE, SAMPLE, OpenSsh, nested
from softkeys import PageParts, SoftKey, make_key, packed
from workpacket.approvals.sshsig import NAMESPACE, check_signature, read_signature
from workpacket.approvals.webauthn import PagesAccepted
from workpacket.problem import Problem

KIND = "sk-ecdsa-sha2-nistp256@openssh.com"
WEBAUTHN = "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"
LOCAL, OWN = "http://localhost:7363", "https://approve.example.org"
APPLICATIONS = ("localhost", "example.org", "approve.example.org", "ssh:", "shop.example")
POLICIES = tuple(
    PagesAccepted(parties, origins, 0, synced, pin)
    for parties, origins in (
        (("localhost",), (LOCAL,)),
        (("localhost", "example.org"), (LOCAL, OWN)),
    )
    for synced in (False, True)
    for pin in (False, True)
)
GREASE = ',"other_keys_can_be_added_here":"do not compare clientDataJSON against a template. See https://goo.gl/yabPex"'
SUSPECT = (
    *(',"topOrigin":"https://shop.example"', f',"origin":"{OWN}"', ',"a": 1', ',"a":1.0', ',"a":"\\u0062"', ","),
    *(',"crossOrigin":true', ',"cross\\u004frigin":true', ',"type":"webauthn.get"', ',"a":1e3', ',"a":"\\ud800"'),
)
ORIGINS = (
    *("http://localhost:7364", "https://localhost:7363", "http://127.0.0.1:7363", "http://localhost"),
    *("https://shop.example", "https://xapprove.example.org", 'x"', "HTTP://LOCALHOST:7363", "", OWN + "/", LOCAL, OWN),
)
WRONG = 0.08
T = TypeVar("T")

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is the other judge")


def one_of(rng: random.Random, usual: T, *others: T) -> T:
    """Mostly as it should be, so that a mutant is wrong in few places at once."""
    return rng.choice(others) if rng.random() < WRONG else usual


def text_of(rng: random.Random, origin: str, wrapped: bytes) -> bytes:
    """Client data: as browsers write it, or not quite."""
    usual = base64.urlsafe_b64encode(wrapped).decode().rstrip("=")
    challenge = one_of(rng, usual, usual + "=", usual[:-1], usual.lower(), "", wrapped.hex())
    kind = one_of(rng, "webauthn.get", "webauthn.create", "payment.get")
    cross = one_of(rng, ',"crossOrigin":false', ',"crossOrigin":true', "", ',"crossOrigin":0')
    said = one_of(rng, origin, LOCAL, OWN, origin + "/", origin.replace("/", "\\/"))
    more = rng.choice(("", GREASE, ',"a":1', ',"a":{"b":[]}', ',"a":"é"'))
    more = one_of(rng, more, *SUSPECT)
    text = f'{{"type":"{kind}","challenge":"{challenge}","origin":"{said}"{cross}{more}}}'.encode()
    return one_of(rng, text, rng.choice(BYTES)(rng, text))


def mutant(rng: random.Random, keys: dict[str, SoftKey]) -> tuple[str, bytes]:
    """A signature that is made anew and may be wrong in any part, or one that is changed afterwards."""
    application = one_of(rng, rng.choice(APPLICATIONS[:2]), *APPLICATIONS[2:])
    key = keys[application]
    origin = one_of(rng, LOCAL if application == "localhost" else OWN, *ORIGINS)
    hash_name = one_of(rng, rng.choice(("sha512", "sha256")), "sha384", "sha1")
    namespace = one_of(rng, NAMESPACE, "git", "workpacket-event@v1", NAMESPACE + "\0")
    message = one_of(rng, MESSAGE, MESSAGE + b" ")
    wrapped = b"SSHSIG" + packed(namespace, b"", hash_name, hashlib.new(hash_name, message).digest())
    flags = one_of(rng, rng.choice((1, 5, 0x09, 0x1D)), rng.randrange(256))
    extensions = one_of(rng, b"", b"\xa0", b"\xa1")
    parts = PageParts(
        origin,
        text_of(rng, origin, wrapped),
        flags=flags | one_of(rng, 0x80 if extensions else 0, 0, 0x80),
        counter=rng.choice((0, 7, 2**32 - 1)),
        extensions=extensions,
        algorithm=one_of(rng, WEBAUTHN, KIND, "webauthn-sk-ssh-ed25519@openssh.com"),
        namespace=namespace,
        hash_name=hash_name,
        application=one_of(rng, application, *APPLICATIONS),
        trailing=one_of(rng, b"", b"\0", b"\0\0\0\0"),
    )
    blob = key.page_signature(parts)
    way = rng.random()
    if way < 0.1:
        return application, rng.choice(BYTES)(rng, blob)
    if way < 0.25:
        return application, nested(rng, blob, head=10)
    return (application, blob) if way < 0.97 else (application, key.sign(message, flags=flags))


def ours(blob: bytes, accepted: PagesAccepted) -> str:
    """'' if we accept; as `verify` asks the policy."""
    signature = read_signature(blob)
    if isinstance(signature, Problem):
        return signature.code
    refusal = check_signature(signature, MESSAGE)
    if refusal is not None:
        return refusal.code
    page, fido = signature.page, signature.fido
    if page is None or fido is None:
        return ""
    if not accepted.accept(signature.key.application, page.origin):
        return "webauthn_not_accepted"
    if fido.synced and not accepted.synced:
        return "passkey_synced"
    return "pin_missing" if accepted.pin and not fido.person_verified else ""


def strings_of(data: bytes) -> list[bytes]:
    found = []
    while data:
        length = int.from_bytes(data[:4], "big")
        assert len(data) >= 4 + length
        found.append(data[4 : 4 + length])
        data = data[4 + length :]
    return found


def by_the_rules(blob: bytes, accepted: PagesAccepted) -> bool:
    """Each sentence of the format's rules about pages, in its own line; anything that cannot be read is refused."""
    try:
        return _by_the_rules(blob, accepted)
    except (AssertionError, ValueError, IndexError, TypeError, AttributeError):
        return False


def _by_the_rules(blob: bytes, accepted: PagesAccepted) -> bool:
    assert blob[:10] == b"SSHSIG\0\0\0\1"
    key, namespace, reserved, hash_name, signature = strings_of(blob[10:])
    assert (namespace, reserved) == (NAMESPACE.encode(), b"")
    assert hash_name in (b"sha256", b"sha512")
    kind, curve, point, application = strings_of(key)
    assert (kind, curve, len(point), point[0]) == (KIND.encode(), b"nistp256", 65, 4)
    length = int.from_bytes(signature[:4], "big")
    algorithm, rest = signature[4 : 4 + length], signature[4 + length :]
    length = int.from_bytes(rest[:4], "big")
    proof, rest = rest[4 : 4 + length], rest[4 + length :]
    numbers = strings_of(proof)
    assert len(numbers) == 2
    for number in numbers:
        value = int.from_bytes(number, "big", signed=True)
        assert value > 0
        assert number == value.to_bytes(value.bit_length() // 8 + 1, "big")
    stated, flags = rest[:5], rest[0]
    origin, client_data, extensions = strings_of(rest[5:])
    wrapped = b"SSHSIG" + packed(NAMESPACE, b"", hash_name, hashlib.new(hash_name.decode(), MESSAGE).digest())
    if application.startswith(b"ssh:"):
        assert algorithm == KIND.encode()
        return False
    assert algorithm == WEBAUTHN.encode()
    assert application.decode() in accepted.relying_parties
    assert origin.decode() in accepted.origins
    host = urlsplit(origin.decode()).hostname or ""
    assert f".{host}".endswith(f".{application.decode()}")
    assert extensions == b""
    assert flags & 0x01
    assert flags | 0x1D == 0x1D
    assert not (flags & 0x10 and not flags & 0x08)
    assert accepted.synced or not flags & 0x08
    assert not accepted.pin or flags & 0x04
    assert _client_data_fits(client_data, wrapped, origin.decode())
    numbers_of_key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    signed = hashlib.sha256(application).digest() + stated + hashlib.sha256(client_data).digest()
    r, s = (int.from_bytes(number, "big") for number in numbers)
    try:
        numbers_of_key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _client_data_fits(client_data: bytes, wrapped: bytes, origin: str) -> bool:
    text = client_data.decode("utf-8")
    assert len(client_data) <= 2048
    assert text.count("{") + text.count("[") <= 16
    pairs: list[tuple[str, object]] = json.loads(text, object_pairs_hook=list)
    names = [name for name, _ in pairs]
    assert names[:4] == ["type", "challenge", "origin", "crossOrigin"]
    challenge = base64.urlsafe_b64encode(wrapped).decode().rstrip("=")
    assert [value for _, value in pairs[:3]] == ["webauthn.get", challenge, origin]
    assert pairs[3][1] is False
    assert len(set(names)) == len(names)
    assert "topOrigin" not in names
    assert not re.search(r"[\s:,{\[]-?\d+[.eE]", text)
    whole = json.loads(text)
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False) == text


def test_no_mutant_is_accepted_that_the_rules_or_openssh_refuse(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    mutants = int(os.environ.get("WORKPACKET_FUZZ_PAGES", 100 * settings().max_examples))
    rng = random.Random(int(request.config.getoption("--hypothesis-seed") or 1))
    keys = {application: make_key(KIND, application) for application in APPLICATIONS}
    openssh = OpenSsh(tmp_path, keys)
    told: Counter[str] = Counter()
    differing, too_lax = [], []
    for _ in range(mutants):
        application, blob = mutant(rng, keys)
        accepted = rng.choice(POLICIES)
        code = ours(blob, accepted)
        told[code] += 1
        signed_as_ssh = not code and application == "ssh:"
        if by_the_rules(blob, accepted) != (code == "") and not signed_as_ssh:
            differing.append((code, accepted, blob.hex()))
        if code == "":
            if not openssh.accepts(blob):
                too_lax.append(blob.hex())
        elif rng.randrange(SAMPLE) == 0 and openssh.accepts(blob):
            told[f"{code} (OpenSSH accepts)"] += 1
    print(mutants, "mutants,", dict(told.most_common()))
    assert differing == []
    assert too_lax == []
    assert told[""] > mutants / 50
    assert len(told) > 8
