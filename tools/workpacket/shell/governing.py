"""Carrying out a command of the lifecycle: take the lock, gather the facts, plan, apply. The plan decides, not this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workpacket.git.repository import Repository, find_repository
from workpacket.model.events import Actor
from workpacket.plans.drafting import Answer, Planned
from workpacket.plans.facts import Facts
from workpacket.shell.gathering import gather
from workpacket.shell.recovery import Recovered
from workpacket.shell.transaction import writing


@dataclass(frozen=True, slots=True)
class Carried:
    """The answer; what was written; and what an earlier command had left unfinished."""

    answer: Answer
    changed: tuple[str, ...] = ()
    finished: tuple[Recovered, ...] = ()


def carry_out(
    repository: Repository,
    command: str,
    names: Sequence[str] | None,
    actor: Actor,
    decide: Callable[[Facts], Answer],
    *,
    during_merge: bool = False,
    dry_run: bool = False,
) -> Carried:
    """`decide` plans from the facts about `names` (None: all packets); a plan is applied as one transaction."""
    with writing(repository, command, during_merge=during_merge) as transaction:
        answer = decide(gather(repository, names, actor))
        if not isinstance(answer, Planned) or dry_run:
            return Carried(answer, (), transaction.finished)
        return Carried(answer, transaction.apply(answer.plan), transaction.finished)


def here() -> Repository:
    """The repository around the current folder."""
    return find_repository(Path.cwd())
