"""Both parsers that PyYAML offers: a test that names `engine` runs with each."""

from __future__ import annotations

import pytest
import yaml

from workpacket.text import yaml_events

ENGINES = {"libyaml": yaml.CBaseLoader, "pyyaml": yaml.BaseLoader}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the parser in use. `yaml_events` takes libyaml where it is there, as it is here."""
    assert yaml.__with_libyaml__
    monkeypatch.setattr(yaml_events, "LOADER", ENGINES[request.param])
    return str(request.param)
