"""The `submit`, `verdict` and `merged` moves, and the reports of verdicts. One report file may serve several verdicts:
it grows, and each verdict records its digest at the time. If a file differs from what an older verdict recorded, a
later verdict must have recorded its current digest; otherwise someone other than a validator changed it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from workpacket.evidence.runners import EXIT_CODE
from workpacket.ledger.log import Log
from workpacket.lifecycle.authorship import coders, not_apart
from workpacket.lifecycle.contract import is_complete
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import (
    VERDICT_GATE,
    Proof,
    Submission,
    approval_unmet,
    ends_unjudged,
    merged_unmet,
    reminders,
    satisfying,
    settles_by_landing,
    still_unmet,
    submit_unmet,
    uncommitted_unmet,
    unfinished_runs,
    verdict_unmet,
)
from workpacket.lifecycle.moves import (
    Answer,
    Draft,
    Planned,
    added_unmet,
    finished_unmet,
    move,
    packet_missing,
    whose_branch,
)
from workpacket.lifecycle.projections import project
from workpacket.lifecycle.proofs import demands_of, folded, replay_unmet, unlike_demand
from workpacket.lifecycle.transitions import forward_command, move_unmet, transition, verdict_command
from workpacket.model.canonical import Json
from workpacket.model.event_types import MOST_EVIDENCE
from workpacket.model.events import LogEvent
from workpacket.model.lanes import UNJUDGED, lane_words
from workpacket.model.wording import counted
from workpacket.problem import Problem, WorkpacketError
from workpacket.value import NOTHING, Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.authorship import Declared
    from workpacket.lifecycle.contract import Provable


class Report(Value):
    """The digest of a file that a verdict recorded, and the time of the verdict."""

    path: str
    sha256: str
    at: str


def report_of(event: LogEvent) -> Report | None:
    file = event.data.get("report")
    if event.type != "verdict.given" or not isinstance(file, Mapping):
        return None
    return Report(str(file["path"]), str(file["sha256"]), event.at)


def reports_of(logs: Iterable[Log]) -> tuple[Report, ...]:
    return tuple(report for log in logs for event in log.events if (report := report_of(event)) is not None)


def is_vouched_for(report: Report, present: str | None, reports: Iterable[Report]) -> bool:
    """Whether this verdict or a later one recorded `present`, the file's current digest."""
    if present == report.sha256:
        return True
    return any((one.path, one.sha256) == (report.path, present) and one.at >= report.at for one in reports)


class Work(Value):
    """What was done, according to git. `changed` is None if the first commit is unknown. `branch` is the checked-out
    branch, or '' for a detached HEAD; None if the commit was given instead. `alike` are the commits with proofs whose
    work is the same as the work in this commit. `onto` is the commit on the target branch where the work began, with a
    digest of what the work changes in it.
    """

    commit: str
    base_commit: str = ""
    changed: Sequence[str] | None = None
    uncommitted: Sequence[str] = ()
    branch: str | None = None
    alike: frozenset[str] = frozenset()
    onto: tuple[str, str] | None = None


class Proofs(Value):
    """What was proved. `rows` are the rows in the event; `came_to` says how the proof of a criterion ended, as the end
    of a sentence, which is shown to the person who ran the command but is not stored. `faults` lists what is wrong with
    proofs that the contract requires.
    """

    rows: Sequence[Mapping[str, Json]] = ()
    came_to: Mapping[str, str] = NOTHING
    faults: Mapping[str, Sequence[Problem]] = NOTHING


_NONE = Proofs()


def submit_refusal(facts: Facts, packet: PacketFacts, work: Work, evidence: Proofs = _NONE) -> tuple[Problem, ...]:
    unmet = finished_unmet(facts, packet) or move_unmet(packet.state, transition("submit"), facts.policy.lanes)
    if unmet:
        return unmet
    document = packet.packet
    if document is None:
        return (packet_missing(packet),)
    rows = [*recorded(packet), *evidence.rows]
    proved = {str(row["criterion"]): str(row["result"]) for row in rows}
    asked = _provable(packet)
    submission = Submission(
        facts.actor.id,
        asked.criteria,
        proved,
        [entry.value for entry in document.in_scope_paths],
        work.changed,
        work.uncommitted,
        packet.left_open(),
        work.branch,
        whose_branch(facts, work.branch or ""),
        {str(row["criterion"]): _came_to(row) for row in rows} | dict(evidence.came_to),
        _proved_elsewhere(rows, work),
        asked.exempt,
        _proof_faults(facts, packet, rows, evidence),
        asked.unticked,
        frozenset(one for one in asked.criteria if is_complete(demands_of(packet).get(folded(one)))),
        forward_command(packet.id.text, "IN_PROGRESS", facts.policy.lanes, light=packet.light),
        work.base_commit,
    )
    found = submit_unmet(packet.state, submission, facts.moment.now)
    left = still_unmet(found, packet.state, facts.moment.now, facts.approved)[0]
    return (*_other_contract(packet), *left, *added_unmet(facts, packet, transition("submit")))


