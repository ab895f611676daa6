"""Secrets are taken out of state, metadata and configuration before they are stored.

What the serialiser made is searched as it is: in MessagePack a text stands there in UTF-8, also inside an object. Of a
channel that grew, only what is new is searched: the rest has been, when it was stored. Only where something is found is
the value taken apart, cleaned and put together again. Metadata and configuration are also judged by their names:
LangGraph copies whatever stands in `configurable` into the metadata of each checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ormsgpack

from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.langgraph.delta import patch_of
from workpacket.runtime.langgraph.parcels import Typed
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.records.secret_rules import names_a_secret

BY_NAME = "[redacted:name]"
SEARCHED = frozenset({"null", "msgpack", "bytes", "bytearray"})


class Cleaner(NamedTuple):
    redactor: Redactor

    def typed(self, value: Typed, known: Typed | None = None) -> Typed:
        """The serialised value without secrets. `known` is what was kept of it before: only what is new is searched."""
        kind, content = value
        try:
            if kind in SEARCHED and not any(self._is_secret(part) for part in self._new_parts(content, known)):
                return kind, bytes(content)
            if kind == "msgpack":
                return kind, self._msgpack(content)
            if kind in SEARCHED:
                return kind, self._bytes(content)
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error
        raise RedactionFailed(
            f"what a serialiser calls {kind!r} can not be searched for secrets, so it is not stored",
            hint="give the saver no serialiser that pickles or encrypts; encrypt the disk instead",
        )

    def _is_secret(self, part: bytes) -> bool:
        text = part.decode("utf-8", "surrogateescape")
        return self.redactor.clean_text(text) != text

    def _new_parts(self, content: bytes, known: Typed | None) -> Iterator[bytes]:
        """What is not in `known`, and where two pieces of it meet, with as much around it as a secret may be long."""
        if known is None:
            yield bytes(content)
            return
        reach, end, at = self.redactor.longest, 0, 0
        begin = 0
        for operation in patch_of([known[1]], bytes(content)):
            length, new = (len(operation), True) if isinstance(operation, bytes) else (operation[1], False)
            around = max(0, at - reach), at + (length if new else 0) + reach
            if around[0] > end:
                yield content[begin:end]
                begin = around[0]
            end, at = max(end, around[1]), at + length
        yield content[begin:end]
        yield content[max(0, at - reach) :]

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
