"""What all bridges have in common: a checkpoint in a foreign form, on its way between its file and the log.

The log is the only truth. A foreign file is a view of it: what the file says is read whole (or not at all), kept with
every key that we do not know, and can be written again. A bridge is two pure functions and a declaration of what its
form cannot carry; reading files, and appending to the log, is done in one place for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from workpacket.model.canonical import Json
from workpacket.text.source import Fault


class Foreign(NamedTuple):
    """One checkpoint as its file says it. `stream` is where it belongs in the log: `<format>/<key>`."""

    format: str
    stream: str
    values: Mapping[str, Json]


class Bridge(Protocol):
    """One foreign form. `lossy` names, in words, what the form cannot carry and so is lost on export."""

    name: str
    lossy: tuple[str, ...]

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        """Everything in the file, or all that is wrong with it: never a part of it."""
        ...

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """The canonical file. For a file that was canonical, `write(read(file)) == file`."""
        ...


def stream_named(form: str, *key: str) -> str:
    """The stream of a checkpoint. The parts of the key are quoted: no '/' or '@' in one means anything."""
    from urllib.parse import quote  # costs start-up, and most uses only read

    return "/".join((form, *(quote(part, safe=" :#+=,()") for part in key)))
