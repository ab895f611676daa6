"""Signatures made in a page: what each of the cases in webauthn_cases.jsonl gets for an answer, from us and OpenSSH."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest

from approvals.gates import ALICE, BOB, POLICY, envelope, facts, key_of, statement
from softkeys import PageParts, SoftKey, make_key, packed, shared_key
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import EnvelopeFile, pae, write_envelope
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.fields import Fields
from workpacket.approvals.policy import policy_from_toml
from workpacket.approvals.sshsig import NAMESPACE, armor, check_signature, read_signature
from workpacket.approvals.webauthn import (
    USUAL_PORT,
    PagesAccepted,
    client_data_of,
    local_origin,
    read_pages_accepted,
    was_asked,
)
from workpacket.problem import Problem

pytestmark = pytest.mark.share(4)

# What OpenSSH accepts and we do not: it reads the first three members of the client data and knows no policy.
STRICTER = {
    *("touch_missing", "pin_missing", "passkey_synced", "webauthn_not_accepted", "client_data_wrong"),
    *("hardware_required", "sshsig_malformed", "algorithm_forbidden", "fido_application_wrong"),
}
CASES = [json.loads(line) for line in Path(__file__).with_name("webauthn_cases.jsonl").read_text("utf-8").splitlines()]
ROOT = Path(__file__).parents[2]
KIND = "sk-ecdsa-sha2-nistp256@openssh.com"
LOCAL = "http://localhost:7363"
USUAL = '{"type":"webauthn.get","challenge":"{C}","origin":"{O}","crossOrigin":false}'
OWN = 'rp_ids = ["example.org"]\norigins = ["https://example.org", "https://approve.example.org", "{port}"]\n'.replace(
    "{port}", "https://approve.example.org:8443"
)
TABLES = {
    "usual": f'rp_ids = ["localhost"]\norigins = ["{LOCAL}"]\nport = 7363\n',
    "own": OWN,
    "both": f'rp_ids = ["localhost", "example.org"]\norigins = ["{LOCAL}", "https://approve.example.org"]\n',
    "synced": f'rp_ids = ["localhost"]\norigins = ["{LOCAL}"]\nsynced = true\n',
    "pin": f'rp_ids = ["localhost"]\norigins = ["{LOCAL}"]\npin = true\n',
}


def policy_of(name: str, hardware: str) -> bytes:
    table = f"[approvals.webauthn]\n{TABLES[name]}" if name != "none" else ""
    ready = POLICY.replace("separation = []", f'separation = []\nhardware = "{hardware}"', 1)
    return ready.encode() + table.encode()


def challenge_of(wrapped: bytes, message: bytes, form: str) -> str:
    usual = base64.urlsafe_b64encode(wrapped).decode()
    return {
        "": usual.rstrip("="),
        "other": base64.urlsafe_b64encode(wrapped[:-1] + b"?").decode().rstrip("="),
        "padded": usual + "=" * (-len(usual.rstrip("=")) % 4 or 2),
        "standard": base64.b64encode(wrapped + b"\xff\xfe").decode().rstrip("="),
        "hex": wrapped.hex(),
        "hash": base64.urlsafe_b64encode(hashlib.sha256(wrapped).digest()).decode().rstrip("="),
        "bare": base64.urlsafe_b64encode(message).decode().rstrip("="),
        "empty": "",
    }[form]


def parts_of(case: dict[str, Any], message: bytes) -> PageParts:
    namespace, hash_name = case.get("namespace", NAMESPACE), case.get("hash", "sha512")
    origin = case.get("origin", LOCAL)
    said = message if "message" not in case else message + b"!"
    wrapped = b"SSHSIG" + packed(namespace, b"", hash_name, hashlib.new(hash_name, said).digest())
    text = case.get("client", USUAL)
    text = text.replace("{C}", challenge_of(wrapped, said, case.get("challenge", ""))).replace("{O}", origin)
    if "nested" in case:
        text = f'{text[:-1]},"later":{"[" * case["nested"]}{"]" * case["nested"]}}}'
    if "padded" in case:
        text = f'{text[:-1]},"later":"{"x" * case["padded"]}"}}'
    return PageParts(
        origin=origin,
        client_data=text.encode().replace(b"{FF}", b"\xff"),
        flags=case.get("flags", 1),
        counter=case.get("counter", 7),
        extensions=bytes.fromhex(case.get("extensions", "")),
        algorithm=case.get("algorithm", PageParts.algorithm),
        namespace=namespace,
        hash_name=hash_name,
        application=case.get("signed_application", ""),
        trailing=bytes.fromhex(case.get("trailing", "")),
    )


def key_for(case: dict[str, Any]) -> SoftKey:
    return make_key(case.get("kind", KIND), case.get("application", "localhost"))


def signed(case: dict[str, Any], key: SoftKey, message: bytes) -> bytes:
    """The signature of a case, and what was done to it afterwards."""
    if case.get("form") == "sk":
        return key.sign(message)
    parts = parts_of(case, message)
    signer = changed(key, private=make_key(KIND).private) if "signed_by" in case else key
    blob = signer.page_signature(parts)
    blob = blob.replace(signer.blob, key.blob) if signer.blob != key.blob else blob
    later = changed(
        parts,
        client_data=parts.client_data[:-1] + case.get("afterwards", "").encode() + parts.client_data[-1:],
        flags=case.get("flags_afterwards", parts.flags),
        counter=case.get("counter_afterwards", parts.counter),
    )
    if later != parts:
        blob = swapped(blob, parts, later)
    if "cut" in case:
        whole = signature_in(blob)
        return blob.replace(packed(whole), packed(whole[: -case["cut"]]))
    return blob


def signature_in(blob: bytes) -> bytes:
    """The innermost structure: the last string of the signature."""
    place, part = 10, b""
    while place < len(blob):
        length = int.from_bytes(blob[place : place + 4], "big")
        part = blob[place + 4 : place + 4 + length]
        place += 4 + length
    return part


def swapped(blob: bytes, before: PageParts, after: PageParts) -> bytes:
    """Another statement of token and page around the same proof."""
    whole = signature_in(blob)
    old, new = (
        each.flags.to_bytes(1, "big") + each.counter.to_bytes(4, "big") + packed(each.origin, each.client_data, b"")
        for each in (before, after)
    )
    assert whole.endswith(old)
    return blob.replace(packed(whole), packed(whole[: -len(old)] + new))


def answer(case: dict[str, Any], key: SoftKey) -> str:
    """The first reason against it, '' if the gate opens."""
    wanted = case.get("wanted", NAMESPACE)
    if wanted != NAMESPACE:
        signature = read_signature(signed(case, key, b"message"), wanted)
        refusal = signature if isinstance(signature, Problem) else check_signature(signature, b"message")
        return "" if refusal is None else refusal.code
    policy = policy_of(case.get("policy", "usual"), case.get("gate", "none"))
    said = statement(policy=hashlib.sha256(policy).hexdigest())
    payload = said.payload()
    name, data = write_envelope(payload, "SHA256:" + "A" * 43, signed(case, key, pae(payload)))
    read = EnvelopeFile(name, data).parts
    assert not isinstance(read, Problem)
    if isinstance(read.signature, Problem):
        return read.signature.code
    name, data = write_envelope(payload, key.fingerprint, signed(case, key, pae(payload)))
    signers = f"{key.line(ALICE)}\n{key_of(BOB).line(BOB)}\n".encode()
    verdict = decide(facts(EnvelopeFile(name, data), policy=PolicyFiles(policy, signers)))
    (judged,) = verdict.judged
    assert verdict.met == (not judged.refusals)
    assert len({refusal.code for refusal in judged.refusals}) <= 1, judged.refusals
    return judged.refusals[0].code if judged.refusals else ""


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_signature_made_in_a_page_is_answered_as_listed(case: dict[str, Any]) -> None:
    try:
        key = key_for(case)
        assert answer(case, key) == case["expect"]
    except UnicodeEncodeError:
        pytest.fail("the case cannot be written")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is the other judge")
def test_ssh_keygen_accepts_all_that_we_accept(tmp_path: Path) -> None:
    laxer, stricter = [], set()
    for case in CASES:
        if "wanted" in case:
            continue
        key = key_for(case)
        accepted = openssh_accepts(key, signed(case, key, b"message"), b"message", tmp_path)
        if not case["expect"] and not accepted:
            laxer.append(case["name"])
        if case["expect"] and accepted:
            stricter.add(case["expect"])
    assert laxer == []
    assert stricter <= STRICTER
    assert {"client_data_wrong", "webauthn_not_accepted", "passkey_synced", "algorithm_forbidden"} <= stricter


def openssh_accepts(key: SoftKey, blob: bytes, message: bytes, folder: Path) -> bool:
    (folder / "signers").write_text(key.line(ALICE) + "\n")
    (folder / "signature").write_text(armor(blob))
    command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", ALICE]
    files = ["-f", str(folder / "signers"), "-s", str(folder / "signature")]
    return subprocess.run([*command, *files], input=message, capture_output=True, check=False).returncode == 0


def test_each_reason_names_what_is_wrong() -> None:
    key = make_key(KIND, "localhost")
    told = {}
    for policy, flags in (("usual", 0x09), ("pin", 1), ("own", 1), ("none", 1)):
        data = policy_of(policy, "none")
        payload = statement(policy=hashlib.sha256(data).hexdigest()).payload()
        blob = key.sign_in_page(pae(payload), LOCAL, flags=flags)
        file = EnvelopeFile(*write_envelope(payload, key.fingerprint, blob))
        (judged,) = decide(facts(file, policy=PolicyFiles(data, f"{key.line(ALICE)}\n".encode()))).judged
        told[policy] = [refusal.message for refusal in judged.refusals]
    assert told == {
        "usual": ["the passkey can be copied to other devices, which the policy does not allow"],
        "pin": ["the policy requires a PIN or fingerprint, which the security key did not verify"],
        "own": [f"the policy on the base does not accept signatures made for localhost on {LOCAL}"],
        "none": [f"the policy on the base does not accept signatures made for localhost on {LOCAL}"],
    }


@pytest.mark.parametrize("hardware", ["touch", "pin"])
def test_a_key_that_may_be_copied_is_no_token(hardware: str) -> None:
    case = {"flags": 0x1D, "policy": "synced", "gate": hardware}
    assert answer(case, make_key(KIND, "localhost")) == "hardware_required"


def test_a_gate_for_tokens_says_what_the_key_is_instead() -> None:
    told = {}
    for key in (make_key(KIND, "localhost"), shared_key("ssh-ed25519")):
        policy = policy_of("synced", "touch")
        payload = statement(policy=hashlib.sha256(policy).hexdigest()).payload()
        page = key.kind == KIND
        blob = key.sign_in_page(pae(payload), LOCAL, flags=0x09) if page else key.sign(pae(payload))
        file = EnvelopeFile(*write_envelope(payload, key.fingerprint, blob))
        (judged,) = decide(facts(file, policy=PolicyFiles(policy, f"{key.line(ALICE)}\n".encode()))).judged
        told[page] = [refusal.message for refusal in judged.refusals]
    assert told == {
        True: ["the gate requires a key on a FIDO security key, but this key can be copied to other devices"],
        False: ["the gate requires a key on a FIDO security key, but this key is a file"],
    }


def test_a_signature_in_a_page_and_one_in_a_terminal_are_two_voices() -> None:
    policy = policy_of("usual", "none")
    said = {who: statement(approver=who, policy=hashlib.sha256(policy).hexdigest(), nonce=nonce) for who, nonce in
            ((ALICE, "a" * 32), (BOB, "b" * 32))}  # fmt: skip
    key = make_key(KIND, "localhost")
    payload = said[ALICE].payload()
    page = EnvelopeFile(*write_envelope(payload, key.fingerprint, key.sign_in_page(pae(payload), LOCAL)))
    signers = f"{key.line(ALICE)}\n{key_of(BOB).line(BOB)}\n".encode()
    both = facts(page, envelope(said[BOB]), policy=PolicyFiles(policy, signers))
    assert {voice.principal for voice in decide(both).voices} == {ALICE, BOB}


def read(table: object) -> PagesAccepted | list[str]:
    faults: list[str] = []
    accepted = read_pages_accepted(Fields(table, "webauthn", faults))
    return faults or accepted


USUAL_TABLE = {"rp_ids": ["localhost"], "origins": [LOCAL]}


def test_the_table_says_which_pages_count() -> None:
    assert read(USUAL_TABLE) == PagesAccepted(("localhost",), (LOCAL,), 0, False, False)
    assert read(USUAL_TABLE) == PagesAccepted(("localhost",), (LOCAL,))
    assert read(USUAL_TABLE | {"port": 7363, "synced": True, "pin": True}) == PagesAccepted(
        ("localhost",), (LOCAL,), 7363, True, True
    )
    assert read(USUAL_TABLE | {"synced": False, "pin": False}) == read(USUAL_TABLE)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"rp_ids": ...}, "webauthn.rp_ids is missing"),
        ({"origins": ...}, "webauthn.origins is missing"),
        ({"rp_ids": ["LOCALHOST"]}, "webauthn.rp_ids is not a list of relying parties, such as 'localhost'"),
        ({"rp_ids": ["127.0.0.1"]}, "webauthn.rp_ids is not a list of relying parties, such as 'localhost'"),
        ({"rp_ids": ["localhost", "-a.org"]}, "webauthn.rp_ids is not a list of relying parties, such as 'localhost'"),
        ({"rp_ids": ["localhost", "a-.org"]}, "webauthn.rp_ids is not a list of relying parties, such as 'localhost'"),
        ({"rp_ids": ["localhost", "a..org"]}, "webauthn.rp_ids is not a list of relying parties, such as 'localhost'"),
        ({"rp_ids": ["localhost"] * 2}, "webauthn.rp_ids contains the same item twice"),
        ({"origins": [LOCAL, "http://example.org"]}, "webauthn.origins is not a list of origins"),
        ({"origins": ["http://127.0.0.1:7363"]}, "webauthn.origins is not a list of origins"),
        ({"origins": ["https://127.0.0.1"]}, "webauthn.origins is not a list of origins"),
        ({"origins": [f"{LOCAL}!"]}, "webauthn.origins is not a list of origins"),
        ({"origins": [f"{LOCAL}/"]}, "webauthn.origins is not a list of origins"),
        ({"origins": ["http://localhost:0"]}, "webauthn.origins is not a list of origins"),
        ({"origins": ["https://xlocalhost"]}, "webauthn.origins lists https://xlocalhost, which does not match"),
        ({"port": 1023}, "webauthn.port is not a whole number from 1024 to 65535"),
        ({"port": 65536}, "webauthn.port is not a whole number from 1024 to 65535"),
        ({"port": 7364}, "webauthn.port is 7364, but origins does not list http://localhost:7364"),
        ({"synced": "yes"}, "webauthn.synced is not true or false"),
        ({"pin": 1}, "webauthn.pin is not true or false"),
        ({"pins": True}, "webauthn.pins is unknown"),
    ],
)  # fmt: skip
def test_a_fault_of_the_table_is_named(change: dict[str, object], fault: str) -> None:
    table = {key: value for key, value in (USUAL_TABLE | change).items() if value is not ...}
    faults = read(table)
    assert isinstance(faults, list)
    assert any(each.startswith(fault) for each in faults), faults


@pytest.mark.parametrize("port", [1024, 65535])
def test_the_first_and_the_last_port_are_read(port: int) -> None:
    origin = f"http://localhost:{port}"
    assert read({"rp_ids": ["localhost"], "origins": [origin], "port": port}) == PagesAccepted(
        ("localhost",), (origin,), port
    )


def test_the_policy_file_has_the_table() -> None:
    policy = policy_from_toml(policy_of("usual", "none"))
    assert not isinstance(policy, tuple)
    assert policy.pages == PagesAccepted(("localhost",), (LOCAL,), 7363)
    assert isinstance(policy_from_toml(policy_of("usual", "none") + b"more = 1\n"), tuple)
    plain = policy_from_toml(POLICY.encode())
    assert not isinstance(plain, tuple)
    assert plain.pages is None


def test_a_page_may_use_the_keys_of_the_domains_above_it() -> None:
    accepted = PagesAccepted(("example.org", "org"), ("https://a.example.org", "https://aexample.org"))
    assert accepted.accept("example.org", "https://a.example.org")
    assert accepted.accept("org", "https://aexample.org")
    assert not accepted.accept("example.org", "https://aexample.org")
    assert not accepted.accept("example.org", "https://b.example.org")
    assert not accepted.accept("a.example.org", "https://a.example.org")


def test_a_relying_party_is_no_longer_than_a_name_can_be() -> None:
    longest = ".".join(["a" * 62] * 3 + ["a" * 64])
    assert make_key(KIND, longest).public.application == longest
    for name in (longest + "b", "x" * 254):
        assert answer_of_key(name) == "fido_application_wrong"


def answer_of_key(application: str) -> str:
    signature = read_signature(make_key(KIND, application).sign_in_page(b"", LOCAL))
    assert isinstance(signature, Problem)
    return signature.code


def test_client_data_are_no_longer_than_told() -> None:
    start = client_data_of(b"c", LOCAL)
    for length, holds in ((2048, True), (2049, False)):
        text = start + b',"later":"' + b"x" * (length - len(start) - 12) + b'"}'
        assert len(text) == length
        assert was_asked(text, start) is holds


def test_the_usual_port_is_the_documented_one() -> None:
    pages = ("approvals/touch.md", "approvals/format.md", "policy.md")
    assert all(local_origin(USUAL_PORT) in (ROOT / "docs" / page).read_text("utf-8") for page in pages)


def test_where_a_key_signs_is_seen_from_its_application() -> None:
    assert make_key(KIND, "localhost").public.signs_in_pages
    assert not make_key(KIND, "ssh:").public.signs_in_pages
    assert not shared_key("ecdsa-sha2-nistp256").public.signs_in_pages


def test_the_message_says_which_key_may_not_sign_how() -> None:
    refusal = read_signature(make_key(KIND, "localhost").sign(b"message"))
    assert isinstance(refusal, Problem)
    assert refusal.message == (f"a key of type {KIND} that belongs to localhost must not sign with {KIND}")
