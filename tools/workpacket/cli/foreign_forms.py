"""`workpacket log import` and `workpacket log export`: read checkpoints in foreign formats into the log, and write them
from it.

`workpacket log export attestations`: the log and the approvals, as statements that other tools can verify.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from workpacket import __version__
from workpacket.bridges.foreign import (
    BRIDGES,
    AmongOthers,
    Bridge,
    Foreign,
    ImportPlan,
    Placed,
    append_planned,
    bridge_named,
    export,
    plan_import,
)
from workpacket.cli.approve import BASE_OPTION
from workpacket.cli.open_store import answer, open_runtime, refusing
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.read_only import all_facts
from workpacket.cli.workspace import write_new
from workpacket.git.repository import find_repository, without_remote
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.attestations import (
    AttestedPacket,
    MachineKey,
    VerifiedSource,
    landing_of,
    proofs_of,
    read_machine_key,
    signed_statement,
)
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.actor import moment
from workpacket.shell.approvals.check import attested_packets, check_approvals, contracts_changed, resource_of
from workpacket.shell.approvals.decisions import trusted_or_error
from workpacket.shell.approvals.facts import open_approvals, require_id
from workpacket.shell.cache import NO_CACHE
from workpacket.text.source import Source


@refusing
def take_in(arguments: Arguments) -> int:
    bridge = _bridge_of(arguments)
    if not arguments.words:
        raise usage(arguments.command, "missing_argument", f"give the files in the {bridge.name} format")
    placed: list[Placed] = []
    findings: list[Problem] = []
    files = {path: _bytes_of(path) for path in arguments.words}
    passed_over = _passed_over(bridge, files)
    for path in arguments.words:
        if path in passed_over:
            continue
        found, faults = _read(bridge, path, files[path])
        placed += found
        findings += faults
    if findings:
        return _invalid(arguments, findings)
    with open_runtime(create=not arguments.flag("plan")) as runtime:
        planned = plan_import(runtime.store, bridge, placed)
        if not arguments.flag("plan"):
            append_planned(runtime, planned)
    return _answer(arguments, bridge, planned, passed_over)


def _bridge_of(arguments: Arguments) -> Bridge:
    """Return the bridge named by the first word, and remove that word."""
    known = ", ".join(sorted(BRIDGES))
    if not arguments.words:
        raise usage(arguments.command, "missing_argument", f"name the format: {known}")
    name = arguments.words.pop(0)
    if name not in BRIDGES:
        raise usage(arguments.command, "invalid_value", f"unknown format {name!r}: expected {known}")
    return bridge_named(name)


def _bytes_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from None


def _passed_over(bridge: Bridge, files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the files of other kinds, with their kinds, because the argument may be a whole folder. If there are only
    such files, refuse each of them.
    """
    if not isinstance(bridge, AmongOthers):
        return {}
    found = {path: kind for path, data in files.items() if (kind := bridge.other_kind(path, data))}
    return found if len(found) < len(files) else {}


def _read(bridge: Bridge, path: str, data: bytes) -> tuple[list[Placed], list[Problem]]:
    source = Source.from_bytes(path, data)
    placed: list[Placed] = []
    findings: list[Problem] = []
    read: Sequence[Foreign | Problem] = bridge.read(path, data)
    for position, one in enumerate(read):
        if isinstance(one, Problem):
            findings.append(source.placed(one))
        else:
            placed.append(Placed(one, path, position))
    if not placed and not findings:
        findings.append(
            Problem("checkpoint_malformed", f"it contains no {bridge.name} checkpoints", Location(path, 1, 1))
        )
    return placed, findings


def _invalid(arguments: Arguments, findings: list[Problem]) -> int:
    then = f"workpacket explain {findings[0].code}"
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("import", exits.FINDINGS, findings, {"next": then}))
        return exits.FINDINGS
    for one in sorted(findings, key=lambda finding: finding.order):
        print(f"{escape(one.path)}:{one.line}:{one.column}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint or catalogue()[one.code].remedy)}")
    print("nothing was imported")
    print(f"next: {then}")
    return exits.FINDINGS


def _answer(
    arguments: Arguments, bridge: Bridge, planned: tuple[ImportPlan, ...], passed_over: Mapping[str, str]
) -> int:
    would = "would be " if arguments.flag("plan") else ""
    words = {"genesis": f"{would}imported", "extended": f"{would}extended", "unchanged": "unchanged"}
    text = "".join(
        f"{escape(plan.stream)}  {words[plan.outcome]}, {plan.known} known, {len(plan.new)} new\n" for plan in planned
    )
    text += "".join(f"{escape(path)}  skipped: it is a {kind}\n" for path, kind in passed_over.items())
    others: list[Json] = [{"path": path, "kind": kind} for path, kind in passed_over.items()]
    rows: list[Json] = [
        {"stream": plan.stream, "outcome": plan.outcome, "known": plan.known, "new": len(plan.new)} for plan in planned
    ]
    said: dict[str, Json] = {"format": bridge.name, "streams": rows, "passed_over": others}
    return answer(arguments, text, said, then=f"workpacket log export {bridge.name}")


