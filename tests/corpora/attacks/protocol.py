"""Runs the corpus against another implementation, in two commands. Standard library only; see README.md.

python3 tests/corpora/attacks/protocol.py list
python3 tests/corpora/attacks/protocol.py compare < answers
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

CORPUS = Path(__file__).resolve().parent


def list_cases() -> list[str]:
    return sorted(str(path.parent) for path in CORPUS.glob("*/expected.json"))


def wrong_answers(lines: Iterable[str]) -> list[str]:
    """What is wrong in answers of the form `<case>\\t<accepted|refused>[\\t<code>,<code>...]`."""
    answers: dict[str, list[str]] = {}
    for line in lines:
        case, *rest = line.rstrip("\n").split("\t")
        if case.strip():
            answers[Path(case).name] = rest
    wrong = []
    for folder in map(Path, list_cases()):
        expected = json.loads((folder / "expected.json").read_text("utf-8"))
        verdict, *codes = answers.pop(folder.name, ["no answer"])
        if verdict != expected["verdict"]:
            wrong.append(f"{folder.name}: {verdict}, but it must be {expected['verdict']} ({expected['title']})")
        elif codes and (missing := set(expected["codes"]) - set(codes[0].split(","))):
            wrong.append(f"{folder.name}: refused without saying {', '.join(sorted(missing))}")
    return wrong + [f"{name}: there is no such case" for name in answers]


def main(arguments: list[str]) -> int:
    if arguments == ["list"]:
        print("\n".join(list_cases()))
        return 0
    if arguments == ["compare"]:
        wrong = wrong_answers(sys.stdin)
        print("\n".join(wrong) or "every answer is right")
        return 1 if wrong else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
