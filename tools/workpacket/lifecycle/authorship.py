"""Who wrote a change and who did the work on a packet, according to keys and to what sessions declare, and whether
someone may judge that work.

Nothing here is verified, and nothing is guessed. Harness and model are what someone declared; a commit message names an
assistant only if it does so in a known convention, with the address or the name of a known assistant. Otherwise, the
answer is "undeclared".

| convention | read as | |---|---| | `Assisted-by: AGENT:MODEL [TOOLS]` | the agent and model as written; a bare name or
an address must be known | | `Co-authored-by: NAME <ADDRESS>`, or the commit's author | the name, if the address belongs
to a known assistant | | `Generated-by: NAME`, `Made-with: NAME`, a line `Generated with [NAME](...)` | the name, if it
is known | | `Claude-Session: ID` and the like | the session, and the name in the key |

Trailers count at the end of the message, and at the end of each message that a squash has joined. A trailer that is
only quoted does not count.

Without `[actors]` in the base's policy, only names are known, and a different name counts as a different person.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.ledger.fold import PacketState
    from workpacket.lifecycle.glance import Glance


UNDECLARED: Final = "undeclared"
# Events that may say with which harness and model the work is done.
DECLARING: Final = frozenset({"claimed", "submitted"})


class Declared(Value):
    """What a session declares about itself; '' for parts that it does not declare."""

    harness: str = ""
    harness_version: str = ""
    model: str = ""
    session: str = ""

    def data(self) -> dict[str, Json]:
        """Return the field for an event; empty if nothing is declared."""
        said: dict[str, Json] = {key: text for key in FIELDS if (text := str(getattr(self, key)))}
        return {"declared": said} if said else {}

    @property
    def trailer(self) -> str:
        """Return the value of `Assisted-by`, or '' if neither harness nor model is declared."""
        if not (self.harness or self.model):
            return ""
        return f"{self.harness or UNDECLARED}:{self.model or UNDECLARED}"


FIELDS: Final = Declared.__match_args__


def declared_in(event: LogEvent) -> Declared:
    said = event.data.get("declared")
    return Declared(*(str(said.get(key, "")) for key in FIELDS)) if isinstance(said, Mapping) else Declared()


_NOTHING: Final = Declared()


def trailers(packet: str, events: Iterable[LogEvent], now: Declared = _NOTHING) -> list[str]:
    """Return the lines for a commit, or for the description of a pull request, so that a squash keeps them. If the
    current session is declared, only that session is named; otherwise, every session in the log is.
    """
    said = [now] if now.trailer else [declared_in(event) for event in events if event.type in DECLARING]
    named = dict.fromkeys(each.trailer for each in said if each.trailer)
    return [f"Work-Packet: {packet}", *(f"Assisted-by: {each}" for each in named)]


class Assistance(Value):
    """What a commit states: the assistants that it names, their sessions, and the packets that it is for."""

    assistants: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    packets: tuple[str, ...] = ()


# Addresses with which assistants sign, and their accounts whose address a forge makes.
_ADDRESSES: Final = frozenset({
    "noreply@anthropic.com", "cursoragent@cursor.com", "copilot@github.com", "noreply@openai.com", "codex@openai.com",
    "noreply@aider.chat", "amp@ampcode.com", "noreply@opencode.ai", "openhands@all-hands.dev", "crush@charm.land",
})  # fmt: skip
_ACCOUNTS: Final = frozenset({
    "copilot", "copilot-swe-agent[bot]", "claude[bot]", "cursor[bot]", "devin-ai-integration[bot]",
    "gemini-code-assist[bot]", "google-labs-jules[bot]", "chatgpt-codex-connector[bot]", "amazon-q-developer[bot]",
})  # fmt: skip
_KNOWN: Final = (
    "Claude Code", "Claude", "OpenAI Codex", "Codex CLI", "Codex", "GitHub Copilot", "Copilot", "Cursor", "aider",
    "Gemini CLI", "Gemini Code Assist", "Amp", "Crush", "OpenCode", "OpenHands", "Devin", "Windsurf", "Cline", "Jules",
)  # fmt: skip
# Keys whose value is a session, and the assistant; '' if the key does not name one.
_SESSIONS: Final = {
    "claude-session": "Claude", "codex-session": "Codex", "amp-thread-id": "Amp", "agent-session": "",
    "ai-session": "", "entire-checkpoint": "",
}  # fmt: skip

_TRAILER: Final = lazy_pattern(r"(?P<key>[A-Za-z][A-Za-z0-9-]*)[ \t]*:[ \t]*(?P<value>.*)\Z")
_PERSON: Final = lazy_pattern(r"(?P<name>[^<>]*?)\s*<(?P<address>[^<>\s]+)>\s*\Z")
_AGENT: Final = lazy_pattern(r"(?P<agent>[^:<>]+:[^\s:<>]+)(?=\s|\Z)")
_WITH: Final = lazy_pattern(r"[^\w\[>]{0,4}Generated with (?:\[(?P<linked>[^\]]+)\]\([^)\s]+\)|(?P<plain>[\w ]+))\Z")
_SUFFIX: Final = r"(?: v?[0-9][\w.+-]*)?(?P<more> \([\w./ :-]+\))?\Z"
_NAMED: Final = lazy_pattern(rf"(?P<name>{'|'.join(map(re.escape, _KNOWN))}){_SUFFIX}", re.IGNORECASE)
_AIDER: Final = lazy_pattern(r"\(aider\)\s*\Z")
_PACKET: Final = lazy_pattern(r"WP-[\w.-]+-v[0-9]+\Z")
_JOINED: Final = lazy_pattern(r"\* |-{5,}\Z|commit [0-9a-f]{40,64}\Z")


def assistance(author: str, message: str) -> Assistance:
    """Return what a commit says about its assistants. `author` is its author as NAME <ADDRESS>."""
    found: dict[str, dict[str, None]] = {"assistants": {}, "sessions": {}, "packets": {}}
    for kind, text in (*_of_author(author), *_of_message(message)):
        found[kind].setdefault(text)
    # The name in the key of a session is the answer only if there is no other.
    named = [name for name in found["assistants"] if not name.startswith("\0")]
    keys = [name[1:] for name in found["assistants"] if name.startswith("\0")]
    return Assistance(tuple(named or keys), tuple(found["sessions"]), tuple(found["packets"]))


def _of_author(author: str) -> Iterator[tuple[str, str]]:
    person = _PERSON.match(author)
    if person is None:
        return
    if _is_known(person["address"]):
        yield "assistants", person["name"]
    elif _AIDER.search(person["name"]):
        yield "assistants", "aider"


def _is_known(address: str) -> bool:
    address = address.lower()
    account, _, host = address.partition("@")
    if host == "users.noreply.github.com":
        return account.rpartition("+")[2] in _ACCOUNTS
    return address in _ADDRESSES


def _of_message(message: str) -> Iterator[tuple[str, str]]:
    for block in _closing_blocks(message):
        footer = _WITH.match(block[0]) if len(block) == 1 else None
        name = _known(footer["linked"] or footer["plain"]) if footer is not None else ""
        if name:
            yield "assistants", name
        for line in block:
            trailer = _TRAILER.match(line)
            if trailer is not None:
                yield from _of_trailer(trailer["key"].lower(), trailer["value"].strip())


def _closing_blocks(message: str) -> Iterator[list[str]]:
    """Yield the paragraphs at the end of a message that consist of trailers, or of one line that names the
    assistant.
    """
    paragraphs = _paragraphs(message)
    for index, block in enumerate(paragraphs):
        following = next((each for each in paragraphs[index + 1 :] if not _is_footer(each)), None)
        if index and _is_footer(block) and (following is None or _JOINED.match(following[0])):
            yield block


def _paragraphs(message: str) -> list[list[str]]:
    """Return the paragraphs without the indentation that git adds to squashed messages."""
    lines = message.replace("\r\n", "\n").split("\n")
    squashed = any(line == "Squashed commit of the following:" for line in lines[:1])
    found: list[list[str]] = [[]]
    for line in (line.removeprefix("    ") if squashed else line for line in lines):
        if line.strip():
            found[-1].append(line.rstrip())
        elif found[-1]:
            found.append([])
    return [block for block in found if block]


def _is_footer(block: list[str]) -> bool:
    lines = (line for index, line in enumerate(block) if not (index and line[:1] in {" ", "\t"}))
    return all(_TRAILER.match(line) for line in lines) or (len(block) == 1 and _WITH.match(block[0]) is not None)


def _of_trailer(key: str, value: str) -> Iterator[tuple[str, str]]:
    if not value:
        return
    if key == "work-packet":
        yield from (("packets", value),) if _PACKET.match(value) else ()
    elif key == "ai-model":
        yield "assistants", value
    elif key in _SESSIONS:
        yield "sessions", value
        yield from (("assistants", f"\0{_SESSIONS[key]}"),) if _SESSIONS[key] else ()
    elif key in {"assisted-by", "co-authored-by"}:
        name = _assistant(value, by_agent=key == "assisted-by")
        yield from (("assistants", name),) if name else ()
    elif key in {"generated-by", "made-with"}:
        yield from (("assistants", name),) if (name := _known(value)) else ()


def _assistant(value: str, *, by_agent: bool) -> str:
    person = _PERSON.match(value)
    if person is not None:
        return person["name"] if _is_known(person["address"]) else ""
    agent = _AGENT.match(value) if by_agent else None
    return agent["agent"] if agent is not None else _known(value) if by_agent else ""


def _known(text: str) -> str:
    """Return a known name, without any version number after it."""
    named = _NAMED.match(text)
    return f"{named['name']}{named['more'] or ''}" if named is not None else ""


CODING = frozenset({"claimed", "lease.renewed", "submitted", "evidence.recorded"})


def coders(events: Iterable[LogEvent]) -> tuple[str, ...]:
    """Return everyone who worked on the packet: those who recorded work, and those recorded as holders."""
    found: dict[str, None] = {}
    for event in events:
        holder = event.text("holder")
        if holder:
            found[holder] = None
        if event.type in CODING:
            found[event.actor.id] = None
    return tuple(found)


def workers(events: Iterable[LogEvent], actors: Actors) -> tuple[str, ...]:
    """Return these names and the current names of the keys that signed the work: a policy may rename an actor."""
    from workpacket.approvals.event_signatures import signing_key

    seen = tuple(events)
    keys = {signing_key(event) for event in seen if event.sig and event.type in CODING} if actors.present else set()
    renamed = (name for key in sorted(keys) for name in actors.names_by_key.get(key, ()))
    return tuple(dict.fromkeys((*coders(seen), *renamed)))


def not_apart(judge: str, events: Iterable[LogEvent], actors: Actors) -> Iterator[str]:
    """Yield why this actor may not judge the work in these events; nothing if other people did the work."""
    seen = tuple(events)
    named = coders(seen)
    reasons = [reason for coder in named if (reason := actors.why_not_apart(judge, coder))]
    if not reasons:
        renamed = (name for name in workers(seen, actors) if name not in named)
        reasons = [reason for name in renamed if (reason := actors.why_not_apart(judge, name))]
    yield from reasons


CLAIMED = "claimed, not proven"


def signatures_in(outline: Glance, actors: Actors, *, verified: bool) -> str:
    """Return what lists say about the signatures of a packet; `verified` says whether `log verify --signatures` proved
    all of them. Where the policy names no actors, a signature proves nothing.
    """
    if not outline.began:
        return ""
    if not (actors.present and outline.signed):
        return "unsigned"
    return "verified" if verified else "signed"


def signatures_shown(word: str) -> str:
    """Return the word as text; for `unsigned`, the text also says what that means."""
    return f"{word} ({CLAIMED})" if word == "unsigned" else word


def lease_events(state: PacketState) -> list[LogEvent]:
    """Return a list with the event that granted the lease to its holder; empty if the packet is free."""
    lease = state.lease
    if lease is None or not lease.holder:
        return []
    given = (event for event in reversed(state.history) if event.text("holder") == lease.holder)
    return list(islice(given, 1))


def lease_claimed(state: PacketState, proven: Container[str] | None) -> str:
    """Return ` (claimed, not proven)` if the holder of the lease is not proven.

    Without `proven`, a signature is assumed to be valid: a list of many packets does not verify them.
    """
    lease = state.lease
    if lease is None or not lease.holder:
        return ""
    given = [event for event in lease_events(state) if event.actor.id == lease.holder]
    shown = [event for event in given if (bool(event.sig) if proven is None else event.id in proven)]
    return "" if shown else f" ({CLAIMED})"
