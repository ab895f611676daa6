"""Proving criteria: run a command and keep what it came to, or look whether a place in the code is there."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Sequence

from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json

_PLACE = lazy_pattern(r"(?P<path>[^\s:]+):(?P<line>[1-9][0-9]*)\Z")
_TAIL_LINES = 40
_TAIL_LENGTH = 4000


def prove(root: str, criterion: str, how: str) -> dict[str, Json]:
    """One row of evidence: `how` is `path:line`, or a command that is run without a shell."""
    place = _PLACE.match(how)
    if place is not None and os.path.isfile(os.path.join(root, place["path"])):
        return {"criterion": criterion, "result": _line_result(root, place), "proof": [how]}
    return run_command(root, criterion, how)


def run_command(root: str, criterion: str, command: str) -> dict[str, Json]:
    try:
        words = shlex.split(command)
        done = subprocess.run(  # noqa: S603 - the command that the person who submits names as proof; no shell reads it
            words, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except (ValueError, OSError, IndexError) as error:
        hint = "quote it as one argument: --prove '1=just test'"
        raise WorkpacketError("proof_not_run", f"{command!r} could not be run: {error}", hint=hint) from error
    return {
        "criterion": criterion,
        "result": "met" if done.returncode == 0 else "not_met",
        "command": command[:2000],
        "exit_code": done.returncode,
        "log_sha256": hashlib.sha256(done.stdout).hexdigest(),
        "log_tail": _tail(done.stdout),
    }


def _tail(log: bytes) -> str:
    lines = log.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_LENGTH:]


def _line_result(root: str, place: re.Match[str]) -> str:
    with open(os.path.join(root, place["path"]), "rb") as stream:
        return "met" if sum(1 for _ in stream) >= int(place["line"]) else "not_met"


def numbered(words: Sequence[str], criteria: Sequence[str], option: str) -> list[tuple[str, str]]:
    """`N=...` as (criterion, ...); `all=...` for each criterion."""
    found: list[tuple[str, str]] = []
    for word in words:
        number, equals, rest = word.partition("=")
        if equals and number == "all":
            found += [(criterion, rest) for criterion in criteria]
        elif equals and rest and number.isdecimal() and 1 <= int(number) <= len(criteria):
            found.append((criteria[int(number) - 1], rest))
        else:
            hint = f"DONE_MEANS has {len(criteria)} lines; write --{option} '1=...'"
            raise WorkpacketError("invalid_value", f"--{option} {word!r} names no criterion", hint=hint)
    return found
