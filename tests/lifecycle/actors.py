"""A governed repository whose policy names actors, each with an event key of its own."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from lifecycle.governed import TOKENS_COUNT, Governed, remembered
from workpacket.shell.keys import make_event_key

NAME = "WP-1-Greeting-v1"
PEOPLE = ("ann", "ben")
# The person behind each agent.
AGENTS = {"coder": "ann", "coder-2": "ann", "judge": "ben"}


@cache
def _made() -> tuple[Path, dict[str, str]]:
    """The keys of everybody, made once: what was signed with them can be copied."""
    folder = Path(tempfile.mkdtemp(prefix="workpacket-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        made = {name: make_event_key(name, "event").public.fingerprint for name in PEOPLE}
        return folder, made | {name: make_event_key(name, "agent").public.fingerprint for name in AGENTS}


def keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Event keys of everybody in one account's settings; their fingerprints."""
    monkeypatch.delenv("WORKPACKET_EVENT_KEY", raising=False)
    made, fingerprints = _made()
    shutil.copytree(made, folder, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return dict(fingerprints)


def tables(fingerprints: dict[str, str], more: str = "") -> str:
    """The tables of policy.toml for these keys."""
    text = more
    for name, key in fingerprints.items():
        who = f'kind = "agent"\noperator = "{AGENTS[name]}"' if name in AGENTS else 'kind = "person"'
        text += f'\n[actors.{name}]\n{who}\nkeys = ["{key}"]\n'
    return text


def begin(governed: Governed, fingerprints: dict[str, str], more: str = "") -> None:
    governed.begin(policy=TOKENS_COUNT + tables(fingerprints, more))


@remembered
def submitted(governed: Governed, coder: str = "coder") -> None:
    """Worked on by an agent of Ann's, who commissioned it, and landed as far as the submission."""
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME, coder=coder)
    governed.done("submit", NAME, "--as", coder, "--prove", "all=true")
    governed.write("report.md", "Good.\n")
    governed.commit("submitted")


def errors(governed: Governed, *words: str) -> dict[str, str]:
    found = governed.json("check", *words)["findings"]
    return {each["code"]: each["message"] for each in found if each["severity"] == "error"}
