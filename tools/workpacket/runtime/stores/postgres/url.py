"""The URL of a PostgreSQL store: libpq's own, and two words of ours.

    postgresql://writer@db1,db2/runs?sslmode=verify-full&workpacket_project=alpha&workpacket_schema=workpacket

Everything else is libpq's: several hosts, TLS, a password file. A writer asks for the one server that takes writes; a
URL that asks for a standby gives a store that only reads. What keeps a dead connection from being waited for is set
unless the URL says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from workpacket.runtime.errors import StoreUnavailable

_READING = frozenset({"any", "read-only", "standby", "prefer-standby"})
_UNLESS_SAID = {
    "target_session_attrs": "read-write",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "workpacket",
    "client_encoding": "UTF8",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is. `conninfo` may hold a password and is never shown; `shown` is what messages name."""

    conninfo: str
    schema: str
    project: str
    shown: str
    read_only: bool


def address_of_url(url: str) -> Address:
    try:
        parts = urlsplit(url)
        words = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise StoreUnavailable("the URL of the store cannot be read", code="storage_unsuitable") from None
    schema = words.pop("workpacket_schema", "workpacket")
    project = words.pop("workpacket_project", "default")
    if not schema or not project or "\0" in schema + project or len(schema.encode()) > 63:
        raise StoreUnavailable("the schema or project of the store is no name", code="storage_unsuitable")
    wants = words.get("target_session_attrs", "read-write")
    words = {**_UNLESS_SAID, **words}
    place = parts.netloc.rpartition("@")[2] or words.get("host", "")
    return Address(
        urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(words), "")),
        schema,
        project,
        f"postgresql://{place}{parts.path} (schema {schema}, project {project})",
        wants in _READING,
    )
