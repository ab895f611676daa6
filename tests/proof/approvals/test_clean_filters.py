"""Which commands have git run a filter: only those that ask git what is uncommitted, and only one of the clone's own.

Files of `.gitattributes` can name a filter; what program that is stands in the settings of the clone, which come with
no document. `git status` runs it to compare, which is what makes a file of Git LFS count as unchanged.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git.scratch import git
from shell.approvals.story import WP, Story

# What decides about approvals, and what tells of the state: neither may depend on what a filter makes of a file.
DECIDING = (
    ("check",), ("check", "--base", "main"), ("approvals", "verify"), ("approvals", "list"), ("log", "verify"),
    ("list",), ("board", "show"), ("status",), ("why", WP), ("next",), ("fmt", "--check"),
)  # fmt: skip
ASKING_GIT = (("audit",), ("trace", WP), ("impact", "Spec_v1.md"), ("registry", "audit"))


@pytest.fixture
def ran(story: Story) -> Path:
    """The file that exists once the filter has run; every file of the repository goes through it."""
    ran = story.home / "ran"
    story.approve()
    story.write(".gitattributes", "* filter=spy\n")
    story.commit("filtered")
    for kind in ("clean", "smudge"):
        git(story.root, "config", f"filter.spy.{kind}", f"touch {ran}; cat")
    git(story.root, "config", "filter.spy.required", "true")
    return ran


def touch_everything(story: Story) -> None:
    """Git cannot tell by size and time any more that the files are as they were."""
    for path in story.root.rglob("*"):
        if ".git" not in path.parts and path.is_file():
            os.utime(path, (0, 0))


@pytest.mark.parametrize("words", DECIDING, ids=" ".join)
def test_what_decides_runs_no_filter(story: Story, ran: Path, words: tuple[str, ...]) -> None:
    touch_everything(story)
    assert story.run(*words).status in (0, 1)
    assert not ran.exists()


@pytest.mark.parametrize("words", ASKING_GIT, ids=" ".join)
def test_asking_what_is_uncommitted_runs_the_filter_of_the_clone(
    story: Story, ran: Path, words: tuple[str, ...]
) -> None:
    touch_everything(story)
    assert story.run(*words).status in (0, 1)
    assert ran.exists(), "docs/security.md names these commands: it can be said without them now"


def test_attributes_alone_name_no_program(story: Story, ran: Path) -> None:
    """As in a fresh clone: the filter is named by a document, and nothing says what it is."""
    git(story.root, "config", "--remove-section", "filter.spy")
    touch_everything(story)
    assert story.run("audit").status in (0, 1)
    assert not ran.exists()
