"""`policy re-anchor` in real repositories: what it takes to replace the root of trust, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from git.scratch import git
from shell.agents import make_key_file
from shell.approvals.story import ALICE, BOB, CAROL, Story
from workpacket.shell.keys import find_key, signers_line

POLICY_PATH, SIGNERS = ".GOV/policy/policy.toml", ".GOV/policy/allowed_signers"
RECORD = ".GOV/policy/reanchored.toml"
DORA = "dora@example.org"


def codes(story: Story, *words: str) -> set[str]:
    """What `check` and `approvals verify` both find, of the root of trust or of approvals."""
    told = [{each["code"] for each in story.json(*command, *words)["findings"]} for command in VERIFYING]
    assert told[1] <= told[0]
    return told[1]


VERIFYING = (("check",), ("approvals", "verify"))


def with_new_people(story: Story) -> None:
    """The policy names Dora, whose key nobody has approved, in place of everybody."""
    story.keys[DORA] = story.home / "dora"
    make_key_file(story.keys[DORA], "")
    text = story.read(POLICY_PATH)
    for who in (ALICE, BOB, CAROL):
        text = text.replace(f'"{who}"', f'"{DORA}"')
    story.write(POLICY_PATH, text.replace(f'"{DORA}", "{DORA}"', f'"{DORA}"'))
    story.write(SIGNERS, f"{signers_line(DORA, find_key(str(story.keys[DORA])).public)}\n")


def named_on_the_base(story: Story, line: str, path: str = ".github/workflows/govern.yml") -> None:
    git(story.root, "checkout", "--quiet", "main")
    story.write(path, f"# {line}\n")
    story.commit("who administers the base names the new policy")
    git(story.root, "checkout", "--quiet", "-")
    git(story.root, "rebase", "--quiet", "main")


def reanchor(story: Story, reason: str = "all keys were lost with the laptop") -> str:
    """The line for the CI configuration. The change is committed on the branch."""
    with_new_people(story)
    answer = story.json("policy", "re-anchor", "--reason", reason)
    assert answer["ok"], answer
    story.commit("a new root of trust")
    line: str = answer["data"]["line"]
    return line


@pytest.fixture
def branched(story: Story) -> Story:
    story.branch("new-root")
    return story


def test_it_is_refused_until_the_base_names_it(branched: Story) -> None:
    line = reanchor(branched)
    assert "reanchor_unnamed" in codes(branched, "--base", "main")
    assert branched.run("check", "--base", "main").status == 5
    named_on_the_base(branched, line)
    assert codes(branched, "--base", "main") == {"policy_reanchored"}
    assert branched.run("approvals", "verify", "--base", "main").status == 0


def test_the_change_cannot_name_itself(branched: Story) -> None:
    line = reanchor(branched)
    branched.write(".ci/run", f"# {line}\n")
    branched.commit("name it too")
    assert {"reanchor_unnamed", "reanchor_named"} <= codes(branched, "--base", "main")


def test_a_change_that_names_a_policy_is_refused_by_itself(branched: Story) -> None:
    """Otherwise one reviewed change of a workflow would replace everybody who may approve."""
    branched.write(".gitlab-ci.yml", f"variables: {{WORKPACKET_REANCHOR: {'7' * 64}}}\n")
    branched.write(".gitattributes", "*.yml binary\n")
    branched.commit("a harmless change of CI")
    assert codes(branched, "--base", "main") == {"reanchor_named"}


@pytest.mark.parametrize("through", ["text", "name"])
def test_no_file_of_the_change_passes_for_one_of_the_base(branched: Story, through: str) -> None:
    """git's answer about both commits held lines that begin with a commit; a change can write such lines."""
    line = reanchor(branched)
    base = git(branched.root, "rev-parse", "main")
    if through == "text":
        branched.write(".ci/run", f"WORKPACKET_REANCHOR\x0b{base}:.ci/run\0{line}\n")
    else:
        branched.write(f".ci/a\n{base}:b", f"{line}\n")
    branched.commit("a harmless file")
    assert {"reanchor_unnamed", "reanchor_named"} <= codes(branched, "--base", "main")


