"""`workpacket approve`: a person's signed approval or rejection of specific bytes, with a key that no agent has.

Before it asks, `approve` checks whether the text is already approved and whether the gate would refuse it anyway, so
that no one reads and signs for nothing.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TextIO

from workpacket.approvals.envelope import DEFAULT_VALIDITY, Statement, pae, read_statement
from workpacket.approvals.fields import LONGEST_VALIDITY, read_instant
from workpacket.approvals.policy import POLICY_GATE
from workpacket.approvals.sshsig import NAMESPACE, unarmor
from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import refuse
from workpacket.cli.read_only import NOBODY
from workpacket.git.repository import find_repository
from workpacket.lifecycle.activation import unmet_besides_signature
from workpacket.lifecycle.contract import Contract
from workpacket.lifecycle.contract_drift import difference, parts
from workpacket.lifecycle.gates import ACTIVATING, ACTIVATION_GATE, OPTIONAL, TERMS, VERDICT_GATE, report_term, terms_in
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.event_types import VERDICTS
from workpacket.model.layout import LARGEST_WRITE_ONCE, envelope_path
from workpacket.model.plan import Moment
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.approval_text import (
    render_changes,
    render_contract,
    render_difference,
    render_file,
    render_refusals,
    render_statement,
    render_told,
    words_to_type,
)
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import Style, escape
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import (
    StatementDraft,
    Wish,
    Written,
    draft_decision,
    draft_revocation,
    redraft,
    write_decision,
)
from workpacket.shell.approvals.envelopes import POLICY_MATTER
from workpacket.shell.approvals.facts import Approvals, open_approvals, require_id
from workpacket.shell.approvals.shown import contract_before, last_approved, what_is_required, what_was_submitted
from workpacket.shell.base import remember_base
from workpacket.shell.governing.execution import gather
from workpacket.shell.keys import OwnKey, find_ssh_keygen, sign


def already_given(approvals: Approvals, wish: Wish, principal: str) -> Written | None:
    """Return this person's valid approval of exactly these bytes; a later rejection cancels it."""
    if wish.decision != "approve":
        return None
    verdict = approvals.verdict(wish.packet, wish.gate, terms=wish.terms)
    mine = [voice.envelope for voice in verdict.voices if voice.principal == principal]
    if not mine or any(refusal.code == "approval_rejected" for refusal in verdict.unmet):
        return None
    return Written(envelope_path(mine[0]), verdict, ())


def unmet_at_the_gate(approvals: Approvals, wish: Wish) -> tuple[Problem, ...]:
    """Return the unmet conditions of the activation gate that a signature would not satisfy."""
    if wish.gate not in ACTIVATING or wish.decision != "approve":
        return ()
    facts = gather(approvals.repository, [wish.packet], NOBODY)
    packet = facts.packets.get(wish.packet)
    return unmet_besides_signature(facts, packet) if packet is not None else ()


# A statement stores the reason on one line of its scope.
LONGEST_REASON = 200


def approve(arguments: Arguments, *, goes_on: bool = False) -> int:
    """Ask a person to decide. `goes_on`: another command takes the next step, so the person is not told to type it."""
    now = moment()
    with _opened(arguments, now) as approvals:
        if arguments.value("attach"):
            return _attach(arguments, approvals, now)
        if len(arguments.words) != 1:
            what = "give one packet or `policy`, and nothing else; the signature is made by ssh-keygen, not typed"
            raise usage(arguments.command, "missing_argument", what)
        key = _key(arguments)
        wish = _wish(arguments, key)
        draft = draft_decision(approvals, wish, now)
        given = already_given(approvals, wish, draft.statement.approver)
        if given is not None:
            return _tell_already(arguments, draft.statement, given)
        unmet = unmet_at_the_gate(approvals, wish)
        if unmet:
            return refuse(arguments, wish.packet, unmet)
        return _decide(arguments, approvals, draft, key, goes_on=goes_on)


def revoke(arguments: Arguments) -> int:
    now = moment()
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "give the digest of exactly one envelope")
    with _opened(arguments, now) as approvals:
        key = _key(arguments)
        digest = _digest(approvals, arguments.words[0])
        return _decide(arguments, approvals, draft_revocation(approvals, digest, key.public, now), key)


def _key(arguments: Arguments) -> OwnKey:
    from workpacket.cli.touch import chosen_key

    return chosen_key(arguments)


@contextmanager
def _opened(arguments: Arguments, now: Moment) -> Iterator[Approvals]:
    repository = find_repository(Path.cwd())
    with open_approvals(repository, arguments.value("base") or None, now) as approvals:
        yield approvals


