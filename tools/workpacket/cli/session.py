"""`workpacket runtime session`: show how sessions with a model ended, and record an operator's decisions about them."""

from __future__ import annotations

from datetime import UTC, datetime

from workpacket.bridges.checkpoint_files import artifact_of
from workpacket.bridges.foreign import imported
from workpacket.cli.open_store import answer, open_runtime, refusing, run_named
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.packet_command import words_of
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.escape import escape_lines
from workpacket.runtime.model_sessions.record import DECISIONS, SessionReport, assess, carry_over, operator_decides
from workpacket.runtime.runtime import Runtime


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    return {"list": _list, "show": _show, "decide": _decide, "continue": _continue}[action](arguments)


def _list(arguments: Arguments) -> int:
    words_of(arguments, 0, "no words")
    with open_runtime() as runtime:
        found = [assess(runtime, line.id) for line in runtime.runs() if line.name == "session"]
    text = "".join(f"{_line(report)}\n" for report in found) or "there are no sessions\n"
    rows: list[Json] = [report.session.as_json() for report in found]
    return answer(arguments, escape_lines(text), {"sessions": rows})


def _show(arguments: Arguments) -> int:
    word = words_of(arguments, 1, "ID")[0]
    with open_runtime() as runtime:
        return _said(arguments, assess(runtime, _session_named(runtime, word)))


def _decide(arguments: Arguments) -> int:
    word, choice = words_of(arguments, 2, "ID and a choice")
    if choice not in DECISIONS:
        raise usage(arguments.command, "invalid_value", f"decide {', '.join(DECISIONS)}; not {choice!r}")
    with open_runtime() as runtime:
        stream = _session_named(runtime, word)
        return _said(arguments, operator_decides(runtime, stream, choice, arguments.value("note")))


def _continue(arguments: Arguments) -> int:
    key = words_of(arguments, 1, "KEY")[0]
    with open_runtime() as runtime:
        held = imported(runtime.store, f"session/{key}")
        if not held:
            hint = "workpacket log import session PATH"
            raise WorkpacketError("checkpoint_missing", f"no imported artifact has session {key!r}", hint=hint)
        return _said(arguments, assess(runtime, carry_over(runtime, artifact_of(held[-1].checkpoint.values))))


def _session_named(runtime: Runtime, word: str) -> str:
    stream = run_named(runtime, word)
    if not stream.rpartition("@")[0].endswith("session"):
        raise WorkpacketError(
            "checkpoint_missing", f"{stream} is not a session", hint="workpacket runtime session list"
        )
    return stream


def _said(arguments: Arguments, report: SessionReport) -> int:
    session = report.session
    lines = [_line(report)]
    lines += [f"  {detail}" for detail in report.details]
    lines += [f"  pending: {call.step} ({call.target}): {call.pending}" for call in report.pending]
    lines += [f"  damaged artifact: {name}" for name in report.corrupt]
    blocked = session.status == "BLOCKED"
    status = catalogue()[session.reason].exit_code if blocked else 0
    then = ""
    if report.choices:
        then = f"workpacket runtime session decide {session.stream} {'|'.join(report.choices)}"
    elif session.status == "PAUSED":
        then = "start its program again"
    text = escape_lines("".join(f"{line}\n" for line in lines))
    return answer(arguments, text, report.as_json(), status=status, then=then)


def _line(report: SessionReport) -> str:
    session = report.session
    line = f"{session.stream}: {session.status}{f' {session.reason}' if session.reason else ''}"
    line += f", {session.messages} messages"
    if not session.checkpoint_artifact_id:
        return f"{line}, no checkpoint"
    moment = datetime.fromtimestamp(session.last_checkpoint_at / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{line}, checkpoint {session.checkpoint_artifact_id[:12]} ({session.last_checkpoint_kind}, {moment})"


ACTIONS = ("list", "show", "decide", "continue")


COMMAND = Command(
    "session",
    run,
    arguments="list | show ID | decide ID cancel|repair|retry | continue KEY",
    description="""
`show` prints the state of a session without changing it: its status and reason, every call without an outcome, and the
possible decisions. `decide` settles a blocked session: `cancel` ends it, `repair` treats effects in doubt as done and
damaged records as lost, `retry` does it again. `continue` resumes on this machine, from its last saved state, a session
of another machine whose artifact was imported with `workpacket log import session`.""",
    options=(Option("note", "decide: a comment to store with the decision", value="TEXT"),),
    examples=(
        "workpacket runtime session show session@review-42",
        "workpacket runtime session decide session@review-42 repair --note 'the comment is there'",
        "workpacket runtime session continue WP-1-Invoices-v1/review-42",
    ),
)