def _proof_faults(
    facts: Facts, packet: PacketFacts, rows: Sequence[Mapping[str, Json]], evidence: Proofs
) -> dict[str, Sequence[Problem]]:
    """Return, by criterion, what is now wrong with its proof, or how the last row differs from the required proof."""
    demands, required = demands_of(packet), facts.policy.evidence.tests == "required"
    last = {folded(row["criterion"]): row for row in rows}
    found: dict[str, Sequence[Problem]] = {}
    for criterion in _provable(packet).criteria:
        demand, row = demands.get(folded(criterion)), last.get(folded(criterion))
        faults = evidence.faults.get(criterion, ())
        ran = row is not None and row["result"] != "not_run"
        if not faults and (ran or not is_complete(demand)):
            faults = tuple(unlike_demand(row or {}, demand, required=required))
        found |= {criterion: faults} if faults else {}
    return found


def _provable(packet: PacketFacts) -> Provable:
    from workpacket.lifecycle.contract import provable  # parsed only if something is submitted

    return provable(packet.packet, packet.refinement)


def _other_contract(packet: PacketFacts) -> tuple[Problem, ...]:
    """Refuse to submit or judge work if its contract is not the approved one."""
    from workpacket.lifecycle.contract_drift import contract_unmet

    return contract_unmet(packet)


def _came_to(row: Mapping[str, Json]) -> str:
    """Return the result of a proof, as the end of a sentence."""
    if "exit_code" not in row:
        places = row.get("proof")
        named = ", ".join(str(place) for place in places) if isinstance(places, list) else str(places)
        return f"failed: {named} does not exist"
    return f"failed: {row.get('command')} ended with {row['exit_code']}"


def _proved_elsewhere(rows: Sequence[Mapping[str, Json]], work: Work) -> dict[str, str]:
    """Return the commit of the last proof of a criterion, if its work differs from that in the commit to be judged.

    Older events do not record the commit at which something was proved.
    """
    latest = {str(row["criterion"]): str(row.get("commit", "")) for row in rows}
    known = {"", work.commit, *work.alike}
    return {criterion: commit for criterion, commit in latest.items() if commit not in known}


def recorded(packet: PacketFacts) -> list[Mapping[str, Json]]:
    """Return the evidence recorded since the packet was last claimed."""
    clock = max((event.clock for event in packet.state.history if event.type == "claimed"), default=0)
    rows: list[Mapping[str, Json]] = []
    for event in packet.state.evidence:
        listed = event.data.get("evidence")
        if event.clock > clock and event.type == "evidence.recorded" and isinstance(listed, list):
            rows += [row for row in listed if isinstance(row, Mapping)]
    return rows


def submit(facts: Facts, packet: PacketFacts, work: Work, evidence: Proofs, declared: Declared | None = None) -> Answer:
    """Submit the work. The commands that prove it have already been run."""
    name = packet.id.text
    unmet = submit_refusal(facts, packet, work, evidence)
    if unmet:
        return unmet
    draft = Draft("submit", facts)
    rows = [dict(row) for row in [*recorded(packet), *evidence.rows] if row["result"] != "not_run"]
    _require_room(rows)
    data: dict[str, Json] = {"commit": work.commit, "evidence": [*rows]}
    data |= {"base_commit": work.base_commit} if work.base_commit else {}
    data |= {"changed": list(work.changed)} if work.changed is not None else {}
    data |= {"work": {"base": work.onto[0], "sha256": work.onto[1]}} if work.onto is not None else {}
    data |= declared.data() if declared is not None else {}
    draft.rests_on(packet.packet_path, packet.packet_source)
    target = transition("submit", lanes=facts.policy.lanes).target
    move(draft, packet, "submitted", target, data)
    project(draft, {name: target})
    where = "in review" if target == "IN_REVIEW" else target
    said = f"{name} is {where} with {counted(len(rows), 'piece of evidence')} for {work.commit[:12]}"
    asked = forward_command(name, "IN_REVIEW", facts.policy.lanes, light=packet.light)
    then = f"ask a validator to run: {asked}"
    then = then if target == "IN_REVIEW" else forward_command(name, target, facts.policy.lanes)
    if ends_unjudged(replace(packet.state, lane=target), facts.policy):
        then = merging(facts, packet)
    notes = reminders(packet.state, "it must finish before a verdict can be given")
    alone = [row for row in rows if row.get("command") and row.get("runner", EXIT_CODE) == EXIT_CODE]
    notes += (
        (f"{counted(len(alone), 'proof')} accepted by exit code alone: it is unknown which tests ran",) if alone else ()
    )
    return Planned(draft.plan(), said, then, {"id": name, "commit": work.commit}, notes)


