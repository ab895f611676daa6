"""The actors whose event keys lie among this account's settings, as the comments of the public halves say."""

from __future__ import annotations

from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.trust import OwnActor
from workpacket.shell.base import settings_folder
from workpacket.shell.keys import find_key

_COMMENT = lazy_pattern(r"workpacket (?P<kind>event|agent) key of (?P<name>.+)")


def own_actors() -> tuple[OwnActor, ...]:
    """People before agents, each by name. A key without such a comment was not made for this, and is left out."""
    found = [actor for path in sorted((settings_folder() / "event-keys").glob("*.pub")) if (actor := _actor(path))]
    return tuple(sorted(found, key=lambda actor: (actor.agent, actor.name)))


def _actor(public: Path) -> OwnActor | None:
    try:
        line = public.read_text("utf-8", "replace").strip()
        fingerprint = find_key(str(public)).public.fingerprint
    except (OSError, WorkpacketError):
        return None
    said = _COMMENT.fullmatch(line.partition(" ")[2].partition(" ")[2])
    return OwnActor(said["name"], said["kind"] == "agent", fingerprint) if said is not None else None


def person_behind(actors: tuple[OwnActor, ...], named: str) -> str:
    """The person who uses this account: as `named`, unless there is one key of a person, and it has another name."""
    people = [actor.name for actor in actors if not actor.agent]
    return people[0] if len(people) == 1 and named not in people else named


def of_this_account(actors: tuple[OwnActor, ...], person: str) -> tuple[OwnActor, ...]:
    """This person and their agents."""
    return tuple(actor for actor in actors if actor.agent or actor.name == person)
