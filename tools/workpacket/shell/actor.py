"""The actor of a command, according to the command line, the environment and git, and the moment of the command.

The actor is only a claim until a signature proves it. A moment is the input that no pure function can know: the time, a
transaction id and a nonce.
"""

from __future__ import annotations

import os
import time

from workpacket.model.plan import Moment
from workpacket.problem import WorkpacketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.git.repository import Repository
    from workpacket.model.events import Actor, ActorKind

KINDS: tuple[ActorKind, ...] = ("human", "agent", "ci")


def acting(repository: Repository, name: str = "", kind: str = "") -> Actor:
    """Return the given actor; otherwise WORKPACKET_ACTOR or, if that is not set, git's user.name."""
    from workpacket.model.events import Actor  # cached answers need a moment, but no actor

    found = name_of_actor(repository, name)
    said = kind or os.environ.get("WORKPACKET_ACTOR_KIND", "")
    default: ActorKind = "ci" if os.environ.get("CI") else "human"
    return Actor(found, next((known for known in KINDS if known == said), default))


def name_of_actor(repository: Repository, name: str = "") -> str:
    found = name or os.environ.get("WORKPACKET_ACTOR", "") or _git_user(repository)
    found = " ".join(found.split())[:200]
    if not found:
        raise WorkpacketError(
            "actor_unknown", "unknown actor", hint="use --as NAME, or set WORKPACKET_ACTOR or git's user.name"
        )
    if not found.isascii() and any("\ud800" <= char <= "\udfff" for char in found):
        hint = "use --as NAME, or correct WORKPACKET_ACTOR or git's user.name"
        raise WorkpacketError("invalid_value", f"the name of the actor, {found!r}, is not valid UTF-8", hint=hint)
    return found


def _git_user(repository: Repository) -> str:
    return repository.settings.get("user.name", "").strip()


def moment() -> Moment:
    # A separate function, which tests replace: modules that have imported `moment` then get the test's clock, and
    # modules imported in the meantime do not keep it.
    return read_clock()


def read_clock() -> Moment:
    nanoseconds = time.time_ns()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(nanoseconds // 10**9))
    return Moment(now, _uuid7(nanoseconds // 10**6, os.urandom(10)), os.urandom(16).hex())


def _uuid7(milliseconds: int, random: bytes) -> str:
    """Return a version 7 UUID (RFC 9562), which sorts by time. The standard library has it from Python 3.14 on."""
    number = milliseconds << 80 | int.from_bytes(random)
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
