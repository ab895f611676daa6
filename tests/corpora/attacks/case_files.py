"""Reads a case of the corpus into the facts that `decide` judges. README.md describes the files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import EnvelopeFile, Spec, Subject
from workpacket.approvals.facts import GateFacts, LegacyUse, PacketLog, PolicyFiles
from workpacket.approvals.fields import read_instant
from workpacket.approvals.policy import judge_base, read_pin
from workpacket.problem import Problem

CORPUS = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    accepted: bool
    assurance: str
    codes: tuple[str, ...]


def case_folders() -> list[Path]:
    return sorted(path.parent for path in CORPUS.glob("*/expected.json"))


def judge_case(folder: Path) -> Outcome:
    """What this implementation says of the case: the memory of the policy first, then the gate."""
    rolled_back = _judge_memory(folder / "trust")
    if rolled_back is not None:
        return Outcome(False, "none", (rolled_back.code,))
    verdict = decide(read_facts(folder))
    return Outcome(verdict.met, verdict.assurance, tuple(sorted({refusal.code for refusal in verdict.unmet})))


def expected(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return content


def complaint_about(folder: Path) -> str:
    """Empty if we judge the case as it must be judged."""
    want, got = expected(folder), judge_case(folder)
    verdict = "accepted" if got.accepted else "refused"
    if verdict != want["verdict"] or not set(want["codes"]) <= set(got.codes):
        return f"{want['title']}: wanted {want['verdict']} {want['codes']}, got {verdict} {list(got.codes)}"
    return ""


def read_facts(folder: Path) -> GateFacts:
    told: dict[str, Any] = json.loads((folder / "facts.json").read_text("utf-8"))
    policy = folder / "policy"
    spec = told["spec"]
    return GateFacts(
        now=_instant(told["now"]),
        packet=told["packet"],
        gate=told["gate"],
        subjects=tuple(_subject(folder / "tree", name) for name in told["subjects"]),
        root_commit=told["rootCommit"],
        base_history=frozenset(told["baseHistory"]),
        spec=None if spec is None else Spec(spec["anchor"], _digest(folder / "tree" / spec["path"])),
        scope=tuple(told["scope"]),
        parties={party: frozenset(names) for party, names in told["parties"].items()},
        log=PacketLog(
            {event: tuple(parents) for event, parents in told["log"]["parents"].items()},
            frozenset(told["log"]["laneChanges"]),
        ),
        policy=PolicyFiles(*(_bytes(policy / name) for name in ("policy.toml", "allowed_signers", "revoked_keys"))),
        envelopes=tuple(EnvelopeFile(path.name, path.read_bytes()) for path in _files(folder / "attestations")),
        consumptions={nonce: frozenset(events) for nonce, events in told["consumptions"].items()},
        consumer=told["consumer"],
        on_base_since=_instant(told["onBaseSince"]) if told["onBaseSince"] else None,
        revoked_keys_now=_bytes(folder / "policy-now" / "revoked_keys"),
        legacy_uses=tuple(_legacy_use(use) for use in told["legacyUses"]),
        contract=told["contract"],
        contract_fault=told["contractFault"],
    )


def _judge_memory(folder: Path) -> Problem | None:
    if not folder.is_dir():
        return None
    pinned, seen = (read_pin((folder / name).read_bytes()) for name in ("pinned.json", "seen.json"))
    assert not isinstance(pinned, Problem)
    assert not isinstance(seen, Problem)
    relation = json.loads((folder / "relation.json").read_text("utf-8"))
    result = judge_base(pinned, seen, pinned_is_ancestor=relation["pinnedIsAncestor"])
    return result if isinstance(result, Problem) else None


def _subject(tree: Path, name: str) -> Subject:
    return Subject(name, _digest(tree / name))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _instant(text: str) -> datetime:
    instant = read_instant(text)
    assert instant is not None, text
    return instant


def _legacy_use(use: dict[str, Any]) -> LegacyUse:
    presented = use["presentedAt"]
    return LegacyUse(
        use["token"],
        use["packet"],
        use["gate"],
        _instant(use["recordedAt"]),
        _instant(presented) if presented else None,
    )
