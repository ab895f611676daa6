"""Events of a run as the rows of its timeline, and as JSON."""

from __future__ import annotations

from workpacket.cli.store_door import moment_of
from workpacket.model.canonical import Json
from workpacket.report.runs import Moment
from workpacket.runtime.records.events import Event

# The sign of each type of event, and the fields that say what it is about.
_SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "run.started": ("begin", ("name", "packet")),
    "attempt.started": ("begin", ("attempt",)),
    "step.started": ("begin", ("step",)),
    "step.completed": ("done", ("step",)),
    "step.failed": ("fail", ("step", "error")),
    "checkpoint": ("mark", ("name", "id")),
    "checkpoint.prepared": ("begin", ("milestone_index", "milestone_title")),
    "checkpoint_complete": ("mark", ("milestone_index", "commit")),
    "checkpoint_sidecar_write_failed": ("fail", ("sha", "error")),
    "resume_checkpoint_selected": ("mark", ("source", "sha")),
    "lockfile_changed": ("mark", ("base",)),
    "effect.intended": ("begin", ("step", "target")),
    "effect.started": ("begin", ("step", "target")),
    "effect.succeeded": ("done", ("step", "target", "unkept")),
    "effect.failed": ("fail", ("step", "error")),
    "effect.receipt": ("done", ("step", "unkept")),
    "effect.matched": ("mark", ("step",)),
    "effect.doubted": ("wait", ("step", "target")),
    "effect.resolved": ("done", ("choice", "by", "note")),
    "confirmation.requested": ("wait", ("question",)),
    "confirmation.given": ("done", ("answer", "by", "note")),
    "retry_token.consumed": ("mark", ("checkpoint",)),
    "cancel.requested": ("wait", ("reason", "by")),
    "run.blocked": ("wait", ("code",)),
    "run.stopped": ("fail", ("code", "error")),
    "run.cancelled": ("fail", ("reason",)),
    "run.completed": ("end", ()),
    "payload.erased": ("mark", ("reason", "by")),
    "rolled_back": ("fail", ("had", "has")),
}


def moment_of_event(event: Event) -> Moment:
    sign, fields = _SHOWN.get(event.type, ("mark", ()))
    data = event.values()
    said = ", ".join(str(data[name]) for name in fields if data.get(name))
    again = " (possibly done before)" if data.get("maybe_repeated") else ""
    again += " (key only)" if event.type == "effect.matched" else ""
    return Moment(event.version, moment_of(event.recorded_at), sign, f"{event.type} {said}".rstrip() + again)


def event_as_json(event: Event) -> Json:
    return {
        "version": event.version,
        "type": event.type,
        "time": moment_of(event.recorded_at),
        "actor": event.actor,
        "data": dict(event.values()),
        "hash": event.hash,
    }