def merging(facts: Facts, packet: PacketFacts) -> str:
    """Return how submitted work is finished that needs no verdict."""
    branch = packet.state.assignment.branch or "its branch"
    # Without --no-ff, a branch into which the target was merged would replace the target's own line.
    target = facts.target_branch.removeprefix("origin/")
    return f"git merge --no-ff --no-edit {branch}, on {target}; there it is {lane_words(UNJUDGED)}"


def _require_room(rows: Sequence[object]) -> None:
    if len(rows) > MOST_EVIDENCE:
        message = f"there are {len(rows)} proofs, but an event can contain only {MOST_EVIDENCE}"
        raise WorkpacketError("invalid_value", message, hint="prove several criteria with the same command")


def record_evidence(facts: Facts, packet: PacketFacts, evidence: Proofs, uncommitted: Sequence[str] = ()) -> Answer:
    """Record the proofs so far, without submitting."""
    name = packet.id.text
    unmet = move_unmet(packet.state, transition("submit"), facts.policy.lanes)
    unmet = unmet or tuple(uncommitted_unmet(uncommitted, f"workpacket submit {name}"))
    if unmet:
        return unmet
    rows: list[Json] = [dict(row) for row in evidence.rows]
    _require_room(rows)
    draft = Draft("submit", facts)
    draft.happened(packet, "evidence.recorded", {"evidence": rows})
    said = f"{counted(len(rows), 'piece of evidence')} recorded for {name}"
    return Planned(draft.plan(), said, f"workpacket submit {name}", {"id": name})


def verdict_refusal(
    facts: Facts, packet: PacketFacts, choice: str, *, report: str, reference: str, reason: str = ""
) -> tuple[Problem, ...]:
    """Return everything that prevents the actor from giving this verdict. The policy says whether the verdict must be
    signed.

    `report` is the path of the validator's report, or '' if there is none.
    """
    row = transition("verdict", choice, facts.policy.lanes)
    unmet = move_unmet(packet.state, row, facts.policy.lanes)
    if unmet:
        return unmet
    said = bool(report) or (packet.light and bool(reason))
    workers = coders(packet.log.events)
    found = tuple(verdict_unmet(packet.state, workers, facts.actor.id, choice, report=said, reference=reference))
    left = still_unmet(found, packet.state, facts.moment.now, facts.approved)[0]
    given = facts.approvals.get(VERDICT_GATE)
    left += tuple(_not_replayed(facts, packet, choice))
    apart = tuple(_not_apart(facts, packet, choice)) if facts.actor.id not in workers else ()
    terms = {"verdict": choice, "report": report}
    asked = approval_unmet(given, packet.id.text, terms) if given is not None else ()
    return (*_other_contract(packet), *left, *apart, *asked, *added_unmet(facts, packet, row))


def _not_replayed(facts: Facts, packet: PacketFacts, choice: str) -> Iterator[Problem]:
    """Report a missing replay, if the policy does not trust the machine on which the proofs were run."""
    why = replay_unmet(packet.log.events, facts.policy.evidence, facts.policy.actors) if choice == "PASS" else ""
    if why:
        replay = f"have someone else run: workpacket evidence replay {packet.id} --record"
        attested = f"record CI's attestation: workpacket evidence record {packet.id} FILE"
        yield Problem("replay_missing", why, hint=attested if facts.policy.evidence.replay == "ci" else replay)


def _not_apart(facts: Facts, packet: PacketFacts, choice: str) -> Iterator[Problem]:
    """Report a different name that belongs to the same person; only a policy with actors shows this."""
    if facts.policy.actor_tables is None:
        return

    for reason in not_apart(facts.actor.id, packet.log.events, facts.policy.actors):
        yield Problem(
            "verdict_by_coder",
            reason,
            hint=f"have another person run: {verdict_command(packet.id.text, choice, light=packet.light)}",
        )


