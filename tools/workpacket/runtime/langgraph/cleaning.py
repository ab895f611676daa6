"""Secrets are taken out of state, metadata and configuration before they are stored.

What the serialiser made is searched as it is: in MessagePack a text stands there in UTF-8, also inside an object. Only
where something is found is it taken apart, cleaned and put together again. Metadata and configuration are also judged
by their names: LangGraph copies whatever stands in `configurable` into the metadata of each checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import ormsgpack

from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.langgraph.parcels import Typed
from workpacket.runtime.redaction import Redactor
from workpacket.runtime.secret_rules import names_a_secret

BY_NAME = "[redacted:name]"


class Cleaner(NamedTuple):
    redactor: Redactor

    def typed(self, value: Typed) -> Typed:
        """The serialised value without secrets."""
        kind, content = value
        if kind in {"null", "msgpack", "bytes", "bytearray"}:
            text = content.decode("utf-8", "surrogateescape")
            if not self.redactor.may_hold_secret(text):
                return kind, bytes(content)
        try:
            if kind == "msgpack":
                return kind, self._msgpack(content)
            if kind in {"bytes", "bytearray"}:
                return kind, self._bytes(content)
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error
        raise RedactionFailed(
            f"what a serialiser calls {kind!r} can not be searched for secrets, so it is not stored",
            hint="give the saver no serialiser that pickles or encrypts; encrypt the disk instead",
        )

    def name(self, text: str) -> str:
        """The name under which a thread, namespace, checkpoint or task is kept: itself, unless it holds a secret."""
        if self.redactor.clean_text(text) == text:
            return text
        return f"redacted-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    def metadata(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Without the texts whose names say that they are secret. The rest is searched once it is serialised."""
        return {name: _by_name(name, value) for name, value in values.items()}

    def _msgpack(self, content: bytes) -> bytes:
        opened = ormsgpack.unpackb(content, ext_hook=self._object, option=ormsgpack.OPT_NON_STR_KEYS)
        return ormsgpack.packb(self._walk(opened), option=ormsgpack.OPT_NON_STR_KEYS)

    def _object(self, code: int, content: bytes) -> ormsgpack.Ext:
        """An object of LangGraph's is MessagePack again: names of what makes it, and what it is made from."""
        return ormsgpack.Ext(code, self._msgpack(content))

    def _bytes(self, content: bytes) -> bytes:
        text = self.redactor.clean_text(content.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape")

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redactor.clean_text(value)
        if isinstance(value, bytes):
            return self._bytes(value)
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            return {self._key(key): self._walk(item) for key, item in value.items()}
        return value

    def _key(self, key: Any) -> Any:
        return tuple(map(self._walk, key)) if isinstance(key, tuple) else self._walk(key)


def _by_name(name: object, value: Any) -> Any:
    if isinstance(value, str) and isinstance(name, str) and names_a_secret(name):
        return BY_NAME
    if isinstance(value, Mapping):
        return {key: _by_name(key, item) for key, item in value.items()}
    return value
