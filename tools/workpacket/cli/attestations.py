"""`workpacket log export attestations`: the log and the approvals, as statements that other tools can verify."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from workpacket import __version__
from workpacket.cli.open_store import answer
from workpacket.cli.options import Arguments, usage
from workpacket.cli.read_only import all_facts
from workpacket.cli.workspace import write_new
from workpacket.errors import WorkpacketError
from workpacket.git.repository import find_repository
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
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.shell.actor import moment
from workpacket.shell.approvals.attested import attested_packets, resource_of
from workpacket.shell.approvals.check import check_approvals, contracts_changed
from workpacket.shell.approvals.decisions import trusted_or_error
from workpacket.shell.approvals.facts import open_approvals, require_id
from workpacket.shell.cache import NO_CACHE

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
            branch=facts.target_branch.removeprefix("origin/"),
            policy=trusted.digest,
            verifier=_uri(arguments, "verifier") or f"urn:workpacket:verifier:{key.key_id}",
            version=__version__,
            at=now.now,
        )
        packets = attested_packets(approvals, facts, findings, wanted)
    return _write(arguments, b"".join(line for packet in packets for line in _lines(packet, source, key)), packets, key)


def _lines(packet: AttestedPacket, source: VerifiedSource, key: MachineKey) -> list[bytes]:
    """Return the envelopes of one packet: its proofs, then its landing, which names them."""
    lines = [signed_statement(each, key) for each in proofs_of(packet, source)]
    landing = landing_of(packet, source, [hashlib.sha256(line.rstrip(b"\n")).hexdigest() for line in lines])
    return lines if landing is None else [*lines, signed_statement(landing, key)]


def _key(arguments: Arguments) -> MachineKey:
    path = arguments.value("key")
    if not path:
        raise usage(arguments.command, "missing_argument", "give --key FILE, the private key of the machine")
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
        return answer(arguments, f"{lines} written to {escape(target)}, signed by {key.key_id}\n", told)
    if arguments.flag("json"):
        return answer(arguments, "", {**told, "text": data.decode("ascii")})
    sys.stdout.write(data.decode("ascii"))
    return 0
