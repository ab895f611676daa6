"""Both parsers that PyYAML offers: a test that names `engine` runs with each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from text.reading import PARSERS, parsed_by


@pytest.fixture(params=PARSERS)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the parser in use."""
    with parsed_by(request.param):
        yield request.param
