"""The proofs of threads use the stores that the other tests of threads use."""

from __future__ import annotations

from langgraph_saver.conftest import each_store  # noqa: F401
from postgres.conftest import server, url  # noqa: F401
