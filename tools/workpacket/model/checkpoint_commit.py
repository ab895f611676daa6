"""The format of a checkpoint commit: the first line of its message, its trailer, and its sidecar.

    chore(runr): checkpoint <run> milestone <n>     of one run
    chore(agent): checkpoint milestone <n>          older form that does not name the run

Only the first line counts, and only as a whole: a message that quotes another one further down is not a checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from workpacket.model.canonical import Json

TRAILER: Final = "Checkpoint-Id"
SIDECARS: Final = ".runr/checkpoints"
SIDECAR_VERSION: Final = 1

# Digits are spelled out: \d would match those of every script.
_RUN_SPECIFIC: Final = re.compile(r"chore\(runr\): checkpoint (?P<run>[^\x00-\x1f]+) milestone (?P<index>[0-9]{1,9})\Z")
_LEGACY: Final = re.compile(r"chore\(agent\): checkpoint milestone (?P<index>[0-9]{1,9})\Z")


class CheckpointMessage(NamedTuple):
    """The parts of a checkpoint message. `run` is '' if the message does not name a run."""

    run: str
    milestone_index: int


def read_message(message: str) -> CheckpointMessage | None:
    """Return the checkpoint described by a commit message; None for any other commit."""
    first = message.split("\n", 1)[0].rstrip("\r")
    found = _RUN_SPECIFIC.match(first)
    if found is not None:
        return CheckpointMessage(found["run"], int(found["index"]))
    found = _LEGACY.match(first)
    return CheckpointMessage("", int(found["index"])) if found is not None else None


def message_of(run: str, milestone_index: int, title: str, checkpoint: str) -> str:
    """Return the message of a checkpoint commit, with the trailer by which it can be found after its sha
    has changed.
    """
    body = f"{title}\n\n" if title else ""
    return f"chore(runr): checkpoint {run} milestone {milestone_index}\n\n{body}{TRAILER}: {checkpoint}\n"


def sidecar_path(sha: str) -> str:
    return f"{SIDECARS}/{sha}.json"


def sidecar_bytes(values: Mapping[str, Json]) -> bytes:
    """Return the canonical file of a sidecar: indented by two spaces, with the keys in the given order and a final line
    end.
    """
    return (json.dumps(dict(values), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
