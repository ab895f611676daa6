"""`workpacket create-task-packet`: the name under which people know `activate`."""

from __future__ import annotations

from workpacket.cli.activate import declare

COMMAND = declare("create-task-packet")
