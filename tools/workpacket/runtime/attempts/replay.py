"""The last attempt of a finished run, for a program that asks for it again: where it went on, what it marked."""

from __future__ import annotations

from workpacket.runtime.attempts.recorder import Recorder
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.state import CheckpointRecord
from workpacket.runtime.records.values import address_of


class Replay:
    """Checkpoints are given out in the order in which they were made, so that `cursor` says what it said then."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        began = recorder.state.attempt_began
        made = recorder.state.checkpoints
        self._before = next((point for point in reversed(made) if point.version < began), None)
        self._ahead = [point for point in made if point.version > began]
        self._given: list[CheckpointRecord] = []

    @property
    def latest(self) -> CheckpointRecord | None:
        """The checkpoint that the attempt would have gone on from when it was here."""
        return max(self._given, key=lambda point: point.version, default=self._before)

    def checkpoint(self, name: str, kind: str, payload: bytes) -> CheckpointRecord:
        """The one that was made by this call: the next with the same cursor, else the next of the same name."""
        alike = [point for point in self._ahead if (point.name, point.kind) == (name, kind)]
        exact = [point for point in alike if point.event.payload == address_of(payload)]
        if not alike:
            stream = self._recorder.stream
            raise RunBlocked(f"{stream} is finished; it made no further checkpoint {name!r}", code="step_changed")
        # Checkpoints inside of steps are not made again, because the steps are not: what stands before is passed over.
        latest = self.latest
        later = [point for point in exact if latest is None or point.version > latest.version]
        found = (later or exact or alike)[0]
        self._ahead.remove(found)
        self._given.append(found)
        return found

    @property
    def repeated(self) -> tuple[str, ...]:
        """What the attempt itself reported as possibly done before, in the order of the log."""
        found: dict[str, None] = {}
        for event in self._recorder.store.read(self._recorder.stream, self._recorder.state.attempt_began):
            data = event.values()
            if data.get("maybe_repeated") is True or data.get("repeated") is True:
                found[str(data["step"])] = None
        return tuple(found)
