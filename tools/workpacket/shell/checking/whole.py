"""Checks of the repository as a whole: documents compared with one another and with the log."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from workpacket.documents.packet import Packet
from workpacket.documents.stub import Stub
from workpacket.model.lanes import LaneTable
from workpacket.model.layout import ATTRIBUTE_LINES, ATTRIBUTES_PATH, LOG_FOLDER
from workpacket.model.reason_tables.gate import REASONS
from workpacket.model.wording import counted
from workpacket.problem import Location, Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import across
from workpacket.shell.cache import Cache, RestsOn
from workpacket.shell.checking import (
    Checked,
    Result,
    dump_findings,
    keep_results,
    load_findings,
    recall_results,
    result_key,
)
from workpacket.shell.configuration import board_here
from workpacket.shell.governed_files import CHECKPOINTS_STATE, LOG_STATE, GovernedFiles, find_governed, log_here
from workpacket.shell.judging.log_verification import ContractLog, LogsSeen, look_at_logs
from workpacket.shell.tree import read_bytes
from workpacket.text.source import MARKDOWN, Source
from workpacket.value import Value

_SEVERITY = next(reason.severity for reason in REASONS if reason.code == "scope_not_carried_over")
# The sixth item of the checklist, whether activated packets still contain the requirements of their stubs, is part of
# every check. It needs both texts, which no summary contains, so the result is cached by the digest of both; no
# document has this path.
_KEPT = "carried over: "


def compared(
    root: str,
    summaries: Sequence[tuple[str, str, Mapping[str, object]]],
    lanes: LaneTable,
    cache: Cache,
    logs: LogsSeen | None = None,
) -> Checked:
    """Return the findings of the rules across files, and of the log checks, for the summaries of all documents, given
    as kind, path and summary. `logs` is what the logs say, if they were read before.
    """
    logs = logs or look_at_logs(root)
    repository = RepositorySummaries(summaries, logs.lanes, lanes, logs.passed, board_here(root), logs.attested)
    findings = [*logs.findings, *across(repository)]
    findings += not_carried_over(root, _made_from_stubs(repository, logs.activated), cache)
    findings += contracts_changed(root, logs.contracts, cache)
    findings += _attributes_missing(root)
    files = (LOG_STATE, CHECKPOINTS_STATE, ATTRIBUTES_PATH, *logs.named)
    rests_on = RestsOn(files, clock=logs.by_clock, until=logs.until)
    return Checked(findings, rests_on, by_people=logs.by_people, archived=repository.archived())


def _attributes_missing(root: str) -> Iterator[Problem]:
    """Report an attribute file that an older version of `init` wrote. If there is no log, nothing depends on bytes
    yet."""
    if not os.path.isdir(os.path.join(root, LOG_FOLDER)):
        return
    lines = (_bytes(root, ATTRIBUTES_PATH) or b"").decode("utf-8", "replace").splitlines()
    missing = [line for line in ATTRIBUTE_LINES if line not in lines]
    if missing:
        message = f"it lacks {counted(len(missing), 'line')} that `init` writes: {'; '.join(missing)}"
        yield Problem("attributes_missing", message, Location(ATTRIBUTES_PATH))


def _made_from_stubs(repository: RepositorySummaries, activated: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the stub's path and the packet's path of each activated packet whose stub still exists."""
    stubs, packets = repository.work.stubs, repository.work.packets
    for name in activated:
        if name in stubs and name in packets:
            yield name, stubs[name].path, packets[name].path


class Pair(Value):
    """A stub and the packet made from it."""

    stub: Source
    packet: Source

    @property
    def digest(self) -> str:
        both = (hashlib.sha256(source.encode()).digest() for source in (self.stub, self.packet))
        return hashlib.sha256(b"".join(both)).hexdigest()


def not_carried_over(root: str, paths: Iterable[tuple[str, str, str]], cache: Cache) -> list[Problem]:
    """Given (id, path of the stub, path of the packet), return everything in a stub that its packet lacks."""
    pairs = {result_key(pair.digest, _KEPT + pair.packet.path): pair for pair in _read(root, paths)}
    known = recall_results(cache, list(pairs))
    texts = {key: known[key].findings if key in known else dump_findings(_missing(pairs[key])) for key in pairs}
    keep_results(cache, ((key, Result(text, "")) for key, text in texts.items() if key not in known))
    return [found for key, text in texts.items() for found in load_findings(pairs[key].packet.path, text)]


def contracts_changed(root: str, logs: Sequence[ContractLog], cache: Cache) -> list[Problem]:
    """Return differences between the files of a packet and the contract in its log; cached by the digest of both."""
    if not logs:
        return []
    from workpacket.shell.approvals.subject import drift

    governed = find_governed(root)
    by_key = {_contract_key(governed, log): log for log in logs}
    known = recall_results(cache, list(by_key))
    found: list[Problem] = []
    learned: list[tuple[str, Result]] = []
    for key, log in by_key.items():
        if key in known:
            rows = json.loads(known[key].findings)
        else:
            rows = [
                (one.code, one.message, one.path, one.hint)
                for one in drift(partial(_bytes, root), log_here(root, log.packet))
            ]
            learned.append((key, Result(json.dumps(rows), "")))
        found += (Problem(code, message, Location(path), hint) for code, message, path, hint in rows)
    keep_results(cache, learned)
    return found


def _contract_key(governed: GovernedFiles, log: ContractLog) -> str:
    files = (governed.stubs, governed.packets, governed.refinements)
    read = [_bytes(governed.root, paths[log.packet]) if log.packet in paths else None for paths in files]
    said = [hashlib.sha256(data).hexdigest() if data is not None else "" for data in read]
    return result_key(hashlib.sha256(repr((said, log.heads)).encode()).hexdigest(), f"contract: {log.packet}")


def _bytes(root: str, path: str) -> bytes | None:
    """Return the bytes; None for an unreadable file, which is reported separately."""
    try:
        return read_bytes(root, path, MARKDOWN.size + 1)
    except OSError:
        return None


def activated_among(root: str, paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the stub's path and the packet's path for each of these files that is a packet made from a stub, or
    the stub of such a packet.
    """
    chosen, governed = frozenset(paths), find_governed(root)
    for name, stub in governed.stubs.items():
        packet = governed.packets.get(name, "")
        asked = packet and not chosen.isdisjoint((stub, packet))
        if asked and any(event.type == "activated" for event in governed.log(name).events):
            yield name, stub, packet


def _read(root: str, paths: Iterable[tuple[str, str, str]]) -> Iterator[Pair]:
    """Yield the pairs, except unreadable files, which are reported separately."""
    for _, *both in paths:
        try:
            stub, packet = (Source.from_bytes(path, read_bytes(root, path, MARKDOWN.size + 1)) for path in both)
        except OSError:
            continue
        yield Pair(stub, packet)


def _missing(pair: Pair) -> Iterator[Problem]:
    from workpacket.lifecycle.activation import carried_over  # only for pairs that are not in the cache

    for unmet in carried_over(Stub(pair.stub), Packet(pair.packet)):
        yield Problem(unmet.code, unmet.message, Location(unmet.path), unmet.hint, severity=_SEVERITY)
