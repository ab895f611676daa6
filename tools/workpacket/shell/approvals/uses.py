"""What the log and the history say about approvals: the parties, the approvals that were used, and the events that used
them. Both the log's statements and git's authors are claims; together they are harder to evade than either alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial

from workpacket.approvals.actors import Actors
from workpacket.approvals.envelope import Subject
from workpacket.approvals.event_signatures import EventSignatures
from workpacket.approvals.facts import LegacyUse, PacketLog
from workpacket.approvals.fields import read_instant
from workpacket.approvals.policy import POLICY_GATE, GatePolicy, Policy, policy_from_toml
from workpacket.digests import sha256
from workpacket.documents.document import stem_of
from workpacket.git.objects import changes_before, read_blobs
from workpacket.git.repository import Repository, head_commit
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.log import Log
from workpacket.lifecycle.authorship import CODING, coders, workers
from workpacket.lifecycle.gates import ACTIVATION_GATE, CONSUMING, STANDING_GATE, gates_of
from workpacket.model.events import LogEvent
from workpacket.model.layout import PACKETS, POLICY_FOLDER, REFINEMENTS, envelope_name
from workpacket.problem import WorkpacketError
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.approvals.subject import ApprovalSubject
from workpacket.shell.base import known_to, lifecycle_of, tree_at
from workpacket.shell.transactions.storage import Tree
from workpacket.text.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.approvals.facts import Approvals


# The approval of a policy change is used up when the change arrives on the base. Otherwise the approval that once added
# a key could restore the key after its removal.
@lru_cache(maxsize=16)
def policy_states(repository: Repository, commit: str) -> dict[tuple[Subject, ...], tuple[str, ...]]:
    """Return the states of the policy, as subjects, each with the base commits that introduced it."""
    if not commit:
        return {}
    answer = run_git(
        repository.root, "log", "--first-parent", "--diff-merges=first-parent", "--no-patch", "--format=%H",
        "--end-of-options", commit, "--", POLICY_FOLDER,
    )  # fmt: skip
    states: dict[tuple[Subject, ...], tuple[str, ...]] = {}
    for each in answer.text.split():
        state = _state(repository, each)
        states[state] = (*states.get(state, ()), each)
    return states


def _state(repository: Repository, commit: str) -> tuple[Subject, ...]:
    entries = tree_at(repository, commit, POLICY_FOLDER)
    contents = read_blobs(repository, entries.values())
    digests = {path: sha256(contents[identity]).hexdigest() for path, identity in entries.items()}
    return tuple(sorted(Subject(path, digest) for path, digest in digests.items()))


def policy_changes(approvals: Approvals) -> Mapping[str, frozenset[str]]:
    """Return the approvals of changes that have reached the base since the approvals were given."""
    states = policy_states(approvals.repository, approvals.base.commit)
    used: dict[str, frozenset[str]] = {}
    for said in approvals.claims.values():
        if said.gate == POLICY_GATE and said.subjects in states:
            commits = frozenset(states[said.subjects])
            used[said.nonce] = commits - known_to(approvals.repository, said.base, commits)
    return used


def other_policies(approvals: Approvals) -> frozenset[str]:
    """Return the bases that policy approvals list and whose policy files differ from those of the base.

    Such an approval covers the whole policy, and was given before later revocations of keys.
    """
    present = tree_at(approvals.repository, approvals.base.commit, POLICY_FOLDER)
    seen = {said.base for said in approvals.claims.values() if said.gate == POLICY_GATE} & approvals.known_bases
    return frozenset(each for each in seen if tree_at(approvals.repository, each, POLICY_FOLDER) != present)


def consumptions(approvals: Approvals, log: Log, consumer: LogEvent | None) -> Mapping[str, frozenset[str]]:
    """Return the events that used each nonce. Another packet's event cannot use a nonce of this packet."""
    arrived = approvals.arrivals(consumer.packet) if consumer is not None else {}
    settled = arrived.get(consumer.path) if consumer is not None else None
    used: dict[str, set[str]] = {}
    for event in log.events:
        if not event.attest:
            continue
        gates = approvals.gates(event)
        if settled is not None and event != consumer and not earlier(arrived.get(event.path), settled):
            continue
        for digest in event.attest:
            said = approvals.claims.get(envelope_name(digest))
            if said is not None and (event.type in CONSUMING or said.gate in gates):
                used.setdefault(said.nonce, set()).add(event.id)
    return {nonce: frozenset(events) for nonce, events in used.items()}


