"""The commands of a review: `submit` proves each criterion and submits the work, and `verdict` judges the work."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from workpacket.cli.claim import sync_team_claim
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import (
    ACTING,
    COMMIT,
    DECLARING,
    REASON,
    SIGN,
    actor_of,
    conclude,
    declared,
    named_packet,
    packet_command,
    packet_of,
    refuse,
    signed_first,
    words_of,
)
from workpacket.cli.read_only import show_json
from workpacket.git.objects import status
from workpacket.git.repository import Repository, branch_here, list_worktrees, switch_branch, without_remote
from workpacket.lifecycle.contract import is_complete
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import VERDICT_GATE, ends_unjudged, report_term
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.proofs import PROOF_CODES, demands_of, folded
from workpacket.lifecycle.review import Proofs, record_evidence, submit, submit_refusal, verdict
from workpacket.lifecycle.transitions import choices
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.shell.governing.contract_proofs import asked_of
from workpacket.shell.governing.execution import carry_out, facts_before, gather, here, verdict_question
from workpacket.shell.work_done import proof_base, relative_place, submission_doubt, work_done
from workpacket.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.contract import Demand


def _run_submit(arguments: Arguments, afterwards: Callable[[Repository, str], str] | None = None) -> int:
    repository = here()
    name = named_packet(arguments, repository)
    actor, said = actor_of(arguments, repository), declared(arguments)
    # Proof commands may take long, so they run without the lock.
    facts = facts_before(repository, [name], actor)
    evidence, uncommitted = _evidence(arguments, repository, facts, name)
    if not arguments.flag("record-only"):
        evidence = _with_contract_proofs(arguments, repository, facts, name, evidence)
    if arguments.flag("check"):
        return _say_whether(arguments, repository, facts, name, evidence)

    def decide(facts: Facts) -> Answer:
        packet = facts.packets[name]
        if arguments.flag("record-only"):
            return record_evidence(facts, packet, evidence, uncommitted)
        work = work_done(repository, packet, facts.target_branch, arguments.value("revision"))
        return submit(facts, packet, work, evidence, said)

    carried = carry_out(repository, arguments.command.name, [name], actor, decide)
    hands_over = () if arguments.flag("record-only") else (GOVERNANCE_FOLDER,)
    then = partial(afterwards, repository, name) if afterwards is not None else None
    return sync_team_claim(arguments, conclude(arguments, carried, name, hands_over, then))


def _say_whether(arguments: Arguments, repository: Repository, facts: Facts, name: str, evidence: Proofs) -> int:
    """Report what prevents the packet from being submitted with this evidence; nothing is written."""
    packet = facts.packets[name]
    work = work_done(repository, packet, facts.target_branch, arguments.value("revision"))
    unmet = submit_refusal(facts, packet, work, evidence)
    if unmet:
        return refuse(arguments, name, unmet)
    command = f"workpacket submit {name}"
    if arguments.flag("json"):
        return show_json(arguments, {"id": name, "lane": packet.lane, "unmet": [], "next": command})
    print(f"{name} can be submitted next, with the same proofs: {command}")
    return exits.OK


def _run_done(arguments: Arguments) -> int:
    """Submit the work. If no one needs to judge it and all of it is committed, return to the target branch."""

    def leave(repository: Repository, name: str) -> str:
        if status(repository):
            return ""
        facts = gather(repository, [name], actor_of(arguments, repository))
        target, branch = without_remote(repository, facts.target_branch), branch_here(repository)
        elsewhere = {each.branch for each in list_worktrees(repository)}
        if not ends_unjudged(facts.packets[name].state, facts.policy) or target in {"", branch, *elsewhere}:
            return ""
        switch_branch(repository, target)
        return f"switched to {target}; {branch} is ready to be merged, or to be pushed for a pull request"

    return _run_submit(arguments, leave)


def _evidence(arguments: Arguments, repository: Repository, facts: Facts, name: str) -> tuple[Proofs, Sequence[str]]:
    """Return the proofs that were just run, and the uncommitted files that prevented the others from running."""
    from workpacket.lifecycle.contract import provable
    from workpacket.runtime.records.redaction import Redactor
    from workpacket.shell.governing.evidence import Prover, numbered, require_no_secret

    packet = facts.packets[name]
    criteria = provable(packet.packet, packet.refinement).criteria
    if packet.lane != "IN_PROGRESS":
        return Proofs(), ()
    to_prove = _beside_contract(numbered(arguments.all_of("prove"), criteria, "prove"), demands_of(packet), arguments)
    not_applicable = numbered(arguments.all_of("not-applicable"), criteria, "not-applicable")
    redactor = Redactor.from_environment(os.environ)
    for _, reason in not_applicable:
        require_no_secret(redactor, reason)
    rows: list[dict[str, Json]] = []
    came_to: dict[str, str] = {}
    prover = None
    if to_prove:
        prover = Prover(repository, facts.policy.evidence, redactor, os.environ, arguments.value("revision"))
        for (criterion, _), proved in zip(to_prove, prover.prove(to_prove), strict=True):
            rows.append(dict(proved.row))
            came_to |= {criterion: proved.said} if proved.said else {}
    rows += [{"criterion": one, "result": "not_applicable", "reason": reason} for one, reason in not_applicable]
    return Proofs(rows, came_to), prover.uncommitted if prover is not None else ()


def _beside_contract(
    typed: Sequence[tuple[str, str]], demands: Mapping[str, Demand], arguments: Arguments
) -> list[tuple[str, str]]:
    """Return the proofs of criteria that the contract leaves open. `all=` applies only to those."""
    free = []
    for criterion, how in typed:
        demand = demands.get(folded(criterion))
        if demand is None or not is_complete(demand):
            free.append((criterion, how))
        elif how != demand.command and f"all={how}" not in arguments.all_of("prove"):
            message = (
                f"the contract requires {criterion[:100]!r} to be proved by {demand.command or 'nothing'}, not by {how}"
            )
            raise WorkpacketError("proof_other_command", message, hint="omit --prove for this criterion")
    return free


def _with_contract_proofs(
    arguments: Arguments, repository: Repository, facts: Facts, name: str, evidence: Proofs
) -> Proofs:
    """Return the proofs that the contract requires, run here and at the base, unless another condition must be met
    first.
    """
    packet = facts.packets[name]
    from workpacket.lifecycle.contract import provable

    demands = demands_of(packet)
    lifted = {row["criterion"] for row in evidence.rows if row["result"] == "not_applicable"}
    asked = [
        (criterion, asked_of(demand))
        for criterion in provable(packet.packet, packet.refinement).criteria
        if is_complete(demand := demands.get(folded(criterion)))
        and demand is not None
        and (demand.command or criterion not in lifted)
    ]
    if not asked or packet.lane != "IN_PROGRESS":
        return evidence
    from workpacket.runtime.records.redaction import Redactor
    from workpacket.shell.governing.contract_proofs import ContractProver

    work = work_done(repository, packet, facts.target_branch, arguments.value("revision"))
    waiting = Proofs([*evidence.rows, *({"criterion": one, "result": "met"} for one, _ in asked)], evidence.came_to)
    ours = {*PROOF_CODES, "evidence_missing"}
    if any(one.code not in ours for one in submit_refusal(facts, packet, work, waiting)):
        rows = [*evidence.rows, *({"criterion": one, "result": "not_run"} for one, _ in asked)]
        return Proofs(rows, {**evidence.came_to, **dict.fromkeys((one for one, _ in asked), _LATER)}, evidence.faults)
    base = proof_base(repository, work.commit, facts.target_branch)
    redactor = Redactor.from_environment(os.environ)
    prover = ContractProver(
        repository, facts.policy.evidence, redactor, os.environ, base=base or work.commit, commit=work.commit
    )
    proved = prover.prove(asked)
    faults = {
        one.criterion: tuple(replace(fault, message=redactor.clean_text(fault.message)) for fault in one.judged.faults)
        for one in proved
        if one.judged.faults
    }
    rows = [*evidence.rows, *(one.row for one in proved if not one.judged.faults)]
    return Proofs(rows, evidence.came_to, faults)


_LATER: Final = "was not run because other conditions must be met first"
_PROVING: Final = (
    Option("prove", "a command or a location in the code that proves line N", value="N=COMMAND", many=True),
    Option("not-applicable", "why line N does not apply; the contract must exempt it", value="N=REASON", many=True),
)
_SUBMIT = Command(
    "submit",
    _run_submit,
    arguments="[WP_ID]",
    description="""
