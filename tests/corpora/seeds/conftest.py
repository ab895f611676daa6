from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from corpora.seeds.governed import Prepared
from corpora.seeds.user import Repository, new_repository

Governed = Callable[[str], Repository]


@pytest.fixture(scope="module", autouse=True)
def settings_of_one_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever the machine is set to: the identity and configuration of git, and no agent with keys.

    For the tests of this folder only: others need the variables that are taken away here.
    """
    home = tmp_path_factory.mktemp("home")
    values = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
              "GIT_CONFIG_SYSTEM": os.devnull}  # fmt: skip
    for role in ("AUTHOR", "COMMITTER"):
        values |= {f"GIT_{role}_NAME": "ann", f"GIT_{role}_EMAIL": "ann@example.org"}
    (home / "gitconfig").write_text("[user]\n\tname = ann\n\temail = ann@example.org\n")
    with pytest.MonkeyPatch.context() as patched:
        for name, value in values.items():
            patched.setenv(name, value)
        for name in ("CI", "SSH_AUTH_SOCK", *(name for name in os.environ if name.startswith("WORKPACKET_"))):
            patched.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def governed(prepared: Prepared, tmp_path: Path) -> Governed:
    """A copy of the governed repository at a stage of its packet's life, another one with each call."""
    numbers = count()
    return lambda stage: prepared.at(stage, tmp_path / f"{stage}-{next(numbers)}")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    return new_repository(tmp_path)
