"""Whether evidence is the proof that the contract requires for a criterion.

A required proof is binding regardless of the policy, because the contract was signed. With `tests = "required"`, every
criterion needs one. It is checked at activation and amendment, so that no work begins on a criterion that cannot be
proved; at submission; and again by `check --base`. A replay is required if the policy says `replay = "second-party"`,
or `"ci"`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.authorship import coders, not_apart
from workpacket.lifecycle.contract import DEMAND, Contract, is_complete, stated
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.wording import counted
from workpacket.problem import Edit, Location, Problem, WorkpacketError
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.approvals.sigstore import Attested
    from workpacket.lifecycle.contract import Demand
    from workpacket.lifecycle.facts import Facts, PacketFacts
    from workpacket.lifecycle.moves import Answer
    from workpacket.lifecycle.policy import EvidencePolicy
    from workpacket.text.source import Source

_DEMANDED: Final = lazy_pattern(r"\s+[-*+]\s+(?:PROVED_BY|TESTS|PATHS|EXEMPT):")
# Faults of a proof that are known only after it was run.
PROOF_CODES: Final = frozenset({
    "proof_undeclared", "proof_trivial", "proof_not_run", "no_test_executed", "test_not_run", "test_failed",
    "proof_not_needed", "base_not_run", "change_not_executed", "proof_program_changed", "proof_other_command",
    "exemption_unsigned",
})  # fmt: skip


def folded(text: Json) -> str:
    """Return a criterion normalized for comparison: its text may differ in markup and white space."""
    return " ".join(unicodedata.normalize("NFC", str(text)).split())


def demands_of(packet: PacketFacts) -> Mapping[str, Demand]:
    """Return the proofs that the packet's contract requires, keyed by case-folded criterion; empty if there is no
    readable contract."""
    if packet.packet is None:
        return {}
    contract = stated(packet.packet, packet.refinement)
    return {folded(demand.criterion): demand for demand in contract.evidence} if isinstance(contract, Contract) else {}


def unlike_demand(row: Mapping[str, Json], demand: Demand | None, *, required: bool) -> Iterator[Problem]:
    """Yield the reasons why an evidence row is not the proof that the contract requires."""
    if demand is None or not is_complete(demand):
        if required:
            yield Problem("proof_undeclared", "the contract specifies no proof")
        return
    if row.get("result") == "not_applicable":
        if demand.exempt is None or demand.command:
            yield Problem(
                "exemption_unsigned",
                "the contract requires a proof, not a reason why the criterion does not apply",
            )
        return
    if demand.exempt is not None and row.get("exempt") != demand.exempt:
        yield Problem("exemption_unsigned", "its exemption differs from the one in the contract")
    if demand.command and row.get("command") != demand.command:
        yield Problem("proof_other_command", f"the contract demands {demand.command}")
    elif demand.command and not row.get("runner"):
        yield Problem("no_test_executed", "it is unknown which tests ran")
    elif demand.exempt is None:
        yield from _unproved(row)


def _unproved(row: Mapping[str, Json]) -> Iterator[Problem]:
    outcomes = row.get("outcomes")
    counts = outcomes if isinstance(outcomes, Mapping) else {}
    if not row.get("needed") or not counts.get("needed"):
        yield Problem("proof_not_needed", "none of its tests fails without the work")
    if counts.get("broken") or counts.get("failing"):
        yield Problem("test_failed", "some of its tests failed")
    if "execution" not in row or "base" not in row:
        yield Problem(
            "change_not_executed",
            "it is unknown which base its tests ran on, and whether they execute the changed code",
        )


def record_replay(
    facts: Facts, packet: PacketFacts, commit: str, differences: Sequence[str], attestation: str = ""
) -> Answer:
    """Record the result when a person, or CI with an attestation, reruns the proofs of a submission."""
    from workpacket.lifecycle.moves import Draft, Planned

    name, result = packet.id.text, "different" if differences else "same"
    data: dict[str, Json] = {"commit": commit, "result": result}
    data |= {"differences": list(differences)} if differences else {}
    data |= {"attestation": attestation} if attestation else {}
    draft = Draft("evidence", facts)
    draft.happened(packet, "evidence.replayed", data)
    said = f"{name}: the replay of {commit[:12]} is recorded: {result}"
    return Planned(draft.plan(), said, f"workpacket verdict {name} PASS --report FILE", {"id": name, "result": result})


class NewDemand(Value):
    """The required proof of a criterion, as typed; '' for parts that were not given."""

    number: int
    command: str = ""
    tests: str = ""
    paths: str = ""
    exempt: str = ""

    def lines(self, indent: str) -> str:
        command = f"`{self.command}`" if self.command and "`" not in self.command else self.command
        said = (("PROVED_BY", command), ("TESTS", self.tests), ("PATHS", self.paths), ("EXEMPT", self.exempt))
        return "".join(f"{indent}  - {key}: {text}\n" for key, text in said if text)


def write_demand(facts: Facts, packet: PacketFacts, demand: NewDemand) -> Answer:
    """Write the required proof into the stub, and into the packet if there is one; the document then needs an approval
    or an amendment.
    """
    from workpacket.lifecycle.moves import Draft, Planned

    name = packet.id.text
    draft = Draft("evidence", facts)
    stub, document = packet.stub, packet.packet
    listed = [(stub, stub.acceptance_criteria)] if stub is not None else []
    for each, texts in [*listed, *([(document, document.done_means)] if document is not None else [])]:
        criteria = [text for text in texts if not DEMAND.match(text.value)]
        if not 1 <= demand.number <= len(criteria):
            message = (
                f"{each.path} has {counted(len(criteria), 'criterion')}, so criterion {demand.number} does not exist"
            )
            return (Problem("evidence_missing", message, Location(each.path), f"workpacket packet contract {name}"),)
        draft.edit(each.source, [_demand_edit(each.source, criteria[demand.number - 1].start, demand)])
    then = f"workpacket approve {name} --gate {'amendment' if document is not None else 'activation'}"
    said = f"{name}: the contract specifies the proof of criterion {demand.number}"
    return Planned(draft.plan(), said, then, {"id": name, "criterion": demand.number})


def _demand_edit(source: Source, start: int, demand: NewDemand) -> Edit:
    """Return the edit that replaces the previous required proof below the item with the new one."""
    first = source.line_and_column(start)[0]
    head = source.line(first)
    depth = len(head) - len(head.lstrip())
    last = first
    while last < source.line_count:
        line = source.line(last + 1)
        if not line.strip() or len(line) - len(line.lstrip()) <= depth:
            break
        last += 1
    kept = [source.line(number) for number in range(first, last + 1)]
    text = "".join(f"{line}\n" for line in kept if not _DEMANDED.match(line)) + demand.lines(head[:depth])
    end = source.line_starts[last] if last < source.line_count else len(source.text)
    return Edit(source.line_starts[first - 1], end, text)


def attested_replay(attestation: str, submitted: LogEvent | None, policy: EvidencePolicy) -> Attested:
    """Return what CI attests about this submission; raise WorkpacketError if the attestation does not count or is about
    something else.
    """
    from workpacket.approvals.sigstore import CODE, verify_attestation

    found = verify_attestation(attestation.encode("utf-8", "replace"), policy.trusted_ci)
    if submitted is None or found.commit != submitted.text("commit"):
        raise WorkpacketError(CODE, f"it is for commit {found.commit[:12]}, which is not the submitted commit")
    if found.configuration.get(submitted.path) != submitted.id:
        raise WorkpacketError(CODE, f"it is not for submission {submitted.id[:12]}")
    return found


def attestation_fault(event: LogEvent, before: Iterable[LogEvent], policy: EvidencePolicy) -> str:
    """Return why the attestation recorded in a replay contradicts the event; '' if it agrees. `before` are the events
    that the replay follows.
    """
    submitted = [each for each in before if each.type == "submitted"]
    try:
        found = attested_replay(event.text("attestation") or "", submitted[-1] if submitted else None, policy)
    except WorkpacketError as error:
        return error.message
    result = "different" if found.result == "FAILED" else "same"
    if (event.text("commit"), event.text("result")) != (found.commit, result):
        return f"CI found that the results at {found.commit[:12]} were {'not ' * (result != 'same')}the same"
    return ""


def replay_unmet(events: Iterable[LogEvent], policy: EvidencePolicy, actors: Actors) -> str:
    """Return why a PASS verdict must wait for a replay, or '' if it need not. The last replay that counts decides: a
    replay by CI with a valid attestation or, unless the policy requires CI, a replay by someone else.
    """
    if policy.replay == "off":
        return ""
    listed = list(events)
    submitted = [event for event in listed if event.type == "submitted"]
    commit = submitted[-1].text("commit") if submitted else None
    holders = set(coders(listed))

    def counts(event: LogEvent) -> bool:
        if event.text("attestation"):
            return not attestation_fault(event, submitted, policy)
        apart = event.actor.id not in holders and not any(not_apart(event.actor.id, listed, actors))
        return apart and policy.replay != "ci"

    found = [
        event
        for event in listed
        if event.type == "evidence.replayed"
        and event.text("commit") == commit
        and event.clock > submitted[-1].clock
        and counts(event)
    ]
    if not found and policy.replay == "ci":
        return f"no valid attestation shows that CI has run the proofs of {(commit or 'a commit')[:12]} again"
    if not found:
        return f"only those who did the work have run the proofs of {(commit or 'a commit')[:12]} again"
    if found[-1].text("result") != "same":
        return f"the replay by {found[-1].actor.id} had a different result"
    return ""


Result = Literal["met", "not_met", "not_applicable", "stated"]

_MARKS = str.maketrans("", "", "`*\"'\\")


class Evidence(Value):
    """One proof. `suspect` says why it can no longer be trusted, or '' if it can.

    `source` is the path of the event or of the packet that states it. `log_sha256` is the digest of a command's output,
    whose end may be kept in the clone where it was run; only older events contain that end, as `log_tail`.
    """

    criterion: str
    result: Result
    what: str
    exit_code: int | None
    at: str
    by: str
    commit: str
    source: str
    line: int
    proofs: tuple[str, ...]
    suspect: str = ""
    log_sha256: str = ""
    log_tail: str = ""
    limit: str = ""


def same(text: str) -> str:
    """Normalize a criterion: two criteria are equal if they differ only in white space and markup."""
    return " ".join(text.translate(_MARKS).split()).casefold()


def evidence_rows(event: LogEvent) -> list[Mapping[str, object]]:
    """Return the evidence that an event adds."""
    rows = event.data.get("evidence")
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def latest_evidence(packet: PacketFacts) -> Iterator[tuple[LogEvent, Mapping[str, object], str]]:
    """Yield the evidence in the log, with its event and commit: the evidence of the latest submission, and any added
    since."""
    events = packet.state.evidence
    latest = max((n for n, event in enumerate(events) if event.type == "submitted"), default=0)
    commit = ""
    for event in events[latest:]:
        commit = event.text("commit") or commit
        for row in evidence_rows(event):
            yield event, row, str(row.get("commit") or commit)


def proofs_named(row: Mapping[str, object]) -> tuple[str, ...]:
    listed = row.get("proof")
    return tuple(str(each) for each in listed) if isinstance(listed, Sequence) and not isinstance(listed, str) else ()


def evidence_of(event: LogEvent, row: Mapping[str, object], commit: str, suspect: str = "") -> Evidence:
    proofs = proofs_named(row)
    code = row.get("exit_code")
    what = str(row.get("command") or row.get("reason") or ", ".join(proofs) or "")
    result: Result = "met" if row["result"] == "met" else "not_met" if row["result"] == "not_met" else "not_applicable"
    return Evidence(
        criterion=str(row["criterion"]),
        result=result,
        what=what,
        exit_code=code if isinstance(code, int) else None,
        at=event.at,
        by=event.actor.id,
        commit=commit,
        source=event.path,
        line=1,
        proofs=proofs,
        suspect=suspect,
        log_sha256=str(row.get("log_sha256", "")),
        log_tail=str(row.get("log_tail", "")),
        limit=str(row.get("limit", "")),
    )
