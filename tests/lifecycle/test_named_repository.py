"""Every command answers about the repository that git would: the one that GIT_DIR names, wherever the user is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from git.scratch import make_repository
from lifecycle.governed import Governed

NAME = "WP-1-Kettle-v1"
OTHER = "WP-9-Elsewhere-v1"


def test_all_commands_answer_about_the_repository_that_git_dir_names(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    governed.begin()
    governed.activate(NAME)
    # The user is in another governed repository, which is not the one that the commands are asked about.
    elsewhere: Path = tmp_path_factory.mktemp("elsewhere")
    make_repository(elsewhere)
    (elsewhere / ".GOV/task_packets/stubs").mkdir(parents=True)
    (elsewhere / f".GOV/task_packets/stubs/{OTHER}.md").write_text("# nothing\n")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("GIT_DIR", str(governed.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(governed.root))
    before = sorted(elsewhere.rglob("*"))

    for words in (["list"], ["status"], ["check"], ["fmt", "--check"], ["why", NAME]):
        said = json.dumps(governed.json(*words)["data"])
        assert OTHER not in said
        assert NAME in said or words[0] in {"check", "fmt"}
    governed.done("check")
    governed.done("packet", "prepare", NAME, "--for", "coder")
    governed.done("claim", NAME, "--as", "coder")
    governed.done("runtime", "run", "start", "a run", "--packet", NAME)
    assert (governed.root / ".git/workpacket/runs.db").exists()
    assert NAME in governed.done("runtime", "runs", "list", "--json").out
    assert NAME in governed("resume", "--json").out
    assert sorted(elsewhere.rglob("*")) == before
