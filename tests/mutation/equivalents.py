"""Changes that change nothing that can be seen from outside, each with the reason; they are not counted.

An entry that no change fits any longer is a failure: it would excuse nothing, or soon something else.
"""

from __future__ import annotations

from typing import NamedTuple


class Equivalent(NamedTuple):
    module: str
    where: str
    before: str
    now: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = ()
