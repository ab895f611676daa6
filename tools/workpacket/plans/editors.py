"""What tells an editor which schema a file has: the schemas themselves, and on request settings for VS Code."""

from __future__ import annotations

import json
from collections.abc import Iterator

from workpacket.documents.places import PLACES

SETTINGS_PATH = ".vscode/settings.json"
_SCHEMAS = ".GOV/schemas"
POLICY_SCHEMA = f"{_SCHEMAS}/policy.schema.json"
_ENDINGS = {".json": "json.schemas", ".yaml": "yaml.schemas", ".toml": "evenBetterToml.schema.associations"}


def schema_paths() -> Iterator[tuple[str, str]]:
    """Name and path of the schema of every document that is data throughout, and of the one they refer to."""
    yield "common", f"{_SCHEMAS}/common.schema.json"
    for kind in dict.fromkeys(kind for place, kind in PLACES if _ending(place)):
        yield kind, f"{_SCHEMAS}/{kind}.schema.json"


def settings_text() -> str:
    """`.vscode/settings.json`; the keys are those of the extensions for JSON, YAML and TOML."""
    paths = dict(schema_paths())
    in_json: list[dict[str, object]] = []
    in_yaml: dict[str, list[str]] = {}
    in_toml: dict[str, str] = {}
    for kind in dict.fromkeys(kind for place, kind in PLACES if _ending(place)):
        schema, places = paths[kind], [place for place, of in PLACES if of == kind]
        ending = _ending(places[0])
        if ending == ".json":
            in_json.append({"fileMatch": [f"/{place}" for place in places], "url": f"./{schema}"})
        elif ending == ".yaml":
            in_yaml[f"./{schema}"] = places
        else:
            in_toml |= {f".*/{place.replace('.', chr(92) + '.')}$": f"./{schema}" for place in places}
    settings = {_ENDINGS[".json"]: in_json, _ENDINGS[".yaml"]: in_yaml, _ENDINGS[".toml"]: in_toml}
    return json.dumps(settings, indent=2) + "\n"


def _ending(place: str) -> str:
    return next((ending for ending in _ENDINGS if place.endswith(ending)), "")
