"""The style and the script of the report's page: part of the package, so that they can be read and checked as files."""

from __future__ import annotations

import os

import workpacket


def page_file(name: str) -> str:
    package = os.path.dirname(os.path.abspath(workpacket.__file__))
    with open(os.path.join(package, "report", "page", name), encoding="utf-8") as stream:
        return stream.read()