IMPORT = Command(
    "import",
    take_in,
    arguments="FORMAT PATH...",
    description="""
An invalid file is refused with its line and column; if one of several files is refused, none is imported. A file that
contradicts the log is refused too: see `workpacket explain view_conflict`. Summaries, cost files and templates among
the checkpoints of roles are skipped and listed.""",
    options=(Option("plan", "show what would be imported, without writing anything"),),
    examples=(
        "workpacket log import step mission.events.jsonl",
        "workpacket log import step --plan mission.events.jsonl",
    ),
)


@refusing
def write(arguments: Arguments) -> int:
    if arguments.words[:1] == ["attestations"]:
        return export_attestations(arguments)
    bridge = _bridge_of(arguments)
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "expected one key")
    with open_runtime() as runtime:
        exported = export(runtime.store, bridge, arguments.words[0] if arguments.words else "")
    target = arguments.value("out")
    data: dict[str, Json] = {
        "format": bridge.name, "keys": list(exported.keys), "lossy": list(bridge.lossy), "out": target,
    }  # fmt: skip
    if target:
        write_new(target, exported.data)
        return answer(arguments, f"{len(exported.data)} bytes written to {escape(target)}\n", data)
    text = exported.data.decode("utf-8")
    return answer(arguments, text, {**data, "text": text})


EXPORT = Command(
    "export",
    write,
    arguments="FORMAT [KEY]|attestations [WP_ID...]",
    description="""
`attestations` writes in-toto statements in DSSE envelopes, one per line: the proofs of a submission as test results,
and landed work as an SLSA verification summary. The other formats are those of checkpoints: without a key, or with the
beginning of one up to a '/', everything that came from one file is written. --json and docs/runtime/formats.md list
what a format cannot represent.""",
    options=(
        Option("out", "write to this file, which must not exist yet", value="FILE"),
        Option("key", "attestations: the machine's private key in PEM format, Ed25519 or ECDSA P-256", value="PATH"),
        Option("resource", "attestations: the URI of the repository (default: the URL of origin)", value="URI"),
        Option("verifier", "attestations: the URI of the verifier (default: derived from the key)", value="URI"),
        BASE_OPTION,
    ),
    examples=(
        "workpacket log export step --out mission.events.jsonl",
        "workpacket log export session review-42",
        "workpacket log export attestations --key machine.pem --out attestations.jsonl",
        "workpacket log export attestations WP-1-Parser-v1 --key machine.pem",
    ),
)


_URI = lazy_pattern(r"[a-z][a-z0-9+.-]*:[\x21-\x7e]{1,400}")
_LARGEST_KEY = 64 * 1024


def export_attestations(arguments: Arguments) -> int:
    wanted = [require_id(word) for word in arguments.words[1:]]
    key = _key(arguments)
    repository = find_repository(Path.cwd())
    now = moment()
    facts = all_facts(repository)
    with open_approvals(repository, arguments.value("base") or None, now) as approvals:
        trusted = trusted_or_error(approvals)
        findings = [*check_approvals(approvals, NO_CACHE), *contracts_changed(approvals)]
        name = trusted.policy.repository
        source = VerifiedSource(
            name=name,
            resource=_uri(arguments, "resource") or resource_of(approvals, name),
            branch=without_remote(repository, facts.target_branch),
            policy=trusted.digest,
            verifier=_uri(arguments, "verifier") or f"urn:workpacket:verifier:{key.key_id}",
            version=__version__,
            at=now.now,
        )
        packets = attested_packets(approvals, facts, findings, wanted)
    return _write(arguments, b"".join(line for packet in packets for line in _lines(packet, source, key)), packets, key)


def _lines(packet: AttestedPacket, source: VerifiedSource, key: MachineKey) -> list[bytes]:
    """Return the envelopes of one packet: first its proofs, then its merge, which refers to them."""
    lines = [signed_statement(each, key) for each in proofs_of(packet, source)]
    landing = landing_of(packet, source, [hashlib.sha256(line.rstrip(b"\n")).hexdigest() for line in lines])
    return lines if landing is None else [*lines, signed_statement(landing, key)]


def _key(arguments: Arguments) -> MachineKey:
    path = arguments.value("key")
    if not path:
        raise usage(arguments.command, "missing_argument", "give --key FILE, the machine's private key")
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_KEY)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from error
    return read_machine_key(data)


def _uri(arguments: Arguments, name: str) -> str:
    text = arguments.value(name)
    if text and not _URI.fullmatch(text):
        raise usage(arguments.command, "invalid_value", f"--{name} takes a URI, not {text!r}")
    return text


def _write(arguments: Arguments, data: bytes, packets: list[AttestedPacket], key: MachineKey) -> int:
    target = arguments.value("out")
    rows: list[Json] = [packet.to_json() for packet in packets]
    told: dict[str, Json] = {"packets": rows, "key_id": key.key_id, "public_key": key.public, "out": target}
    if target:
        write_new(target, data)
        lines = counted(data.count(b"\n"), "statement")
        return answer(arguments, f"{lines} written to {escape(target)}, signed with key {key.key_id}\n", told)
    if arguments.flag("json"):
        return answer(arguments, "", {**told, "text": data.decode("ascii")})
    sys.stdout.write(data.decode("ascii"))
    return 0


DECLARED = {command.name: command for command in (IMPORT, EXPORT)}