def _commissioned(facts: Facts, packet: PacketFacts) -> tuple[str, ...]:
    """Return a note for a person who judges the work of their own agent."""
    if facts.policy.actor_tables is None:
        return ()

    own = facts.policy.actors.commissioned(facts.actor.id, coders(packet.log.events))
    return ("judged by the operator of the agent that did the work",) if own else ()


def verdict(
    facts: Facts, packet: PacketFacts, choice: str, *, report: Json = None, reference: str = "", reason: str = ""
) -> Answer:
    """Record a verdict. `report` is the validator's file as `{path, sha256}`, or None if there is none."""
    name = packet.id.text
    row = transition("verdict", choice, facts.policy.lanes)
    path = str(report["path"]) if isinstance(report, Mapping) else ""
    unmet = verdict_refusal(facts, packet, choice, report=path, reference=reference, reason=reason)
    if unmet:
        return unmet
    draft = Draft("verdict", facts)
    data: dict[str, Json] = {"verdict": choice}
    data |= {"report": report} if report is not None else {}
    data |= {"reference": reference} if reference else {}
    data |= {"reason": reason} if reason else {}
    given = facts.approvals.get(VERDICT_GATE)
    move(draft, packet, row.event, row.target, data, satisfying(given) if given is not None else ())
    project(draft, {name: row.target})
    coder = packet.state.holders[-1] if packet.state.holders else "the coder"
    again = forward_command(name, row.target, facts.policy.lanes, light=packet.light)
    after = {
        "PASS": forward_command(name, row.target, facts.policy.lanes)
        if facts.policy.lanes.is_added(row.target)
        else _landing(facts, packet),
        "CHANGES": f"ask {shlex.quote(coder)} to change the work, commit it, and run: {again}",
        "FAIL": f"ask {shlex.quote(coder)} to run: {again}",
        "OUTDATED_ONLY": f"workpacket new --next {packet.id.base}",
    }
    done = {"id": name, "lane": row.target}
    said = f"{name}: {choice}, now {row.target}"
    return Planned(draft.plan(), said, after[choice], done, notes=_commissioned(facts, packet))


def _landing(facts: Facts, packet: PacketFacts) -> str:
    """Return what follows a PASS: the merge, and `merged` only if merging alone does not settle the packet."""
    branch, target = packet.state.assignment.branch or "the branch", facts.target_branch or "the target branch"
    after = replace(packet.state, lane="MERGE_PENDING")
    if settles_by_landing(after, facts.policy):
        return (
            f"merge {branch} into {target}; the packet counts as VALIDATED there if the judged work is merged unchanged"
        )
    return f"merge {branch} into {target}, then: workpacket packet merged {packet.id}"


class Containment(Value):
    """What was found about the work on the target branch."""

    target: str
    target_commit: str
    proof: Proof


def submitted_commit(packet: PacketFacts) -> str:
    """Return the commit that was submitted last."""
    commits = [event.text("commit") or "" for event in packet.state.history if event.type == "submitted"]
    return commits[-1] if commits else ""


def merged(facts: Facts, packet: PacketFacts, found: Containment) -> Answer:
    name = packet.id.text
    commit = submitted_commit(packet)
    row = transition("merged", lanes=facts.policy.lanes)
    unjudged = finished_unmet(facts, packet) if packet.state.lane == "IN_REVIEW" else ()
    unmet = (
        unjudged
        or move_unmet(packet.state, row, facts.policy.lanes)
        or (
            *merged_unmet(name, commit, found.target, found.proof),
            *still_unmet(tuple(unfinished_runs(packet.state)), packet.state, facts.moment.now, facts.approved)[0],
            *added_unmet(facts, packet, row),
        )
    )
    if unmet:
        return unmet
    draft = Draft("merged", facts)
    data: dict[str, Json] = {
        "commit": commit,
        "target": found.target,
        "target_commit": found.target_commit,
        "proof": found.proof,
    }
    move(draft, packet, row.event, row.target, data)
    project(draft, {name: row.target})
    done = row.target == "VALIDATED"
    said = f"{name} is {'validated' if done else row.target}: its {found.proof.replace('_', '-')} is on {found.target}"
    then = "commit the governed files; workpacket next lists more work"
    then = then if done else forward_command(name, row.target, facts.policy.lanes)
    return Planned(draft.plan(), said, then, {"id": name})
