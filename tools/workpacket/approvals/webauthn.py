"""Signatures that a security key or passkey makes on a web page, and the pages from which a policy accepts them.

They are SSHSIG of the type `webauthn-sk-ecdsa-sha2-nistp256@openssh.com` (OpenSSH, PROTOCOL.u2f). The key signs the
digest of the client data, a JSON text written by the browser that contains the signed bytes, as the challenge, and the
origin of the page. `ssh-keygen -Y verify` checks only the first three members of that text. This module checks the
whole text:

- type, challenge, origin and crossOrigin come first, byte for byte as every browser serializes them (WebAuthn, section
  5.8.1.1); crossOrigin is false, so the page was in no frame of another site;
- anything that browsers add after them is compact JSON in which no member appears twice, and names no top-level site;
- the token's flags are touch, PIN and the two about backup; it has no extensions and registers no key;
- the policy lists the origin and the relying party, and they belong together.

The key of a page belongs to a relying party, such as `localhost`; a key of `ssh-keygen` belongs to an application that
begins with `ssh:`. Neither can be used in place of the other.
"""

from __future__ import annotations

import base64
import json
import re

from workpacket.approvals.fields import Fields, Reader, WireFault, load_json
from workpacket.approvals.keys import HOST, RELYING_PARTY
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import Value

LOCAL = "localhost"
# The port of the page if the policy names none yet: it must be the same later, and few programs use it.
USUAL_PORT = 7363

# Touched, person verified, may be backed up, is backed up: the flags that a token sets when it signs on a page.
_KNOWN_FLAGS = 0x1D
_MAY_BE_BACKED_UP, _IS_BACKED_UP = 0x08, 0x10

# Four times as much as browsers write, including everything that Chromium adds at random.
LONGEST_CLIENT_DATA = 2048
# How deeply Python can parse JSON depends on the caller, and a verdict must not depend on that.
MOST_BRACKETS = 16
_PORT = r"[1-9][0-9]{0,4}"
_ORIGIN = lazy_pattern(rf"https?://[a-z0-9.-]+(?::{_PORT})?", re.ASCII)
# Browsers let a page use keys only if it came over TLS, or from this machine.
_SAFE_ORIGIN = lazy_pattern(rf"(?:https://{HOST}|http://{LOCAL})(?::{_PORT})?", re.ASCII)


class Page(Value):
    """The page where a key was asked to sign: the origin, and the client data as the browser wrote it."""

    origin: str
    client_data: bytes

    def was_asked_for(self, challenge: bytes) -> bool:
        return was_asked(self.client_data, client_data_of(challenge, self.origin))


def read_page(fields: Reader, flags: int) -> Page:
    """Read what follows the flags and the counter in a page's signature; raise `WireFault` if it is malformed."""
    if flags & ~_KNOWN_FLAGS or (flags & _IS_BACKED_UP and not flags & _MAY_BE_BACKED_UP):
        raise WireFault(f"its flags are {flags:#04x}, which no security key sets when it signs on a page")
    origin, client_data, extensions = fields.text(), fields.string(), fields.string()
    if not _ORIGIN.fullmatch(origin):
        raise WireFault("its origin is not a web origin")
    if extensions:
        raise WireFault("it has extensions")
    return Page(origin, client_data)


def client_data_of(challenge: bytes, origin: str, kind: str = "webauthn.get") -> bytes:
    """Return the part of the client data that is the same in all browsers."""
    encoded = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
    return f'{{"type":"{kind}","challenge":"{encoded}","origin":"{origin}","crossOrigin":false'.encode()


def was_asked(client_data: bytes, expected: bytes) -> bool:
    """Whether a browser wrote the client data in response to the request that `client_data_of` describes."""
    if client_data == expected + b"}":
        return True
    return client_data.startswith(expected + b",") and _has_one_reading(client_data)


def _has_one_reading(client_data: bytes) -> bool:
    """Whether the text is compact JSON of limited size in which no member appears twice or names a top-level site."""
    if len(client_data) > LONGEST_CLIENT_DATA or client_data.count(b"{") + client_data.count(b"[") > MOST_BRACKETS:
        return False
    try:
        members = load_json(client_data)
        written = json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
    except (WorkpacketError, UnicodeEncodeError):
        return False
    return written == client_data and not Fields(members, "", []).has("topOrigin")


class PagesAccepted(Value):
    """The table `[approvals.webauthn]`: the pages from which a policy accepts signatures, and the owners of their keys.

    `port` is that of the page of `approve --browser`, or 0. `synced` admits passkeys that can be copied to other
    devices; `pin` requires a PIN or fingerprint at every gate.
    """

    relying_parties: tuple[str, ...]
    origins: tuple[str, ...]
    port: int = 0
    synced: bool = False
    pin: bool = False

    def accept(self, relying_party: str, origin: str) -> bool:
        return relying_party in self.relying_parties and origin in self.origins and _belongs(origin, relying_party)


def local_origin(port: int) -> str:
    return f"http://{LOCAL}:{port}"


def read_pages_accepted(fields: Fields) -> PagesAccepted:
    """Return the table; its faults are collected in `fields`."""
    accepted = PagesAccepted(
        relying_parties=fields.texts("rp_ids", RELYING_PARTY, f"relying parties, such as {LOCAL!r}"),
        origins=fields.texts(
            "origins", _SAFE_ORIGIN, f"origins, such as '{local_origin(USUAL_PORT)}' or 'https://HOST'"
        ),
        port=fields.whole("port", 1024, 65535) if fields.has("port") else 0,
        synced=fields.has("synced") and fields.truth("synced"),
        pin=fields.has("pin") and fields.truth("pin"),
    )
    fields.end()
    for origin in accepted.origins:
        if not any(_belongs(origin, each) for each in accepted.relying_parties):
            fields.fault("origins", f"lists {origin}, which does not belong to any entry in rp_ids")
    if accepted.port and not accepted.accept(LOCAL, local_origin(accepted.port)):
        fields.fault("port", f"is {accepted.port}, but origins does not list {local_origin(accepted.port)}")
    return accepted


def _belongs(origin: str, relying_party: str) -> bool:
    """Whether a page belongs to a relying party: it may use the keys of its own host and of the domains above it."""
    host = origin.partition("://")[2].partition(":")[0]
    return host == relying_party or host.endswith(f".{relying_party}")