def test_another_policy_than_the_one_named_is_refused(branched: Story) -> None:
    named_on_the_base(branched, reanchor(branched))
    branched.write(POLICY_PATH, branched.read(POLICY_PATH).replace("threshold = 1", "threshold = 1 "))
    branched.commit("one byte more")
    assert "reanchor_unfit" in codes(branched, "--base", "main")


def test_what_else_lies_beside_the_policy_is_not_replaced_with_it(branched: Story) -> None:
    line = reanchor(branched)
    branched.write(".GOV/policy/more.toml", "")
    branched.commit("and something else")
    named_on_the_base(branched, line)
    assert "reanchor_unfit" in codes(branched, "--base", "main")


def test_afterwards_old_approvals_hold_and_every_output_names_it(story: Story) -> None:
    story.activate(story.approve())
    story.commit("approved by Alice")
    story.branch("new-root")
    named_on_the_base(story, reanchor(story))
    git(story.root, "checkout", "--quiet", "main")
    git(story.root, "merge", "--quiet", "--ff-only", "new-root")
    assert codes(story) == {"policy_reanchored"}
    for words in (("check",), ("approvals", "verify"), ("audit",), ("status",)):
        assert "all keys were lost with the laptop" in story.run(*words).out, words
    verified = story.run("approvals", "verify").out
    assert "1 envelope verified" in verified
    # The old keys open nothing any more, and the new one does.
    assert {each.code for each in story.verdict().unmet} >= {"threshold_unmet"}
    story.branch("next")
    story.write(POLICY_PATH, story.read(POLICY_PATH) + "\n# one more line\n")
    story.commit("a change of the policy")
    assert "approval_missing" in codes(story, "--base", "main")
    story.approve(DORA, packet="policy", gate="policy")
    story.commit("approved by Dora")
    assert codes(story, "--base", "main") == {"policy_reanchored"}


def test_the_digest_on_the_base_does_not_bring_the_policy_back_later(story: Story) -> None:
    test_afterwards_old_approvals_hold_and_every_output_names_it(story)
    git(story.root, "checkout", "--quiet", "main")
    git(story.root, "merge", "--quiet", "--ff-only", "next")
    story.branch("back")
    story.write(POLICY_PATH, story.read(POLICY_PATH).replace("\n# one more line\n", ""))
    assert story.run("policy", "re-anchor", "--reason", "again").status == 0
    story.commit("the policy of before")
    assert "reanchor_unfit" in codes(story, "--base", "main")


def test_the_record_cannot_be_taken_away(story: Story) -> None:
    test_afterwards_old_approvals_hold_and_every_output_names_it(story)
    Path(story.root, RECORD).unlink()
    story.approve(DORA, packet="policy", gate="policy")
    story.commit("nobody needs to know")
    assert "reanchor_unfit" in codes(story, "--base", "main")


def test_without_a_change_of_the_policy_there_is_nothing_to_replace(branched: Story) -> None:
    done = branched.run("policy", "re-anchor", "--reason", "lost")
    assert (done.status, "edit the work tree's policy first" in done.err) == (2, True)


@pytest.mark.parametrize("words", [(), ("--reason", "two\nlines"), ("--reason", 'a "quote"')])
def test_a_reason_is_asked_for(branched: Story, words: tuple[str, ...]) -> None:
    assert branched.run("policy", "re-anchor", *words).status == 2


def test_a_policy_that_cannot_be_read_is_no_root(branched: Story) -> None:
    branched.write(POLICY_PATH, "[approvals]\n")
    assert "policy_malformed" in branched.run("policy", "re-anchor", "--reason", "lost").err


def test_before_there_is_any_policy_it_is_anchored_and_not_replaced(branched: Story) -> None:
    git(branched.root, "checkout", "--quiet", "--orphan", "main-2")
    git(branched.root, "branch", "--quiet", "-D", "main")
    git(branched.root, "rm", "-rq", "--cached", ".GOV")
    branched.write("README", "no policy\n")
    git(branched.root, "add", "README")
    git(branched.root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "empty")
    git(branched.root, "branch", "-m", "main")
    assert "policy_unanchored" in branched.run("policy", "re-anchor", "--reason", "lost").err
