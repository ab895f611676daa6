"""Makes the corpus again, with throw-away keys.

    PYTHONPATH=tools:tests python tests/corpora/attacks/generate.py [folder]

Needs `ssh-keygen`. Each run makes other keys and signatures; what the cases mean does not change. The committed corpus
is data: tests read it and never call this.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from corpora.attacks.generator import bindings, genuine, pages, persons, signatures, statements
from corpora.attacks.generator.people import People
from corpora.attacks.generator.scenario import CASES, Case, write

# Each registers its cases when it is imported.
MODULES = (genuine, signatures, statements, bindings, persons, pages)


def all_cases() -> tuple[Case, ...]:
    return tuple(CASES)


def generate(folder: Path) -> int:
    """Writes every case below `folder` in place of those that are there; returns their number."""
    for old in folder.glob("*/expected.json"):
        shutil.rmtree(old.parent)
    with tempfile.TemporaryDirectory() as keys:
        people = People(Path(keys))
        for case in CASES:
            write(case, people, folder)
    return len(CASES)


if __name__ == "__main__":
    print(generate(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent), "cases")
