"""From bytes to a document: picks the reader of a kind, and imports no other."""

from __future__ import annotations

from importlib import import_module

from workpacket.documents.document import Document
from workpacket.text.limits import DOCUMENT, LARGE_DOCUMENT, Limits
from workpacket.text.source import Source
