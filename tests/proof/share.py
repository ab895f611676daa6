"""How much of a long proof is run: all of it, or with `WORKPACKET_PROOF=bounded`, as in CI, an even share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_ONE_IN = 8


def share(cases: Sequence[T]) -> Sequence[T]:
    """All cases; when bounded, one in eight of them, the first and the last among them."""
    if os.environ.get("WORKPACKET_PROOF") != "bounded" or len(cases) <= _ONE_IN:
        return cases
    return [*cases[:-1:_ONE_IN], cases[-1]]
