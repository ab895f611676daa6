"""What depends on nothing but bytes is worked out once in a run: the event in a file, the findings in a document.

Nearly all tests of commands begin with the same few documents and events. The product remembers them too, in a cache of
each repository, which a new repository does not have. CI works everything out each time: WORKPACKET_TEST_MEMORY=off.

Imported before anything of the product that uses them.
"""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Any

from workpacket.ledger import log
from workpacket.model.events import LogEvent
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.problem import Problem
from workpacket.shell import checking
from workpacket.shell.checking import FileResult

# A run of all tests has some ten thousand of each; the same ones come soon again or never.
MOST = 5_000

really_decode, really_examine = log.decode_event, checking.examine_bytes
_events: dict[tuple[str, str, bytes], LogEvent] = {}
_results: dict[tuple[object, ...], FileResult] = {}


def decoded(
    folder: str, name: str, data: bytes, *, names: Container[str] = (), form: log.Format = log.FORMAT
) -> LogEvent | Problem:
    key = (folder, name, data)
    if form is log.FORMAT and key in _events:
        return _events[key]
    found = really_decode(folder, name, data, names=names, form=form)
    if form is log.FORMAT and isinstance(found, LogEvent):
        _keep(_events, key, found)
    return found


def examined(path: str, kind: str, data: bytes, lanes: LaneTable = BUILT_IN) -> FileResult:
    if lanes is not BUILT_IN:
        return really_examine(path, kind, data, lanes)
    key = (path, kind, data, vars(checking)["rules_for"])  # tests bring rules of their own
    if key not in _results:
        _keep(_results, key, really_examine(path, kind, data))
    return _results[key]


def _keep(known: dict[Any, Any], key: object, value: object) -> None:
    if len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = value


if os.environ.get("WORKPACKET_TEST_MEMORY") != "off":
    log.decode_event = decoded
    checking.examine_bytes = examined