def _wish(arguments: Arguments, key: OwnKey) -> Wish:
    packet = require_id(arguments.words[0])
    gate = arguments.value("gate", ACTIVATION_GATE)
    if (packet == POLICY_MATTER) != (gate == POLICY_GATE):
        raise usage(
            arguments.command, "invalid_value", "to approve a change to the policy, use `approve policy --gate policy`"
        )
    days = arguments.value("days", str(DEFAULT_VALIDITY.days))
    if not (days.isascii() and days.isdigit() and 1 <= int(days[:4]) <= LONGEST_VALIDITY.days):
        raise usage(
            arguments.command,
            "invalid_value",
            f"--days requires a number from 1 to {LONGEST_VALIDITY.days}, not {days!r}",
        )
    return Wish(
        packet=packet,
        gate=gate,
        decision=arguments.value("decision", "approve"),
        key=key.public,
        role=arguments.value("role"),
        terms=_terms(arguments, gate),
        validity=timedelta(days=int(days)),
    )


def _terms(arguments: Arguments, gate: str) -> dict[str, str]:
    """Return the gate's terms in full."""
    wanted = TERMS.get(gate, {})
    for name in ("verdict", "report", "lane", "rule", "until", "reason", "target"):
        if name in OPTIONAL and name in wanted:
            continue
        if bool(arguments.value(name)) != (name in wanted):
            what = f"the gate {gate} needs --{name}" if name in wanted else f"--{name} does not apply to gate {gate}"
            raise usage(arguments.command, "missing_argument" if name in wanted else "conflicting_options", what)
    if "until" in wanted and read_instant(arguments.value("until")) is None:
        raise usage(arguments.command, "invalid_value", "--until requires a time such as 2026-01-31T12:00:00Z")
    reason = arguments.value("reason") + arguments.value("target")
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        what = f"--reason must be a single line of up to {LONGEST_REASON} characters"
        raise usage(arguments.command, "invalid_value", what)
    terms = {name: arguments.value(name) for name in wanted}
    if "report" in wanted:
        from workpacket.cli.review import report_at

        terms["report"] = report_term(report_at(terms["report"]))
    return terms


def _digest(approvals: Approvals, word: str) -> str:
    """Return the only digest that begins with `word`."""
    stem = os.path.basename(word).partition(".")[0].lower()
    found = [digest for name in approvals.claims if (digest := name.partition(".")[0]).startswith(stem)]
    if len(found) != 1 or len(stem) < 4:
        what = f"{len(found)} envelopes begin with {stem!r}" if len(stem) >= 4 else f"{stem!r} is too short"
        raise WorkpacketError("approval_unknown", what, hint="workpacket approvals list")
    return found[0]


def _decide(
    arguments: Arguments, approvals: Approvals, draft: StatementDraft, key: OwnKey, *, goes_on: bool = False
) -> int:
    """Approve at this terminal, or write a statement to sign elsewhere."""
    out = arguments.value("statement-out")
    screen = sys.stderr if arguments.flag("json") else sys.stdout
    if out:
        _show(approvals, draft, screen, style_of(arguments))
        return _write_statement(arguments, draft, Path(out))
    if arguments.flag("browser"):
        from workpacket.cli.touch import decide_in_page

        finish = partial(_finish, arguments, approvals, draft)
        return decide_in_page(approvals, draft, key, partial(_show, approvals, draft), finish)
    if not (sys.stdin.isatty() and screen.isatty()):
        raise WorkpacketError(
            "approval_needs_terminal",
            "a person must read the text and answer, but standard input is not a terminal",
            hint="run it in a terminal, or use --statement-out FILE to sign elsewhere",
        )
    program = find_ssh_keygen()
    _show(approvals, draft, screen, style_of(arguments))
    _ask(draft, screen, program)
    return _finish(arguments, approvals, draft, sign(draft.message, key.path), goes_on=goes_on)


# The width of the rows if the terminal does not report its own.
USUAL_WIDTH = 80


def _show(approvals: Approvals, draft: StatementDraft, screen: TextIO, style: Style) -> None:
    """Show the text row by row, because a line wrapped by the terminal would continue without the bar."""
    said = draft.statement
    told = os.environ.get("COLUMNS", "")
    style = style._replace(width=style.width or (int(told[:4]) if told.isascii() and told.isdigit() else USUAL_WIDTH))
    if draft.contract is not None:
        _show_contract(approvals, said, draft.contract, screen, style)
    for path, data in draft.matter.files:
        screen.write(render_file(path, data, style))
        before = last_approved(approvals, said.packet, said.gate, path)
        if before is None:
            screen.write(f"--- {escape(path)} has not been approved before\n")
        elif before.data is None:
            screen.write(
                f"--- the version that {escape(before.approver)} approved was never committed; read the whole text\n"
            )
        else:
            since = f"{escape(before.approver)} approved it at {before.at:%Y-%m-%d %H:%M}Z"
            screen.write(render_changes(path, before.data, data, since, style))
    required = list(what_is_required(approvals, draft.matter))
    if required:
        screen.write(render_told("what the specification requires", required, style))
    submitted = list(what_was_submitted(approvals, said.packet, said.gate))
    if submitted:
        screen.write(render_told("what was submitted", submitted, style))
    screen.write("\n" + render_statement(said, style))


