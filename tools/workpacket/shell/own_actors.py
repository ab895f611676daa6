"""The actors whose event keys lie among this account's settings, as the comments of the public halves say."""

from __future__ import annotations

from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.trust import OwnActor
from workpacket.shell.base import settings_folder
from workpacket.shell.keys import find_key

_COMMENT = lazy_pattern(r"workpacket (?P<kind>event|agent) key of (?P<name>.+)")


def own_actors(named: str) -> tuple[str, tuple[OwnActor, ...]]:
    """The person who uses this account, and the actors that have keys here: this person, then the agents by name.

    The person is `named`, unless there is one key of a person, and it has another name. A key without such a comment
    was not made for this, and is left out.
    """
    found = [actor for path in sorted((settings_folder() / "event-keys").glob("*.pub")) if (actor := _actor(path))]
    people = [actor.name for actor in found if not actor.agent]
    person = people[0] if len(people) == 1 else named
    own = [actor for actor in found if actor.agent or actor.name == person]
    return person, tuple(sorted(own, key=lambda actor: (actor.agent, actor.name)))


def _actor(public: Path) -> OwnActor | None:
    try:
        line = public.read_text("utf-8", "replace").strip()
        fingerprint = find_key(str(public)).public.fingerprint
    except (OSError, WorkpacketError):
        return None
    said = _COMMENT.fullmatch(line.partition(" ")[2].partition(" ")[2])
    return OwnActor(said["name"], said["kind"] == "agent", fingerprint) if said is not None else None
