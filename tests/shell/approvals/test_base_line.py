"""What the line of the base says of a commit and a path is what git says of `<commit>:<path>`."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from git.scratch import git, make_repository
from workpacket.git.objects import read_objects
from workpacket.git.repository import Repository
from workpacket.git.run import run_git
from workpacket.shell.base import base_line

PATHS = tuple(f".GOV/{folder}/{name}" for folder in ("log/WP-1", "refinements") for name in "abc")
ELSEWHERE = "src/main.c"


def random_history(root: Path, chance: random.Random, commits: int) -> Repository:
    """Additions, changes, deletions, files that come back, links, submodules and merges of either side."""
    repository = make_repository(root)
    stream: list[bytes] = []
    heads: dict[str, int] = {}
    for number in range(1, commits + 1):
        branch = chance.choice(("main", "main", "side"))
        who = f"A <a@example.org> {1_700_000_000 + chance.randrange(10_000)} +0000"
        stream.append(f"commit refs/heads/{branch}\nmark :{number}\ncommitter {who}\ndata 1\nx\n".encode())
        parents = [heads[each] for each in (branch, "main", "side") if each in heads]
        merged = parents[: 2 if chance.random() < 0.3 else 1]
        stream += [f"{'merge' if place else 'from'} :{each}\n".encode() for place, each in enumerate(merged)]
        heads[branch] = number
        for path in chance.sample((*PATHS, ELSEWHERE), chance.randrange(4)):
            match chance.randrange(6):
                case 0:
                    stream.append(f"D {path}\n".encode())
                case 1:
                    stream.append(f"M 120000 inline {path}\ndata 3\n../\n".encode())
                case 2:
                    stream.append(f"M 160000 {'1' * 40} {path}\n".encode())
                case _:
                    text = str(chance.randrange(4)).encode()
                    stream.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(text), text))
    command = ["git", "-C", str(root), "fast-import", "--quiet", "--force"]
    subprocess.run(command, input=b"".join(stream), check=True)
    return repository


def first_seen_by_names(repository: Repository, commit: str, folder: str) -> dict[str, tuple[str, int]]:
    """By a list of names, which can be trusted where nobody has made up strange ones."""
    answer = run_git(
        repository.root, "log", "--first-parent", "--diff-merges=first-parent", "--no-renames", "--diff-filter=A",
        "--name-only", "--format=%x01%H %ct", commit, "--", folder,
    )  # fmt: skip
    seen: dict[str, tuple[str, int]] = {}
    for block in answer.text.split("\x01")[1:]:
        header, *paths = block.split("\n")
        identity, _, time = header.partition(" ")
        seen.update((path, (identity, int(time))) for path in paths if path)
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_the_line_says_of_each_commit_what_git_says(seed: int, tmp_path: Path) -> None:
    repository = random_history(tmp_path, random.Random(seed), 40)
    tip = git(tmp_path, "rev-parse", "main")
    line = base_line(repository, tip, ".GOV/log", ".GOV/refinements")
    commits = [
        each for each in git(tmp_path, "rev-list", "--first-parent", "main").split() if line.knows(each, PATHS[0])
    ]
    root = git(tmp_path, "rev-list", "--first-parent", "--max-parents=0", "main")
    revisions = [*commits, *(f"{commit}^1" for commit in commits if commit != root)]
    named = {f"{revision}:{path}": (revision, path) for revision in revisions for path in PATHS}
    by_name = read_objects(repository, named)
    blobs = {name: line.blob(*place) for name, place in named.items()}
    by_id = read_objects(repository, filter(None, blobs.values()))
    assert len(commits) > 5
    assert len(git(tmp_path, "rev-list", "--merges", "main").split()) > 1
    assert line.knows(root, PATHS[0]) is bool(git(tmp_path, "ls-tree", "-r", root, "--", ".GOV"))
    assert {name: by_id.get(blob) for name, blob in blobs.items()} == {name: by_name.get(name) for name in named}
    assert line.first_seen == {
        **first_seen_by_names(repository, tip, ".GOV/log"),
        **first_seen_by_names(repository, tip, ".GOV/refinements"),
    }


def test_the_line_knows_nothing_of_other_paths_and_commits(tmp_path: Path) -> None:
    repository = random_history(tmp_path, random.Random(1), 40)
    tip = git(tmp_path, "rev-parse", "main")
    line = base_line(repository, tip, ".GOV/log")
    (first, _), *_ = line.first_seen.values()
    assert line.knows(first, ".GOV/log/WP-1/a")
    assert not line.knows(first, ".GOV/logs")
    assert not line.knows(first, ELSEWHERE)
    assert not line.knows("1" * 40, ".GOV/log/WP-1/a")
