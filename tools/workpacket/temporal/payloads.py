"""What leaves a process for Temporal: without secrets, and large values by reference.

Temporal keeps every argument, result and error message in its history. Each JSON value is searched for secrets before
it is sent; the metadata of a payload says how many were removed, so that no activity runs with an argument that is not
what its caller passed. `WORKPACKET_REDACTION` decides between hiding, encrypting and refusing, as in a store.

The server accepts at most 2 MB a value. With a store, larger ones go there, each as an event with a payload, and only a
reference to it goes to Temporal.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    ExternalStorage,
    PayloadCodec,
    PayloadConverter,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from workpacket.approvals.envelope import read_envelope
from workpacket.model.canonical import Json
from workpacket.model.layout import envelope_name
from workpacket.problem import Problem
from workpacket.runtime.errors import PayloadErased, RedactionFailed
from workpacket.runtime.holders import SystemClock
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.records.jcs import SEALED, address_of, jcs_text, stored_text, value_of
from workpacket.runtime.records.redaction import Redactor, plain_payload, sealed_payload
from workpacket.runtime.stores.contract import Append, Store

REDACTED: Final = "workpacket-redacted"  # the key in a payload's metadata: how many secrets were removed
_SEALED_ENCODING: Final = "workpacket-sealed"
_JSON: Final = b"json/plain"
INLINE: Final = 512 * 1024  # a larger payload goes to the store; the server's limit is 2 MB
_STREAMS: Final = "temporal"


@dataclass
class SecretsCodec(PayloadCodec):
    """Removes secrets from JSON payloads, or encrypts the payloads that contain any. `then` is the codec of the
    program, which receives what is left.
    """

    redactor: Redactor
    then: PayloadCodec | None = None

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        clean = [self._encoded(each) for each in payloads]
        return clean if self.then is None else await self.then.encode(clean)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [_decoded(each) for each in (payloads if self.then is None else await self.then.decode(payloads))]

    def _encoded(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != _JSON or REDACTED in payload.metadata:
            return payload
        text = payload.data.decode("utf-8", "surrogatepass")
        if not self.redactor.may_hold_secret(text):
            return payload
        value = value_of(payload.data)
        signed = _signed(value)
        clean, count = self.redactor.clean_value(*((value, text) if signed is None else (signed.rest, signed.text)))
        if not count:
            return payload
        if self.redactor.policy == "refuse":
            raise RedactionFailed(f"a value for Temporal contains {count} parts that look like secrets")
        if self.redactor.policy == "encrypt":
            metadata = {**payload.metadata, _SEALED_ENCODING: b"1"}
            return Payload(metadata=metadata, data=sealed_payload(payload.data))
        metadata = {**payload.metadata, REDACTED: str(count).encode("ascii")}
        if signed is not None and isinstance(clean, dict):
            clean = {**clean, "envelope": signed.envelope}
        return Payload(metadata=metadata, data=stored_text(clean).encode("utf-8", "surrogatepass"))


class _Signed(NamedTuple):
    """An answer with a signature. The envelope is left as it is: what it says of the question was searched with the
    question, and a changed envelope is worth nothing."""

    envelope: str
    rest: Json
    text: str


def _signed(value: Json) -> _Signed | None:
    envelope = value.get("envelope") if isinstance(value, Mapping) and "subject" in value else None
    if not isinstance(envelope, str) or not envelope or not isinstance(value, Mapping):
        return None
    data = envelope.encode("utf-8", "surrogatepass")
    if isinstance(read_envelope(envelope_name(hashlib.sha256(data).hexdigest()), data), Problem):
        return None
    rest: Json = {name: each for name, each in value.items() if name != "envelope"}
    return _Signed(envelope, rest, jcs_text(rest))


def _decoded(payload: Payload) -> Payload:
    if _SEALED_ENCODING not in payload.metadata or not payload.data.startswith(SEALED):
        return payload
    metadata = {name: value for name, value in payload.metadata.items() if name != _SEALED_ENCODING}
    return Payload(metadata=metadata, data=plain_payload(payload.data))


class CleanFailures(DefaultFailureConverter):
    """Removes secrets from the messages and stack traces of errors."""

    redactor: Redactor | None = None

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        if self.redactor is not None:
            _clean(failure, self.redactor)


def _clean(failure: Failure, redactor: Redactor) -> None:
    failure.message = redactor.clean_text(failure.message)
    failure.stack_trace = redactor.clean_text(failure.stack_trace)
    if failure.HasField("cause"):
        _clean(failure.cause, redactor)


class InStore(StorageDriver):
    """Keeps large payloads in a store of runs, by their digest. A payload is stored once, however often it is sent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clock = SystemClock()

    def name(self) -> str:
        return "workpacket"

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        del context  # one store for all workflows
        return [StorageDriverClaim({"sha256": await asyncio.to_thread(self._keep, each)}) for each in payloads]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        del context
        return [await asyncio.to_thread(self._kept, each.claim_data["sha256"]) for each in claims]

    def _keep(self, payload: Payload) -> str:
        content = payload.SerializeToString(deterministic=True)
        digest, now = address_of(content), self._clock.now()
        new = NewEvent("value.published", jcs_text({"name": "payload", "number": 1}), payload=content)
        self._store.append(Append(f"{_STREAMS}/{digest}", (new,), f"payload:{digest}", 1, "temporal", now, now, digest))
        return digest

    def _kept(self, digest: str) -> Payload:
        (event,) = self._store.read(f"{_STREAMS}/{digest}")
        content = self._store.payload(event)
        if content is None:
            raise PayloadErased(f"the payload {digest} is not in the store")
        return Payload.FromString(content)


def data_converter(
    redactor: Redactor, store: Store | None = None, existing: DataConverter | None = None, *, inline: int = INLINE
) -> DataConverter:
    """Return a converter that removes secrets, and that sends payloads over `inline` bytes to the store."""
    before = existing or DataConverter.default
    failures = type("CleanFailures", (CleanFailures,), {"redactor": redactor})
    storage = ExternalStorage(drivers=[InStore(store)], payload_size_threshold=inline) if store is not None else None
    return replace(
        before,
        payload_codec=SecretsCodec(redactor, before.payload_codec),
        failure_converter_class=failures,
        external_storage=storage or before.external_storage,
    )
