"""CI replays a submission, another job attests what it found, and the log and the verdict rest on that, offline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from approvals.authority import IDENTITY, Ci
from evidence.test_submission import NAME, REQUIRED, RUN, at_work, do
from lifecycle.governed import Governed, forge
from workpacket.documents.policy import PolicyDocument
from workpacket.lifecycle.policy import unguarded_changes
from workpacket.text.source import Node, Source

CI = Ci()
JUDGE = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")


def submitted(governed: Governed, replay: str = "ci", more: str = CI.policy()) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`", more=f'{REQUIRED}replay = "{replay}"\n{more}')
    do(governed)
    governed.done("submit", NAME, "--as", "coder")
    governed.write("report.md", "Good.\n")
    governed.commit("submitted")


def replayed(governed: Governed, folder: Path) -> bytes:
    """The job that runs the commands of the change writes what it found."""
    folder.mkdir()
    governed("evidence", "replay", "--base", "main", "--yes", "--statements", str(folder))
    return (folder / f"{NAME}.json").read_bytes().rstrip(b"\n")


def attested(governed: Governed, folder: Path, statement: bytes, ci: Ci = CI) -> str:
    """The job that signs gets the statement and nothing else; the file that it makes of the bundle."""
    (folder / "bundle.json").write_text(json.dumps(ci.bundle(statement)))
    file = folder / "attested.json"
    file.unlink(missing_ok=True)
    said = governed.done("evidence", "attest", str(folder / "bundle.json"), "--out", str(file)).out
    assert f"signed by {IDENTITY}" in said
    return str(file)


@pytest.mark.long
def test_what_ci_attests_is_recorded_and_opens_the_verdict(governed: Governed, tmp_path: Path) -> None:
    submitted(governed)
    # Nobody else's word counts where the policy asks for CI.
    governed.done("evidence", "replay", NAME, "--yes", "--record", "--as", "victor")
    assert governed.refused(*JUDGE) == ["replay_missing"]
    file = attested(governed, tmp_path, replayed(governed, tmp_path / "found"))
    assert "same results, attested by" in governed.done("evidence", "verify", NAME, file).out
    assert governed.json("evidence", "verify", NAME, file)["data"]["identity"] == IDENTITY
    # The coder may record it: it is not their word.
    governed.done("evidence", "record", NAME, file, "--as", "coder")
    governed.done(*JUDGE)
    governed.commit("judged")
    assert governed("check", "--base", "main").status == 0


@pytest.mark.long
def test_an_attestation_stands_for_a_second_party(governed: Governed, tmp_path: Path) -> None:
    submitted(governed, "second-party")
    file = attested(governed, tmp_path, replayed(governed, tmp_path / "found"))
    governed.done("evidence", "record", NAME, file, "--as", "coder")
    governed.done(*JUDGE)


@pytest.mark.long
def test_the_authority_of_another_is_refused_when_recorded_and_when_judged(governed: Governed, tmp_path: Path) -> None:
    submitted(governed)
    file = attested(governed, tmp_path, replayed(governed, tmp_path / "found"), Ci())
    for action in ("verify", "record"):
        assert governed("evidence", action, NAME, file).codes == ["replay_attestation_invalid"]
    commit = governed.git("rev-parse", "HEAD^").strip()
    forged = {"commit": commit, "result": "same", "attestation": Path(file).read_text().rstrip("\n")}
    forge(governed, NAME, "evidence.replayed", forged)
    assert governed.refused(*JUDGE) == ["replay_missing"]
    governed.commit("forged")
    for command in ("check", "approvals verify"):
        result = governed(*command.split(), "--base", "main")
        assert (result.status, "replay_attestation_invalid" in result.out) == (5, True), command
    # It was judged when it landed, by the policy of that time.
    assert "replay_attestation_invalid" not in governed("approvals", "verify", "--base", "HEAD").out


@pytest.mark.long
def test_a_difference_that_ci_found_is_recorded_as_one(governed: Governed, tmp_path: Path) -> None:
    submitted(governed)
    statement = json.loads(replayed(governed, tmp_path / "found"))
    statement["predicate"] |= {"result": "FAILED", "failedTests": ["The name is printed.: it failed"]}
    file = attested(governed, tmp_path, json.dumps(statement).encode())
    found = governed("evidence", "verify", NAME, file)
    assert (found.status, "different results" in found.out) == (1, True)
    governed.done("evidence", "record", NAME, file, "--as", "coder")
    assert governed.state(NAME).history[-1].data["differences"] == ["The name is printed.: it failed"]
    assert governed.refused(*JUDGE) == ["replay_missing"]


@pytest.mark.long
def test_without_a_pinned_authority_no_attestation_counts(governed: Governed, tmp_path: Path) -> None:
    submitted(governed, "second-party", "")
    file = attested(governed, tmp_path, replayed(governed, tmp_path / "found"))
    found = governed("evidence", "verify", NAME, file)
    assert found.codes == ["replay_attestation_invalid"]
    assert "no [evidence.ci] table" in found.err


@pytest.mark.parametrize(
    "words", [("attest",), ("attest", "b.json"), ("verify", NAME), ("record", NAME), ("verify", NAME, "a", "b")]
)
def test_what_is_missing_is_a_usage_error(governed: Governed, words: tuple[str, ...]) -> None:
    governed.begin()
    assert governed("evidence", *words).status == 2


def test_a_file_that_is_not_there_is_named(governed: Governed) -> None:
    governed.begin()
    assert governed("evidence", "attest", "none.json", "--out", "x").codes == ["file_unreadable"]


@pytest.mark.long
def test_the_policy_says_whom_it_trusts(governed: Governed) -> None:
    submitted(governed)
    assert governed.json("policy", "show")["data"]["values"]["evidence"]["ci"]["identity"] == IDENTITY


def test_whom_a_policy_trusts_is_not_changed_where_nobody_could_approve_that() -> None:
    def root(ci: str) -> Node | None:
        return PolicyDocument(Source("policy.toml", f'v = 1\n[coverage]\nmode = "required"\n{ci}')).root

    assert unguarded_changes(root(CI.policy()), root(CI.policy())) == []
    assert unguarded_changes(root(CI.policy()), root(Ci().policy())) == ["evidence.ci"]
    assert unguarded_changes(root(CI.policy()), root("")) == ["evidence.ci"]