Each line of DONE_MEANS, counted from 1, needs a proof. If the contract requires a proof, its tests are run at the
submitted commit and again where the work left the target branch: one of them must fail there, without the work. For the
other lines, give a command that succeeds, or a `path:line`; `all=` applies to each of them. A command is run at the
submitted commit, without a shell (to use one, write N=sh -c '...'), with the environment and limits of [evidence] in
the policy. Its exit code, and the length and digest of its output, are recorded; the end of the output, without
secrets, stays in this clone, where `workpacket trace` shows it.""",
    options=(
        *_PROVING,
        Option("revision", "the commit to judge (default: HEAD)", value="REV"),
        Option("check", "run the proofs and report what is missing, without writing anything"),
        Option("record-only", "record the proofs without submitting"),
        *DECLARING,
        *ACTING,
    ),
    examples=(
        "workpacket submit WP-1-Parser-v1 --prove '1=python -m pytest tests/parser' --prove 2=src/parser.py:40",
        "workpacket submit WP-1-Parser-v1 --prove 'all=just test'",
        """workpacket submit WP-1-Parser-v1 --prove "1=sh -c 'bin/parse < tests/small.txt'\"""",
    ),
)


def _run_verdict(arguments: Arguments) -> int:
    typed = words_of(arguments, 2, f"WP_ID and a verdict, {' or '.join(choices('verdict'))}")
    choice = typed[1].upper()
    if typed[0].upper() in choices("verdict"):
        what, hint = "the WP_ID comes first", f"workpacket verdict {typed[1]} {typed[0].upper()}"
        raise usage(arguments.command, "invalid_value", what, hint)
    if choice not in choices("verdict"):
        raise usage(
            arguments.command,
            "invalid_value",
            f"invalid verdict {choice!r}: expected one of {', '.join(choices('verdict'))}",
        )
    report = report_at(arguments.value("report"))
    rested = ("--report", arguments.value("report")) if report is not None else ()

    def decide(facts: Facts, packet: PacketFacts) -> Answer:
        doubt = submission_doubt(here(), packet.log) if choice == "PASS" else None
        if doubt is not None:
            return (doubt,)
        return verdict(
            facts,
            packet,
            choice,
            report=report,
            reference=arguments.value("reference"),
            reason=arguments.value("reason"),
        )

    if arguments.flag("sign"):
        # A signature that the verdict cannot use is not asked for.
        repository = here()
        name = named_packet(arguments, repository, 2)
        facts = gather(repository, [name], actor_of(arguments, repository))
        answer = decide(facts, packet_of(facts, name))
        if not isinstance(answer, Planned):
            return refuse(arguments, name, answer)
        approved = signed_first(arguments, name, "--gate", VERDICT_GATE, "--verdict", choice, *rested)
        if approved != exits.OK:
            return approved
    result = packet_command(
        arguments,
        decide,
        words=2,
        questions=(verdict_question(choice, report_term(report)),),
        hands_over=(GOVERNANCE_FOLDER, *([arguments.value("report")] if report is not None else ())),
    )
    return sync_team_claim(arguments, result)


