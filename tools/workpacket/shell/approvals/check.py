"""The approvals of a repository, checked for `check` and `approvals verify`:

- every file among the attestations is a sound envelope whose signature is over its statement;
- every event that needs an approval has one, judged as of the moment when it arrived on the base, and that event is
  dated later than those already on the base (`backdated`);
- a refinement that says APPROVED, and is new or changed since the base, was approved with these bytes;
- a policy that differs from the one on the base was approved under the one on the base.

An approval that expired before it was used is not a fault of the repository: no event depends on it yet, the gate will
refuse it, and `approvals list` shows it.

Also gathered here: what is stated about packets for other tools, where their work was merged, and what is wrong with
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha256

from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import PACKET, EnvelopeFile
from workpacket.approvals.facts import PolicyFiles, Verdict
from workpacket.approvals.fields import CLOCK_SKEW, write_instant
from workpacket.approvals.policy import (
    POLICY_GATE,
    VARIABLE,
    PolicyChange,
    Trusted,
    named_in,
    read_record,
    unfit_record,
)
from workpacket.documents.document import stem_of
from workpacket.documents.policy import PolicyDocument
from workpacket.documents.refinement import Refinement
from workpacket.git.objects import blob_id, line_times
from workpacket.git.repository import Repository, head_commit
from workpacket.git.run import run_git
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.attestations import AttestedPacket
from workpacket.lifecycle.event_checks import judge_attested
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.gates import (
    ACTIVATING,
    ACTIVATION_GATE,
    CONSUMING,
    STANDING_GATE,
    approval_unmet,
)
from workpacket.lifecycle.side_moves import terms_to_type
from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG, LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.model.layout import (
    ATTESTATIONS_FOLDER,
    BASELINE_PATH,
    ENVELOPE_SUFFIX,
    LOG_FOLDER,
    PACKETS,
    POLICY_PATH,
    REANCHORED_PATH,
    REFINEMENTS,
    REVOKED_PATH,
    SIGNERS_PATH,
)
from workpacket.model.plan import digest
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.shell.approvals.envelopes import POLICY_MATTER, logged_packets, read_file
from workpacket.shell.approvals.event_approvals import REAPPROVED, spoken_against
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.approvals.subject import drift, policy_files, refinement_of
from workpacket.shell.base import held_since, known_to, policy_digest, read_base_policy, tree_at, unreadable
from workpacket.shell.cache import MANY, Cache
from workpacket.shell.tree import read_bytes
from workpacket.text.source import DATA, Source
from workpacket.value import Value, replace

# The configuration files of hosts and build servers.
CI_CONFIGURATION = (
    ".github", ".gitlab", ".gitlab-ci.yml", ".ci", ".circleci", ".forgejo", ".gitea", ".woodpecker", ".woodpecker.yml",
    ".buildkite", ".drone.yml", ".travis.yml", ".azure-pipelines", "azure-pipelines.yml", "bitbucket-pipelines.yml",
    "Jenkinsfile", ".builds", ".build.yml",
)  # fmt: skip
_OF_THE_POLICY = frozenset({POLICY_PATH, SIGNERS_PATH, REVOKED_PATH, REANCHORED_PATH})
_NO_MATCH = 1


class RootOfTrust(Value):
    """The state of the root of trust. `replaced`: whether this change adds a new root that the base vouches for, so no
    key needs to approve it.
    """

    findings: tuple[Problem, ...]
    replaced: bool


def root_of_trust(approvals: Approvals) -> RootOfTrust:
    """Return the state of the root of trust, on the base and in the change."""
    after = read_file(approvals.tree, REANCHORED_PATH) or b""
    before = approvals.base.policy_files.get(REANCHORED_PATH, b"")
    repository, base = approvals.repository, approvals.base.commit
    brought = tuple(_brought(repository, base))
    if before == after:
        return RootOfTrust((*brought, *_told(after)), replaced=False)
    named = _named(repository, base) if base else frozenset()
    against = tuple(_against_base(approvals, before, after, named))
    return RootOfTrust((*brought, *(against or _told(after))), replaced=not against)


def _told(record: bytes) -> Iterator[Problem]:
    """Report every entry in every check: readers should know that the chain of approvals was once interrupted."""
    roots = read_record(record) if record else ()
    if isinstance(roots, Problem):
        yield roots
        return
    for root in roots:
        yield Problem("policy_reanchored", root.sentence, Location(REANCHORED_PATH), severity="info")


def roots_here(root: str) -> list[str]:
    """Describe the roots recorded in the work tree, for commands that verify nothing."""
    try:
        record = read_bytes(root, REANCHORED_PATH, DATA.size)
    except OSError:
        return []
    return [each.message for each in _told(record)]


def _against_base(approvals: Approvals, before: bytes, after: bytes, named: frozenset[str]) -> Iterator[Problem]:
    here, there = policy_files(approvals.tree), approvals.base.policy_files
    changed = {path for path in here.keys() | there.keys() if here.get(path) != there.get(path)}
    for path in sorted(changed - _OF_THE_POLICY):
        yield Problem(
            "reanchor_unfit",
            f"a change that sets a new root of trust must change only the policy, but {path} differs",
            Location(path),
        )
    files = PolicyFiles(here.get(POLICY_PATH), here.get(SIGNERS_PATH), here.get(REVOKED_PATH))
    replaced, policy = policy_digest(approvals.base.policy), policy_digest(files)
    yield from unfit_record(PolicyChange(before, after, replaced, policy, named))


def _named(repository: Repository, commit: str) -> frozenset[str]:
    """Return the digests in the CI configuration of one commit.

    Each call covers one commit and omits file names. In a combined answer, the text or name of a file in one commit
    could be mistaken for an answer about the other commit.
    """
    # Read as text and without the attributes of the work tree, which could declare a file to be binary.
    options = ("-a", "-h", "--no-color", "--no-recurse-submodules", "-F", "-e", VARIABLE)
    answer = run_git(repository.root, "grep", *options, commit, "--", *CI_CONFIGURATION, check=False)
    if answer.status > _NO_MATCH:
        raise WorkpacketError("git_failed", f"git grep ended with {answer.status}: {answer.text.strip()}")
    return named_in(answer.text)


def _brought(repository: Repository, base: str) -> Iterator[Problem]:
    """Report the digests in the CI configuration at HEAD but not on the base."""
    head = head_commit(repository)
    if not base or head is None or head == base:
        return
    named = _named(repository, head)
    for anchor in sorted(named - _named(repository, base)) if named else ():
        yield Problem("reanchor_named", f"the CI configuration names policy {anchor} as a new root of trust")


def backdated(approvals: Approvals, events: Iterable[LogEvent]) -> Iterator[Problem]:
    """Yield a finding for each event whose approvals were valid only by the time of its own commit.

    An approval must be used before it expires, measured by the time of the commit that brought the event onto the base.
    If a branch was fast-forwarded, the author of the commit chose that time and could have set it back. A commit cannot
    be older than its predecessors in the first-parent history, so an approval that is in time by its own commit but not
    by theirs is reported. It is only a warning, because a predecessor's clock may have been ahead.
    """
    if not approvals.base.commit:
        return
    latest = _latest(approvals.repository, approvals.base.commit, int(approvals.now.timestamp()))
    # For a commit dated in the future, the clock decides.
    approvals.by_clock |= max(latest.values(), default=0) > approvals.now.timestamp()
    for event in events:
        place = approvals.place(event)
        said = place.on_base_since
        if said is None or place.first_landed is not None:
            continue
        later = datetime.fromtimestamp(latest[place.brought_by], UTC)
        if later - said <= CLOCK_SKEW:
            continue
        for gate in approvals.gates(event):
            against = _only_then(approvals, event, gate, later)
            if against:
                commit = f"{place.brought_by[:12]}, which added it, is dated {write_instant(said)}"
                then = f"an earlier commit is dated {write_instant(later)}; at that time: {', '.join(against)}"
                message = f"{commit}, but {then}"
                yield Problem("use_backdated", message, Location(event.path), severity="warning")


def _only_then(approvals: Approvals, event: LogEvent, gate: str, later: datetime) -> list[str]:
    """Return the codes of the problems at the gate at time `later`, if there are none at the time of the event's own
    commit.
    """
    if not approvals.verdict(event.packet, gate, event).met:
        return []
    facts = replace(approvals.facts(event.packet, gate, event), on_base_since=later)
    return list(dict.fromkeys(refusal.code for refusal in decide(facts).unmet))


@lru_cache(maxsize=16)
def _latest(repository: Repository, commit: str, now: int) -> Mapping[str, int]:
    """Return, for each commit in the first-parent history, the latest time recorded in it or in an earlier commit.
    Times after `now` are assumed to be wrong and are ignored.
    """
    latest: dict[str, int] = {}
    reached = 0
    for each, time in line_times(repository, commit):
        reached = max(reached, time if time <= now else 0)
        latest[each] = max(reached, time)
    return latest


# Faults caused by time or by the work of others, without any forgery.
STALE = frozenset(
    {
        "approval_expired",
        "approval_too_old",
        "approved_spec_moved",
        "base_unknown",
        "key_out_of_time",
        "log_moved",
        "nonce_used",
        "policy_moved",
        "scope_moved",
        "threshold_unmet",
    }
)


# Events that need approvals, whether or not they name any.
_RESTING = frozenset({*CONSUMING, REAPPROVED})


def check_approvals(approvals: Approvals, cache: Cache) -> list[Problem]:
    """Return all findings except those of the append-only rule. Anything that the cache records as sound is not judged
    again.
    """
    check = ApprovalsCheck(approvals, cache)
    for start in range(0, len(check.packets), _AT_ONCE):
        check.take(check.packets[start : start + _AT_ONCE])
        if len(check.packets) > _AT_ONCE:
            approvals.forget_logs()
    return check.findings()


# The events of this many packets fit into memory.
_AT_ONCE = 1000


class ApprovalsCheck:
    """The check of approvals while packets are taken some at a time. `packets` are all names below the log."""

    def __init__(self, approvals: Approvals, cache: Cache) -> None:
        self.packets = logged_packets(approvals.tree)
        self._approvals, self._cache = approvals, cache
        self._activated: dict[str, Mapping[str, Json]] = {}
        cache.make_room("sound", most=2 * (len(approvals.own_envelopes) + len(self.packets)) + MANY)
        self._found = [_finding(each, "") for each in _unsound(approvals.own_envelopes, cache)]
        self._closed = not self._is_trusted()

    def _is_trusted(self) -> bool:
        """Add what is wrong with the policy, and return whether it can be used to judge packets."""
        approvals = self._approvals
        root = root_of_trust(approvals)
        self._found += root.findings
        if not _governed(approvals):
            return True
        if not isinstance(approvals.trusted, Trusted):
            self._found += (_finding(each, POLICY_PATH) for each in approvals.trusted)
            return False
        unapproved = [] if root.replaced else list(_changed_policy(approvals))
        self._found += unapproved
        if unapproved or not _repaired(approvals):
            self._found += (_finding(each, POLICY_PATH) for each in approvals.base.unreadable)
        return True

    def take(self, packets: Iterable[str]) -> None:
        if not self._closed:
            self._found += _of_packets(self._approvals, packets, self._activated, self._cache)

    def findings(self) -> list[Problem]:
        """Return all findings, after all packets were taken."""
        if self._closed:
            return self._found
        found = [*self._found, *_changed_since(self._approvals, self._activated)]
        found += _claimed(self._approvals, self._activated)
        return sorted(dict.fromkeys(found), key=lambda finding: finding.order)


def _of_packets(
    approvals: Approvals, packets: Iterable[str], activated: dict[str, Mapping[str, Json]], cache: Cache
) -> Iterator[Problem]:
    """Yield what is wrong with the approvals of these packets' events, and add the refinements of activations to
    `activated`."""
    logs = (approvals.log(name) for name in packets if PACKET.fullmatch(name) and name != CHECKPOINT_LOG)
    consuming = [
        event
        for log in logs
        for event in log.events
        if (event.moves_lane or event.attest or event.type in _RESTING) and not log.is_renamed
    ]
    # For all events, even those known to be sound: the key of the cache does not cover earlier commits on the line of
    # the base.
    yield from backdated(approvals, consuming)
    for event in consuming:
        named = event.data.get("refinement")
        # The document of a light packet may change outside its contract, which is compared in any case.
        light = event.text("form") == LIGHT_FORM
        if event.type in {"activated", "amended"} and isinstance(named, Mapping) and not light:
            activated[event.packet] = named
    for event, each in spoken_against(approvals, consuming, cache):
        yield _finding(each, event.path, hint=_renewal(approvals, event, each))
    yield from _landing_revocations(approvals, consuming)


# Faults of an approval that counted once, for which a new approval helps.
_RENEWED = frozenset(
    {
        "approval_expired",
        "approval_revoked",
        "approval_too_old",
        "approved_spec_moved",
        "key_out_of_time",
        "key_revoked",
        "policy_moved",
    }
)


def _renewal(approvals: Approvals, event: LogEvent, fault: Problem) -> str:
    """Return the commands that give the event new approvals, if its own no longer count."""
    gates = approvals.gates(event)
    if fault.code not in _RENEWED or len(gates) != 1:
        return ""
    terms = terms_to_type(approvals.origin(event), gates[0])
    (unmet,) = approval_unmet(Verdict(gates[0], "none", (), (fault,)), event.packet, terms)
    return f"{unmet.hint}, then: workpacket packet reapprove {event.packet}"


def _landing_revocations(approvals: Approvals, events: Iterable[LogEvent]) -> Iterator[Problem]:
    """Report events that will lose their approval once the revocations in this change are on the base."""
    if not approvals.base.chosen:
        return
    revoked = {subject.sha256 for name in approvals.new_revocations for subject in approvals.claims[name].subjects}
    for event in events:
        if approvals.place(event).brought_by and not revoked.isdisjoint(event.attest):
            message = f"{event.type} of {event.packet} depends on an approval that this change revokes"
            packet = event.packet
            hint = (
                f"once that change has been merged: workpacket approve {packet}, then: workpacket packet reapprove "
                f"{packet}"
            )
            yield Problem("revocation_lands", message, Location(event.path), hint, severity="info")


def contracts_changed(approvals: Approvals) -> list[Problem]:
    """Report packets whose files no longer match the contract in their log; `check` reports them separately."""
    names = (name for name in logged_packets(approvals.tree) if PACKET.fullmatch(name) and name != CHECKPOINT_LOG)
    read = partial(read_file, approvals.tree)
    return [found for name in names for found in drift(read, approvals.log(name))]


def replays_unfounded(approvals: Approvals) -> Iterator[Problem]:
    """Report replays whose CI attestation does not count; `check --base` reports them separately. A replay that is on
    the base was judged when it was merged.
    """
    reason = CHANGE_BY_CODE["replay_attestation_invalid"]
    policy = read_base_policy(approvals.repository, approvals.base.commit).lifecycle.evidence
    for name in logged_packets(approvals.tree):
        log = approvals.log(name)
        attested = [event for event in log.events if event.text("attestation")]
        known = frozenset(event.id for event in attested if approvals.place(event).brought_by)
        for judged in judge_attested(log, known, policy):
            path = Location(judged.event.path)
            yield Problem(reason.code, f"{name}: {judged.message}", path, reason.remedy, severity=reason.severity)


def _governed(approvals: Approvals) -> bool:
    """Whether the base's policy mentions approvals. A policy that cannot be read counts as one that does."""
    if approvals.base.unreadable:
        return True
    root = PolicyDocument.from_bytes(approvals.base.policy.policy or b"").root
    return root is None or root.get("approvals") is not None


