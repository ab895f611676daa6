"""Of the secrets on the list at least 95 % are hidden; of the harmless values at most 0.5 % are altered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.secret_lists import SecretValue, harmless_values, secret_values
from workpacket.runtime.records.redaction import Redactor

RECALL, FALSE_ALARMS = 0.95, 0.005


def redactor_for(one: SecretValue) -> Redactor:
    return Redactor.from_environment({one.variable: one.content} if one.variable else {})


def cleaned(redactor: Redactor, value: Any) -> Any:
    return redactor.clean_value(value, json.dumps(value, ensure_ascii=False))[0]


def texts_in(value: Any) -> str:
    """Every text and number in a value, keys included, one on each line."""
    if isinstance(value, dict):
        return "\n".join(f"{key}\n{texts_in(item)}" for key, item in value.items())
    return "\n".join(map(texts_in, value)) if isinstance(value, list) else str(value)


def test_the_lists_have_the_promised_size() -> None:
    secrets, harmless = secret_values(), harmless_values()
    assert len(secrets) >= 400
    assert len({one.kind for one in secrets}) >= 60
    assert len({json.dumps(value) for value in harmless}) == 2000


def test_nearly_every_secret_of_the_list_is_hidden() -> None:
    secrets = secret_values()
    missed = [
        one.kind
        for one in secrets
        if any(secret in texts_in(cleaned(redactor_for(one), one.value)) for secret in one.secrets)
    ]
    assert len(missed) <= (1 - RECALL) * len(secrets), sorted(set(missed))


def test_hardly_any_harmless_value_is_altered() -> None:
    values, redactor = harmless_values(), Redactor()
    altered = [value for value in values if cleaned(redactor, value) != value]
    assert len(altered) <= FALSE_ALARMS * len(values), altered[:10]


def test_what_was_cleaned_once_is_not_altered_again() -> None:
    for one in secret_values():
        redactor = redactor_for(one)
        once = cleaned(redactor, one.value)
        assert cleaned(redactor, once) == once


@pytest.mark.parametrize("name", ["Password", "API_TOKEN", "db.password", "client-secret", "X-Api-Key"])
def test_a_secret_is_found_under_its_name_in_a_mapping_and_in_a_text(name: str) -> None:
    secret = "Zebra-" + "7319!x2"
    assert secret not in texts_in(cleaned(Redactor(), {"a": [{name: secret}]}))
    assert secret not in Redactor().clean_text(f"{name}={secret}\n")


def test_secrets_that_were_written_without_the_patterns_are_hidden() -> None:
    missed = [
        one.kind
        for one in secret_values("secrets_held_out.tsv")
        if any(secret in texts_in(cleaned(redactor_for(one), one.value)) for secret in one.secrets)
    ]
    assert missed == []


def test_harmless_values_that_were_written_without_the_patterns_stay() -> None:
    redactor = Redactor()
    values = harmless_values("harmless_held_out.tsv", 300)
    assert [value for value in values if cleaned(redactor, value) != value] == []


@pytest.mark.parametrize("value", [
    "git config set user.name Ann12345678", "zip -P archive1.zip folder", "snmp-server community public RO",
    "assertEqual('key', 'value12345')", "('session', '2026-10-04T10:00')", "docker login -p 5000:5000 host",
    "redis-cli -h cache -p 6379 -n 2", "-auth none:12345678", "psk31 is a radio mode", "Digest of news, response=none",
    "jdbc:oracle:thin:@//db:1521/ORCL", "openssl x509 -passin file:pw1.txt", {"pass": "render-pass-01"},
    {"pass": True, "user": "ann"}, {"verifier": "gov-check-2"},
])  # fmt: skip
def test_what_only_resembles_a_command_with_a_password_stays(value: Any) -> None:
    assert cleaned(Redactor(), value) == value
