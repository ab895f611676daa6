"""`StepCheckpointed` event logs: JSON lines, one event each, `json.dumps(event, sort_keys=True)`.

Every event of the log is carried over, those of a step in the stream of that step, the others in that of their mission:
a checkpoint is judged together with what stands around it (spent tokens, answers, the end of the step).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from workpacket.bridges.foreign import Bridge, Foreign, stream_named
from workpacket.model.canonical import Json
from workpacket.runtime.step.model import CURSORS, is_checkpoint, line_of, problems
from workpacket.text.json_strict import load_json
from workpacket.text.limits import REGISTER
from workpacket.text.loaded import unreadable
from workpacket.text.node import Node
from workpacket.text.source import Fault, Source


class StepBridge:
    name = "step"
    lossy: tuple[str, ...] = (
        "blank lines, spacing and the order of the keys within a line",
        "whether a character was written as it is or as an escape",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        source = Source.from_bytes(path, data)
        faults = unreadable(source.text, 0, REGISTER)
        events: list[Foreign] = []
        start = 0
        for line in [] if faults else source.text.split("\n"):
            if line.strip():
                root, found = _event(path, line, start)
                faults += found
                if root is not None:
                    values = cast("Mapping[str, Json]", root.plain())
                    events.append(Foreign(self.name, _stream(values), values))
            start += len(line) + 1
        return tuple(faults) or tuple(events)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        return "".join(f"{line_of(checkpoint.values)}\n" for checkpoint in checkpoints).encode("ascii")


BRIDGE: Bridge = StepBridge()


def _event(path: str, line: str, start: int) -> tuple[Node | None, list[Fault]]:
    """The event on one line, or what is wrong with it; positions are those of the file."""
    loaded = load_json(Source(path, line))
    faults = [Fault(f.code, f.start + start, f.end + start, f.message, f.hint) for f in loaded.faults]
    root = loaded.root
    if root is None:
        return None, faults
    if not isinstance(root.value, dict):
        return None, [Fault("checkpoint_malformed", start, start + len(line), "an event is a JSON object")]
    values = cast("Mapping[str, Any]", root.plain())
    if is_checkpoint(values):
        wrong = dict(problems(values))
        if "cursor" not in wrong and values["cursor"] not in CURSORS:
            wrong["cursor"] = f"it must be one of {', '.join(CURSORS)}"
        for name, why in wrong.items():
            node = root.get(name) or root
            faults.append(Fault("checkpoint_malformed", node.start + start, node.end + start, f"{name}: {why}"))
    return (None if faults else root), faults


def _stream(values: Mapping[str, Json]) -> str:
    known = [values.get(name) for name in ("mission_id", "run_id", "step_id")]
    key = [part for part in known if isinstance(part, str) and part]
    return stream_named("step", *(key if len(key) == len(known) else [*key[:1], "events"]))