def _repaired(approvals: Approvals) -> bool:
    """Whether the policy here can be read although the base's policy cannot."""
    files = policy_files(approvals.tree)
    return not unreadable(PolicyFiles(*(files.get(path) for path in (POLICY_PATH, SIGNERS_PATH, REVOKED_PATH))))


def _unsound(files: Iterable[EnvelopeFile], cache: Cache) -> Iterator[Problem]:
    """Report unsound envelopes. Soundness depends only on an envelope's name and bytes."""
    keys = {sha256(repr(("envelope", file.name, file.data)).encode()).hexdigest(): file for file in files}
    known = cache.recall("sound", keys)
    refusals = {key: list(_against(file)) for key, file in keys.items() if key not in known}
    # Only sound envelopes are recorded: a fault is reported every time.
    cache.keep("sound", ((key, "") for key, against in refusals.items() if not against))
    for against in refusals.values():
        yield from against


def _against(file: EnvelopeFile) -> Iterator[Problem]:
    parts = file.parts
    if isinstance(parts, Problem):
        yield parts
        return
    broken = (parts.broken,) if parts.broken is not None else ()
    yield from (each.at(file.name) for each in (*parts.unreadable, *broken))


def _changed_policy(approvals: Approvals) -> Iterator[Problem]:
    now, before = policy_files(approvals.tree), approvals.base.policy_files
    if now != before and not _only_forgets(before, now):
        verdict = approvals.verdict(POLICY_MATTER, POLICY_GATE)
        hint = "have it approved under the policy on the base: workpacket approve policy --gate policy"
        yield from (_finding(each, POLICY_PATH, hint=hint) for each in verdict.unmet)