def _show_contract(approvals: Approvals, said: Statement, contract: Contract, screen: TextIO, style: Style) -> None:
    """Show the whole contract, and how it differs from the approved one."""
    screen.write(render_contract(parts(contract), contract.digest, style))
    before = contract_before(approvals, said.packet, said.gate)
    if before is None:
        screen.write("--- no contract of this packet has been approved at this gate yet\n")
    elif before.contract is None:
        screen.write("--- the approved contract is not in any commit; read the whole text\n")
    elif before.contract == contract:
        screen.write(f"--- the contract: unchanged since {escape(before.since)}\n")
    else:
        screen.write(render_difference(difference(before.contract, contract), escape(before.since), style))


def _ask(draft: StatementDraft, screen: TextIO, program: str) -> None:
    words = words_to_type(draft.statement)
    screen.write(f"\nsigning program: {escape(program)}\n\nIf you have read everything and approve, type: {words}\n> ")
    screen.flush()
    answer = sys.stdin.readline().strip()
    if answer != words:
        raise WorkpacketError("approval_not_given", "the words do not match, so nothing was signed")


def _write_statement(arguments: Arguments, draft: StatementDraft, path: Path) -> int:
    """Write the statement to a file outside the governed folders; never overwrite an existing file."""
    try:
        with path.open("xb") as file:
            file.write(draft.message)
    except OSError as error:
        raise WorkpacketError("file_unwritable", f"{path}: {error.strerror}", path=str(path)) from error
    following = f"ssh-keygen -Y sign -n {NAMESPACE} -f KEY {path}, then: workpacket approve --attach {path}"
    return _tell(arguments, {"statement": str(path), "next": following}, f"next: {escape(following)}")


def _attach(arguments: Arguments, approvals: Approvals, now: Moment) -> int:
    path = Path(arguments.value("attach"))
    message, armored = _read(path), _read(Path(f"{path}.sig"))
    payload = message.split(b" ", 4)[-1]
    statement = read_statement(payload)
    if isinstance(statement, Problem):
        raise WorkpacketError.of(statement)
    if pae(payload) != message:
        raise WorkpacketError("statement_unfit", f"{path} was not written by `--statement-out`", path=str(path))
    blob = unarmor(armored.decode("ascii", "replace").replace("\r\n", "\n"))
    if isinstance(blob, Problem):
        raise WorkpacketError.of(blob)
    return _finish(arguments, approvals, redraft(approvals, statement, now), blob)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_WRITE_ONCE)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=str(path)) from error


def _finish(
    arguments: Arguments, approvals: Approvals, draft: StatementDraft, blob: bytes, *, goes_on: bool = False
) -> int:
    written = write_decision(approvals, draft, blob)
    remember_base(approvals.base)
    said = draft.statement
    passed = any(said.gate in approvals.gates(event) for event in approvals.log(said.packet).events)
    following = _next(said, written, light=draft.matter.light, again=passed and said.gate in ACTIVATING)
    data = _decided(said, written, following)
    done = {"approve": "approved", "reject": "rejected", "revoke": "revoked an approval for"}[said.decision]
    text = f"{said.approver} {done} {said.packet} at the gate {said.gate}: {written.envelope}\n"
    if said.decision == "approve" and not written.verdict.met:
        text += render_refusals((each.code, each.message, each.path) for each in written.verdict.unmet)
    goes_on = goes_on and written.verdict.met
    return _tell(arguments, data, text.removesuffix("\n") if goes_on else f"{text}next: {following}")


def _tell_already(arguments: Arguments, said: Statement, given: Written) -> int:
    open_now = given.verdict.met and said.gate in ACTIVATING
    following = f"workpacket packet activate {said.packet}" if open_now else f"workpacket approvals list {said.packet}"
    text = f"{said.approver} has already approved {said.packet} at gate {said.gate}: {given.envelope}\n"
    text += "nothing was signed or written\n"
    return _tell(arguments, _decided(said, given, following), f"{text}next: {following}")


def _decided(said: Statement, written: Written, following: str) -> dict[str, Json]:
    unmet: list[Json] = [{"code": each.code, "message": each.message} for each in written.verdict.unmet]
    return {
        "packet": said.packet,
        "gate": said.gate,
        "decision": said.decision,
        "approver": said.approver,
        "envelope": written.envelope,
        "changed": list(written.changed),
        "met": written.verdict.met,
        "unmet": unmet,
        "next": following,
    }


