"""`workpacket override`: overrule the answer of a gate."""

from __future__ import annotations

from workpacket.cli.waive import declare

COMMAND = declare("override", "overrule a condition of a gate, for a reason and for a time")