# Old tokens, a name with a date, count at gates whose policy explicitly accepts them.
_TOKEN_FOLDERS = (REFINEMENTS, PACKETS)
_UNSIGNED = frozenset({"PENDING", "TODO"})
# The pattern for git's search, and the one that extracts tokens from the lines found.
_SEARCHED = "[a-z][0-9]{12}"
_TOKEN = lazy_pattern(r"(?<![A-Za-z0-9])[a-z]+[0-9]{12}(?![A-Za-z0-9])")


# For each token, the packets whose files ever contained it, each with the time of the commit that added it.
TokenHistory = Mapping[str, tuple[tuple[str, datetime], ...]]


def legacy_uses(
    read_history: Callable[[], TokenHistory],
    matter: ApprovalSubject,
    log: Log,
    packet: str,
    gate: str,
    now: datetime,
    *,
    accepted: bool,
    consumer: LogEvent | None,
) -> tuple[LegacyUse, ...]:
    """Return the use of the token in the packet's refinement, and its use by every other packet whose history contains
    it.

    `accepted`: whether tokens count at all; if they do not, the history is not searched. A token was recorded by the
    first commit that contains it, and at the latest when the event that depends on it was written.
    """
    if gate != ACTIVATION_GATE:
        return ()
    token = _token(matter)
    if token is None:
        return ()
    seen = log.ancestry(consumer.parents if consumer is not None else log.heads)
    shown = [
        read_instant(event.at) for event in log.events if event.type == "refinement.presented" and event.id in seen
    ]
    presented = max((instant for instant in shown if instant is not None), default=None)
    used = read_instant(consumer.at) if consumer is not None else None
    latest = min(now, used or now)
    if not accepted:
        return (LegacyUse(token, packet, gate, latest, presented),)
    found = read_history().get(token, ())
    recorded = min((time for name, time in found if name == packet), default=latest)
    others = {name for name, _ in found} - {packet}
    elsewhere = tuple(LegacyUse(token, name, gate, recorded, None) for name in sorted(others))
    return (LegacyUse(token, packet, gate, min(recorded, latest), presented), *elsewhere)


def free_token(tree: Tree, tokens: Iterable[str], packet: str) -> str:
    """Return the first token that no other packet has: a token that another packet already has would look like a
    copy."""
    taken = {token for name, token in _uncommitted(tree) if name != packet}
    free = next((token for token in tokens if token not in taken), None)
    if free is None:
        raise WorkpacketError(
            "signature_minute_taken",
            "the tokens for this minute and the next hour are already used by other packets",
            hint="run the command again in a minute",
        )
    return free


def _token(matter: ApprovalSubject) -> str | None:
    """Return the value in the user's signature field, if there is one."""
    from workpacket.documents.refinement import Refinement

    for path, data in matter.files:
        signature = Refinement(Source.from_bytes(path, data)).signature
        text = signature.value if signature is not None else ""
        return text if text and not text.startswith("<") and text not in _UNSIGNED else None
    return None


def token_history(repository: Repository, tree: Tree) -> TokenHistory:
    """Return all tokens ever added to packet files, on any branch, and those in the work tree, in one pass."""
    found: dict[str, dict[str, datetime]] = {}
    if head_commit(repository) is not None:
        answer = run_git(
            repository.root, "log", "--all", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--text",
            "-p", "-U0", f"-G{_SEARCHED}", "--format=%x01%ct", "--", *_TOKEN_FOLDERS,
        )  # fmt: skip
        for block in answer.text.split("\x01")[1:]:
            time, _, diff = block.partition("\n")
            for name, token in _added(diff):
                at = datetime.fromtimestamp(int(time), UTC)
                packets = found.setdefault(token, {})
                packets[name] = min(at, packets.get(name, at))
    for name, token in _uncommitted(tree):
        found.setdefault(token, {}).setdefault(name, datetime.max.replace(tzinfo=UTC))
    return {token: tuple(packets.items()) for token, packets in found.items()}


def _added(diff: str) -> Iterator[tuple[str, str]]:
    name = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = stem_of(line.removeprefix("+++ ").rstrip("\t").strip('"'))
        elif line.startswith("+"):
            yield from ((name, token) for token in _TOKEN.findall(line))


def _uncommitted(tree: Tree) -> Iterator[tuple[str, str]]:
    for folder in _TOKEN_FOLDERS:
        for file in sorted(tree.names(folder)):
            data = read_file(tree, f"{folder}/{file}") if file.endswith(".md") else None
            if data is not None:
                yield from ((stem_of(file), token) for token in _TOKEN.findall(data.decode("utf-8", "replace")))


