"""For tests of stores and of runs. Ships with the package."""

from workpacket.runtime.testing.conformance import (
    STREAM,
    ManualClock,
    StoreConformance,
    Writer,
    append_for_ever,
    refused,
)

__all__ = ["STREAM", "ManualClock", "StoreConformance", "Writer", "append_for_ever", "refused"]
