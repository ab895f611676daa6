"""Writes the draft-07 twin of every schema: `python3 tools/draft07_twins.py`, after any change of a schema."""

from __future__ import annotations

from pathlib import Path

from workpacket.text.draft07 import twin

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
SUFFIX = ".schema.json"


def main() -> None:
    twins = SCHEMAS / "draft-07"
    twins.mkdir(exist_ok=True)
    wanted = {path.name: path.name.removesuffix(SUFFIX) for path in SCHEMAS.glob(f"*{SUFFIX}")}
    for path in twins.glob(f"*{SUFFIX}"):
        if path.name not in wanted:
            path.unlink()
    for file, name in wanted.items():
        (twins / file).write_bytes(twin(name, lambda name: (SCHEMAS / f"{name}{SUFFIX}").read_bytes()))


if __name__ == "__main__":
    main()
