"""Who may act as whom: the `[actors]` table in `policy.toml`.

    [actors.ann]
    kind = "person"
    keys = ["SHA256:..."]
    principal = "ann@example.org"

    [actors.coder-1]
    kind = "agent"
    operator = "ann"
    keys = ["SHA256:..."]
    roles = ["coder"]

    [verdict]
    separation = ["coder", "operator"]

Names in events are only claims. The keys listed here prove them, and behind each agent there is a person, its operator.
Who may judge whom depends on keys and people, because one person can invent any number of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args
from unicodedata import category, normalize

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.events import Actor
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.fields import Fields

Kind: TypeAlias = Literal["person", "agent"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# The names of the kinds in events.
KIND_IN_EVENTS: Final[Mapping[str, str]] = {"person": "human", "agent": "agent"}
ROLES: Final = ("author", "coder", "validator")
SEPARATION: Final = ("coder", "operator")

_FINGERPRINT = lazy_pattern(r"SHA256:[A-Za-z0-9+/]{43}")
# Control, format and private-use characters, and line separators.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Zl", "Zp"})
ACTOR_NAME = lazy_pattern(r"[^\x00-\x1f\x7f]{1,200}")
_KIND = lazy_pattern("|".join(KINDS))
_ROLE = lazy_pattern("|".join(ROLES))
_PARTY = lazy_pattern("|".join(SEPARATION))


class KnownActor(Value):
    """An actor listed in the policy. `operator` is the person behind an agent, or '' for a person; `principal` is a
    person's name in allowed_signers.
    """

    name: str
    kind: Kind
    keys: frozenset[str]
    operator: str = ""
    principal: str = ""
    roles: tuple[str, ...] = ROLES


class Actors(Value):
    """The actors that a policy names. `present`: whether the policy has the table at all, and therefore requires signed
    events.

    If there are `faults`, no actor is known, so no event passes until the table is fixed. `former` are the actors that
    have left the policy, as it last listed them: they can no longer act, but a person is still behind their work.
    """

    by_name: Mapping[str, KnownActor] = NOTHING
    separation: tuple[str, ...] = SEPARATION
    present: bool = False
    faults: tuple[str, ...] = ()
    former: Mapping[str, KnownActor] = NOTHING

    @cached_property
    def names_by_key(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names that each key may use, keyed by fingerprint."""
        found: dict[str, list[str]] = {}
        for actor in self.by_name.values():
            for key in sorted(actor.keys):
                found.setdefault(key, []).append(actor.name)
        return {key: tuple(names) for key, names in found.items()}

    def person(self, name: str) -> str:
        """Return the person behind a name, or the name itself if no policy has ever listed it."""
        actor = self._known(name)
        return (actor.operator or name) if actor is not None else name

    def _known(self, name: str) -> KnownActor | None:
        return self.by_name.get(name) or self.former.get(name)

    def acting(self, actor: Actor) -> Actor:
        """Return the actor of an event to be written, with the kind that the policy assigns to the name."""
        known = self.by_name.get(actor.id)
        if known is None:
            return actor
        return Actor(actor.id, "agent" if known.kind == "agent" else "human")

    def principals(self, names: Iterable[str], *, linked: bool = True) -> frozenset[str]:
        """Return these names, and the names in allowed_signers of the persons among them; `linked`: all names of these
        persons. An agent is not its operator, unless the two have a key in common.
        """
        found = frozenset(names)
        if not linked:
            known = map(self._known, found)
            return found | {actor.principal for actor in known if actor is not None and actor.principal}
        keys = {key for name in found if (actor := self._known(name)) is not None for key in actor.keys}
        meant = {actor.name for actor in self._all if not keys.isdisjoint(actor.keys)} | found
        return found.union(*(self.people.get(name, ()) for name in meant))

    @cached_property
    def people(self) -> Mapping[str, frozenset[str]]:
        """Return all names of a person, by each of these names: those in the policy, and those in allowed_signers."""
        found: dict[str, frozenset[str]] = {}
        for names, _ in self._people:
            persons = [actor for actor in self._all if actor.name in names and actor.kind == "person"]
            every = frozenset(name for actor in persons for name in (actor.name, actor.principal))
            found.update(dict.fromkeys(every, every))
        return found

    @property
    def _all(self) -> Iterable[KnownActor]:
        return {**self.former, **self.by_name}.values()

    def why_not_apart(self, judge: str, coder: str) -> str:
        """Return, as the end of a sentence, why one of the two may not judge the other's work; '' if they are different
        people.

        If the policy leaves the operator out of the separation, a person may judge the work of their own agent; two
        agents of one person may never judge each other.
        """
        if judge == coder:
            return f"{judge} worked on the packet"
        one, other = self._known(judge), self._known(coder)
        if one is not None and other is not None and one.keys & other.keys:
            return f"{judge} and {coder}, who worked on the packet, have a key in common"
        same = self.person(judge) == self.person(coder)
        if not same and self._traits(judge).isdisjoint(self._traits(coder)):
            return ""
        if self.person(judge) == judge and "operator" not in self.separation:
            return ""
        if same:
            return f"{judge} and {coder}, who worked on the packet, are the same person: {self.person(judge)}"
        return f"{judge} and {coder}, who worked on the packet, share a key or a principal with the same person"

    def _traits(self, name: str) -> frozenset[str]:
        """Return the keys, principals and persons that identify the person behind a name, including those of related
        names.
        """
        return next((traits for names, traits in self._people if name in names), frozenset({name}))

    @cached_property
    def _people(self) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        """Return groups of names, each group assumed to be one person, with its keys, principals and persons."""
        people: list[tuple[frozenset[str], frozenset[str]]] = []
        for actor in self._all:
            person = self.person(actor.name)
            names = frozenset({actor.name})
            known = self._known(person)
            principal = known.principal if known is not None else ""
            traits = actor.keys | {spelling(person), spelling(principal or person)}
            for one in [one for one in people if not one[1].isdisjoint(traits)]:
                people.remove(one)
                names, traits = names | one[0], traits | one[1]
            people.append((names, traits))
        return tuple(people)

    def commissioned(self, judge: str, coders: Iterable[str]) -> bool:
        """Whether the judge operates an agent that did the work."""
        return any(coder != judge and self.person(coder) == judge for coder in coders)


