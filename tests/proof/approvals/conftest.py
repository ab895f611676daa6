"""The story of the approvals, for its attacks."""

from __future__ import annotations

from shell.approvals.conftest import beginning, story

__all__ = ["beginning", "story"]
