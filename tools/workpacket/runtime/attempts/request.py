"""What can be said when a run is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from workpacket.model.canonical import Json
from workpacket.runtime.resuming.observations import hashes_by_key


class RunRequest(TypedDict, total=False):
    """The keyword arguments of `Runtime.run`. All are optional."""

    packet: str  # the work packet the run belongs to
    key: str  # names one run for good: asked for again after it is finished, it gives its stored results
    inputs: Mapping[str, Json]  # what the results depend on; a later attempt with other inputs has to be confirmed
    scope: Sequence[str]  # what the run may touch; a later attempt may narrow it
    code_version: str  # a later attempt with another version has to be confirmed
    repository: str  # the identity of the repository the work belongs to
    seconds: float  # how long its steps may take in all
    steps: int  # how many steps it may have
    deadline: datetime  # when it has to be over
    checkpoint: str  # go on from this checkpoint only; if it is missing, refuse
    retry_token: str  # the token of a checkpoint; good for one attempt
    allow_deps: Sequence[str]  # dependencies that may change; a later attempt may narrow them
    base_commit: str  # the commit at which a new run begins, '' before the first one
    fresh: bool  # begin a new run even if an unfinished one exists


@dataclass(frozen=True, slots=True)
class Wanted:
    """The run somebody asked for. `inputs` None: not said, so they cannot be compared."""

    name: str
    packet: str = ""
    key: str = ""
    inputs: Mapping[str, Json] | None = None
    scope: tuple[str, ...] | None = None
    code_version: str | None = None
    repository: str | None = None
    workdir: str | None = None
    budget: Mapping[str, Json] = field(default_factory=dict)
    checkpoint: str = ""
    retry_token: str = ""
    allow_deps: tuple[str, ...] | None = None
    base_commit: str | None = None
    fresh: bool = False


def wanted_run(name: str, request: RunRequest, workdir: str | None) -> Wanted:
    scope, allow_deps = request.get("scope"), request.get("allow_deps")
    return Wanted(
        name,
        packet=request.get("packet", ""),
        key=request.get("key", ""),
        inputs=request.get("inputs", {}),
        scope=None if scope is None else tuple(scope),
        code_version=request.get("code_version"),
        repository=request.get("repository"),
        workdir=workdir,
        budget=_budget(request),
        checkpoint=request.get("checkpoint", ""),
        retry_token=request.get("retry_token", ""),
        allow_deps=None if allow_deps is None else tuple(allow_deps),
        base_commit=request.get("base_commit"),
        fresh=request.get("fresh", False),
    )


def _budget(request: RunRequest) -> dict[str, Json]:
    budget: dict[str, Json] = {}
    if "seconds" in request:
        budget["seconds"] = request["seconds"]
    if "steps" in request:
        budget["steps"] = request["steps"]
    if "deadline" in request:
        budget["until"] = int(request["deadline"].timestamp() * 1_000_000)
    return budget


def said_of(wanted: Wanted) -> dict[str, Json]:
    """What was said of the run this time and let pass: from now on it is what was recorded."""
    said: dict[str, Json | None] = {
        "inputs": None if wanted.inputs is None else dict(hashes_by_key(wanted.inputs)),
        "scope": None if wanted.scope is None else list(wanted.scope),
        "budget": dict(wanted.budget) or None,
        "code_version": wanted.code_version,
        "repository": wanted.repository,
        "workdir": wanted.workdir,
    }
    return {name: value for name, value in said.items() if value is not None} | dependencies_of(wanted)


def dependencies_of(wanted: Wanted) -> dict[str, Json]:
    return {} if wanted.allow_deps is None else {"allow_deps": list(wanted.allow_deps)}
