"""A pipeline of layers that can be left at a checkpoint and entered there again.

    Pipeline(log, [ResumeMiddleware(log), extract, CheckpointEmitter(log), generation_gate, generate])

Each layer is called with the context and returns the next one, either as a function or through its `process` method.
The order is checked when the pipeline is created: the resume layer must come first, cursors must be unique, and every
gate must follow a checkpoint.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.step import CheckpointEmitter, ResumeMiddleware, StepContext
from workpacket.runtime.step.log import COMPLETED, RELEASED, StepLog


class Processor(Protocol):
    def process(self, context: StepContext, /) -> StepContext: ...


Layer = Processor | Callable[[StepContext], StepContext]

# Which checkpoint must come somewhere before, or somewhere after, the layer of this name: a function, or a class
# such as GenerationGate or GenerationGateMiddleware.
BEFORE = {"generation_gate": "pre_generation_gate"}
AFTER = {"clarification": "post_clarification", "generation_gate": "post_gate"}


class Pipeline:
    def __init__(self, log: StepLog, layers: Sequence[Layer]) -> None:
        self.log = log
        self.layers = tuple(layers)
        self.cursors = {layer.cursor: at for at, layer in enumerate(layers) if isinstance(layer, CheckpointEmitter)}
        self._require_order()

    def run(self, context: StepContext) -> StepContext:
        """Begin the step, or continue it at its cursor. An exception from a layer ends the run; the checkpoint
        remains."""
        start = 0
        if self.layers and isinstance(self.layers[0], ResumeMiddleware):
            context = self.layers[0].process(context, self.cursors)
            start = self.cursors[context.cursor] + 1 if context.cursor else 1
        resumed = context.cursor != ""
        try:
            for layer in self.layers[start:]:
                context = layer(context) if callable(layer) else layer.process(context)
        except BaseException:
            if resumed:
                with contextlib.suppress(RuntimeFault):  # the exception of the layer is what must be visible
                    self._record(RELEASED, context)
            raise
        self._record(COMPLETED, context)
        return context

    def _record(self, kind: str, context: StepContext) -> None:
        self.log.append({
            "event_type": kind, "mission_id": context.mission_id, "run_id": context.run_id,
            "step_id": context.step_id,
        })  # fmt: skip

    def _require_order(self) -> None:
        if any(isinstance(layer, ResumeMiddleware) for layer in self.layers[1:]):
            raise ValueError("the resume layer must come first, because any layer before it would be repeated")
        if len(self.cursors) != sum(isinstance(layer, CheckpointEmitter) for layer in self.layers):
            raise ValueError("two checkpoints have the same cursor")
        for at, layer in enumerate(self.layers):
            for name in names_of(layer):
                if name in BEFORE and self.cursors.get(BEFORE[name], at) >= at:
                    raise ValueError(f"the checkpoint {BEFORE[name]} must come before {name}")
                if name in AFTER and self.cursors.get(AFTER[name], at) < at:
                    raise ValueError(f"the checkpoint {AFTER[name]} must come after {name}")


_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ROLE = re.compile(r"_(?:middleware|layer|processor)\Z")


def names_of(layer: object) -> Iterator[str]:
    """Yield the names that a layer may have, such as `generation_gate`: its function's name, or the names of its class
    and base classes.
    """
    if isinstance(layer, partial):
        yield from names_of(layer.func)
    elif (owner := getattr(layer, "__self__", None)) is not None:
        yield from names_of(owner)
    elif isinstance(name := getattr(layer, "__name__", None), str):
        yield name
    else:
        for kind in type(layer).__mro__:
            yield _ROLE.sub("", _WORD.sub("_", kind.__name__).lower())