_AUTHORING = frozenset({"created", "adopted", "refinement.recorded"})
# The locations of the approved files: refinements, packets, and the policy.
_FOLDERS = (REFINEMENTS, PACKETS, POLICY_FOLDER)
_FEW = 4


class FirstAuthors:
    """Finds who first committed a file. Later commits may contain only the approval itself.

    The first few files are looked up one by one; for more, the whole history is read once. Both methods cover all
    commits on every branch, so that the answer does not depend on the number of earlier lookups.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[str, frozenset[str]] = {}

    def of(self, path: str) -> frozenset[str]:
        if path not in self._known and self._head:
            if len(self._known) < _FEW:
                self._known[path] = self._added((path,)).get(path, frozenset())
            else:
                return self._of_all.get(path, frozenset())
        return self._known.get(path, frozenset())

    @cached_property
    def _head(self) -> str:
        return head_commit(self._repository) or ""

    @cached_property
    def _of_all(self) -> Mapping[str, frozenset[str]]:
        return self._added(_FOLDERS)

    def _added(self, paths: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        options = ("--full-history", "--diff-filter=A")
        for author, added in changes_before(self._repository, self._head, *paths, options=options, form="%an <%ae>"):
            for change in added:
                found.setdefault(change.path, set()).add(author)
        return {name: frozenset(authors) for name, authors in found.items()}


def parties_of(
    authors: FirstAuthors, log: Log, matter: ApprovalSubject, rules: GatePolicy, actors: Actors, *, linked: bool = True
) -> Mapping[str, frozenset[str]]:
    """Return the parties listed in the gate's rules, each with its people; a party without a record has an empty set.

    If the policy names actors, the author is the actor who signed the events: a person may approve what their agent
    drafted. The operator is the person behind the coder. `linked`: with all names of each person.
    """
    names_of = partial(actors.principals, linked=linked)
    parties: dict[str, frozenset[str]] = {}
    if "author" in rules.separation:
        drafting = [event for event in log.events if event.type in _AUTHORING]
        written = names_of(event.actor.id for event in drafting)
        signatures = EventSignatures(actors)
        if not drafting or not all(signatures.judge(event).proven for event in drafting):
            written = written.union(*(authors.of(path) for path, _ in matter.files))
        parties["author"] = written
    if "coder" in rules.separation:
        held = {event.text("holder") or event.actor.id for event in log.events if event.type in CODING}
        held.update(set(workers(log.events, actors)) - set(coders(log.events)))
        parties["coder"] = names_of(held)
    if "operator" in rules.separation:
        parties["operator"] = names_of(actors.person(name) for name in workers(log.events, actors))
    return parties


def packet_log(log: Log, heads: tuple[str, ...]) -> PacketLog:
    """Return the log as seen by a writer who saw these heads."""
    seen = log.ancestry(heads)
    events = [event for event in log.events if event.id in seen]
    return PacketLog(
        {event.id: event.parents for event in events}, frozenset(event.id for event in events if event.moves_lane)
    )


def consumed_subjects(consumer: LogEvent, matter: ApprovalSubject) -> tuple[Subject, ...]:
    """Return the bytes that the event depends on: the refinement that it names; otherwise its files as they were before
    the event.
    """
    named = consumer.data.get("refinement") if consumer.type == "activated" else None
    if isinstance(named, Mapping):
        return (Subject(str(named.get("path")), str(named.get("sha256"))),)
    paths = {path for path, _ in matter.files}
    before = tuple(
        sorted(Subject(each.path, each.prev) for each in consumer.subjects if each.prev and each.path in paths)
    )
    return before or matter.subjects


def gates_asked(event: LogEvent, policy: bytes | None) -> tuple[str, ...]:
    """Return the gates that the event must pass under this policy."""
    if event.type == "reapproved":
        return (event.text("gate") or "",)
    if not event.moves_lane and event.type not in CONSUMING:
        return ()
    gates = gates_of(event, lifecycle_of(policy or b""))
    if event.type == "activated" and event.text("standing") and names_standing(policy):
        return tuple(STANDING_GATE if gate == ACTIVATION_GATE else gate for gate in gates)
    return gates


def names_standing(policy: bytes | None) -> bool:
    """Whether the policy has a separate gate for standing packets."""
    read = policy_from_toml(policy) if policy is not None else None
    return isinstance(read, Policy) and STANDING_GATE in read.gates


def earlier(one: tuple[str, int] | None, other: tuple[str, int]) -> bool:
    """Whether a rival was on the base earlier. Two events that arrived in one commit are rivals of each other."""
    return one is not None and (one[1] < other[1] or one[0] == other[0])