def read_actors(table: object, verdict: object = None) -> Actors:
    """Return the contents of the `[actors]` and `[verdict]` tables, or None for a missing table."""
    from workpacket.approvals.fields import Fields  # most policies have neither table

    faults: list[str] = []
    separation = _separation(verdict, faults)
    if table is None:
        return Actors(separation=separation, faults=tuple(faults))
    fields = Fields(table, "actors", faults)
    known: dict[str, KnownActor] = {}
    for name in fields.names():
        if not ACTOR_NAME.fullmatch(name):
            fields.fault(name, "is not a single-line name")
        _judge_spelling(name, known, fields)
        known[name] = _actor(name, fields.inner(name))
    for actor in known.values():
        operator = known.get(actor.operator)
        if actor.operator and (operator is None or operator.kind != "person"):
            fields.fault(
                actor.name, f"has the operator {actor.operator!r}, who is not listed as a person in this table"
            )
    if faults:
        return Actors(separation=separation, present=True, faults=tuple(faults))
    return Actors(known, separation, present=True)


def spelling(name: str) -> str:
    """Return the name normalized so that names that look the same to people are equal."""
    if name.isascii():
        return name.casefold()
    return normalize("NFKC", normalize("NFKC", name).casefold())


def _judge_spelling(name: str, known: Iterable[str], fields: Fields) -> None:
    """Refuse a name that looks like a different one: it would let one person act, and judge, as two people."""
    if name != name.strip() or any(category(each) in _UNSEEN for each in name):
        fields.fault(name, "begins or ends with a space, or contains invisible characters")
    twin = next((other for other in known if spelling(other) == spelling(name)), None)
    if twin is not None:
        fields.fault(name, f"differs from the name {twin!r} only in spelling")


def _actor(name: str, fields: Fields) -> KnownActor:
    from workpacket.approvals.fields import PRINCIPAL

    kind: Kind = "agent" if fields.text("kind", _KIND, "person or agent") == "agent" else "person"
    keys = fields.texts("keys", _FINGERPRINT, "fingerprints, like SHA256:...")
    operator = fields.text("operator", ACTOR_NAME, "the name of a person") if kind == "agent" else ""
    principal = name if kind == "person" else ""
    if kind == "person" and fields.has("principal"):
        principal = fields.text("principal", PRINCIPAL, "a literal principal")
    roles = fields.texts("roles", _ROLE, f"roles: {', '.join(ROLES)}") if fields.has("roles") else ROLES
    fields.end()
    return KnownActor(name, kind, frozenset(keys), operator, principal, roles)


def _separation(verdict: object, faults: list[str]) -> tuple[str, ...]:
    if verdict is None:
        return SEPARATION
    from workpacket.approvals.fields import Fields

    fields = Fields(verdict, "verdict", faults)
    found = fields.texts("separation", _PARTY, f"parties: {', '.join(SEPARATION)}")
    fields.end()
    if "coder" not in found:
        fields.fault("separation", "lacks 'coder': no one may judge their own work")
        return SEPARATION
    return found
