"""What a command reads it takes apart once: each revision of the policy, and each document of the packet."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from typing import Any

import pytest

from lifecycle.governed import Governed
from lifecycle.signed import NAME, Signed

POLICY = ".GOV/policy/policy.toml"

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text is parsed as TOML."""
    counted: Counter[str] = Counter()
    loads = tomllib.loads

    def counting(text: str, /, **how: Any) -> dict[str, Any]:
        counted[text] += 1
        return loads(text, **how)

    monkeypatch.setattr(tomllib, "loads", counting)
    return counted


def own_policy(governed: Governed, note: str) -> str:
    """A policy that no other test of this process has read: what was read once is known."""
    text = f"{governed.read(POLICY)}\n# {note} {governed.root}\n"
    governed.write(POLICY, text)
    return text


def test_a_refused_activation_parses_the_policy_once(signed: Signed, parses: Counter[str]) -> None:
    signed.begin()
    signed.ready()
    text = own_policy(signed.governed, "the base")
    signed.governed.commit("A policy of its own")
    parses.clear()
    assert "approval_missing" in signed.governed.refused("create-task-packet", NAME)
    assert parses[text] == 1


def test_a_check_parses_the_policy_of_each_revision_once(signed: Signed, parses: Counter[str]) -> None:
    signed.begin()
    signed.ready()
    base = own_policy(signed.governed, "the base")
    signed.governed.commit("A policy of its own")
    here = own_policy(signed.governed, "the work tree")
    parses.clear()
    signed.governed("check", "--no-cache")
    assert (parses[base], parses[here]) == (1, 1)
