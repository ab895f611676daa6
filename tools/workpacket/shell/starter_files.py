"""The files that `init` copies as they are: part of the package."""

from __future__ import annotations

import os


def gov_just() -> str:
    """The recipes of `.GOV/gov.just`."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "starter", "gov.just"), encoding="utf-8") as stream:
        return stream.read()
