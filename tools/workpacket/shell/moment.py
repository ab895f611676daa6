"""The time, a transaction id and a nonce: what the facts of a command hold and no pure function can know."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from workpacket.model.plan import Moment


def moment() -> Moment:
    nanoseconds = time.time_ns()
    now = datetime.fromtimestamp(nanoseconds // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Moment(now, _uuid7(nanoseconds // 10**6, os.urandom(10)), os.urandom(16).hex())


def _uuid7(milliseconds: int, random: bytes) -> str:
    """A UUID of version 7 (RFC 9562): sortable by time. The standard library has it from Python 3.14 on."""
    number = milliseconds << 80 | int.from_bytes(random)
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
