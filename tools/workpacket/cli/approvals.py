"""`workpacket approvals`: list decisions, and verify everything that depends on them.

`workpacket approvals revoke`: permanently revoke an approval or a rejection.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from workpacket.approvals.envelope import Statement
from workpacket.approvals.facts import Verdict
from workpacket.approvals.fields import write_instant
from workpacket.cli.approve import BASE_OPTION, BROWSER_OPTION, KEY_OPTION
from workpacket.cli.check import UNCOMMITTED_OPTION
from workpacket.cli.checking import render, style_of
from workpacket.cli.options import Arguments, Command, Option, chosen
from workpacket.cli.read_only import all_facts
from workpacket.git.repository import find_repository
from workpacket.lifecycle.gates import ANCHORING
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.problem import Problem
from workpacket.report.approval_text import render_refusals
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.outcome import CheckOutcome, exit_status
from workpacket.report.terminal import escape
from workpacket.shell.actor import moment
from workpacket.shell.approvals.check import attested_packets, check_approvals, contracts_changed, replays_unfounded
from workpacket.shell.approvals.envelopes import POLICY_MATTER
from workpacket.shell.approvals.facts import Approvals, open_approvals, require_id
from workpacket.shell.base import remember_base
from workpacket.shell.cache import NO_CACHE
from workpacket.shell.governed_files import require_packets
from workpacket.shell.held import judged_in_part
from workpacket.shell.judging.merged_tree import judge_append_only, judge_merged

_SHORT = 12


def verify_approvals(arguments: Arguments) -> int:
    """Verify the approvals; exit with 5 if anything was forged or lost, or with 1 if an approval is missing."""
    with open_approvals(find_repository(Path.cwd()), arguments.value("base") or None, moment()) as approvals:
        wanted = [require_id(word) for word in arguments.words[1:]]
        findings = [*check_approvals(approvals, NO_CACHE), *contracts_changed(approvals), *replays_unfounded(approvals)]
        worktree = arguments.flag("uncommitted") or not arguments.value("base")
        if arguments.value("base"):
            findings += judge_merged(approvals.repository, approvals.base.commit, worktree=worktree)
        if approvals.base.commit:
            findings += judge_append_only(approvals.repository, approvals.base.commit, worktree=worktree)
        if wanted:
            findings = [each for each in findings if _is_about(approvals, each, wanted)]
            parts = (part for each in findings for part in each.path.removesuffix(".md").split("/"))
            _require_packets(approvals, wanted, parts)
        findings = judged_in_part(str(approvals.repository.root), findings)
        remembered = remember_base(approvals.base)
        files = {file.name: "envelope" for file in approvals.own_envelopes} or {"": "envelope"}
        outcome = CheckOutcome(tuple(findings), files)
        status = exit_status(outcome, catalogue())
        name, commit = approvals.base.name, approvals.base.commit
        against = f"against the base {escape(name)} ({commit[:_SHORT]})" if commit else "without a base"
        data: dict[str, Json] = {
            "base": approvals.base.commit,
            "envelopes": len(approvals.own_envelopes),
            "policy_anchored": approvals.base.policy.policy is not None,
            "policy_remembered": remembered,
        }
        if arguments.flag("json"):
            facts = all_facts(approvals.repository)
            packets = attested_packets(approvals, facts, findings, wanted)
            data["packets"] = [packet.to_json() for packet in packets]
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("approvals", status, findings, data))
        return status
    if findings:
        sys.stdout.write(render(arguments, outcome, status, catalogue(), style_of(arguments)))
        sys.stdout.write("To find out what to do about each one, run: workpacket explain CODE\n")
    if all(finding.severity == "info" for finding in findings):
        count = counted(len(approvals.own_envelopes), "envelope")
        sys.stdout.write(f"{count} verified {against}; no approvals are missing\n")
    if not data["policy_anchored"]:
        sys.stdout.write(
            f"note: the base has no policy yet, so no approval was required; to add a policy: {ANCHORING}\n"
        )
    if not remembered:
        sys.stdout.write("note: the policy could not be recorded on this machine; a rollback would not be detected\n")
    return status


def _require_packets(approvals: Approvals, wanted: Iterable[str], mentioned: Iterable[str] = ()) -> None:
    claimed = (said.packet for said in approvals.claims.values())
    require_packets(str(approvals.repository.root), wanted, (POLICY_MATTER, *claimed, *mentioned))


def _is_about(approvals: Approvals, finding: Problem, wanted: list[str]) -> bool:
    said = approvals.claims.get(finding.path.rpartition("/")[2])
    return any(name in finding.path.split("/") or f"{name}.md" in finding.path.split("/") for name in wanted) or (
        said is not None and said.packet in wanted
    )


def list_approvals(arguments: Arguments) -> int:
    with open_approvals(find_repository(Path.cwd()), arguments.value("base") or None, moment()) as approvals:
        wanted = [require_id(word) for word in arguments.words[1:]]
        _require_packets(approvals, wanted)
        gates = sorted({(said.packet, said.gate) for said in approvals.claims.values()})
        chosen = [gate for gate in gates if not wanted or gate[0] in wanted]
        verdicts = [(packet, approvals.verdict(packet, gate)) for packet, gate in chosen]
        if arguments.flag("json"):
            rows: list[Json] = [_as_json(approvals, packet, verdict) for packet, verdict in verdicts]
            sys.stdout.write(render_envelope("approvals", exits.OK, [], {"gates": rows}))
            return exits.OK
        sys.stdout.write("".join(_as_text(arguments, approvals, packet, verdict) for packet, verdict in verdicts))
        sys.stdout.write(f"{counted(len(verdicts), 'gate')}\n")
        return exits.OK


def _envelopes(approvals: Approvals, packet: str, verdict: Verdict) -> Iterator[tuple[str, Statement, list[str]]]:
    """Yield every decision at this gate, with the codes of the reasons why it does not count."""
    judged = {each.name: [refusal.code for refusal in each.refusals] for each in verdict.judged}
    used = {digest for event in approvals.log(packet).events for digest in event.attest}
    for name, said in sorted(approvals.claims.items(), key=lambda item: (item[1].issued_at, item[0])):
        if (said.packet, said.gate) == (packet, verdict.gate):
            codes = judged.get(name, [])
            yield name, said, ["used"] if "nonce_used" in codes and name.partition(".")[0] in used else codes


def _as_json(approvals: Approvals, packet: str, verdict: Verdict) -> Json:
    unmet: list[Json] = [{"code": each.code, "message": each.message, "path": each.path} for each in verdict.unmet]
    decisions: list[Json] = []
    for name, said, codes in _envelopes(approvals, packet, verdict):
        against: list[Json] = list(codes)
        decisions.append(
            {
                "envelope": name,
                "decision": said.decision,
                "approver": said.approver,
                "role": said.role,
                "issued_at": write_instant(said.issued_at),
                "expires_at": write_instant(said.expires_at),
                "covers": said.covers,
                "against": against,
            }
        )
    return {
        "packet": packet,
        "gate": verdict.gate,
        "met": verdict.met,
        "assurance": verdict.assurance,
        "unmet": unmet,
        "decisions": decisions,
    }


def _as_text(arguments: Arguments, approvals: Approvals, packet: str, verdict: Verdict) -> str:
    style = style_of(arguments)
    decisions = list(_envelopes(approvals, packet, verdict))
    spent = any("used" in codes for _, _, codes in decisions)
    state = "open" if verdict.met else "passed before" if spent else "shut"
    lines = [f"{style.paint(escape(packet), 'code')}  gate {escape(verdict.gate)}: {state}"]
    for name, said, codes in decisions:
        against = f"  (approved: {said.covers})" if said.version == 1 and said.decision == "approve" else ""
        against += f"  ({', '.join(codes)})" if codes else ""
        lines.append(
            f"  {name[:_SHORT]}  {said.decision}  {escape(said.approver)}  {write_instant(said.issued_at)}{against}"
        )
    text = "\n".join(lines) + "\n"
    if not verdict.met and not spent:
        text += render_refusals(((each.code, each.message, "") for each in verdict.unmet), style)
        text += f"  next: workpacket approve {packet} --gate {verdict.gate}\n"
    return text + "\n"


SUBCOMMANDS = ("list", "verify")


def run(arguments: Arguments) -> int:

    return list_approvals(arguments) if chosen(arguments, SUBCOMMANDS) == "list" else verify_approvals(arguments)


APPROVALS = Command(
    "approvals",
    run,
    arguments="list|verify [WP_ID...]",
    description="""
