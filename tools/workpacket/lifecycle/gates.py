"""The requirements of the gates. Each function returns every unmet condition, with the command that meets it.

- Terms: what an approval is for besides the bytes, such as the verdict, or the waived rule and when the waiver ends.
  With the bytes alone, the approval of one verdict could pass for the approval of another. Terms are in the statement's
  `scope` with the paths, so they are shown, signed and compared in the same way.
- Approvals: whether a gate is approved is decided in one place, `approvals.decide`, for signatures and plain tokens
  alike. Here the result of that decision becomes conditions of the gate.
- Waivers: the conditions that an entitled person has lifted, and for how long.
- Runs: judged from the log alone, so that CI, which has no run store, gets the same answer.
- Work: claim, renew, release, submit, verdict, merged. Activation has its own module.
- Added gates, `[lifecycle.gates.NAME]` in the policy. Such a gate requires an approval under its own name before the
  move, in addition to all other requirements: a policy can make a move harder but never easier. It applies to one move,
  so that an approval of one cannot pass for an approval of another; `on = "advance QA"` is the move out of the added
  lane QA. A move that begins before there is a packet (`new`, `activate`), or may do so (`supersede`, `abandon`),
  cannot have an added gate, because there would be nothing to approve.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime
from typing import Final, Literal

from workpacket.approvals.fields import CLOCK_SKEW
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.scope import outside, pattern_of
from workpacket.lifecycle.transitions import (
    Transition,
    choice_of,
    forward_command,
    move_unmet,
    transition,
    transitions,
    verdict_command,
)
from workpacket.model.canonical import Json
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.model.lanes import BUILT_IN, LaneTable, lane_of_token
from workpacket.model.layout import ATTESTATIONS_FOLDER, ENVELOPE_SUFFIX, POLICY_PATH, packet_paths
from workpacket.problem import Location, Problem
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.facts import Verdict
    from workpacket.lifecycle.glance import Glance

_STANDING: Final = lazy_pattern(r"Standing until (\d{4}-\d{2}-\d{2})\b")


def standing_until(scope: Iterable[str]) -> date | None:
    """Return the last day of a standing packet according to its scope; None for other packets, and for an invalid
    date."""
    for entry in scope:
        match = _STANDING.match(entry)
        if match is not None:
            try:
                return date.fromisoformat(match[1])
            except ValueError:
                return None
    return None


class ApprovalGate(Value):
    """A gate that people open by signing: the event that passes it, and the terms that they sign besides the bytes.

    `terms` maps each term in the statement to its key in the event. `without` says what happens if the policy has no
    rule for the gate: the gate stays closed, the gate is open, or the event is a note that lifts nothing. `role` is the
    one that `policy trust` asks for, and `apart` the party from which its holder must differ.
    """

    name: str
    event: str
    terms: Mapping[str, str] = NOTHING
    without: Literal["closed", "open", "note"] = "closed"
    role: str = "approver"
    apart: str = "author"


_LIFTING: Mapping[str, str] = {"rule": "rule", "until": "expires_at", "reason": "reason", "target": "target"}
_JUDGED: Mapping[str, str] = {"verdict": "verdict", "report": "report"}
APPROVAL_GATES: Final = (
    ApprovalGate("activation", "activated"),
    ApprovalGate("amendment", "amended"),
    ApprovalGate("verdict", "verdict.given", _JUDGED, "open", "validator", "coder"),
    ApprovalGate("waiver", "waived", _LIFTING, "note"),
    ApprovalGate("override", "overridden", _LIFTING, "note", "operator"),
    ApprovalGate("resolve", "fork.resolved", {"lane": "lane_to"}, "open", "validator", "coder"),
)
# The events that need an approval, and the gate for it.
CONSUMING: Mapping[str, str] = {gate.event: gate.name for gate in APPROVAL_GATES}
OPEN_WITHOUT_RULE = frozenset(gate.name for gate in APPROVAL_GATES if gate.without == "open")
HUMAN_GATES = frozenset(gate.name for gate in APPROVAL_GATES if gate.without == "closed")
# The gates that require a person only if the policy says so.
OPTIONAL_GATES = frozenset(CONSUMING.values()) - HUMAN_GATES
TERMS: Mapping[str, Mapping[str, str]] = {gate.name: gate.terms for gate in APPROVAL_GATES}
# Without a target the rule is lifted for everything.
OPTIONAL = frozenset({"target", "report"})
NO_REPORT = "none"


def terms_of(event: LogEvent, gate: str) -> dict[str, str]:
    """Return the terms for which the event claims an approval at one of its gates."""
    wanted = TERMS.get(gate, {})
    terms = {name: event.text(key) or "" for name, key in wanted.items()}
    return {**terms, "report": report_term(event.data.get("report"))} if "report" in wanted else terms


def report_term(report: Json) -> str:
    """Return how a statement refers to the validator's report: by file and digest."""
    return f"{report['path']} sha256:{report['sha256']}" if isinstance(report, Mapping) else NO_REPORT


