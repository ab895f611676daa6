"""What is judged with a base is what would be merged: cases of the lists, each with the code that refuses it."""

from __future__ import annotations

import pytest

from trust.measure import HERE, LISTS
from trust.play import Case, Table, read_cases
from workpacket.shell.judging.merged_tree import folded

pytestmark = pytest.mark.share(5)

CASES = {case.id: case for name in LISTS for case in read_cases(HERE / f"{name}.jsonl")}
REFUSED = {
    "K2-G17": "not_committed",
    "K2-G16": "attribute_converts",
    "K2-G01": "attribute_converts",
    "K2-base": "policy_malformed",
    "K3-R01": "signer_unknown",
    "H2-L02": "attest_unfit",
    "H3-P11": "policy_moved",
    "M-D11b": "subject_mismatch",
    "M-D11c": "placeholder_left",
    "M-G10": "tree_entry_foreign",
    "M-G14": "tree_entry_foreign",
    "M-S10": "event_ahead",
    "A13": "path_twin",
    "A14": "path_twin",
    "A17": "tree_entry_foreign",
    "A18": "attribute_converts",
    "A20": "attribute_converts",
    "A22": "not_committed",
    "A28": "attest_unfit",
    "A38": "path_twin",
    "P01": "policy_moved",
    "P18": "threshold_unmet",
    "P22": "contract_changed",
    "P24": "reapproval_unfit",
    "P27": "log_moved",
    "P28": "nonce_used",
    "P38": "approval_missing",
    "X02": "landed_otherwise",
    "X04": "landed_otherwise",
    "X21": "approval_missing",
}
KEPT = (
    "K2-verify",
    "K2-control",
    "K3-control",
    "H3-control",
    "H4-B01",
    "M-X03",
    "M-S10-control",
    "H5-X07",
    "H5-X08",
    "N31",
    "N32",
    "P02-control",
    "P04-control",
    "P12-control",
    "P36-control",
    "P39-control",
    "X06-control",
)
# A policy that nobody can read came onto the base; this branch brings back the one before.
BROKEN = ("on main", "write {POLICY} 'no toml at all'", "commit", "branch x", "git checkout main~1 -- .GOV/policy")
REVERTED = ("land {PB} merge", "branch x", "git revert --no-edit -m 1 HEAD")
MORE = [
    Case(
        "part-of-a-revert",
        "the events of a landing taken back, and its code kept",
        "judged",
        (*REVERTED, "git checkout main -- src", "commit", "land x merge"),
        "refused",
        codes=("log_file_deleted",),
    ),
    Case(
        "revert-of-a-revocation",
        "a landing with a revocation taken back",
        "activated",
        ("let e attest {P}:activated", "branch y", "revoke alice $e", "commit", "land y merge", *REVERTED[1:],
         "land x merge"),
        "refused",
        codes=("log_file_deleted",),
    ),
    Case("repair", "the repair of an unreadable policy that was approved under the last readable one", "activated",
         (*BROKEN, "sign p victor policy policy", "commit", "land x merge"), "accepted"),
    Case("unsigned-repair", "the same without an approval", "activated",
         (*BROKEN, "commit", "land x merge"), "refused", codes=("policy_malformed",)),
]  # fmt: skip


@pytest.mark.share(4)
@pytest.mark.parametrize("name", REFUSED)
def test_a_change_is_refused_with_its_code(name: str, table: Table) -> None:
    outcome = table.play(CASES[name], "merge")
    assert outcome.fits(CASES[name])
    assert REFUSED[name] in outcome.codes


@pytest.mark.share(4)
@pytest.mark.parametrize("case", [*(CASES[name] for name in KEPT), *MORE], ids=lambda case: case.id)
def test_a_case_ends_as_expected(case: Case, table: Table) -> None:
    outcome = table.play(case, case.how[0])
    assert outcome.fits(case), outcome


def test_a_landing_that_is_taken_back_is_told(table: Table) -> None:
    says = ("git checkout --quiet --detach x", "lacks landing_reverted check --base main")
    outcome = table.play(Case("told", "", "judged", (*REVERTED, *says), "as said"), "merge")
    assert outcome.unkept == ["check --base main says 'landing_reverted'"]


@pytest.mark.parametrize("line", ["* text=auto", "*.png filter=lfs diff=lfs merge=lfs -text", "*.bat eol=crlf"])
def test_attributes_that_many_repositories_have_convert_nothing_that_is_governed(line: str, table: Table) -> None:
    steps = ("branch x", f"write .gitattributes '{line}\\n'", "commit", "land x merge")
    assert table.play(Case("usual", line, "activated", steps, "refused"), "merge").codes == {"change_uncovered"}


@pytest.mark.parametrize("name", [".gov", ".Gov", ".GOV.", ".GOV ", "GOV~1", ".G\u200cOV", ".gov::$INDEX_ALLOCATION"])
def test_names_that_other_file_systems_take_for_the_folder(name: str) -> None:
    assert folded(name) == ".gov"


@pytest.mark.parametrize("name", ["GOV", ".GOVERN", "gov.md", ".GOV-old"])
def test_names_that_are_others_everywhere(name: str) -> None:
    assert folded(name) != ".gov"
