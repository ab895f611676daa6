"""Every type of event, with the closed shape of its data.

Each row is one thing that can happen to a work packet. A row with `lane_from` and `lane_to` moves the packet. The
lifecycle layer determines which moves are legal, and which gates they have; this module only defines what an event must
contain. Lanes are not a closed list, because a policy can add lanes.

The shape of a whole event is the envelope that all events share, and the data of its type. Both are JSON Schema,
assembled here so that a pattern or a limit is written once. `ledger.log` checks each event with them; editors and other
tools use the result of `event_schema`, shipped as `schemas/event.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from workpacket.model.canonical import LARGEST_INTEGER, Json

Shape: TypeAlias = "dict[str, Any]"

_TIMESTAMP = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"


def text(description: str, *, pattern: str = "", longest: int = 2000, shortest: int = 1) -> Shape:
    """Return the shape of a string; `pattern` must match all of it. The description begins with an article, because
    messages build on it.
    """
    schema: Shape = {"type": "string", "description": description, "maxLength": longest, "minLength": shortest}
    if not pattern:
        return schema
    return {**schema, "pattern": f"^(?:{pattern})$", "x-noun": description.partition(" ")[2]}


def timestamp(description: str) -> Shape:
    """Return the shape of an RFC 3339 time, in UTC, to the second, with a valid date."""
    return {
        "type": "string",
        "description": description,
        "format": "date-time",
        "pattern": f"^(?:{_TIMESTAMP})$",
    }


def integer(description: str, *, least: int, most: int = LARGEST_INTEGER) -> Shape:
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}


def choice(description: str, values: Sequence[str]) -> Shape:
    """Return the shape of a word from a fixed set."""
    return {"description": description, "enum": list(values)}


def nullable(shape: Shape) -> Shape:
    return {"anyOf": [shape, {"type": "null"}]}


def array(description: str, item: Shape, *, most: int, least: int = 0, ordered_set: bool = False) -> Shape:
    """Return the shape of a list. An `ordered_set` of strings is sorted and has no duplicates, so that one set has one
    form; JSON Schema cannot express sorting, so `ledger.log` checks it.
    """
    schema: Shape = {
        "type": "array",
        "description": description,
        "items": item,
        "minItems": least,
        "maxItems": most,
    }
    return {**schema, "uniqueItems": True} if ordered_set else schema


def record(description: str, required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of an object with these keys and no others."""
    return {
        "type": "object",
        "description": description,
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


FORKED: Final = "FORKED"
# The forms of a packet. Documents and events in the full form do not name it, because they are older than the light
# form.
FULL_FORM: Final = "full"
LIGHT_FORM: Final = "light"
GENESIS_TYPES: Final = frozenset({"created", "adopted", "checkpoint"})
CHECKPOINT_LOG: Final = "_checkpoints"
PACKETS_PER_CHECKPOINT: Final = 1000
MOST_EVIDENCE: Final = 200
LONGEST_ATTESTATION: Final = 100_000
# The results of a test, with the work and at the base.
OUTCOMES: Final = ("needed", "kept", "could_not_run", "broken", "failing", "skipped")

_PACKET_ID = r"WP-(?:[0-9]+|[A-Z][A-Z0-9]*)-[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*"

BEFORE_LANDING: Final = "before landing"

DIGEST: Final = text("a SHA-256 digest as 64 lower-case hexadecimal digits", pattern="[0-9a-f]{64}", longest=64)
PACKET_ID: Final = text("the id of a work packet, such as WP-1-Name-v1", pattern=_PACKET_ID, longest=80)
LOG_NAME: Final = text(
    f"the id of a work packet, or {CHECKPOINT_LOG}", pattern=f"{_PACKET_ID}|{CHECKPOINT_LOG}", longest=80
)
LANE: Final = text("a lane, like IN_PROGRESS", pattern="[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*", longest=40)
# A path that means the same on Windows, macOS and Linux: relative, '/', no '.' or '..' component, no backslash, no
# colon.
PATH: Final = text(
    "a path relative to the repository, with '/'",
    pattern=r"(?!(?:.*/)?\.{1,2}(?:/|$))[^/\\:\x00-\x1f]+(?:/[^/\\:\x00-\x1f]+)*",
    longest=240,
)
NAME: Final = text("a single-line name", pattern=r"[^\x00-\x1f\x7f]+", longest=200)
REASON: Final = text("the reason, as text", longest=2000)
COMMIT: Final = text("a full commit id", pattern="[0-9a-f]{40}|[0-9a-f]{64}", longest=64)
EXPIRY: Final = timestamp("when it ends")
NOTE: Final = text("the text of the note", longest=4000)

# The data for answers about a packet, so that its documents need not be read; `contract` is the digest of the contract.
_TERMS: Final[Mapping[str, Shape]] = {
    "title": text("the title of the work, on one line", longest=2000, shortest=0),
    "dependencies": array("the packets that it is waiting for", PACKET_ID, most=500, ordered_set=True),
    "risk": text("the risk tier, as written in the packet", longest=200, shortest=0),
    "contract": DIGEST,
}
_STANDING = text("the last day of a standing packet", pattern=r"[0-9]{4}-[0-9]{2}-[0-9]{2}", longest=10)

_FORM = choice("the form of the packet, unless it is the full form", (LIGHT_FORM,))
_FILE = record("a file, as it was at the time", {"path": PATH, "sha256": DIGEST})
_ORIGIN = record("the hand edit that this event adopts", {"path": PATH, "line": integer("its line", least=1)})
_EVIDENCE = record(
    "one proof of one criterion",
    {
        "criterion": text("the line of DONE_MEANS that it proves"),
        "result": choice("the reason, if the item does not apply", ("met", "not_met", "not_applicable")),
    },
    {
        "command": text("the command that was run", longest=2000),
        "exit_code": integer("the exit code", least=-255, most=2**32 - 1),
        "commit": COMMIT,
        "log_sha256": DIGEST,
        "log_length": integer("the length of its output in bytes", least=0),
        "milliseconds": integer("the duration in milliseconds", least=0),
        "log_tail": text("only in older events: the last lines of its output", longest=4000, shortest=0),
        "limit": choice(
            "the limit that was reached: the time limit stops the command; the output limit truncates its output",
            ("time", "output"),
        ),
        "proof": array("path:line", text("path:line", longest=300), most=50),
        "reason": REASON,
        "exempt": text("why the contract requires no test that fails without the work"),
        "base": COMMIT,
        "runner": text("the runner whose report was read, or `exit code` if there was no report", longest=40),
        "needed": array("tests that fail at the base and pass here", text("a test", longest=300), most=50),
        "outcomes": record(
            "the number of tests for each result",
            {},
            {each: integer("a number of tests", least=0) for each in OUTCOMES},
        ),
        "tests_sha256": DIGEST,
        "execution": choice(
            "whether a required test was seen to execute the changed code", ("measured", "not measured")
        ),
    },
)
_EVIDENCE_LIST = array("the proofs of the criteria", _EVIDENCE, most=MOST_EVIDENCE, least=1)
_CHECKLIST = array(
    "the items of the gate, with the result for each",
    record(
        "one item",
        {"item": NAME, "result": choice("how it was judged", ("met", "waived", "not_applicable"))},
        {"reason": REASON, "evidence": text("evidence for the item", longest=500)},
    ),
    most=50,
)


def _move(description: str, required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of an event that moves the packet from one lane to another. `origin` is set when the event
    adopts a hand edit.
    """
    lanes = {"lane_from": LANE, "lane_to": LANE}
    return record(description, {**lanes, **required}, {**(optional or {}), "origin": _ORIGIN})


def _genesis(description: str, required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    return record(
        description,
        {"lane_from": {"type": "null", "description": "there was none"}, "lane_to": LANE, **required},
        optional,
    )


# Nothing verifies it: an agent may declare anything.
_DECLARED = record(
    "the declared program, model and session that do the work",
    {},
    {
        "harness": text("the program that the agent runs in", pattern=r"[^\x00-\x1f\x7f]+", longest=200),
        "harness_version": text("the version of that program", pattern=r"[^\x00-\x1f\x7f]+", longest=200),
        "model": text("the model", pattern=r"[^\x00-\x1f\x7f]+", longest=200),
        "session": text("the session, as identified by the harness", pattern=r"[^\x00-\x1f\x7f]+", longest=200),
    },
)
_LEASE = {"holder": NAME, "lease": NAME, "expires_at": EXPIRY}

VERDICTS: Final = ("PASS", "FAIL", "CHANGES", "OUTDATED_ONLY")
# After one of these, no one works on a packet; after a PASS or CHANGES verdict, its holder may have to continue.
ENDING_VERDICTS: Final = frozenset({"FAIL", "OUTDATED_ONLY"})

DATA: Final[Mapping[str, Shape]] = {
    "created": _genesis(
        "a stub was written",
        {"base": PACKET_ID},
        {
            "source": record(
                "the source from which it was created",
                {"kind": choice("the kind of item", ("template", "issue", "stub", "packet")), "name": NAME},
            ),
            "form": _FORM,
            **_TERMS,
        },
    ),
    "adopted": _genesis(
        "a packet without a log was adopted as is",
        {
            "base": PACKET_ID,
            "found": array(
                "what each document says",
                record(
                    "one statement",
                    {
                        "kind": choice("which document", ("stub", "packet", "board", "registry", "gate_log")),
                        "path": PATH,
                        "line": integer("its line", least=1),
                        "says": text("its words", longest=500),
                    },
                ),
                most=50,
            ),
        },
        {
            "contradictions": array("open questions", text("one contradiction", longest=500), most=50),
            "came_from": LANE,
            "holder": NAME,
            "branch": NAME,
            "reason": REASON,
        },
    ),
    "activated": _move(
        "the stub became a packet",
        {"refinement": _FILE, "checklist": _CHECKLIST},
        {
            "spec": _FILE,
            "supersedes": array("earlier revisions", PACKET_ID, most=50),
            "standing": _STANDING,
            "form": _FORM,
            **_TERMS,
        },
    ),
    "amended": record(
        "a new contract replaces the approved one",
        {"previous": nullable(DIGEST), "contract": DIGEST, "reason": REASON},
        {
            "refinement": _FILE,
            "spec": _FILE,
            "standing": _STANDING,
            "form": _FORM,
            **{key: _TERMS[key] for key in ("title", "dependencies", "risk")},
        },
    ),
    "reapproved": record(
        "new approvals replace those that no longer count",
        {
            "gate": NAME,
            "event": DIGEST,
            "replaces": array("the envelopes that are replaced", DIGEST, most=50, ordered_set=True),
            "reason": REASON,
        },
    ),
    "noted": record("a note was added", {"text": NOTE}),
    "prepared": record(
        "the branch, work tree and assignee were set",
        {"assignee": NAME, "branch": NAME, "base_commit": COMMIT},
        {"worktree": NAME, "base_packet": PACKET_ID},
    ),
    "claimed": _move("someone claimed it", _LEASE, {"branch": NAME, "worktree": NAME, "declared": _DECLARED}),
    "lease.renewed": record("the holder extended the lease", _LEASE),
    "released": _move("the holder released the packet", {"reason": REASON}, {"holder": NAME}),
    "handed_over": _move("the holder handed the packet over", {"reason": REASON, "to": NAME}, {"holder": NAME}),
    "submitted": _move(
        "the work was submitted for review",
        {"commit": COMMIT, "evidence": _EVIDENCE_LIST},
        {
            "base_commit": COMMIT,
            "changed": array("the files that it changes", PATH, most=2000),
            "outside_scope": array("the changed files that are outside IN_SCOPE_PATHS", PATH, most=2000),
            "work": record(
                "a digest of the work, for clones that lack its commit",
                {"base": COMMIT, "sha256": DIGEST},
            ),
            "declared": _DECLARED,
        },
    ),
    "evidence.recorded": record("evidence was added", {"evidence": _EVIDENCE_LIST}),
    "evidence.replayed": record(
        "someone ran the proofs of a submission again",
        {"commit": COMMIT, "result": choice("whether the results were the same", ("same", "different"))},
        {
            "differences": array("the different results", text("one criterion", longest=500), most=MOST_EVIDENCE),
            "attestation": text("the attestation file from CI, which ran the proofs", longest=LONGEST_ATTESTATION),
        },
    ),
    "verdict.given": _move(
        "a validator judged it",
        {"verdict": choice("the judgement", VERDICTS)},
        {"report": _FILE, "reference": NAME, "reason": REASON},
    ),
    "merged": _move(
        "the work is on the target branch",
        {
            "commit": COMMIT,
            "target": NAME,
            "target_commit": COMMIT,
            "proof": choice("how it was found on the target", ("commit", "patch_id", "tree")),
        },
    ),
    "advanced": _move("the packet moved on from a lane that the policy adds", {}, {"reason": REASON}),
    "reopened": _move("work was resumed", {"reason": REASON}),
    "blocked": _move(
        "the work cannot continue", {"reason": REASON, "until": text("what would unblock the work", longest=500)}
    ),
    "unblocked": _move("the work can continue", {}, {"reason": REASON}),
    "superseded": _move(
        "another packet replaced this one",
        {"by": PACKET_ID},
        {
            "reason": REASON,
            "renamed": choice("set if the packet was renamed to this id before it was merged", (BEFORE_LANDING,)),
        },
    ),
    "abandoned": _move("the packet was abandoned", {"reason": REASON}),
    "overridden": record(
        "the result of a gate was overridden", {"rule": NAME, "reason": REASON, "expires_at": EXPIRY}, {"target": NAME}
    ),
    "waived": record("a rule was waived", {"rule": NAME, "reason": REASON, "expires_at": EXPIRY}, {"target": NAME}),
    "refinement.recorded": record("a refinement was written or changed", {"refinement": _FILE}, {"spec": _FILE}),
    "refinement.presented": record(
        "the technical block of the refinement was shown to the user", {"refinement": _FILE, "block_sha256": DIGEST}
    ),
    "approval.recorded": record(
        "a decision was made at a gate",
        {
            "gate": NAME,
            "decision": choice("the decision", ("approve", "reject", "revoke")),
            "assurance": choice("only `signed` counts; `legacy` is a plain token", ("signed", "legacy")),
        },
        {"role": NAME, "principal": NAME, "token": NAME, "subject": _FILE},
    ),
    "run.linked": record("a runtime run was started for the packet", {"run": NAME, "stream": NAME}, {"store": NAME}),
    "run.closed": record(
        "the run finished or was unlinked",
        {
            "run": NAME,
            "outcome": choice(
                "how the run ended; lost means that a person declared the run lost together with its store",
                ("completed", "stopped", "cancelled", "superseded", "abandoned", "not_begun", "lost"),
            ),
        },
        {
            "store": NAME,
            "code": text("the stop reason of a run that stopped", pattern="[a-z][a-z0-9_]*", longest=80),
            "reason": REASON,
            "stream_sha256": DIGEST,
            "events": integer("the number of its events", least=0),
        },
    ),
    "fork.resolved": record(
        "a person resolved conflicting moves",
        {
            "lane_from": choice("the forked state, which this event resolves", (FORKED,)),
            "lane_to": LANE,
            "moves": array("the moves that contradicted each other", DIGEST, most=50, least=2, ordered_set=True),
            "reason": REASON,
        },
        {"holder": NAME, "lease": NAME, "expires_at": EXPIRY, "came_from": LANE},
    ),
    "checkpoint": record(
        "the contents of the protected branch, signed by CI",
        {
            "commit": COMMIT,
            "logs": array(
                "the packets whose heads changed since the last checkpoint",
                record(
                    "one packet",
                    {
                        "packet": PACKET_ID,
                        "heads": array("its heads", DIGEST, most=50, least=1, ordered_set=True),
                        "events": integer("the number of events covered", least=1),
                    },
                ),
                most=PACKETS_PER_CHECKPOINT,
            ),
        },
    ),
}

LANE_MOVES: Final = frozenset(name for name, shape in DATA.items() if "lane_to" in shape["properties"])


# Version 2 adds `sig`; events of version 1 remain readable and are never rewritten.
OLDEST_VERSION: Final = 1
VERSION: Final = 2
ACTOR_KINDS: Final = ("human", "agent", "ci")

_UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

_ENVELOPE: Final[Mapping[str, Shape]] = {
    "v": integer("version of the event format", least=OLDEST_VERSION, most=VERSION),
    "type": choice("what happened", tuple(DATA)),
    "packet": LOG_NAME,
    "clock": integer("one more than the largest clock of its parents", least=1),
    "parents": array("ids of all heads that the writer saw; none for the first", DIGEST, most=50, ordered_set=True),
    "at": timestamp("the time, as claimed by the writer"),
    "actor": record(
        "the name, as claimed by the writer", {"id": NAME, "kind": choice("the kind of the actor", ACTOR_KINDS)}
    ),
    "tool": NAME,
    "tx": text("the transaction, a UUID of version 7", pattern=_UUID7, longest=36),
    "subjects": array(
        "the files that changed with the event or that the event is about",
        record(
            "a file before and after the change; null if there was none",
            {"path": PATH, "prev": nullable(DIGEST), "sha256": nullable(DIGEST)},
        ),
        most=200,
    ),
    "attest": array("ids of approval envelopes", DIGEST, most=50, ordered_set=True),
    "data": {"type": "object", "description": "the event's data, in the form that its type requires"},
}
SIGNATURE: Final = text(
    "the SSHSIG signature by the actor's event key, in base64, over the file without this field",
    pattern="[A-Za-z0-9+/]+={0,2}",
    longest=4000,
)
ENVELOPE: Final = record("an event in the log of a work packet", _ENVELOPE, {"sig": SIGNATURE})
_UNSIGNED: Final[Mapping[str, Json]] = {
    "if": {"properties": {"v": {"const": OLDEST_VERSION}}, "required": ["v"]},
    "then": {"not": {"required": ["sig"]}},
}
_EXAMPLE: Final[Mapping[str, Json]] = {
    "v": VERSION,
    "type": "created",
    "packet": "WP-1-Kettle-v1",
    "clock": 1,
    "parents": [],
    "at": "2026-01-31T12:00:00Z",
    "actor": {"id": "ann", "kind": "human"},
    "tool": "workpacket 0.1.0",
    "tx": "0190a5de-ac96-774b-bcce-b302099a8057",
    "subjects": [],
    "attest": [],
    "data": {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Kettle"},
}


def event_schema() -> dict[str, Json]:
    """Return the shape of all events as JSON Schema 2020-12; `$defs` has the data of each type, with `_` in place of
    the dot in the type's name.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://workpacket.dev/schemas/event.schema.json",
        "title": "Event",
        **ENVELOPE,
        "examples": [_EXAMPLE],
        "allOf": [
            _UNSIGNED,
            *(
                {
                    "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
                    "then": {
                        "properties": {"data": {"$ref": f"#/$defs/{_definition(kind)}"}, "packet": _packet_of(kind)}
                    },
                }
                for kind in DATA
            ),
        ],
        "$defs": {_definition(kind): {"title": kind, **shape} for kind, shape in DATA.items()},
    }


def _definition(kind: str) -> str:
    return kind.replace(".", "_")


def _packet_of(kind: str) -> dict[str, Json]:
    return {"const": CHECKPOINT_LOG} if kind == "checkpoint" else {"not": {"const": CHECKPOINT_LOG}}
