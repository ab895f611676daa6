"""Signatures made in web pages, by security keys and passkeys. tests/approvals/webauthn_cases.jsonl has many more."""

from __future__ import annotations

import base64
import hashlib
import json

from corpora.attacks.generator.people import ALICE
from corpora.attacks.generator.scenario import POLICY, Scenario, case
from softkeys import TOUCHED, VERIFIED, PageParts, SoftKey, make_key, packed
from workpacket.approvals.envelope import pae
from workpacket.approvals.sshsig import NAMESPACE

KIND = "sk-ecdsa-sha2-nistp256@openssh.com"
ORIGIN = "http://localhost:7363"
BACKED_UP = 0x18
PAGES = f"""
[approvals.webauthn]
rp_ids = ["localhost"]
origins = ["{ORIGIN}"]
port = 7363
"""


def prepared(scenario: Scenario, pages: str = PAGES, application: str = "localhost") -> SoftKey:
    """Alice has the key of a page, under a policy that says what of pages."""
    scenario.policy = POLICY + pages
    key = make_key(KIND, application)
    scenario.trust_key(ALICE, key)
    return key


def in_page(scenario: Scenario, key: SoftKey, *, origin: str = ORIGIN, flags: int = TOUCHED) -> None:
    payload = scenario.statement().payload()
    scenario.add(payload, key, key.sign_in_page(pae(payload), origin, flags=flags))


def with_client_data(scenario: Scenario, key: SoftKey, message: bytes | None = None, **members: object) -> None:
    """A signature over client data in which some members are other than they should be."""
    payload = scenario.statement().payload()
    digest = hashlib.sha512(pae(payload) if message is None else message).digest()
    wrapped = b"SSHSIG" + packed(NAMESPACE, b"", "sha512", digest)
    challenge = base64.urlsafe_b64encode(wrapped).rstrip(b"=").decode()
    usual = {"type": "webauthn.get", "challenge": challenge, "origin": ORIGIN, "crossOrigin": False}
    written = json.dumps(usual | members, separators=(",", ":")).encode()
    scenario.add(payload, key, key.page_signature(PageParts(ORIGIN, written)))


@case()
def genuine_touch_in_a_page(scenario: Scenario) -> None:
    """An approval by touch in the page of `approve --browser`, at a gate that asks for a touch."""
    scenario.gate = "touch"
    in_page(scenario, prepared(scenario))


@case()
def genuine_pin_in_a_page(scenario: Scenario) -> None:
    """A key that asked for its PIN, under a policy that asks for it in every page."""
    in_page(scenario, prepared(scenario, f"{PAGES}pin = true\n"), flags=TOUCHED | VERIFIED)


@case()
def genuine_synced_passkey(scenario: Scenario) -> None:
    """A synced passkey under a policy that accepts those."""
    in_page(scenario, prepared(scenario, f"{PAGES}synced = true\n"), flags=TOUCHED | BACKED_UP)


@case()
def genuine_page_with_later_members(scenario: Scenario) -> None:
    """A browser that adds a member to the client data."""
    with_client_data(scenario, prepared(scenario), other_keys_can_be_added_here="do not compare")


@case("webauthn_not_accepted")
def page_where_the_policy_lists_none(scenario: Scenario) -> None:
    """The policy says nothing of pages."""
    in_page(scenario, prepared(scenario, ""))


@case("webauthn_not_accepted")
def page_on_another_port(scenario: Scenario) -> None:
    """Another program of the machine asked for the touch, on a port of its own."""
    in_page(scenario, prepared(scenario), origin="http://localhost:8080")


@case("webauthn_not_accepted")
def page_of_another_site(scenario: Scenario) -> None:
    """The key of a shop, entered in allowed_signers, and the shop's page."""
    in_page(scenario, prepared(scenario, application="shop.example"), origin="https://shop.example")


@case("client_data_wrong")
def page_within_another_site(scenario: Scenario) -> None:
    """The page was in a frame of another site."""
    with_client_data(scenario, prepared(scenario), crossOrigin=True)


@case("client_data_wrong")
def page_below_another_site(scenario: Scenario) -> None:
    """The client data names another site above the page, and denies it."""
    with_client_data(scenario, prepared(scenario), topOrigin="https://shop.example")


@case("client_data_wrong")
def page_that_registered_a_key(scenario: Scenario) -> None:
    """The signature was made when a key was registered."""
    with_client_data(scenario, prepared(scenario), type="webauthn.create")


@case("client_data_wrong")
def page_that_asked_for_other_bytes(scenario: Scenario) -> None:
    """The touch was given for another statement."""
    with_client_data(scenario, prepared(scenario), b"another statement")


@case("client_data_wrong")
def page_that_names_another_origin(scenario: Scenario) -> None:
    """The client data names another page than the signature."""
    with_client_data(scenario, prepared(scenario), origin="http://localhost:8080")


@case("passkey_synced")
def passkey_synced_where_none_are_accepted(scenario: Scenario) -> None:
    """A passkey that the person's account copies to all of their devices."""
    in_page(scenario, prepared(scenario), flags=TOUCHED | BACKED_UP)


@case("hardware_required")
def passkey_synced_at_a_touch_gate(scenario: Scenario) -> None:
    """A passkey that may be copied, at a gate that asks for a token."""
    scenario.gate = "touch"
    in_page(scenario, prepared(scenario, f"{PAGES}synced = true\n"), flags=TOUCHED | BACKED_UP)


@case("touch_missing")
def page_without_a_touch(scenario: Scenario) -> None:
    """The key signed in the page without a touch."""
    in_page(scenario, prepared(scenario), flags=0)


@case("pin_missing")
def page_without_a_pin(scenario: Scenario) -> None:
    """A touch without PIN, under a policy that asks for it in every page."""
    in_page(scenario, prepared(scenario, f"{PAGES}pin = true\n"))


@case("algorithm_forbidden")
def key_of_a_page_that_signs_as_ssh_does(scenario: Scenario) -> None:
    """A program used the key of a page without a page."""
    key = prepared(scenario)
    payload = scenario.statement().payload()
    scenario.add(payload, key, key.sign(pae(payload)))


@case("algorithm_forbidden")
def key_of_ssh_that_signs_in_a_page(scenario: Scenario) -> None:
    """A page used a key that ssh-keygen made."""
    in_page(scenario, prepared(scenario, application="ssh:"))


@case("policy_malformed")
def page_that_belongs_to_no_relying_party(scenario: Scenario) -> None:
    """The policy lists a page that could not have used the keys that it lists."""
    in_page(scenario, prepared(scenario, PAGES.replace('["localhost"]', '["example.org"]')))


@case("policy_malformed")
def page_without_tls(scenario: Scenario) -> None:
    """The policy lists a page that anybody on the network could have replaced."""
    in_page(scenario, prepared(scenario, PAGES.replace(f'"{ORIGIN}"', f'"{ORIGIN}", "http://example.org"')))
