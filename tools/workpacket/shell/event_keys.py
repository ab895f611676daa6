"""Event keys: find the key that signs the events of a command, and sign them.

An event key identifies who typed a command. It has no passphrase, belongs to one person on one machine or to one agent,
and is kept among the person's settings, never in a repository. If the policy of the base names actors, a command
without a key of the actor is refused before it writes; otherwise, an event is signed if a key with its actor's name
exists.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import Actor, LogEvent, encode_event, event_id, event_of
from workpacket.model.plan import Plan
from workpacket.problem import Problem
from workpacket.shell.base import settings_folder
from workpacket.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.shell.keys import OwnKey

EVENT_KEY_VARIABLE: Final = "WORKPACKET_EVENT_KEY"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@")
_PRIVATE: Final = 0o077


def keys_folder() -> Path:
    return settings_folder() / "event-keys"


def key_path(name: str) -> Path:
    """Return the path of an actor's key; characters not allowed in file names are written as `%XX`."""
    safe = "".join(
        each if each in _PLAIN else "".join(f"%{byte:02X}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in name
    )
    return keys_folder() / (f"%2E{safe[1:]}" if safe.startswith(".") else safe)


def make_event_key(name: str, kind: Literal["event", "agent"], path: Path | None = None) -> OwnKey:
    """Create a key without a passphrase, readable only by its owner; its comment states its purpose."""
    from workpacket.shell.keys import find_key, find_ssh_keygen, run_openssh

    found = path or key_path(name)
    if found.exists() or Path(f"{found}.pub").exists():
        hint = "it is already in use; specify a different file to create a second key"
        raise WorkpacketError("key_exists", "a file with that name exists", hint=hint, path=str(found))
    _require_outside(found)
    found.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    comment = f"workpacket {kind} key of {name}"
    status, _ = run_openssh(
        [find_ssh_keygen(), "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(found)], in_terminal=True
    )
    if status != 0 or not found.exists():
        raise WorkpacketError("signing_failed", f"ssh-keygen did not create a key (status {status})", path=str(found))
    if os.name != "nt":
        found.chmod(0o600)
    return find_key(str(found))


def _require_outside(path: Path) -> None:
    """Refuse a path in the work tree, where an event key would sooner or later be committed."""
    from workpacket.shell.keys import work_tree_here

    top = work_tree_here()
    if top is not None and top.resolve() in path.resolve().parents:
        raise WorkpacketError(
            "event_key_in_repository",
            f"the event key {path} is in the work tree {top}; a key that everyone can read proves nothing",
            hint="store it elsewhere: workpacket key init --event creates one in your settings folder",
            path=str(path),
        )


def own_keys() -> Iterator[Path]:
    """Yield the event keys of this account: the one in the environment, or else all in the settings folder."""
    named = os.environ.get(EVENT_KEY_VARIABLE)
    if named:
        yield Path(named)
        return
    folder = keys_folder()
    if folder.is_dir():
        yield from sorted(each.with_suffix("") if each.suffix == ".pub" else each for each in folder.glob("*.pub"))


def usable_names(actors: Actors) -> tuple[str, ...]:
    """Return the names that the keys of this account may use."""
    keys = [_fingerprint(path) for path in own_keys()]
    return tuple(dict.fromkeys(name for key in keys for name in actors.names_by_key.get(key, ())))


def _fingerprint(path: Path) -> str:
    from workpacket.shell.keys import find_key

    try:
        return find_key(str(path)).public.fingerprint
    except WorkpacketError:
        return ""


def key_of(actor: Actor, actors: Actors) -> Path | None:
    """Return the key that signs for the actor; None if there is none and the policy does not require one."""
    named = os.environ.get(EVENT_KEY_VARIABLE)
    if not actors.present:
        path = Path(named) if named else key_path(actor.id)
        return path if named or path.exists() else None
    known = actors.by_name.get(actor.id)
    own = list(own_keys())
    for path in own if known is not None else ():
        if known is not None and _fingerprint(path) in known.keys:
            return path
    usable = usable_names(actors)
    if usable:
        hint = (
            f"the keys of this account may act as {', '.join(usable)}; choose a name with --as NAME or WORKPACKET_ACTOR"
        )
    else:
        hint = "workpacket key init --event, then have the policy of the base list its fingerprint in [actors.NAME]"
    what = f"no event key of this account may act as {actor.id}" if own else "this account has no event key"
    raise WorkpacketError("event_key_missing", f"{what}, and the policy on the base requires signed events", hint=hint)


def signed(plan: Plan, actors: Actors) -> Plan:
    """Return the plan with its events signed. An event's id changes with its signature, so later events name the new
    ids.

    Checkpoints have a separate signature, in a file next to their event.
    """
    if not plan.events or plan.events[0].packet == CHECKPOINT_LOG:
        return plan
    renamed: dict[str, str] = {}
    events: list[LogEvent] = []
    keys: dict[str, Path | None] = {}
    for event in plan.events:
        name = event.actor.id
        if name not in keys:
            keys[name] = key_of(event.actor, actors)
            _require_private(keys[name])
        after = _after(event, renamed)
        key = keys[name]
        made = _with_signature(after, key) if key is not None else after
        renamed[event.id] = made.id
        events.append(made)
    return replace(plan, events=tuple(events))


def _require_private(key: Path | None) -> None:
    if key is None:
        return
    _require_outside(key)
    try:
        mode = key.stat().st_mode
    except OSError as error:
        message = f"the event key {key} cannot be read: {error.strerror}"
        raise WorkpacketError("event_key_unfit", message, path=str(key)) from error
    if os.name != "nt" and mode & _PRIVATE:
        message = f"the event key {key} can be read by users other than its owner"
        raise WorkpacketError("event_key_unfit", message, hint=f"chmod 600 {key}", path=str(key))


def _after(event: LogEvent, renamed: dict[str, str]) -> LogEvent:
    """Return the event with the new ids of the signed events before it."""
    if not any(parent in renamed for parent in event.parents):
        return event
    parents: Iterable[Json] = sorted(renamed.get(parent, parent) for parent in event.parents)
    return _made({**event.json(), "parents": list(parents)})


def _with_signature(event: LogEvent, key: Path) -> LogEvent:
    from workpacket.approvals.fields import encode_base64

    blob = sign_event(event.signed_bytes(), key)
    return _made({**event.json(), "sig": encode_base64(blob)})


def _made(value: dict[str, Json]) -> LogEvent:
    return event_of(value, event_id(encode_event(value)))


def sign_event(message: bytes, key: Path) -> bytes:
    """Return the SSHSIG blob. It is not verified here, because that would load `cryptography`, and `check --base`
    verifies it anyway.
    """
    from workpacket.approvals.sshsig import EVENT_NAMESPACE, unarmor
    from workpacket.shell.keys import find_ssh_keygen, run_openssh

    environment = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    environment["SSH_ASKPASS_REQUIRE"] = "never"
    command = [find_ssh_keygen(), "-q", "-Y", "sign", "-n", EVENT_NAMESPACE, "-f", str(key)]
    status, output = run_openssh(command, message, environment=environment, patience=30.0)
    blob = unarmor(output.decode("ascii", "replace").replace("\r\n", "\n")) if status == 0 else None
    if blob is None or isinstance(blob, Problem):
        raise WorkpacketError(
            "signing_failed",
            f"ssh-keygen failed to sign with {key} (status {status})",
            hint="an event key has no passphrase; workpacket key init --event creates one",
            path=str(key),
        )
    return blob
