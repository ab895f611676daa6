"""How a run ended, as its store says it. Imports little: the board asks it too."""

from __future__ import annotations

from typing import Final

from workpacket.plans.linking import Ending
from workpacket.runtime.stores.contract import Store
from workpacket.value import replace

_OUTCOMES: Final = {"run.completed": "completed", "run.stopped": "stopped", "run.cancelled": "cancelled"}


def ending_of(store: Store, stream: str) -> Ending | None:
    """How the last attempt ended, None if it did not."""
    last, head = store.latest("runs", stream), store.head(stream)
    if head is None:
        gone = next((one for one in store.heads(stream, removed=True) if one.stream == stream), None)
        # Only what was completed is ever removed.
        return None if gone is None else Ending("completed", digest=gone.hash, events=gone.version)
    if last is None or last.type not in _OUTCOMES:
        return None
    ending = Ending(_OUTCOMES[last.type], digest=head.hash, events=head.version)
    return replace(ending, code=str(last.values().get("code", ""))) if last.type == "run.stopped" else ending
