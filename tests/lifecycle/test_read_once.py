"""What a command reads it takes apart once: each revision of the policy, and each document of the packet."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from typing import Any

import pytest

from lifecycle.governed import Governed
from lifecycle.signed import NAME, REFINEMENT, Signed
from workpacket.documents.document import Document
from workpacket.documents.refinement import Refinement
from workpacket.documents.spec_pointer import SpecPointer
from workpacket.documents.stub import Stub
from workpacket.ledger import log as log_module
from workpacket.text.source import Source

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


def test_a_refused_activation_takes_each_document_apart_once(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    signed.begin()
    signed.ready()
    governed = signed.governed
    stub, pointer = f".GOV/task_packets/stubs/{NAME}.md", ".GOV/roles_shared/SPEC_CURRENT.md"
    # Texts that no other test of this process has read.
    governed.replace(stub, "Greet the user", f"Greet the user of {governed.root}")
    governed.write(pointer, f"{governed.read(pointer)}\nOf {governed.root.name}.\n")
    governed.commit("Documents of its own")
    counted: Counter[str] = Counter()
    for reader in (Stub, SpecPointer, Refinement):

        def counting(self: Document, source: Source, read: Any = reader.__init__) -> None:
            counted[source.path] += 1
            read(self, source)

        monkeypatch.setattr(reader, "__init__", counting)
    assert "approval_missing" in governed.refused("create-task-packet", NAME)
    assert counted == {stub: 1, pointer: 1, REFINEMENT: 1}


def test_a_refused_activation_decodes_each_event_once(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    signed.begin()
    signed.ready()
    counted: Counter[str] = Counter()
    decode = log_module.decode_event

    def counting(folder: str, name: str, *given: Any, **how: Any) -> Any:
        counted[name] += 1
        return decode(folder, name, *given, **how)

    monkeypatch.setattr(log_module, "decode_event", counting)
    assert "approval_missing" in signed.governed.refused("create-task-packet", NAME)
    assert counted
    assert set(counted.values()) == {1}
