"""A forgery that an agent could make: Ann's own signature under a statement that she never saw."""

from __future__ import annotations

import base64
import hashlib
import json

from guided_tour.stage import Stage
from guided_tour.texts import NAME

FOLDER = ".GOV/attestations"
OTHER = "WP-1-Backdoor-v1"


def forge(stage: Stage) -> str:
    """Write a forged envelope beside the genuine one, under the name that its digest requires; return its path."""
    (genuine,) = (stage.root / FOLDER).iterdir()
    envelope = json.loads(genuine.read_bytes())
    statement = base64.b64decode(envelope["payload"]).replace(NAME.encode(), OTHER.encode())
    envelope["payload"] = base64.b64encode(statement).decode()
    text = json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n"
    path = f"{FOLDER}/{hashlib.sha256(text.encode()).hexdigest()}.dsse.json"
    stage.write(path, text)
    return path
