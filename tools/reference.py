"""Writes what is generated from the code: `just reference`, after a change of rules, commands or schemas.

The reference pages of docs/reference, the page of the foreign forms, the draft-07 twins of the schemas, which editors
need, and the digests of what `init` writes, to which lines are added and from which none is taken. Tests compare.
"""

from __future__ import annotations

from pathlib import Path

from workpacket.bridges.foreign import formats_page
from workpacket.cli.init import instructions, skills
from workpacket.cli.pages import commands_page, schemas_page
from workpacket.lifecycle.init import AGENTS, known_digest, marked
from workpacket.lifecycle.starter_documents import DIALECTS, starting_files
from workpacket.report.catalogue import catalogue
from workpacket.report.explain import render_codes_page
from workpacket.shell.governing.starter_files import SHIPPED, read_package
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
        Path(SHIPPED): shipped(),
    }


def shipped() -> bytes:
    """The digests of all that `init` ever wrote and may bring up to date: those known so far, and the present ones."""
    package = read_package(instructions(), skills())
    known = {(path, digest) for path, digests in package.shipped.items() for digest in digests}
    known.add((AGENTS, known_digest(marked(package.instructions))))
    for dialect in DIALECTS:
        ours = [file for file in starting_files(dialect, package) if file.ours]
        known |= {(file.path, known_digest(file.text)) for file in ours}
        known |= {(file.path, known_digest(file.stem)) for file in ours if file.stem}
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(known)).encode()


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
