"""Which fields a `state.json` and an event of a `timeline.jsonl` have, and what may stand in them.

To evolve it: raise the version, add the field here with its check, and say in `docs/runtime/evolving.md` what a file
without it means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from workpacket.text.fault import Fault
from workpacket.text.formats import FORMATS
from workpacket.text.node import Node
from workpacket.value import Value

SCHEMA_VERSION: Final = "1.0.0"
PHASES: Final = ("INIT", "PLAN", "IMPLEMENT", "VERIFY", "REVIEW", "CHECKPOINT", "FINALIZE", "STOPPED")
RISKS: Final = ("low", "medium", "high")

_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\Z")


class Field(Value):
    """`path` of a field that may be left out unless it is `required`; `what` says what it must be."""

    path: tuple[str, ...]
    what: str
    fits: Callable[[Any], bool]
    required: bool = False


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _time(value: Any) -> bool:
    return isinstance(value, str) and not FORMATS["date-time"](value)


def _counts(value: Any) -> bool:
    return _count(value) or (isinstance(value, dict) and all(_count(item) for item in value.values()))


def _milestones(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and _name(one.get("goal"))
        and _texts(one.get("done_checks", []))
        and _texts(one.get("files_expected", []))
        and one.get("risk_level", "low") in RISKS
        for one in value
    )


def _commands(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and _name(one.get("command")) and type(one.get("exit_code")) is int for one in value
    )


def _sha(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{7,64}", value) is not None


_EVIDENCE = "last_verification_evidence"

# Of a legacy snapshot not more is asked than what a resume rests on; every version so far has these.
LEGACY: Final = (
    Field(("schema_version",), f'"{SCHEMA_VERSION}", or absent', lambda value: value == SCHEMA_VERSION),
    Field(("run_id",), "text", _name, required=True),
    Field(("phase",), f"one of {', '.join(PHASES)}", lambda value: value in PHASES, required=True),
    Field(("milestone_index",), "a number from 0", _count),
    Field(("milestones",), "a list of milestones, each with a goal, done_checks and a risk_level", _milestones),
    Field(("repo_path",), "text", _text),
    Field(("scope_lock",), "a mapping", _mapping),
    Field(("scope_lock", "allowlist"), "a list of texts", _texts),
    Field(("scope_lock", "denylist"), "a list of texts", _texts),
    Field(("owned_paths",), "a list of texts or a mapping", lambda value: _texts(value) or _mapping(value)),
    Field(("checkpoint_commit_sha",), "the id of a commit", _sha),
    Field(("last_successful_phase",), f"one of {', '.join(PHASES)}", lambda value: value in PHASES),
    Field((_EVIDENCE,), "a mapping", _mapping),
    Field((_EVIDENCE, "commands_required"), "a list of texts", _texts),
    Field((_EVIDENCE, "commands_run"), "a list of commands with their exit codes", _commands),
    Field((_EVIDENCE, "commands_missing"), "a list of texts", _texts),
    Field((_EVIDENCE, "tiers_run"), "a list of texts", _texts),
    Field(("retries",), "a number, or numbers by name", _counts),
    Field(("milestone_retries",), "a number, or numbers by name", _counts),
    Field(("review_rounds",), "a number, or numbers by name", _counts),
    Field(("stop_reason",), "text", _text),
    Field(("started_at",), "a time (RFC 3339)", _time),
    Field(("updated_at",), "a time (RFC 3339)", _time),
    Field(("auto_resume_count",), "a number from 0", _count),
)

TIMELINE: Final = (
    Field(("seq",), "a number from 0", _count, required=True),
    Field(("timestamp",), "a time (RFC 3339)", _time, required=True),
    Field(("type",), "text", _name, required=True),
    Field(("payload",), "a mapping", _mapping),
    Field(("source",), "text", _text),
)


def is_newer(values: Mapping[str, Any]) -> bool:
    """Whether a later version wrote it. What is no version at all is not newer, but malformed."""
    said = values.get("schema_version")
    parts = _VERSION.match(said) if isinstance(said, str) else None
    known = _VERSION.match(SCHEMA_VERSION)
    assert known is not None
    return parts is not None and _numbers(parts) > _numbers(known)


def _numbers(version: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(part) for part in version.groups())


def faults_of(root: Node, fields: tuple[Field, ...], what: str) -> Iterator[Fault]:
    """Everything that does not fit, each at its own place. Unknown keys are kept and not judged; null is absent."""
    if not isinstance(root.value, dict):
        yield Fault("checkpoint_malformed", *root.span, what)
        return
    for field in fields:
        node = root.get(*field.path)
        name = ".".join(field.path)
        if node is None or (node.value is None and not field.required):
            if field.required:
                yield Fault("checkpoint_malformed", *root.span, f"{name}: it is missing")
        elif not field.fits(node.plain()):
            yield Fault("checkpoint_malformed", *node.span, f"{name}: it must be {field.what}")
