"""What a second reader found in forty real documents, before `check` was run on them.

`second_reader.tsv` has one real defect a line: the beginning of the file's SHA-256, its folder in the corpus, the line,
the kind, whether `check` found it before the rules that were written for the others, whether it finds it now (both
judged by hand), and the codes on that line. Cosmetic defects are left out. Most of those that are not found contradict
the meaning of a sentence.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

from corpora.real.test_real_documents import all_findings

with (Path(__file__).parent / "second_reader.tsv").open(encoding="utf-8", newline="") as sheet:
    DEFECTS = list(csv.DictReader(sheet, delimiter="\t"))


def test_the_sheet_has_a_verdict_for_every_defect() -> None:
    assert Counter(row["before"] for row in DEFECTS) == {"yes": 85, "no": 106}
    assert Counter(row["now"] for row in DEFECTS) == {"yes": 147, "no": 44}
    assert all((row["now"] == "yes") == bool(row["codes"]) for row in DEFECTS)


def test_what_was_found_in_these_documents_is_found_again(laid_out: Path) -> None:
    codes: defaultdict[str, set[str]] = defaultdict(set)
    digests: dict[str, str] = {}
    for one in all_findings(laid_out, "strict"):
        if one.path not in digests:
            digests[one.path] = sha256((laid_out / one.path).read_bytes()).hexdigest()[:12]
        codes[digests[one.path]].add(one.code)
    found = [row for row in DEFECTS if row["now"] == "yes" and row["file"] in codes]
    assert len(found) > len(DEFECTS) / 2
    # A packet that is on no board is reported at the packet, not at the registry.
    here = [row for row in found if row["codes"] != "work_on_no_board"]
    assert [row for row in here if not set(row["codes"].split()) & codes[row["file"]]] == []
