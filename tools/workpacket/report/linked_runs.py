"""The runs of a packet as they are shown: from its log alone, or with what the store of runs says beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from workpacket.ledger.state import PacketState
from workpacket.model.canonical import Json
from workpacket.value import Value, replace

Standing = Literal["live", "stale", "blocked", "ended", "not begun", "open"]

_MEANING = {
    "live": "a process is at work",
    "stale": "its process is gone",
    "blocked": "it stopped",
    "ended": "its link was not closed",
    "not begun": "its link was made, and it never began",
    "open": "its store is not here",
}


class LinkedRun(Value):
    """A run that is unfinished, or stopped and not resumed. `code` is its stop reason. `command` is what to do now."""

    run: str
    state: Standing
    code: str = ""
    command: str = ""

    @property
    def words(self) -> str:
        """As in `blocked (verification_failed)`."""
        return f"{self.state} ({self.code})" if self.code else self.state

    @property
    def sentence(self) -> str:
        meaning = "" if self.state == "blocked" and self.code else f": {_MEANING[self.state]}"
        return f"{self.run} is {self.words}{meaning}"

    def as_json(self) -> dict[str, Json]:
        return {"run": self.run, "state": self.state, "code": self.code, "command": self.command}


def linked_runs(state: PacketState, *, unfinished: bool) -> tuple[LinkedRun, ...]:
    """What the log says. Of a packet that is not `unfinished`, what stopped is history."""
    return tuple(_of_log(state, unfinished=unfinished))


def _of_log(state: PacketState, *, unfinished: bool) -> Iterable[LinkedRun]:
    for run in state.runs:
        if run.closed is None:
            yield LinkedRun(run.run, "open", "", f"workpacket runs unlink {run.run} --reason TEXT")
        elif unfinished and run.closed.text("outcome") == "stopped":
            yield LinkedRun(run.run, "blocked", run.closed.text("code") or "", f"workpacket resume {run.run} --plan")


def seen(run: LinkedRun, state: Standing, code: str = "") -> LinkedRun:
    """The same run, of which the store says how it is."""
    commands = {"live": f"workpacket runs tail {run.run}", "ended": "workpacket runs settle"}
    commands["not begun"] = commands["ended"]
    return replace(run, state=state, code=code, command=commands.get(state, f"workpacket resume {run.run} --plan"))


def mark(runs: Sequence[LinkedRun]) -> str:
    """All runs of a packet in a few words, as in `1 run live, 1 blocked (stalled)`; '' without any."""
    counts = Counter(run.words for run in runs)
    told = [f"{count} {words}" for words, count in counts.items()]
    return f"runs: {', '.join(told)}" if told else ""
