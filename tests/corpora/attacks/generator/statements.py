"""Attacks on the form of the signed statement: everything here carries a valid signature of the right person."""

from __future__ import annotations

import json
from typing import Any

from corpora.attacks.generator.scenario import Scenario, case
from workpacket.approvals.envelope import PREDICATE_TYPE


def _statement(name: str, title: str, code: str, *path: str, value: Any = None, remove: bool = False) -> None:
    """A case whose statement has another value, or none, at `path`."""

    def build(scenario: Scenario) -> None:
        document = json.loads(scenario.statement().payload())
        place = document
        for step in path[:-1]:
            place = place[step]
        if remove:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        payload = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        scenario.add_signed(payload, scenario.key())

    build.__name__, build.__doc__ = name, title
    case(code)(build)


_BAD = "statement_malformed"
_statement("statement_of_another_type", "Another _type.", _BAD, "_type", value="https://in-toto.io/Statement/v0.1")
_statement(
    "another_predicate",
    "A predicate that is not an approval.",
    _BAD,
    "predicateType",
    value="https://slsa.dev/provenance/v1",
)
_statement("no_subject", "A yes to nothing.", _BAD, "subject", value=[])
_statement("no_nonce", "No nonce, so that it can be used for ever.", _BAD, "predicate", "nonce", remove=True)
_statement("short_nonce", "A nonce that can be guessed.", _BAD, "predicate", "nonce", value="00")
_statement("no_contract", "No contract at all.", _BAD, "predicate", "contract", remove=True)
_statement(
    "contract_in_version_1",
    "Version 1 with a contract, which it does not have.",
    _BAD,
    "predicateType",
    value="urn:workpacket:approval:v1",
)
_statement("contract_in_capitals", "A contract in capitals.", _BAD, "predicate", "contract", value="A" * 64)
_statement("no_expiry", "No time of expiry.", _BAD, "predicate", "expiresAt", remove=True)
_statement("no_repository", "No repository.", _BAD, "predicate", "repository", remove=True)
_statement(
    "unknown_field",
    "A field that this version does not know.",
    _BAD,
    "predicate",
    "conditions",
    value="only on Sundays",
)
_statement("decision_unknown", "A decision that is neither yes nor no.", _BAD, "predicate", "decision", value="Approve")
_statement("approver_pattern", "A pattern as approver.", _BAD, "predicate", "approver", value="*@example.org")
_CYRILLIC = "\u0430lice@example.org"
_statement("approver_in_another_script", "A Cyrillic a.", _BAD, "predicate", "approver", value=_CYRILLIC)
_statement(
    "time_in_another_zone", "A time with an offset.", _BAD, "predicate", "issuedAt", value="2026-03-09T13:00:00+01:00"
)
_statement(
    "day_that_does_not_exist", "The 30th of February.", _BAD, "predicate", "issuedAt", value="2026-02-30T12:00:00Z"
)
_statement(
    "digest_by_sha1",
    "A subject known only by SHA-1.",
    _BAD,
    "subject",
    value=[{"name": "x", "digest": {"sha1": "0" * 40}}],
)
_statement("digest_in_capitals", "A digest in capitals.", _BAD, "predicate", "policy", value="A" * 64)
_statement(
    "packet_with_newline",
    "A packet id that ends with a newline.",
    _BAD,
    "predicate",
    "packet",
    value="WP-7-Fuel-Gauge-v2\n",
)
_statement("lone_surrogate", "Text that has no bytes.", _BAD, "predicate", "scope", value=["\ud800"])


@case("statement_not_canonical")
def statement_with_spaces(scenario: Scenario) -> None:
    """A statement in another spelling, signed as it is."""
    document = json.loads(scenario.statement().payload())
    scenario.add_signed(json.dumps(document, sort_keys=True, indent=1).encode(), scenario.key())


@case("statement_not_canonical")
def statement_with_keys_in_disorder(scenario: Scenario) -> None:
    """The keys of the statement in another order."""
    document = json.loads(scenario.statement().payload())
    document = dict(reversed(document.items()))
    assert document["predicateType"] == PREDICATE_TYPE
    scenario.add_signed(json.dumps(document, separators=(",", ":")).encode(), scenario.key())


@case("statement_malformed")
def payload_is_a_list(scenario: Scenario) -> None:
    """The payload is JSON, but no statement."""
    scenario.add_signed(b"[]", scenario.key())