def report_at(path: str) -> Json:
    """Return the current content of the validator's report."""
    if not path:
        return None
    repository = here()
    place = relative_place(repository, os.path.abspath(path)).replace(os.sep, "/")
    if os.path.isabs(place):
        raise WorkpacketError("path_outside_repository", f"{path} is outside the repository", hint=str(repository.root))
    try:
        with open(path, "rb") as stream:
            return {"path": place, "sha256": hashlib.sha256(stream.read()).hexdigest()}
    except FileNotFoundError as error:
        raise WorkpacketError("path_not_found", f"report {path} not found") from error


_VERDICT = Command(
    "verdict",
    _run_verdict,
    arguments="WP_ID PASS|FAIL|CHANGES|OUTDATED_ONLY",
    description=(
        "You cannot judge your own work. A verdict requires a report; for a light packet, --reason can replace it."
    ),
    options=(
        Option("report", "the validator's report, a file in the repository", value="FILE"),
        Option("reference", "where the requested changes are described", value="PLACE"),
        REASON,
        SIGN,
        COMMIT,
        *ACTING,
    ),
    examples=(
        "workpacket verdict WP-1-Parser-v1 PASS --report docs/reports/parser.md --as validator-1",
        "workpacket verdict WP-1-Parser-v1 CHANGES --reference docs/reports/parser.md#3",
    ),
)


_DONE = Command(
    "done",
    _run_done,
    arguments="[WP_ID]",
    description="""
Runs the proofs that the packet names, and submits the commit. If the policy does not require a judge, the work counts
as MERGED (not judged) once it is on the target branch, which is checked out if everything is committed. Otherwise,
someone else's verdict comes next.""",
    options=(*_PROVING, COMMIT, *DECLARING, *ACTING),
    examples=("workpacket done WP-1-Greet-The-User-v1", "workpacket done WP-1-Greet-The-User-v1 --commit"),
)


DECLARED: Final = {command.name: command for command in (_SUBMIT, _VERDICT, _DONE)}