`list` shows every decision, and for each gate whether it would open now or what is missing. `verify` is for CI: every
envelope is sound, everything that rests on an approval has one under the policy of the base, and nothing in the log and
attestations of the base was changed or deleted. Reading does not need ssh-keygen.""",
    options=(BASE_OPTION, UNCOMMITTED_OPTION),
    examples=(
        "workpacket approvals list",
        "workpacket approvals list WP-1-Parser-v1 --json",
        "workpacket approvals verify --base origin/main",
    ),
)


def _revoke(arguments: Arguments) -> int:
    from workpacket.cli.approve import revoke

    return revoke(arguments)


REVOKE = Command(
    "revoke",
    _revoke,
    arguments="ENVELOPE",
    description="""
ENVELOPE is the digest of the envelope, or a prefix of it, as shown by `workpacket approvals list`. The approver,
someone with a role at the gate, or an operator can revoke an approval. A revocation cannot be revoked.""",
    options=(
        KEY_OPTION,
        BROWSER_OPTION,
        Option("statement-out", "write the statement to FILE without signing it", value="FILE"),
        BASE_OPTION,
    ),
    examples=("workpacket approvals revoke 3f9a1c", "workpacket approvals revoke 3f9a1c --statement-out statement"),
)

DECLARED = {command.name: command for command in (APPROVALS, REVOKE)}
