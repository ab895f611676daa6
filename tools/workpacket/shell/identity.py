"""Who acts, as far as the command line, the environment and git say. A claim: only an attestation is more."""

from __future__ import annotations

import os

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.model.events import Actor, ActorKind

KINDS: tuple[ActorKind, ...] = ("human", "agent", "ci")


def acting(repository: Repository, name: str = "", kind: str = "") -> Actor:
    """The one named, else WORKPACKET_ACTOR, else git's user.name."""
    found = name or os.environ.get("WORKPACKET_ACTOR", "") or _git_user(repository)
    found = " ".join(found.split())[:200]
    if not found:
        raise WorkpacketError(
            "actor_unknown", "nobody said who acts", hint="give --as NAME, or set WORKPACKET_ACTOR or git's user.name"
        )
    said = kind or os.environ.get("WORKPACKET_ACTOR_KIND", "")
    default: ActorKind = "ci" if os.environ.get("CI") else "human"
    return Actor(found, next((known for known in KINDS if known == said), default))


def _git_user(repository: Repository) -> str:
    return repository.settings.get("user.name", "").strip()