def _next(said: Statement, written: Written, *, light: bool, again: bool) -> str:
    """Return what to do next. `again`: an event has already passed the gate."""
    commit = f"commit {' and '.join(written.changed)} together"
    if said.decision != "approve":
        return commit
    if written.verdict.met:
        opened = f"workpacket packet reapprove {said.packet}" if again else _now_open(said, light=light)
        return ", then: ".join(filter(None, (commit, opened)))
    return f"{commit}; gate {said.gate} is still closed: workpacket approvals list {said.packet}"


def _now_open(said: Statement, *, light: bool) -> str:
    """Return the command that the gate now allows, if exactly one command requires this gate."""
    if said.gate in ACTIVATING:
        return f"workpacket {'start' if light else 'packet activate'} {said.packet}"
    if said.gate == VERDICT_GATE:
        terms = dict(line.split(": ", 1) for line in terms_in(said.gate, said.scope))
        path, digest, _ = terms.get("report", "").rpartition(" sha256:")
        report = f" --report {shlex.quote(path)}" if digest else ""
        return f"workpacket verdict {said.packet} {terms['verdict']}{report}"
    return ""


def _tell(arguments: Arguments, data: dict[str, Json], text: str) -> int:
    if arguments.flag("json"):
        sys.stdout.write(render_envelope(arguments.command.name, exits.OK, [], data))
    else:
        sys.stdout.write(f"{text}\n")
    return exits.OK


def run(arguments: Arguments) -> int:

    return approve(arguments)


KEY_OPTION = Option(
    "key",
    "the key to sign with: a private key, or a .pub file whose private key is in an agent or on a security key",
    value="PATH",
)
BROWSER_OPTION = Option("browser", "approve on a page that this machine serves, by touching a security key or passkey")
BASE_OPTION = Option("base", "the revision to read the policy from", value="REV")

COMMAND = Command(
    "approve",
    run,
    arguments="[WP_ID]",
    description="""
The whole text is shown, with its digest in six words and what has changed since it was last approved. After reading it,
you type the words asked for, and ssh-keygen signs. At the gate `activation`, the USER fields of the refinement are
filled in first; refinement and envelope are written together. Conditions of that gate that no signature can meet are
listed instead, with exit status 3; a text that you have already approved is not signed twice. A change to `.GOV/policy`
is approved as `policy`, at the gate `policy`. `--browser` shows the same in a page on this machine, where touching a
security key signs it. Without a page or a terminal, nothing is signed; `--statement-out` writes a statement to sign
elsewhere, and `--attach` takes it back together with the FILE.sig that ssh-keygen made.""",
    options=(
        Option("gate", "the gate (default: activation)", value="GATE"),
        Option("decision", "the decision (default: approve)", choices=("approve", "reject")),
        KEY_OPTION,
        BROWSER_OPTION,
        Option("role", "the role to act in, if the gate accepts more than one", value="ROLE"),
        Option("verdict", "for the verdict gate: the verdict", choices=VERDICTS),
        Option(
            "report",
            "the report that the verdict is based on; the `verdict` command then accepts no other report",
            value="FILE",
        ),
        Option("lane", "for the resolve gate: the lane to resolve the fork to", value="LANE"),
        Option("rule", "for the waiver and override gates: the code of the condition to lift", value="CODE"),
        Option(
            "until", "for the waiver and override gates: the expiry time, such as 2026-01-31T12:00:00Z", value="INSTANT"
        ),
        Option("reason", "for the waiver and override gates: the reason to record in the event", value="TEXT"),
        Option(
            "target",
            "for the waiver and override gates: the only target that is affected, such as a dependency",
            value="TEXT",
        ),
        Option("days", "how long the approval remains valid: 1 to 30 days (default: 14)", value="N"),
        Option("statement-out", "write the statement to FILE without signing it", value="FILE"),
        Option("attach", "attach a statement that was signed elsewhere, given as FILE and FILE.sig", value="FILE"),
        BASE_OPTION,
    ),
    examples=(
        "workpacket approve WP-1-Parser-v1",
        "workpacket approve WP-1-Parser-v1 --gate verdict --verdict PASS --report docs/reports/parser.md",
        "workpacket approve WP-1-Parser-v1 --browser",
        "workpacket approve policy --gate policy",
        "workpacket approve WP-1-Parser-v1 --statement-out statement",
        "ssh-keygen -Y sign -n workpacket-approval@v1 -f KEY statement",
        "workpacket approve --attach statement",
    ),
)