def with_report(terms: Mapping[str, str], statements: Iterable[tuple[str, ...]]) -> Mapping[str, str]:
    """Return the terms of a verdict, including its report if statements with these scopes mention one. Older
    statements, and those about another verdict, do not mention it; without a matching statement, the report is left
    open.
    """
    alike = (scope for scope in statements if f"verdict: {terms.get('verdict', '')}" in scope)
    said = {line for scope in alike for line in scope if line.startswith("report: ")}
    if not said:
        return {name: text for name, text in terms.items() if name != "report"}
    return terms if "report" in terms else {**terms, "report": min(said).partition(": ")[2]}


def written(terms: Mapping[str, str]) -> tuple[str, ...]:
    """Return the terms as a statement stores them in its scope."""
    return tuple(f"{name}: {value}" for name, value in sorted(terms.items()) if value or name not in OPTIONAL)


def terms_in(gate: str, scope: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines in a statement's scope that are terms of its gate."""
    starts = tuple(f"{name}: " for name in TERMS.get(gate, {}))
    return tuple(line for line in scope if starts and line.startswith(starts))


ACTIVATION_GATE: Final = "activation"
# The gate of standing packets, which replaces the first one if the policy names it.
STANDING_GATE: Final = "standing"
ACTIVATING: Final = frozenset({ACTIVATION_GATE, STANDING_GATE})
VERDICT_GATE: Final = "verdict"
AMENDMENT_GATE: Final = "amendment"
RESOLVE_GATE: Final = "resolve"
ANCHORING: Final = "git add .GOV/policy && git commit -m 'Anchor the policy'"

_APPROVING: Final = "workpacket approve {packet} --gate {gate}"
# The command that satisfies a condition, if another approval does not.
_COMMANDS: Final[Mapping[str, str]] = {
    "policy_unanchored": ANCHORING,
    "approvers_unnamed": "workpacket policy trust",
    "policy_malformed": "workpacket policy test",
    "signers_malformed": "edit .GOV/policy/allowed_signers",
    "revoked_keys_malformed": "edit .GOV/policy/revoked_keys",
    "gate_without_policy": "edit .GOV/policy/policy.toml: [approvals.gates.{gate}], then: "
    "workpacket approve policy --gate policy",
    "policy_rolled_back": "workpacket approvals verify",
    "trust_file_malformed": "workpacket approvals verify",
    "trust_file_foreign": "workpacket approvals verify",
    "approval_rejected": "workpacket approvals list {packet}",
    "log_head_unknown": "workpacket log verify {packet}",
    "legacy_unpresented": "workpacket refine {packet} --present",
}


def approval_unmet(verdict: Verdict, packet: str, terms: Mapping[str, str] | None = None) -> Iterator[Problem]:
    """Return everything that the approvals lack for the gate; empty if the gate is approved."""
    approve = " ".join([_APPROVING, *(f"--{name} {shlex.quote(text)}" for name, text in (terms or {}).items() if text)])
    # Where an approval was used, the packet has moved since: that is not a second fault.
    used = {refusal.path for refusal in verdict.unmet if refusal.code == "nonce_used" and refusal.path}
    for refusal in verdict.unmet:
        if refusal.path in used and refusal.code in {"log_moved", "scope_moved"}:
            continue
        command = _COMMANDS.get(refusal.code, approve)
        supplies = command.replace("{packet}", packet).replace("{gate}", verdict.gate)
        yield Problem(refusal.code, refusal.message, Location(_place(refusal.path), refusal.line), supplies)


def satisfying(verdict: Verdict) -> tuple[str, ...]:
    """Return the envelopes that an event passing this gate must list."""
    return tuple(sorted({voice.envelope for voice in verdict.voices}))


def _place(path: str) -> str:
    if path == "policy.toml":
        return POLICY_PATH
    return f"{ATTESTATIONS_FOLDER}/{path}" if path.endswith(ENVELOPE_SUFFIX) and "/" not in path else path


def standing_waivers(state: PacketState, now: str, approved: Set[str]) -> Iterator[LogEvent]:
    """Yield the effective waivers: those that have not expired, among the events that the approvals layer accepts."""
    for event in state.waivers:
        if event.id in approved and not ended(event, now):
            yield event


def ended(waiver: LogEvent, now: str) -> bool:
    return (waiver.text("expires_at") or "") <= now


def still_unmet(
    unmet: tuple[Problem, ...], state: PacketState, now: str, approved: Set[str]
) -> tuple[tuple[Problem, ...], tuple[LogEvent, ...]]:
    """Return the conditions that remain after the waivers, and the waivers that were used. A waiver may be limited to
    one target of its rule.
    """
    used: dict[str, LogEvent] = {}
    left: list[Problem] = []
    waivers = list(standing_waivers(state, now, approved))
    for one in unmet:
        event = next((event for event in waivers if covers(event, one)), None)
        if event is None:
            left.append(one)
        else:
            used[event.id] = event
    return tuple(left), tuple(used.values())


def covers(event: LogEvent, one: Problem) -> bool:
    """Whether a waiver applies to this condition."""
    target = event.text("target") or ""
    return event.text("rule") == one.code and (not target or target in one.message)


def link_unmet(state: PacketState) -> tuple[Problem, ...]:
    """Return why no run may start or continue for this packet; `()` if a run may."""
    packet, lane = state.packet, state.lane
    if state.forked or not state.sound or not state.history:
        return move_unmet(state, transition("claim"), BUILT_IN)
    known = lane_of_token(lane)
    if known is None or known.in_work:
        return ()
    by = f" by {state.superseded_by}" if state.superseded_by else ""
    message, command = f"{packet} is {lane}{by}", f"workpacket show {packet}"
    if lane == "STUB":
        message, command = f"{packet} is only a stub", f"workpacket packet activate {packet}"
    elif known.unfinished or known.reclaimable:
        command = forward_command(packet, lane, BUILT_IN)
    return (Problem("packet_not_active", message, hint=command),)


def unfinished_runs(state: PacketState) -> Iterator[Problem]:
    """Yield every open run of the packet."""
    for run in state.open_runs:
        message = f"run {run.run} is still working on {state.packet}"
        yield Problem("run_unfinished", message, hint=f"workpacket runtime cancel {shlex.quote(run.run)}")


def reminders(state: PacketState, what: str) -> tuple[str, ...]:
    """Return notes for a command that an unfinished run does not block; `what` ends the sentence."""
    return tuple(f"run {run.run} is unfinished: {what}" for run in state.open_runs)


Proof = Literal["commit", "patch_id", "tree", ""]


def lease_held(state: PacketState | Glance, now: str, clock: str = "") -> str:
    """Return the holder at this time; '' if there is none, or if the lease begins well after the clock's time (default:
    now).
    """
    if (lease := state.lease) is None or not lease.expires_at:
        return lease.holder if lease is not None else ""
    ahead = datetime.fromisoformat(state.lease_given or now) > datetime.fromisoformat(clock or now) + CLOCK_SKEW
    return "" if ahead or lease.expires_at <= now else lease.holder


class Claim(Value):
    """The details of a claim. `branch` is the branch of the work, or '' if unknown."""

    actor: str
    branch: str
    target_branch: str


def claim_unmet(
    state: PacketState,
    claim: Claim,
    dependencies: Sequence[str],
    lanes: Mapping[str, str],
    policy: LifecyclePolicy,
    now: str,
) -> tuple[Problem, ...]:
    """Return what prevents the claim. `lanes` maps each dependency to its lane, or '' if it has no log."""
    held = held_by_other(state, claim.actor, now)
    return (
        *((held,) if held is not None else ()),
        *_dependencies_unmet(state.packet, dependencies, lanes, policy),
        *_branch_unmet(state, claim),
        *_assignee_unmet(state, claim),
    )


def held_by_other(state: PacketState, actor: str, now: str) -> Problem | None:
    holder = lease_held(state, now)
    if not holder or holder == actor:
        return None
    until = (state.lease.expires_at if state.lease is not None else "") or "it is released"
    hint = f"ask {shlex.quote(holder)} to run: workpacket packet release {state.packet} --reason TEXT"
    return Problem("claimed_by_other", f"{holder} holds {state.packet} until {until}", hint=hint)


def lease_ended(packet: str) -> Problem:
    hint = f"workpacket packet release {packet} --reason TEXT, then: workpacket claim {packet}"
    return Problem("lease_ended", f"the lease of {packet} has expired; anyone may claim it", hint=hint)


def _dependencies_unmet(
    packet: str, dependencies: Sequence[str], lanes: Mapping[str, str], policy: LifecyclePolicy
) -> Iterator[Problem]:
    for name in dependencies:
        lane = lanes.get(name, "")
        if not lane:
            message = f"its dependency {name} has no log, so its state is unknown"
            made = (
                f"run `workpacket adopt` if it has documents, otherwise `workpacket new {name} --what TEXT --why TEXT`"
            )
            dropped = f"or remove it from the packet and run: workpacket packet amend {packet}"
            yield Problem("dependency_unknown_lane", message, hint=f"{made}, {dropped}")
        elif lane not in policy.satisfied_by:
            wanted = " or ".join(policy.satisfied_by)
            yield Problem("dependency_unmet", f"{name} is {lane}; it must be {wanted}", hint=f"workpacket why {name}")


def _branch_unmet(state: PacketState, claim: Claim) -> Iterator[Problem]:
    if not claim.branch:
        message = "no branch is recorded for the work, and HEAD is detached"
        yield Problem("work_branch_missing", message, hint=f"workpacket packet prepare {state.packet}")
    elif claim.branch == claim.target_branch:
        message = f"the work would be done on {claim.branch}, its target branch"
        yield Problem("work_branch_missing", message, hint=f"workpacket packet prepare {state.packet}")


def _assignee_unmet(state: PacketState, claim: Claim) -> Iterator[Problem]:
    assignee = state.assignment.assignee
    if assignee and assignee != claim.actor:
        message = f"{state.packet} is assigned to {assignee}, not {claim.actor}"
        hint = f"workpacket packet prepare {state.packet} --for {claim.actor}"
        yield Problem("assigned_to_other", message, hint=hint)


def holder_unmet(state: PacketState, actor: str, now: str) -> tuple[Problem, ...]:
    """Report a packet that someone else holds: only the holder may release or submit it, unless the lease has
    expired."""
    holder = lease_held(state, now)
    if holder and holder != actor:
        message = f"{holder} holds {state.packet}, not {actor}"
        hint = f"ask {shlex.quote(holder)} to run: workpacket packet release {state.packet} --reason TEXT"
        return (Problem("not_the_holder", message, hint=hint),)
    return ()


class Submission(Value):
    """A submission to judge. `proved` has the result of each criterion (`met`, `not_met`, `not_applicable`). `changed`
    is None if git cannot tell.

    `whose` is the packet of the checked-out branch, or '' if there is none. `came_to` is the result of a criterion's
    proof, as the end of a sentence; `elsewhere` is the commit at which a criterion was proved, if that is not the
    commit of the work. `exempt` are the criteria that the contract exempts from proof, `faults` is what is wrong with
    the proof of a criterion, and `unticked` are the criteria whose box is not ticked. `named` are the criteria whose
    proof the contract specifies, `command` submits the packet, and `base` is the commit at which the work began.
    """

    actor: str
    criteria: Sequence[str]
    proved: Mapping[str, str]
    scope: Sequence[str]
    changed: Sequence[str] | None
    uncommitted: Sequence[str]
    todo: Sequence[str]
    branch: str | None = None
    whose: str = ""
    came_to: Mapping[str, str] = NOTHING
    elsewhere: Mapping[str, str] = NOTHING
    exempt: Set[str] = frozenset()
    faults: Mapping[str, Sequence[Problem]] = NOTHING
    unticked: Set[str] = frozenset()
    named: Set[str] = frozenset()
    command: str = ""
    base: str = ""


def submit_unmet(state: PacketState, submission: Submission, now: str) -> tuple[Problem, ...]:
    found = (
        *holder_unmet(state, submission.actor, now),
        *_elsewhere(state, submission),
        *_criteria_unmet(state.packet, submission, submission.command),
        *_scope_unmet(state.packet, submission),
        *uncommitted_unmet(submission.uncommitted, submission.command),
        *_todo_unmet(state.packet, submission),
    )
    return tuple(sorted(found, key=lambda one: "the evidence was not run" in one.message))


def _elsewhere(state: PacketState, submission: Submission) -> Iterator[Problem]:
    """Report a submission whose commit contains the work of a different packet, or of no packet."""
    prepared, here = state.assignment, submission.branch
    if here is None or not prepared.branch or here == prepared.branch:
        return
    whose = f"the branch of {submission.whose}" if submission.whose else "which does not belong to a packet"
    detached = "HEAD is detached here"
    found = f"branch {here} is checked out, {whose}" if here else detached
    message = f"{found}; the work on {state.packet} belongs on {prepared.branch}"
    enter = f"cd {prepared.worktree}" if prepared.worktree else f"git switch {prepared.branch}"
    yield Problem("other_work_branch", message, hint=f"{enter}, then: {submission.command}")


def _criteria_unmet(packet: str, submission: Submission, command: str) -> Iterator[Problem]:
    if not submission.criteria:
        yield Problem(
            "done_means_missing", "the packet has no DONE_MEANS, so its completion cannot be proved", hint="edit it"
        )
    for number, criterion in enumerate(submission.criteria, 1):
        result = submission.proved.get(criterion)
        commit = submission.elsewhere.get(criterion)
        if result == "met" and commit:
            message = (
                f"DONE_MEANS {number}, {criterion[:100]!r}: it was proved at {commit[:12]}, where the work differs"
            )
            yield Problem("evidence_of_other_commit", message, hint=f"{command} --prove '{number}=COMMAND'")
        which = f"DONE_MEANS {number}, {criterion[:100]!r}"
        if criterion in submission.unticked:
            yield Problem("criterion_unticked", f"{which}: its box is not ticked", hint=f"edit DONE_MEANS of {packet}")
        faults = submission.faults.get(criterion, ())
        for fault in faults:
            hint = f"workpacket explain {fault.code}, then: change the work, then: commit it, then: {command}"
            yield Problem(fault.code, f"{which}: {fault.message}", hint=hint)
        if faults:
            continue
        if result == "not_applicable" and criterion not in submission.exempt:
            message = f"{which}: the contract does not exempt it from proof"
            other = "write EXEMPT: REASON below the line, and amend the contract"
            hint = f"{command} --prove '{number}=COMMAND', or {other}"
            yield Problem("evidence_missing", message, hint=hint)
            continue
        if result in {"met", "not_applicable"}:
            continue
        said = submission.came_to.get(criterion, "failed") if result else "is missing"
        message = f"DONE_MEANS {number}, {criterion[:100]!r}: the evidence {said}"
        known = said.startswith("was not run") or criterion in submission.named
        again = "" if known else f" --prove '{number}=COMMAND or PATH:LINE'"
        yield Problem("evidence_missing", message, hint=f"{command}{again}")


def _scope_unmet(packet: str, submission: Submission) -> Iterator[Problem]:
    if not any(pattern_of(entry) for entry in submission.scope):
        yield Problem("scope_undecided", "IN_SCOPE_PATHS names no path", hint="edit IN_SCOPE_PATHS of the packet")
        return
    if submission.changed is None:
        message = "the packet's changes cannot be determined: the log does not record where the work started"
        yield Problem("changes_unknown", message, hint=f"workpacket packet prepare {packet}")
        return
    for path in outside(submission.changed, submission.scope):
        message = f"{path} was changed but is not in IN_SCOPE_PATHS"
        undo = f"git restore --source {submission.base[:12]} --staged --worktree -- {shlex.quote(path)}"
        again = f"commit it, then: {submission.command}, or: add the path to {packet} and amend its contract"
        yield Problem("outside_scope", message, Location(path), f"{undo}, then: {again}")


_FEW_PATHS: Final = 5


def uncommitted_unmet(uncommitted: Sequence[str], command: str) -> Iterator[Problem]:
    paths = shlex.join(uncommitted) if len(uncommitted) <= _FEW_PATHS else "--all"
    for path in uncommitted:
        hint = f"git add {paths} && git commit -m Work, then: {command}"
        yield Problem("work_uncommitted", f"{path} is not committed", Location(path), hint)


def _todo_unmet(packet: str, submission: Submission) -> Iterator[Problem]:
    for name in submission.todo:
        path = packet_paths(packet)[0]
        hint = f"edit {path}: fill in {name}, then: git commit {path}, then: {submission.command}"
        yield Problem("todo_left", f"{name} is not filled in", Location(path), hint)


def verdict_unmet(
    state: PacketState, workers: Collection[str], actor: str, verdict: str, *, report: bool, reference: str
) -> Iterator[Problem]:
    command = verdict_command(state.packet, verdict, light=state.light)
    if actor in workers:
        message = f"{actor} worked on {state.packet}; someone else must judge it"
        yield Problem("verdict_by_coder", message, hint=f"have another person run: {command}")
    if verdict == "CHANGES" and not reference and not report:
        message = "the verdict does not refer to the requested changes"
        yield Problem("review_reference_missing", message, hint=command)
    if verdict != "CHANGES" and not report:
        message = "a verdict requires a reason" if state.light else "a verdict requires the validator's report"
        yield Problem("report_missing", message, hint=command)
    yield from unfinished_runs(state)


def merged_unmet(packet: str, commit: str, target: str, proof: Proof) -> tuple[Problem, ...]:
    if not commit:
        message = f"no commit of {packet} has been submitted"
        return (Problem("commit_unknown", message, hint=f"workpacket packet reopen {packet} --reason TEXT"),)
    if not target:
        message = "neither the policy nor git names a target branch that exists here"
        hint = f'edit {POLICY_PATH} on the base: target_branch = "BRANCH", below [lifecycle]'
        return (Problem("target_branch_unknown", message, hint=hint),)
    if not proof:
        message = f"{target} contains neither {commit[:12]}, nor the same change, nor the same files"
        conflict = f"(if that conflicts, first: workpacket packet reopen {packet} --reason TEXT)"
        hint = f"merge it into {target} with git {conflict}, then: workpacket packet merged {packet}"
        return (Problem("not_contained", message, hint=hint),)
    return ()


def bearing(rows: Iterable[Transition]) -> tuple[Transition, ...]:
    return tuple(row for row in rows if row.origins and "STUB" not in row.origins)


# Gate names that the tool itself uses.
STANDARD: Final = frozenset({*CONSUMING.values(), STANDING_GATE, "policy"})


def moves_under(on: str, lanes: LaneTable) -> tuple[Transition, ...]:
    """Return the moves to which a gate applies. A gate without a valid move applies to all of them, so that a typo does
    not open a gate.
    """
    rows = bearing(transitions(lanes))
    return tuple(row for row in rows if row.typed == on) or rows


def added_gates(policy: LifecyclePolicy, event: str, choice: str = "") -> tuple[str, ...]:
    """Return the gates that the policy adds to a move, by its event type and the chosen outcome."""
    return tuple(
        added.gate
        for added in policy.gates
        if any(row.event == event and row.choice == choice for row in moves_under(added.on, policy.lanes))
    )


def settles_by_landing(state: PacketState | Glance, policy: LifecyclePolicy) -> bool:
    """Whether judged work is done once it has been merged as judged, without an event that says so.

    It is not done if there is a gate on `merged` or the policy adds a lane after it: then the command is required.
    """
    asked = added_gates(policy, "merged") or state.open_runs or not state.sound
    return state.lane == "MERGE_PENDING" and policy.lanes.onward(state.lane) == "VALIDATED" and not asked


def ends_unjudged(state: PacketState | Glance, policy: LifecyclePolicy) -> bool:
    """Whether submitted work is finished once it has been merged as submitted, because the policy requires no judge.

    This applies only to the light form: a full packet remains in review until someone gives a verdict.
    """
    asked = policy.judged or policy.lanes.added or policy.gates or state.open_runs or not state.sound
    return state.lane == "IN_REVIEW" and state.light and not asked


def approval_asked(policy: LifecyclePolicy, *, light: bool, standing: bool) -> bool:
    """Whether the activation needs an approval; a standing packet, whose changes no one judges, always needs one."""
    return standing or not (light and policy.packets.approvals == "none")


# The gates that `[packets] approvals = "none"` omits for a light packet.
_UNASKED_IF_LIGHT: Final = frozenset({ACTIVATION_GATE, AMENDMENT_GATE})


def gates_of(event: LogEvent, policy: LifecyclePolicy) -> tuple[str, ...]:
    """Return all gates for which an event needs an approval."""
    own = CONSUMING.get(event.type)
    light, standing = event.text("form") == LIGHT_FORM, bool(event.text("standing"))
    if own in _UNASKED_IF_LIGHT and not approval_asked(policy, light=light, standing=standing):
        own = None
    choice = choice_of(event.type, event.lane_from or "", event.text("verdict") or "")
    return (*((own,) if own is not None else ()), *added_gates(policy, event.type, choice))
