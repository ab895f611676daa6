"""Attacks on the signature and on the envelope around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from corpora.attacks.generator.people import ALICE, MALLORY
from corpora.attacks.generator.scenario import Scenario, case, sha256
from softkeys import VERIFIED, SoftKey, make_key, minimal, packed
from workpacket.approvals.envelope import PAYLOAD_TYPE, pae
from workpacket.approvals.fields import Reader, encode_base64
from workpacket.approvals.sshsig import SshSignature, read_signature

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def forged(scenario: Scenario, key: SoftKey, message: bytes | None = None, **wrong: object) -> None:
    """An envelope whose signature `key` made itself, with something wrong in it."""
    payload = scenario.statement().payload()
    scenario.add(payload, key, key.sign(pae(payload) if message is None else message, **wrong))  # type: ignore[arg-type]


def edited(scenario: Scenario, old: str, new: str, count: int = 1) -> None:
    """The only envelope with its JSON text changed, under the name that its new digest asks for."""
    text = scenario.take_envelope().decode()
    assert old in text
    scenario.add_json(text.replace(old, new, count))


@case("signer_unknown")
def key_of_the_agent(scenario: Scenario) -> None:
    """The agent signs with a key of its own, in the person's name."""
    scenario.approve(key=scenario.key("agent-7"))


@case("approver_mismatch")
def key_of_another_known_person(scenario: Scenario) -> None:
    """A known person signs in another's name."""
    scenario.approve(key=scenario.key(MALLORY))


@case("signature_invalid")
def public_key_swapped(scenario: Scenario) -> None:
    """The attacker signs and puts the person's public key into the signature."""
    payload = scenario.statement().payload()
    scenario.add(payload, scenario.key(), scenario.key("agent-7").sign(pae(payload), key_blob=scenario.key().blob))


@case("signature_invalid")
def payload_edited(scenario: Scenario) -> None:
    """The payload is edited after signing, into another well-formed statement."""
    key = scenario.key()
    signature = scenario.people.sign(key, pae(scenario.statement().payload()))
    scenario.add(scenario.statement(nonce="f" * 32).payload(), key, signature)


@case("signature_invalid")
def signature_without_pae(scenario: Scenario) -> None:
    """The bare payload is signed, without the pre-authentication encoding."""
    forged(scenario, scenario.key(), scenario.statement().payload())


@case("signature_invalid")
def signature_over_another_type(scenario: Scenario) -> None:
    """The encoding that is signed names another payload type than the envelope."""
    payload = scenario.statement().payload()
    forged(scenario, scenario.key(), pae(payload).replace(PAYLOAD_TYPE.encode(), b"application/vnd.in-toto+yaml"))


@case("payload_type_wrong")
def payload_type_edited(scenario: Scenario) -> None:
    """The envelope's payload type is edited."""
    scenario.approve()
    edited(scenario, PAYLOAD_TYPE, "application/json")


@case("namespace_wrong")
def namespace_git(scenario: Scenario) -> None:
    """A signature on a commit, by a key that signs commits, put into an envelope."""
    forged(scenario, scenario.key(), namespace="git")


@case("namespace_wrong")
def namespace_of_events(scenario: Scenario) -> None:
    """A signature made for an event, put into an envelope."""
    forged(scenario, scenario.key(), namespace="workpacket-event@v1")


@case("namespace_wrong")
def namespace_with_nul(scenario: Scenario) -> None:
    """The namespace only begins with ours and goes on after a zero byte."""
    forged(scenario, scenario.key(), namespace="workpacket-approval@v1\0")


@case("namespace_wrong")
def namespace_of_next_version(scenario: Scenario) -> None:
    """The namespace of another version of the format."""
    forged(scenario, scenario.key(), namespace="workpacket-approval@v10")


@case("signature_missing")
def no_signatures(scenario: Scenario) -> None:
    """The list of signatures is empty."""
    payload = encode_base64(scenario.statement().payload())
    scenario.add_json(f'{{"payload":"{payload}","payloadType":"{PAYLOAD_TYPE}","signatures":[]}}\n')


@case("envelope_malformed")
def signatures_left_out(scenario: Scenario) -> None:
    """There is no list of signatures."""
    payload = encode_base64(scenario.statement().payload())
    scenario.add_json(f'{{"payload":"{payload}","payloadType":"{PAYLOAD_TYPE}"}}\n')


