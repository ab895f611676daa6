"""What can be done on the pages of `serve`. Each action is a command, with the fields of its form. A page never judges
whether an action is allowed: the command does, and its refusal is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, Final, NamedTuple

from workpacket.cli.commands import resolve
from workpacket.lifecycle.transitions import leaving
from workpacket.model.ids import is_packet_id
from workpacket.model.lanes import LaneTable
from workpacket.report.live_page import Form, FormField

_LONGEST: Final = 10_000
Given = Mapping[str, str]
Words = tuple[list[str], list[str]]


class Act(NamedTuple):
    """One action. `words` yields the command line: the words before `--` and the words after it. `acting`: the command
    takes an actor's name.
    """

    title: str
    says: str
    typed: str
    fields: Sequence[FormField]
    words: Callable[[Given], Words]
    acting: bool = True
    about: str = "packet"


_REASON: Final = FormField("reason", "Reason", required=True)
_VERDICTS: Final = ("PASS", "CHANGES", "FAIL", "OUTDATED_ONLY")


def _options(given: Given, *names: str) -> list[str]:
    return [f"--{name}={given[name]}" for name in names if given.get(name)]


def _proofs(given: Given) -> list[str]:
    return [f"--prove={line.strip()}" for line in given.get("prove", "").splitlines() if line.strip()]


def _one(command: str, *options: str) -> Callable[[Given], Words]:
    return lambda given: ([*command.split(), *_options(given, *options)], [given["id"]])


ACTS: Final[Mapping[str, Act]] = {
    "start": Act("Start", "Claims the packet and creates its branch.", "start {id}", (), _one("start")),
    "claim": Act(
        "Claim", "The packet is yours until the lease expires.", "claim {id}",
        (FormField("branch", "Branch for the work", help="if none has been prepared"),), _one("claim", "branch"),
    ),
    "renew": Act(
        "Renew the lease", "", "claim {id} --renew", (), lambda given: (["claim", "--renew"], [given["id"]])
    ),
    "done": Act(
        "Prove and submit", "Runs the proofs on the commit that is checked out.", "done {id}",
        (FormField("prove", "More proofs", lines=True, help="one per line: N=COMMAND or N=PATH:LINE"),),
        lambda given: (["done", *_proofs(given)], [given["id"]]),
    ),
    "verdict": Act(
        "Judge", "You cannot judge your own work.", "verdict {id} VERDICT",
        (
            FormField("verdict", "Verdict", required=True, choices=_VERDICTS),
            FormField("report", "Report", help="a file in the repository"),
            FormField("reference", "Location of the requested changes"),
            FormField("reason", "Reason", help="for a light packet, instead of a report"),
        ),
        lambda given: (["verdict", *_options(given, "report", "reference", "reason")], [given["id"], given["verdict"]]),
    ),
    "release": Act(
        "Release", "Someone else can then claim it.", "packet release {id} --reason TEXT", (_REASON,),
        _one("packet release", "reason"),
    ),
    "block": Act(
        "Block", "", "packet block {id} --reason TEXT --waits-for TEXT",
        (_REASON, FormField("waits-for", "What would unblock it", required=True)),
        _one("packet block", "reason", "waits-for"),
    ),
    "unblock": Act(
        "Unblock", "The work continues where it stopped.", "packet unblock {id}", (FormField("reason", "Reason"),),
        _one("packet unblock", "reason"),
    ),
    "note": Act(
        "Add a note", "Adds a note to the log, without moving the packet.", "packet note {id} TEXT",
        (FormField("text", "Note", required=True, lines=True),),
        lambda given: (["packet", "note"], [given["id"], given["text"]]),
    ),
    "cancel": Act(
        "Cancel the run", "The run stops at its next step boundary and can be resumed.", "runtime cancel {id}",
        (FormField("reason", "Reason"),), _one("runtime cancel", "reason"), acting=False, about="run",
    ),
    "answer": Act(
        "Answer", "", "resume {id} QUESTION", (FormField("answer", "Answer", required=True),),
        lambda given: (
            ["resume", f"--{given['answer']}", *_options(given, "confirm")], [given["id"], given["question"]]
        ),
        acting=False,
        about="run",
    ),
    "signal": Act(
        "Send the signal", "The run receives it at its next wait.", "runtime signal {id} SIGNAL",
        (
            FormField("signal", "Signal", required=True),
            FormField("value", "Value", help="JSON; null if it is empty"),
        ),
        lambda given: (["runtime", "signal", *_options(given, "value")], [given["id"], given["signal"]]),
        acting=False, about="run",
    ),
    "fork": Act(
        "Fork from a checkpoint", "Begins a new run: everything done before the checkpoint stays done.",
        "runtime runs fork {id} --at CHECKPOINT --once KEY",
        (FormField("at", "Checkpoint", required=True), FormField("once", "Key that names the new run", required=True)),
        _one("runtime runs fork", "at", "once"), acting=False, about="run",
    ),
    "verify": Act(
        "Verify the record", "Reads everything again that was stored, as a replay does, and compares the digests.",
        "runtime runs verify {id}", (), _one("runtime runs verify"), acting=False, about="run",
    ),
    "settle": Act(
        "Settle the log and the store", "Where a crash left a gap, records how the runs of packets ended.",
        "runtime runs settle", (), lambda _: (["runtime", "runs", "settle"], []), acting=False, about="store",
    ),
    "unlink": Act(
        "Declare a run lost", "For a run whose store is gone. It then no longer prevents a verdict.",
        "runtime runs unlink RUN --reason TEXT",
        (FormField("run", "Run", required=True, help="such as WP-1-Parser-v1/nightly@1"), _REASON),
        lambda given: (["runtime", "runs", "unlink", *_options(given, "reason")], [given["run"]]), about="store",
    ),
    "revive": Act(
        "Revive the job", "The job waits again.", "runtime queue revive JOB", (FormField("job", "Job", required=True),),
        lambda given: (["runtime", "queue", "revive"], [given["job"]]), acting=False, about="store",
    ),
}  # fmt: skip
# The names of the commands that the actions run.
COMMANDS: Final = tuple(sorted({resolve(act.typed.split())[0] for act in ACTS.values()}))
# An approval is a touch: its page is that of `approve --browser`.
APPROVE: Final = Act(
    "Approve by touch", "Opens the page where you read the contract and touch your key.",
    "approve {id} --browser", (), _one("approve --browser"),
)  # fmt: skip
_ANSWERS: Final = ("yes", "no", "retry", "mark-done", "compensate")
_RENEWS: Final = "IN_PROGRESS"
NEEDS_APPROVAL: Final = "needs an approval"
LEASE_ENDS: Final = "lease ends"
_AT_ONCE: Final = {NEEDS_APPROVAL: "approve", LEASE_ENDS: "renew"}
_MOST_CHECKPOINTS: Final = 20


def packet_forms(name: str, lane: str, light: bool, lanes: LaneTable) -> Iterator[Form]:
    """Yield the actions that may be possible in a lane."""
    moves = {"done" if row.command == "submit" else row.command for row in leaving(lane, lanes)}
    if lane == "STUB":
        yield _form("approve", APPROVE, name)
    if lane == "READY_FOR_DEV" or (lane == "STUB" and light):
        yield _form("start", ACTS["start"], name)
    if lane == _RENEWS:
        yield _form("renew", ACTS["renew"], name)
    for action, act in ACTS.items():
        if act.about == "packet" and (action in moves or action == "note"):
            yield _form(action, act, name)


def run_forms(shown: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> Iterator[Form]:
    """Yield what can be done about a run: first what it is waiting for."""
    name = str(shown.get("run", ""))
    yield from (answer_form(name, one) for one in questions)
    events = shown.get("events") or ()
    for signal in _awaited(events) if shown.get("waits") else ():
        fields = (FormField("signal", "", fixed=signal), ACTS["signal"].fields[1])
        form = _form("signal", ACTS["signal"], name, fields)
        yield form._replace(title=f"Send the signal {signal}"[:200],
                            command=f"workpacket runtime signal {quote(name)} {quote(signal)}")  # fmt: skip
    if shown.get("state") in {"live", "interrupted", "stopped"}:
        yield _form("cancel", ACTS["cancel"], name)
    checkpoints = [one["data"] for one in events if one.get("type") == "checkpoint"][-_MOST_CHECKPOINTS:]
    if checkpoints:
        points = [str(one.get("id", "")) for one in reversed(checkpoints)]
        named = ", ".join(f"{one.get('id')} is {one['name']}" for one in checkpoints if one.get("name"))
        at = FormField("at", "Checkpoint", required=True, choices=points, help=named[:300])
        yield _form("fork", ACTS["fork"], name, (at, ACTS["fork"].fields[1]))
    yield _form("verify", ACTS["verify"], name)


def answer_form(name: str, one: Mapping[str, Any]) -> Form:
    """Return the form that answers a question of a run. It contains the digest of what was shown."""
    choices = [each for each in one.get("answers", ()) if each in _ANSWERS]
    fields = (
        FormField("question", "", fixed=str(one.get("id", ""))),
        FormField("confirm", "", fixed=str(one.get("digest", ""))),
        FormField("answer", "Answer", required=True, choices=choices),
    )
    form = _form("answer", ACTS["answer"], name, fields)
    title = f"Answer: {one.get('question', '')}"[:200]
    return form._replace(title=title, command=f"workpacket resume {quote(name)} {one.get('id', '')} --ANSWER")


def _awaited(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the signals that some wait of the run named."""
    waits = [one.get("data", {}) for one in events if one.get("type") == "wait.begun"]
    return sorted({str(one["signal"]) for one in waits if one.get("signal")})


