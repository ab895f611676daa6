"""Every attack of the corpus is refused for the right reason, every genuine approval accepted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corpora.attacks.case_files import CORPUS, Outcome, case_folders, complaint_about, expected, judge_case
from corpora.attacks.generate import all_cases
from workpacket.model.reason_tables.approval import JUDGING

CASES = all_cases()
CODES = {reason.code for reason in JUDGING}


@pytest.mark.parametrize("folder", case_folders(), ids=lambda folder: folder.name)
def test_the_case_is_judged_as_it_must_be(folder: Path) -> None:
    assert complaint_about(folder) == ""


def test_no_case_was_lost_on_the_way_from_generator_to_disk() -> None:
    assert [folder.name for folder in case_folders()] == sorted(case.name for case in CASES)
    for case in CASES:
        assert expected(CORPUS / case.name) == case.expected


def test_the_corpus_holds_more_than_sixty_attacks_and_every_kind_of_key() -> None:
    genuine = [folder.name for folder in case_folders() if expected(folder)["verdict"] == "accepted"]
    assert len(case_folders()) - len(genuine) >= 60
    assert all(name.startswith("genuine-") for name in genuine)
    kinds = ["ed25519", "rsa", "sk-ssh-ed25519", "sk-ecdsa", "nistp256", "nistp384", "nistp521"]
    assert [kind for kind in kinds if not any(kind in name for name in genuine)] == []


def test_every_code_that_a_case_expects_is_a_reason_of_the_table() -> None:
    wanted = {code for case in CASES for code in case.codes}
    assert wanted <= CODES


def test_every_reason_of_a_verdict_has_an_attack() -> None:
    """The trust file's own faults, a malformed key and a new root of trust are the business of unit tests."""
    shown = {code for folder in case_folders() for code in judge_case(folder).codes}
    root = {"reanchor_unfit", "reanchor_unnamed"}
    assert CODES - shown - root == {"key_malformed", "legacy_unpresented", "trust_file_foreign", "trust_file_malformed"}


def test_legacy_is_called_legacy_and_signed_is_called_signed() -> None:
    assert judge_case(CORPUS / "genuine-legacy-token") == Outcome(True, "legacy", ())
    assert judge_case(CORPUS / "genuine-ssh-ed25519") == Outcome(True, "signed", ())
    assert judge_case(CORPUS / "expired").assurance == "none"


def protocol(*arguments: str, answers: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(CORPUS / "protocol.py"), *arguments]
    return subprocess.run(command, input=answers, capture_output=True, text=True, check=False)


def our_answers() -> list[str]:
    listed = protocol("list").stdout.splitlines()
    outcomes = ((folder, judge_case(Path(folder))) for folder in listed)
    return [f"{folder}\t{'accepted' if got.accepted else 'refused'}\t{','.join(got.codes)}" for folder, got in outcomes]


def test_the_two_commands_find_our_answers_right() -> None:
    done = protocol("compare", answers="\n".join(our_answers()) + "\n")
    assert (done.returncode, done.stdout) == (0, "every answer is right\n")


def test_the_two_commands_find_a_wrong_a_missing_and_a_surplus_answer() -> None:
    answers = [line.replace("\trefused", "\taccepted") if "/expired\t" in line else line for line in our_answers()]
    answers = [line for line in answers if "/valid-for-ten-years\t" not in line]
    answers = [line.replace("key_revoked", "no_reason") if "/key-revoked\t" in line else line for line in answers]
    done = protocol("compare", answers="\n".join([*answers, "no-such-case\trefused"]))
    assert done.returncode == 1
    assert "expired: accepted, but it must be refused" in done.stdout
    assert "valid-for-ten-years: no answer" in done.stdout
    assert "key-revoked: refused without saying key_revoked" in done.stdout
    assert "no-such-case: there is no such case" in done.stdout


def test_a_verifier_that_accepts_or_refuses_everything_is_found_out() -> None:
    for verdict in ("accepted", "refused"):
        answers = "".join(f"{folder}\t{verdict}\n" for folder in protocol("list").stdout.splitlines())
        assert protocol("compare", answers=answers).returncode == 1
