"""`policy.toml`: what a repository decided about rules."""

from __future__ import annotations

from workpacket.documents.document import Document
from workpacket.text.source import Source
from workpacket.text.toml_strict import load_toml


class PolicyDocument(Document):
    kind = "policy"

    def __init__(self, source: Source) -> None:
        loaded = load_toml(source)
        super().__init__(source, loaded.root, loaded.faults)