def store_forms(jobs: Sequence[Mapping[str, Any]]) -> Iterator[Form]:
    """Yield what can be done about all runs, and about jobs that failed permanently."""
    for job in jobs:
        if job.get("state") == "dead":
            number = str(job.get("job", ""))
            form = _form("revive", ACTS["revive"], "", (FormField("job", "", fixed=number),))
            yield form._replace(title=f"Revive job {number}", command=f"workpacket runtime queue revive {number}")
    yield _form("settle", ACTS["settle"], "")
    yield _form("unlink", ACTS["unlink"], "")


def waiting_forms(need: str, name: str, lane: str, lanes: LaneTable) -> list[Form]:
    """Return what the viewer can do at once about a packet that is waiting."""
    moves = {row.command for row in leaving(lane, lanes)}
    action = _AT_ONCE.get(need) or next((one for one in ("verdict", "unblock") if one in moves), "")
    return [_form(action, ACTS.get(action, APPROVE), name)] if action else []


def _form(action: str, act: Act, name: str, fields: Sequence[FormField] = ()) -> Form:
    own = (FormField("id", "", fixed=name),) if name else ()
    typed = act.typed.replace("{id}", quote(name))
    return Form(action, act.title, act.says, f"workpacket {typed}", (*own, *(fields or act.fields)))


# These fields become arguments of their own, not parts of an option.
_POSITIONAL: Final = frozenset({"question", "id", "signal", "run", "job"})


def faults(act: Act, given: Given) -> Iterator[str]:
    """Yield what is wrong with the fields of a form, before a command is run."""
    known = {field.name for field in act.fields} | ({"id"} if act.about != "store" else set())
    known |= {"question", "confirm"} if act is ACTS["answer"] else set()
    yield from (f"the form has no field {name!r}" for name in sorted(given.keys() - known))
    name = given.get("id", "")
    if act.about == "packet" and not is_packet_id(name):
        yield "the id is not a packet id"
    for field in act.fields:
        value = given.get(field.name, "")
        if field.required and not value.strip():
            yield f"{field.label}: a value is needed"
        if field.choices and value not in field.choices:
            yield f"{field.label}: expected one of {', '.join(field.choices)}"
    if "answer" in given and given["answer"] not in _ANSWERS:
        yield "the answer is not one of the choices"
    for key, value in given.items():
        if "\0" in value or "\ufffd" in value or len(value) > _LONGEST:
            yield f"a value must be a string of at most {_LONGEST} characters"
        if key in _POSITIONAL and value.startswith("-"):
            yield "the value is not a valid id"
