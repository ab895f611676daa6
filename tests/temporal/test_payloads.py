"""What a process sends to Temporal: no secrets, and large values by reference. No server is needed to see that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.exceptions import ApplicationError

from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.records.redaction import Policy, Redactor
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.temporal.payloads import REDACTED, data_converter

SECRET = "sk-ThisIsTheSecret-9f8e7d6c5b4a"


def redactor(policy: Policy = "hide") -> Redactor:
    return Redactor(values=(SECRET,), policy=policy)


def sent(converter: DataConverter, value: Any) -> Payload:
    (payload,) = asyncio.run(converter.encode([value]))
    return payload


def received(converter: DataConverter, payload: Payload) -> Any:
    (value,) = asyncio.run(converter.decode([payload]))
    return value


def test_a_value_without_a_secret_is_sent_unchanged() -> None:
    converter = data_converter(redactor())
    value = {"b": [1, 2.5, None, "ü"], "a": True}
    assert sent(converter, value).data == sent(DataConverter.default, value).data
    assert received(converter, sent(converter, value)) == value


def test_a_secret_is_hidden_and_counted() -> None:
    converter = data_converter(redactor())
    payload = sent(converter, {"header": f"Bearer {SECRET}", "amount": 3})
    assert SECRET.encode() not in payload.SerializeToString()
    assert payload.metadata[REDACTED] == b"1"
    assert received(converter, payload)["amount"] == 3


def test_a_secret_is_encrypted_if_there_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    import base64

    monkeypatch.setenv("WORKPACKET_PAYLOAD_KEY", base64.b64encode(AESGCM.generate_key(256)).decode())
    converter = data_converter(redactor("encrypt"))
    payload = sent(converter, {"token": SECRET})
    assert SECRET.encode() not in payload.SerializeToString()
    assert received(converter, payload) == {"token": SECRET}


def test_a_secret_is_refused_if_the_policy_says_so() -> None:
    with pytest.raises(RedactionFailed):
        sent(data_converter(redactor("refuse")), SECRET)


def test_an_error_is_recorded_without_secrets_in_any_of_its_causes() -> None:
    converter, failure = data_converter(redactor()), Failure()
    error = ApplicationError(f"login with {SECRET} failed", {"tried": SECRET})
    error.__cause__ = ValueError(SECRET)
    asyncio.run(converter.encode_failure(error, failure))
    assert SECRET.encode() not in failure.SerializeToString()


def test_the_codec_of_the_program_is_kept() -> None:
    class Reversed(PayloadCodec):
        async def encode(self, payloads: Any) -> list[Payload]:
            return [Payload(metadata=one.metadata, data=one.data[::-1]) for one in payloads]

        decode = encode

    converter = data_converter(redactor(), None, DataConverter(payload_codec=Reversed()))
    payload = sent(converter, {"token": SECRET})
    assert SECRET[::-1].encode() not in payload.data
    assert payload.data.startswith(b"}")
    assert list(received(converter, payload)) == ["token"]


def test_a_large_value_goes_to_the_store_once_and_comes_back(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "runs.db")
    converter = data_converter(redactor(), store)
    value = "x" * 3_000_000
    payloads = [sent(converter, value) for _ in range(2)]
    assert max(payload.ByteSize() for payload in payloads) < 1000
    assert len(store.heads("temporal/")) == 1
    assert received(converter, payloads[1]) == value
    store.close()
