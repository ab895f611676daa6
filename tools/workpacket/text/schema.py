from __future__ import annotations

import json
from typing import NamedTuple


class Violation(NamedTuple):
    path: tuple
    code: str
    keyword: str
    message: str
    hint: str = ""


class SchemaSet:
    def __init__(self, read):
        self.read = read
        self.c = {}

    def violations(self, name, value):
        import jsonschema

        if name not in self.c:
            try:
                self.c[name] = jsonschema.Draft202012Validator(json.loads(self.read(name)))
            except OSError:
                self.c[name] = None
        if self.c[name] is None:
            return ()
        K = {"required": "field_missing", "additionalProperties": "field_unknown", "type": "field_type"}
        return tuple(
            Violation(tuple(e.absolute_path), K.get(e.validator, "field_value"), e.validator, e.message[:160])
            for e in self.c[name].iter_errors(value)
        )