@case("signature_surplus")
def two_signatures(scenario: Scenario) -> None:
    """A good signature beside a bad one in one envelope."""
    scenario.approve()
    envelope = json.loads(scenario.take_envelope())
    envelope["signatures"].append({"keyid": "SHA256:" + "A" * 43, "sig": "AAAA"})
    scenario.add_json(json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n")


@case("approval_duplicate_key")
def duplicate_key_in_envelope(scenario: Scenario) -> None:
    """The envelope holds its payload twice: one reader takes the first, another the last."""
    scenario.approve()
    edited(scenario, '"payload":', '"payload":"e30=","payload":')


@case("approval_duplicate_key")
def duplicate_key_in_statement(scenario: Scenario) -> None:
    """The signed statement names the packet twice."""
    payload = scenario.statement().payload().replace(b'"packet":', b'"packet":"WP-1-Harmless","packet":')
    scenario.add_signed(payload, scenario.key())


@case("envelope_not_canonical")
def envelope_with_spaces(scenario: Scenario) -> None:
    """The same envelope in another spelling, to be used once more under another name."""
    scenario.approve()
    edited(scenario, '","payloadType"', '", "payloadType"')


@case("envelope_not_canonical")
def envelope_without_newline(scenario: Scenario) -> None:
    """The envelope lacks its final newline."""
    scenario.approve()
    edited(scenario, "}\n", "}")


@case("envelope_malformed")
def base64_with_stray_bits(scenario: Scenario) -> None:
    """The payload's last base64 digit carries bits that decoders drop."""
    statement = scenario.statement(packet=scenario.packet)
    while len(statement.payload()) % 3 != 1:
        scenario.scope = [scenario.scope[0] + "x"]
        statement = scenario.statement()
    scenario.approve(statement=statement)
    text = scenario.take_envelope().decode()
    payload = json.loads(text)["payload"]
    last = payload[-3]
    assert last in "AQgw"
    scenario.add_json(text.replace(payload, payload[:-3] + chr(ord(last) + 1) + "=="))


@case("envelope_malformed")
def base64_of_urls(scenario: Scenario) -> None:
    """The signature in the URL alphabet."""
    scenario.approve()
    data = scenario.take_envelope().decode()
    signature = json.loads(data)["signatures"][0]["sig"]
    swapped = signature.translate(str.maketrans("+/", "-_"))
    scenario.add_json(data.replace(signature, swapped if swapped != signature else "-" + signature[1:]))


@case("envelope_malformed")
def unsigned_field_in_envelope(scenario: Scenario) -> None:
    """A field outside the signature, which some reader might believe."""
    scenario.approve()
    edited(scenario, '{"payload"', '{"approved":true,"payload"')


@case("envelope_renamed")
def file_renamed(scenario: Scenario) -> None:
    """The file has the name of another digest."""
    scenario.approve()
    scenario.add_file("0" * 64 + ".dsse.json", scenario.take_envelope())


@case("envelope_renamed")
def file_edited_in_place(scenario: Scenario) -> None:
    """A byte of the file is edited and its name kept."""
    scenario.approve()
    (name,) = scenario.envelopes
    scenario.add_file(name, scenario.take_envelope().replace(b"in-toto", b"in_toto"))


@case("key_id_wrong")
def key_id_of_another_key(scenario: Scenario) -> None:
    """The unsigned key id names another person's key."""
    payload = scenario.statement().payload()
    scenario.add(payload, scenario.key(MALLORY), scenario.people.sign(scenario.key(), pae(payload)))


@case("algorithm_forbidden")
def rsa_with_sha1(scenario: Scenario) -> None:
    """An RSA signature with SHA-1."""
    key = scenario.key(ALICE, "ssh-rsa")
    scenario.trust_key(ALICE, key)
    forged(scenario, key, algorithm="ssh-rsa")


@case("hash_forbidden")
def message_hashed_with_sha1(scenario: Scenario) -> None:
    """The message is hashed with SHA-1 under the signature."""
    forged(scenario, scenario.key(), hash_name="sha1")


@case("hash_forbidden")
def message_hashed_with_md5(scenario: Scenario) -> None:
    """The message is hashed with MD5 under the signature."""
    forged(scenario, scenario.key(), hash_name="md5")


@case("key_weak")
def rsa_of_2048_bits(scenario: Scenario) -> None:
    """A signer with a short RSA key."""
    key = scenario.people.key(ALICE, "ssh-rsa", "2048")
    signature = scenario.people.sign(key, pae(scenario.statement().payload()))
    scenario.add_json(raw_envelope(scenario, signature))


def raw_envelope(scenario: Scenario, signature: bytes) -> str:
    """For keys that cannot be read, and therefore have no fingerprint."""
    payload = encode_base64(scenario.statement().payload())
    signatures = f'[{{"keyid":"SHA256:{"A" * 43}","sig":"{encode_base64(signature)}"}}]'
    return f'{{"payload":"{payload}","payloadType":"{PAYLOAD_TYPE}","signatures":{signatures}}}\n'


def forged_by_hand(scenario: Scenario, key_blob: bytes, signature: bytes) -> None:
    head = b"SSHSIG\0\0\0\1"
    blob = head + packed(key_blob, "workpacket-approval@v1", b"", "sha512", signature)
    scenario.add_json(raw_envelope(scenario, blob))


@case("key_weak")
def ed25519_key_of_small_order(scenario: Scenario) -> None:
    """An ed25519 key for which everybody can sign: the neutral element, R the same, S zero."""
    neutral = b"\1" + bytes(31)
    forged_by_hand(scenario, packed("ssh-ed25519", neutral), packed("ssh-ed25519", neutral + bytes(32)))


@case("key_kind_unsupported")
def certificate_in_place_of_a_key(scenario: Scenario) -> None:
    """A certificate that the attacker issued to himself."""
    kind = "ssh-ed25519-cert-v01@openssh.com"
    forged_by_hand(scenario, packed(kind, b"x" * 32, b"y" * 32), packed("ssh-ed25519", bytes(64)))


@case("algorithm_forbidden")
def webauthn_signature(scenario: Scenario) -> None:
    """A signature that a web site obtained from the token."""
    key = scenario.key(ALICE, "sk-ecdsa-sha2-nistp256@openssh.com")
    scenario.trust_key(ALICE, key)
    forged(scenario, key, algorithm="webauthn-sk-ecdsa-sha2-nistp256@openssh.com")


@case("sshsig_malformed")
def bytes_after_the_signature(scenario: Scenario) -> None:
    """Bytes follow the signature."""
    forged(scenario, scenario.key(), trailing=b"\0")


@case("sshsig_malformed")
def signature_of_unknown_version(scenario: Scenario) -> None:
    """The signature says it has version 2."""
    forged(scenario, scenario.key(), version=2)


@case("sshsig_malformed")
def reserved_field_in_use(scenario: Scenario) -> None:
    """The reserved field holds something; `ssh-keygen` ignores it, and so it is not under the signature."""
    forged(scenario, scenario.key(), reserved=b"yes")


@case("sshsig_malformed")
def ecdsa_with_padded_number(scenario: Scenario) -> None:
    """An ECDSA number with a needless zero in front: the same signature in another file."""
    _with_ecdsa_proof(scenario, lambda r, s: packed(b"\0" + minimal(r), minimal(s)))


@case("sshsig_malformed")
def ecdsa_with_zero(scenario: Scenario) -> None:
    """ECDSA with r = s = 0, which once was valid everywhere in Java."""
    _with_ecdsa_proof(scenario, lambda r, s: packed(b"", b""))


@case("signature_invalid")
def ecdsa_with_order(scenario: Scenario) -> None:
    """ECDSA with s raised by the order of the group."""
    _with_ecdsa_proof(scenario, lambda r, s: packed(minimal(r), minimal(s + _P256_ORDER)))


@case("threshold_unmet")
def ecdsa_signature_negated(scenario: Scenario) -> None:
    """With s negated the same ECDSA signature is valid too, and makes a second file; it is still one voice."""
    scenario.gate = "release"
    _with_ecdsa_proof(scenario, lambda r, s: packed(minimal(r), minimal(s)))
    _with_ecdsa_proof(scenario, lambda r, s: packed(minimal(r), minimal(_P256_ORDER - s)))


def _with_ecdsa_proof(scenario: Scenario, change: Callable[[int, int], bytes]) -> None:
    """A second call with the same statement changes the same signature in another way."""
    key = scenario.key(ALICE, "ecdsa-sha2-nistp256")
    scenario.trust_key(ALICE, key)
    payload = scenario.statement(nonce="a" * 32).payload()
    blob = _signed_once(key, pae(payload))
    signature = read_signature(blob)
    assert isinstance(signature, SshSignature)
    numbers = Reader(signature.proof)
    proof = change(numbers.positive(), numbers.positive())
    head = blob[: -len(packed(packed(key.kind, signature.proof)))]
    scenario.add(payload, key, head + packed(packed(key.kind, proof)))


@cache
def _signed_once(key: SoftKey, message: bytes) -> bytes:
    return key.sign(message)


@case("touch_missing")
def token_not_touched(scenario: Scenario) -> None:
    """A token that signed without being touched; `ssh-keygen -Y verify` accepts it."""
    key = scenario.key(ALICE, "sk-ssh-ed25519@openssh.com")
    scenario.trust_key(ALICE, key)
    forged(scenario, key, flags=0)


@case("touch_missing")
def token_not_touched_but_verified(scenario: Scenario) -> None:
    """PIN flag without touch flag."""
    key = scenario.key(ALICE, "sk-ecdsa-sha2-nistp256@openssh.com")
    scenario.trust_key(ALICE, key)
    forged(scenario, key, flags=VERIFIED)


@case("signature_invalid")
def touch_flag_set_afterwards(scenario: Scenario) -> None:
    """The touch flag is set in the file after signing without touch."""
    key = scenario.key(ALICE, "sk-ssh-ed25519@openssh.com")
    scenario.trust_key(ALICE, key)
    payload = scenario.statement().payload()
    blob = key.sign(pae(payload), flags=0, counter=9)
    assert blob.endswith(b"\0\0\0\0\x09")
    scenario.add(payload, key, blob[:-5] + b"\1\0\0\0\x09")


@case("signature_invalid")
def counter_changed_afterwards(scenario: Scenario) -> None:
    """The token's counter is changed in the file."""
    key = scenario.key(ALICE, "sk-ssh-ed25519@openssh.com")
    scenario.trust_key(ALICE, key)
    payload = scenario.statement().payload()
    scenario.add(payload, key, key.sign(pae(payload), counter=9)[:-1] + b"\x0a")


@case("hardware_required")
def software_key_at_a_touch_gate(scenario: Scenario) -> None:
    """A key in a file at a gate that asks for a token."""
    scenario.gate = "touch"
    scenario.approve()


@case("pin_missing")
def touch_without_pin_at_a_pin_gate(scenario: Scenario) -> None:
    """A touched token without PIN at a gate that asks for it."""
    scenario.gate = "pin"
    key = scenario.key(ALICE, "sk-ssh-ed25519@openssh.com")
    scenario.trust_key(ALICE, key)
    scenario.approve(key=key)


@case("fido_application_wrong")
def token_key_of_a_web_site(scenario: Scenario) -> None:
    """A token's key that belongs to a web site."""
    key = make_key("sk-ssh-ed25519@openssh.com", application="https://shop.example")
    payload = scenario.statement().payload()
    scenario.add_json(raw_envelope(scenario, key.sign(pae(payload))))


@case("approval_not_json")
def nested_a_hundred_thousand_deep(scenario: Scenario) -> None:
    """JSON nested so deeply that it kills a reader."""
    scenario.add_json("[" * 100_000)


@case("approval_not_json")
def envelope_too_large(scenario: Scenario) -> None:
    """More than is ever read."""
    scenario.add_json('{"payload":"' + "A" * 300_000 + '"}\n')


@case("approval_not_json")
def not_a_number(scenario: Scenario) -> None:
    """NaN, which is not JSON, in the statement."""
    payload = scenario.statement().payload().replace(b'"spec":', b'"spec":NaN,"x":')
    scenario.add_signed(payload, scenario.key())


@case("approval_not_json")
def envelope_not_utf8(scenario: Scenario) -> None:
    """Bytes that are not UTF-8."""
    data = b'{"payload":"\xff"}\n'
    scenario.add_file(sha256(data) + ".dsse.json", data)


@case("approval_missing")
def nothing_but_a_claim(scenario: Scenario) -> None:
    """No envelope at all."""
