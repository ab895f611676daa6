"""What programs that run agents need: which packets exist, what each is waiting for, and the moves that agents make.

Each function runs one command in a separate process: several agents may work side by side in their work trees, and no
call can affect the next one. What a gate refuses is raised as a `WorkpacketError`, whose `problems` are the unmet
conditions; the `hint` of each is the command that meets it.

    from workpacket import packets, start, submit, why
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workpacket.model import exits
from workpacket.problem import Location, Problem, WorkpacketError

Folder = str | os.PathLike[str]


class WorkPacket(NamedTuple):
    """A packet or stub. `lane` is what the log says, or '' for a document without a log."""

    id: str
    title: str
    lane: str
    path: str
    depends: tuple[str, ...]


class Claimed(NamedTuple):
    """A claim. `until` is the end of the lease, and `next` says what to do now."""

    id: str
    holder: str
    until: str
    branch: str
    next: str


class Submitted(NamedTuple):
    """Work that is in review, or done if no one has to judge it."""

    id: str
    commit: str
    next: str


def packets(root: Folder = ".", *, lane: str = "") -> list[WorkPacket]:
    """Return all packets and stubs, or those in one lane."""
    lanes = _run(root, ["board", "show"])["lanes"]
    found = [
        WorkPacket(one["id"], one["title"], lanes.get(one["id"], ""), one["path"], tuple(one["depends"]))
        for one in _run(root, ["list"])["work"]
        if one["kind"] != "work_package"
    ]
    return [one for one in found if not lane or one.lane == lane]


def why(packet: str, root: Folder = ".") -> list[Problem]:
    """Return everything that keeps a packet from moving to its next lane."""
    return _conditions(_run(root, ["why", "--", packet]))


def start(packet: str, root: Folder = ".", *, actor: str, commit: bool = False) -> Claimed:
    """Claim a packet and switch to its branch; a stub or draft that is already approved is activated first."""
    return _claim(_run(root, ["start", *_as(actor, commit=commit), "--", packet]))


def claim(packet: str, root: Folder = ".", *, actor: str, branch: str = "") -> Claimed:
    """Claim a packet that is ready, for work on its prepared branch or on `branch`. Nothing is checked out."""
    named = [f"--branch={branch}"] if branch else []
    return _claim(_run(root, ["claim", *_as(actor), *named, "--", packet]))


def submit(
    packet: str, root: Folder = ".", *, actor: str, prove: Mapping[int, str] | None = None, commit: bool = False
) -> Submitted:
    """Run the proofs of a packet, and submit the committed work. `prove` has a command or location for each criterion
    whose proof the contract does not specify.
    """
    proofs = [f"--prove={number}={how}" for number, how in sorted((prove or {}).items())]
    data = _run(root, ["done", *_as(actor, commit=commit), *proofs, "--", packet])
    return Submitted(data["id"], data["commit"], data["next"])


def _as(actor: str, *, commit: bool = False) -> list[str]:
    if not actor:
        raise WorkpacketError(
            "actor_unknown", "a move requires an actor", hint="give the name of the agent that makes it"
        )
    return [f"--as={actor}", *(["--commit"] if commit else [])]


def _claim(data: Mapping[str, Any]) -> Claimed:
    return Claimed(data["id"], data["holder"], data["expires_at"], data.get("branch", ""), data["next"])


def _conditions(data: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(one["code"], one["message"], Location(one["path"], one["line"]), one["command"])
        for one in data["unmet"]
    ]


def _run(root: Folder, words: Sequence[str]) -> dict[str, Any]:
    """Return a command's answer; raise WorkpacketError if the command did not do what was requested."""
    split = words.index("--") if "--" in words else len(words)
    command = [sys.executable, "-P", "-m", "workpacket", *words[:split], "--json", *words[split:]]
    done = subprocess.run(  # noqa: S603  # this program; values cannot become options
        command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip()[-500:] or f"exit status {done.returncode}"
        raise WorkpacketError("internal_error", said, hint="run the command by hand: workpacket " + words[0]) from None
    data: dict[str, Any] = answer["data"]
    if answer["ok"]:
        return data
    if answer["exit_code"] == exits.REFUSED and data.get("unmet"):
        raise WorkpacketError.of(*_conditions(data))
    first = answer["findings"][0]
    raise WorkpacketError(first["code"], first["message"], hint=first["hint"], path=first["path"])
