"""Real commands, kills, hand edits and damage to the log, in as many sequences as patience allows."""

from __future__ import annotations

from lifecycle.upsets import Upsets, as_often
from proof.share import bounded

TestUpsets = Upsets.TestCase
TestUpsets.settings = as_often(examples=8 if bounded() else 400, steps=20)