def _only_forgets(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> bool:
    """Whether the change only removes findings from the baseline, which makes the check stricter."""
    others = ({path: data for path, data in files.items() if path != BASELINE_PATH} for files in (before, now))
    if next(others) != next(others):
        return False
    from workpacket.rules.settings import read_baseline
    from workpacket.shell.package_files import schemas

    known, left = (read_baseline(files.get(BASELINE_PATH), schemas()) for files in (before, now))
    if isinstance(known, Problem) or isinstance(left, Problem):
        return False
    return all(count <= known.get(place, 0) for place, count in left.items())


def _changed_since(approvals: Approvals, activated: Mapping[str, Mapping[str, Json]]) -> Iterator[Problem]:
    """Report refinements that differ from those with which their packets were activated, regardless of their status."""
    for packet, named in activated.items():
        path = str(named.get("path"))
        current = dict(refinement_of(partial(read_file, approvals.tree), packet)).get(path)
        if _asks_for_signatures(approvals) and (current is None or digest(current) != named.get("sha256")):
            unmet = _unmet(approvals, packet)
            yield from (_finding(each, path, hint=f"workpacket approve {packet}") for each in unmet)


def _asks_for_signatures(approvals: Approvals) -> bool:
    """Whether an activation needs a signature: the policy has the gate and does not accept a plain token for it."""
    if not isinstance(approvals.trusted, Trusted):
        return False
    gate = approvals.trusted.policy.rules_of(ACTIVATION_GATE)
    return gate is not None and not gate.legacy_tokens


def _unmet(approvals: Approvals, packet: str) -> Iterator[Problem]:
    """Report what the gate still requires for the refinement in its current form."""
    standing = any(said.packet == packet and said.gate == STANDING_GATE for said in approvals.claims.values())
    for each in approvals.verdict(packet, STANDING_GATE if standing else ACTIVATION_GATE).unmet:
        if each.code not in STALE:
            about = f" (envelope {each.path[:12]})" if each.path.endswith(ENVELOPE_SUFFIX) else ""
            yield Problem(each.code, each.message + about)


def _claimed(approvals: Approvals, activated: Mapping[str, Mapping[str, Json]]) -> Iterator[Problem]:
    """Report refinements that claim to be approved, before anything depends on that claim."""
    claimed = {said.packet for said in approvals.claims.values() if said.gate in ACTIVATING}
    asked = _asks_for_signatures(approvals)
    before = tree_at(approvals.repository, approvals.base.commit, REFINEMENTS, PACKETS)
    for path in refinement_files(approvals):
        packet = stem_of(path)
        data = read_file(approvals.tree, path) or b""
        if b"APPROVED" not in data or not PACKET.fullmatch(packet):
            continue
        source = Source.from_bytes(path, data)
        # What the base has was judged when it landed.
        known = path in before and blob_id(data, before[path]) == before[path]
        if packet in activated or not (packet in claimed or (asked and not known)):
            continue
        status = Refinement(source).review_status
        if status is None or status.value != "APPROVED":
            continue
        place = source.line_and_column(status.start)
        hint = f"workpacket approve {packet}"
        yield from (_finding(each, path, place, hint) for each in _unmet(approvals, packet))


def refinement_files(approvals: Approvals) -> Iterator[str]:
    for name in sorted(approvals.tree.names(REFINEMENTS)):
        if name.endswith(".md"):
            yield f"{REFINEMENTS}/{name}"
    for name in sorted(approvals.tree.names(PACKETS)):
        if "." not in name or PACKET.fullmatch(name):
            path = f"{PACKETS}/{name}/refinement.md"
            if not name.endswith(".md") and name != "stubs" and read_file(approvals.tree, path) is not None:
                yield path


def _finding(refusal: Problem, path: str, place: tuple[int, int] = (0, 0), hint: str = "") -> Problem:
    """Return a finding about the file that the problem names; otherwise about `path`. A problem names an envelope
    without its folder.
    """
    about = refusal.path
    if about and "/" not in about:
        about = f"{ATTESTATIONS_FOLDER}/{about}"
    line, column = (refusal.line, 1) if refusal.line else place if not about else (0, 0)
    return Problem(refusal.code, refusal.message, Location(about or path, line, column), hint)


def attested_packets(
    approvals: Approvals, facts: Facts, findings: Sequence[Problem], wanted: Collection[str]
) -> list[AttestedPacket]:
    """Return the packets whose work was submitted: the given ones, or all of them."""
    found = []
    for name, packet in sorted(facts.packets.items()):
        state = packet.state
        if (wanted and name not in wanted) or not any(event.type == "submitted" for event in state.history):
            continue
        landed = _landed(approvals, state, landed=packet.landed)
        found.append(AttestedPacket(state, landed, tuple(sorted({*_codes(approvals, name, state, findings)}))))
    return found


def _landed(approvals: Approvals, state: PacketState, *, landed: bool) -> str:
    """Return the base commit recorded in the log; if the log records none, the first one that contains the verdict."""
    merged = [event.text("target_commit") or "" for event in state.history if event.type == "merged"]
    if merged:
        return merged[-1] if known_to(approvals.repository, approvals.base.commit, merged[-1:]) else ""
    passed = [event for event in state.verdicts if event.text("verdict") == "PASS"]
    if not landed or not passed:
        return ""
    folder = f"{LOG_FOLDER}/{state.packet}"
    held = held_since(approvals.repository, approvals.base.commit, folder)
    return held.get(f"{folder}/{passed[-1].id}.json", ("", 0))[0]


def _codes(approvals: Approvals, name: str, state: PacketState, findings: Iterable[Problem]) -> Iterable[str]:
    """Yield the codes of what is wrong with the packet, its approvals or its log. A problem that names no packet
    applies to every packet.
    """
    own = {digest for event in state.history for digest in event.attest}
    for each in findings:
        if each.severity != "error":
            continue
        parts = each.path.split("/")
        claim = approvals.claims.get(parts[-1])
        about = name in parts or f"{name}.md" in parts or parts[-1].partition(".")[0] in own
        about_all = "attestations" not in parts and not any(part.startswith("WP-") for part in parts)
        if about or about_all or (claim is not None and claim.packet == name):
            yield each.code


def resource_of(approvals: Approvals, repository_name: str) -> str:
    """Return the URI of the repository: the URL of `origin` without a password, or, without an `origin`, a URN of its
    root commit."""
    url = approvals.repository.settings.get("remote.origin.url", "")
    scheme, separator, rest = url.partition("://")
    if separator and scheme in {"https", "ssh", "git"} and "/" in rest:
        host, _, path = rest.partition("/")
        return f"git+{scheme}://{host.rpartition('@')[2]}/{path}"
    return f"urn:workpacket:repository:{approvals.base.root_commit}:{repository_name}"
