"""What readers found in real documents, before `check` was run on them.

Each sheet has one real defect a line: the beginning of the file's SHA-256, its folder in the corpus, the line, the
kind, whether `check` found it before the rules that were written for the others, whether it finds it now, and the codes
that say so. Cosmetic defects are left out. Most of those that are not found contradict the meaning of a sentence.
`second_reader.tsv` has forty documents, judged by hand; `third_reader.tsv` has 37 others, 33 of them with defects, and
the defects in a few words.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

import pytest

from corpora.real.test_real_documents import all_findings

# Errors under `strict`, drawn by seed, at most four of a code: is each what it says, and an error? The two that are
# arguable became warnings.
ERRORS = "errors"
SHEETS = {"second_reader": (85, 149, 191), "third_reader": (103, 128, 146)}


def defects(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / f"{name}.tsv").open(encoding="utf-8", newline="") as sheet:
        return list(csv.DictReader(sheet, delimiter="\t"))


@pytest.mark.parametrize("name", SHEETS)
def test_the_sheet_has_a_verdict_for_every_defect(name: str) -> None:
    rows, (before, now, every) = defects(name), SHEETS[name]
    assert Counter(row["before"] for row in rows) == {"yes": before, "no": every - before}
    assert Counter(row["now"] for row in rows) == {"yes": now, "no": every - now}
    assert all((row["now"] == "yes") == bool(row["codes"]) for row in rows)


@pytest.mark.parametrize("name", SHEETS)
def test_what_was_found_in_these_documents_is_found_again(name: str, laid_out: Path) -> None:
    codes: defaultdict[str, set[str]] = defaultdict(set)
    digests: dict[str, str] = {}
    for one in all_findings(laid_out, "strict"):
        if one.path not in digests:
            digests[one.path] = sha256((laid_out / one.path).read_bytes()).hexdigest()[:12]
        codes[digests[one.path]].add(one.code)
    rows = defects(name)
    found = [row for row in rows if row["now"] == "yes" and row["file"] in codes]
    assert len(found) > len(rows) / 2
    # A packet that is on no board is reported at the packet, not at the registry.
    here = [row for row in found if row["codes"] != "work_on_no_board"]
    assert [row for row in here if not set(row["codes"].split()) & codes[row["file"]]] == []


def test_the_errors_that_were_read_are_true() -> None:
    verdicts = Counter(row["verdict"] for row in defects(ERRORS))
    assert verdicts["true"] / verdicts.total() >= 0.98
    assert verdicts == {"true": 148, "arguable": 2}
