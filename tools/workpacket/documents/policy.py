"""`policy.toml`: the settings of a repository for rules, packets, proofs, dependencies and approvals."""

from __future__ import annotations

from functools import lru_cache

from workpacket.documents.document import Document
from workpacket.model.layout import POLICY_PATH
from workpacket.text.source import Loaded, Source
from workpacket.text.toml_strict import load_toml


class PolicyDocument(Document):
    """The policy. Every section is read from this one tree; each revision of the policy is parsed once per process."""

    kind = "policy"

    def __init__(self, source: Source) -> None:
        loaded = _loaded(source.text)
        super().__init__(source, loaded.root, loaded.faults)

    @classmethod
    def from_bytes(cls, data: bytes) -> PolicyDocument:
        """Return the policy in the work tree or at a commit; an empty one if there is none."""
        return cls(Source.from_bytes(POLICY_PATH, data))


@lru_cache(maxsize=64)
def _loaded(text: str) -> Loaded:
    return load_toml(Source(POLICY_PATH, text))
