"""Writes what is generated from the code: `just reference`, after a change of rules, commands or schemas.

The reference pages of docs/reference, the page of the foreign forms, and the draft-07 twins of the schemas, which
editors need. Tests compare.
"""

from __future__ import annotations

from pathlib import Path

from workpacket.bridges.formats_page import formats_page
from workpacket.cli.pages import commands_page, schemas_page
from workpacket.report.catalogue import catalogue
from workpacket.report.codes_page import render_codes_page
from workpacket.text.draft07 import twin

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
SUFFIX = ".schema.json"


def generated() -> dict[Path, bytes]:
    """Every generated file with its content."""
    pages = ROOT / "docs" / "reference"
    names = [path.name.removesuffix(SUFFIX) for path in sorted(SCHEMAS.glob(f"*{SUFFIX}"))]
    files = {SCHEMAS / "draft-07" / f"{name}{SUFFIX}": twin(name, read_schema) for name in names}
    return files | {
        pages / "codes.md": render_codes_page(catalogue()).encode(),
        pages / "commands.md": commands_page().encode(),
        ROOT / "docs" / "runtime" / "formats.md": formats_page().encode(),
        pages / "schemas.md": schemas_page(names, read_schema).encode(),
    }


def read_schema(name: str) -> bytes:
    return (SCHEMAS / f"{name}{SUFFIX}").read_bytes()


def main() -> None:
    files = generated()
    for path in (SCHEMAS / "draft-07").glob(f"*{SUFFIX}"):
        if path not in files:
            path.unlink()
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
