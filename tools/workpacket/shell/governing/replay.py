"""Rerun the proofs of a submission in fresh trees, here or in any other clone that has its commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from workpacket.evidence.comparison import AskedProof
from workpacket.git.objects import changed_paths, read_file_at
from workpacket.git.repository import Repository, commit_of, resolved
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.lifecycle.proofs import demands_of, evidence_rows, folded
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.shell.governing.contract_proofs import ContractProver, asked_of
from workpacket.shell.governing.evidence import Cleaner
from workpacket.shell.governing.proof_process import Account
from workpacket.value import Value


class Recorded(Value):
    """The log's record of a submission: its commit, and the last row of each criterion."""

    commit: str
    rows: Mapping[str, Mapping[str, object]]

    @property
    def base(self) -> str:
        """Return the commit at which the tests were also run, for comparison; '' if there was none."""
        return next((str(row["base"]) for row in self.rows.values() if row.get("base")), "")

    @property
    def commands(self) -> list[str]:
        return list(dict.fromkeys(str(row["command"]) for row in self.rows.values() if row.get("command")))


def recorded_proofs(repository: Repository, packet: PacketFacts) -> Recorded:
    submitted = [event for event in packet.log.events if event.type == "submitted"]
    if not submitted:
        raise WorkpacketError(
            "replay_unmatched", f"no work on {packet.id} has been submitted", hint=f"workpacket why {packet.id}"
        )
    commit = submitted[-1].text("commit") or ""
    found = Recorded(commit, {folded(str(row["criterion"])): row for row in evidence_rows(submitted[-1])})
    for needed in filter(None, (commit, found.base)):
        if resolved(repository, f"{needed}^{{commit}}") is None:
            hint = f"git fetch origin {needed}"
            raise WorkpacketError("replay_unmatched", f"commit {needed[:12]} is not in this clone", hint=hint)
    return found


def submitted_since(repository: Repository, base: str) -> list[str]:
    """Return the packets with a submission in HEAD that is not on the base."""
    found = set()
    for change in changed_paths(repository, commit_of(repository, base), commit_of(repository, "HEAD"), LOG_FOLDER):
        name, _, file = change.path.removeprefix(f"{LOG_FOLDER}/").partition("/")
        data = read_file_at(repository, "HEAD", change.path) if change.letter == "A" and file else None
        if data is not None and _type_of(data) == "submitted":
            found.add(name)
    return sorted(found)


def _type_of(data: bytes) -> object:
    try:
        event = json.loads(data)
    except ValueError:  # `check --base` judges the log
        return None
    return event.get("type") if isinstance(event, dict) else None


def replay(
    repository: Repository,
    packet: PacketFacts,
    recorded: Recorded,
    policy: EvidencePolicy,
    cleaner: Cleaner,
    environment: Mapping[str, str],
    account: Account | None = None,
) -> list[str]:
    """Return, by criterion, the results that differ from those in the log. `account` is the account that runs the
    programs."""
    demands = demands_of(packet)
    prover = ContractProver(
        repository,
        policy,
        cleaner,
        environment,
        base=recorded.base or recorded.commit,
        commit=recorded.commit,
        account=account,
    )
    asked: list[tuple[str, AskedProof]] = []
    alone: list[str] = []
    for name, row in recorded.rows.items():
        demand = demands.get(name)
        if demand is not None and (row.get("runner") or row.get("exempt")):
            asked.append((name, asked_of(demand)))
        elif row.get("command"):
            alone.append(str(row["command"]))
    succeeded = prover.succeeded(list(dict.fromkeys(alone)))
    came_to = {proof.criterion: [fault.message for fault in proof.judged.faults] for proof in prover.prove(asked)}
    return [
        # A message may quote the output of a program, which can be long and contain secrets of this machine.
        cleaner.clean_text(line)[:500]
        for name, row in recorded.rows.items()
        for line in _differences(repository, recorded.commit, row, came_to.get(name), succeeded)
    ]


def _differences(
    repository: Repository,
    commit: str,
    row: Mapping[str, object],
    faults: Sequence[str] | None,
    succeeded: Mapping[str, bool],
) -> Iterator[str]:
    if row["result"] == "not_applicable":
        return
    met = row["result"] == "met"
    if faults is not None:
        holds, why = not faults, "; ".join(faults)
    elif row.get("command"):
        holds = succeeded[str(row["command"])]
        why = f"{row['command']} {'succeeded' if holds else 'failed'}"
    else:
        missing = [
            place for place in _places(row) if read_file_at(repository, commit, place.rpartition(":")[0]) is None
        ]
        holds, why = not missing, f"{', '.join(missing)} is not there"
    if holds != met:
        yield f"{row['criterion']!s:.200}: {row['result']} in the log, but {why or 'it is proved'}"


def _places(row: Mapping[str, object]) -> list[str]:
    listed = row.get("proof")
    return [str(each) for each in listed] if isinstance(listed, Sequence) and not isinstance(listed, str) else []
