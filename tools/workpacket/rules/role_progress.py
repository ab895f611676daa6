"""Rules about the checkpoints of roles, one at a time and in relation to other files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import cast

from workpacket.documents.document import value_of, without_quotes
from workpacket.documents.role_progress import KEYS, PHASES, STATUSES, RoleProgress, closing_of, is_open
from workpacket.documents.structured import items_of_section
from workpacket.documents.summary import RoleSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule, RepositoryRule, repeated
from workpacket.rules.settings import SETTINGS, phases_of
from workpacket.rules.structured import says_something
from workpacket.text.formats import date_time
from workpacket.text.source import Source
from workpacket.text.toml_strict import load_toml

_TIME = lazy_pattern(r"\[ ?(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])? ?\]")
# Words that people use for a status, apart from its other spellings.
_MEANT = {"completed": "complete", "done": "complete", "finished": "complete", "in_review": "awaiting_review"}


RoleRule = DocumentRule[RoleProgress]


class RoleKeyMissing(RoleRule):
    """Role checkpoint with a missing field

    All seven fields are needed to resume: the role, its place in the work, and its last action.

    Remedy: fill in the missing fields.
    """

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        if not document.is_checkpoint or document.root is None:
            return
        stated = document.root.mapping
        missing = [key for key in KEYS if key not in stated or stated[key].value in (None, "", "TODO", "TBD")]
        if missing:
            keys = document.root.keys or {}
            empty = [keys[key] for key in missing if key in keys]
            span = empty[0] if empty else (document.root.start, document.root.start)
            named = ", ".join(missing)
            yield self.fault(span, f"the checkpoint lacks {named}", hint=f"fill in {named}")


class RoleOlderForm(RoleRule):
    """Role checkpoint that lacks some of its fields

    The file has only some of the seven fields, as older checkpoints do, so the role cannot be resumed from it.

    Remedy: write the seven fields feature, team, agent, phase, status, last_action and updated.
    """

    severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        if document.note == "older_checkpoint" and document.root is not None:
            missing = ", ".join(key for key in KEYS if document.at(key) is None)
            span = (document.root.start, document.root.start)
            yield self.fault(span, f"this checkpoint has only some of the seven fields; it lacks {missing}")


class RoleFileUnread(RoleRule):
    """Non-checkpoint file among the role checkpoints

    The file is neither a checkpoint nor a summary, so nothing is resumed from it.

    Remedy: add the seven fields feature, team, agent, phase, status, last_action and updated, or move the file
    elsewhere.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        if document.note == "other" and not document.faults:
            why = "it has no front matter"
            if document.has_front_matter:
                why = f"it lacks {', '.join(key for key in KEYS if document.at(key) is None)}"
                status = value_of(document.status)
                why += f", and its status is {status!r}" if status and status not in STATUSES else ""
            yield self.fault((0, 0), f"not read as a checkpoint: {why}")


class RoleStatusUnknown(RoleRule):
    """Unknown role status

    The checkpoint counts neither as open nor as complete, so it is never resumed or closed.

    Remedy: write in_progress, blocked, awaiting_review or complete.
    """

    fix = "safe"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        status = document.status
        if not document.is_checkpoint or status is None or not status.value or status.value in STATUSES:
            return
        word = re.sub(r"[\s_-]+", "_", status.value.strip()).casefold()
        meant = word if word in STATUSES else _MEANT.get(word, "")
        inside = without_quotes(document.source, status)
        # Only another spelling of a status is corrected; another word may have been intended differently.
        run = document.run(inside) if word in {meant, "completed"} else None
        edits = [run.replaced_by(meant)] if run is not None else []
        hint = f"{f'probably {meant}; ' if meant else ''}write one of {', '.join(STATUSES)}"
        yield self.fault(status.span, f"the status is {status.value!r}", hint=hint, edits=edits)


class RolePhaseForeign(ReferenceRule):
    """Unknown phase

    Reports by phase omit the checkpoint, and a resumed session does not know which step comes next.

    Remedy: write one of the team's phases; to mark the work as finished, use `status`.
    """

    family = "document"
    severity = "warning"
    strict_severity = "warning"
    kinds = ("role_progress",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        if summary["is_checkpoint"]:
            yield from ((path, True) for path, _ in SETTINGS)

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        role = cast("RoleSummary", summary)
        if not role["is_checkpoint"] or not role["phase"]:
            return
        phases = _vocabularies(*(files[name].source for name, _ in SETTINGS)).get(role["team"], PHASES)
        if role["phase"] not in phases:
            message = f"the phase {role['phase']!r} is not one of the team's phases"
            yield self.finding(path, role["phase_place"], message, hint=f"write one of {', '.join(phases)}")


@lru_cache(maxsize=4)
def _vocabularies(*sources: Source | None) -> Mapping[str, tuple[str, ...]]:
    """Return the phases of teams, from the files that can define them."""
    for source, (_, below) in zip(sources, SETTINGS, strict=True):
        root = load_toml(source).root if source is not None else None
        node = root.get(*below) if root is not None else None
        if node is not None:
            return phases_of(node)
    return {}


class RoleIdentityMismatch(RoleRule):
    """Role checkpoint with the wrong file name

    The file is found by its name but identified by its fields, so a second file for the same role may appear.

    Remedy: name the file `<feature>-<agent>.md`, or correct the fields.
    """

    # Reports of a team or a lead may be named after their subject.
    severity = "warning"
    strict_severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        feature, agent = document.feature, document.agent
        if not document.is_checkpoint or feature is None or agent is None or not feature.value or not agent.value:
            return
        expected = f"{feature.value}-{agent.value}"
        if document.stem != expected:
            wrong = agent if document.stem.startswith(f"{feature.value}-") else feature
            message = f"according to its fields, the file should be named {expected}.md, not {document.stem}.md"
            yield self.fault(wrong.span, message, hint="rename the file or correct the fields")


class RoleFeatureMalformed(RoleRule):
    """Feature given as a title instead of a short name

    The files of a feature are found by its short name, so this file is not found with the others.

    Remedy: write the name that the other files use, in lower-case letters with hyphens.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        feature = document.feature
        if not document.is_checkpoint and feature is not None and " " in feature.value.strip():
            yield self.fault(feature.span, f"the feature {feature.value!r} is a title, not a name")


class RoleNoteTime(RoleRule):
    """Progress note without a time

    Without a time, it is unknown how long a step took, or which of two agents acted first.

    Remedy: begin each note with the time: `- [14:30] ...`.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        if not document.is_checkpoint:
            return
        without = [item for item in document.notes() if not _TIME.match(item.text)]
        if without:
            more = f", nor do {len(without) - 1} more" if len(without) > 1 else ""
            yield self.fault(without[0].span, f"this note does not begin with [HH:MM]{more}")


_CLOCK = lazy_pattern(r"\[ ?(?P<time>(?:[01][0-9]|2[0-3]):[0-5][0-9])")


class RoleUpdatedEarly(RoleRule):
    """Role checkpoint that is older than its last note

    `resume` shows the time in `updated`, so the role seems to have stopped earlier than it did.

    Remedy: set `updated` to the time of the last note.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        text = document.updated if document.is_checkpoint else None
        if text is None or date_time(said := without_quotes(document.source, text).value):
            return
        times = [match["time"] for item in document.notes() if (match := _CLOCK.match(item.text))]
        updated = said[len("2026-01-31T") :][: len("09:30")]
        # Times that go back continue on another day. A date to which a time was added has that of midnight.
        known = times == sorted(times) and (updated != "00:00" or times[:1] < ["01:00"])
        if known and times and times[-1] > updated:
            yield self.fault(text.span, f"updated is {updated}, but the last note is of {times[-1]}")


_LEFT = frozenset({"remaining_work", "remaining_tasks", "remaining_steps", "not_done_yet", "still_to_do", "todo"})


class RoleWorkLeft(RoleRule):
    """Complete checkpoint with a list of remaining work

    The role is not resumed, so the rest is never done.

    Remedy: set the status to in_progress, or delete finished work from the list.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        status = document.status
        if status is None or status.value not in {"complete", "completed", "done"}:
            return
        for section in document.sections():
            items = items_of_section(document.source, section) if section.name in _LEFT else []
            left = [item for item in items if not item.ticked and says_something(item.text)]
            if left:
                count = f"{len(left)} items" if len(left) > 1 else "one item"
                yield self.fault(section.title_span, f"the status is {status.value}, but {count} remain")


_AMOUNT = lazy_pattern(
    r"(?i)[$\u20ac\u00a3] ?\d+(?:[.,]\d|\d)|~ ?\d"
    r"|\d[\d.,]*[ \t]*(?:k\b|m\b|USD|EUR|tokens?|agents?|spawns?|turns?|calls?|messages?)"
    r"|\b(?:tokens?|cost|spend|total)\b[^\r\n|]{0,30}[:|][^\r\n|\d]{0,12}\d"
)


class CostSummaryEmpty(RoleRule):
    """Cost summary without an amount

    It contains neither tokens nor money nor a count of agents or turns, so costs cannot be compared.

    Remedy: add what was used, or write that it was not measured.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        if document.note != "cost_summary" or not document.has_front_matter:
            return
        text = document.source.text
        if not _AMOUNT.search(text, document.body) and "not measured" not in text:
            title = next((section for section in document.sections() if section.level), None)
            yield self.fault(title.title_span if title is not None else (0, 0), "no amount of tokens, money or time")


_ROUND = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t]*(?:[-*+]|\d+\.|\|)[^\r\n]*?"
    r"\b(?:(?P<rejected>REJECTED|Rejected)|(?P<approved>APPROVED|Approved))\b"
)


class RejectionLeft(RoleRule):
    """Finished work whose last review rejected it

    The corrections were never reviewed, or the approval was not recorded.

    Remedy: add the review that approved the work, or reopen it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        text = document.source.text
        finished = document.note in {"summary", "cost_summary"} or value_of(document.status) == "complete"
        if not finished or not document.source.mentions(b"rejected"):
            return
        rounds = list(_ROUND.finditer(text, document.body))
        if rounds and rounds[-1]["rejected"] and "approve" not in text[rounds[-1].end() :].casefold():
            yield self.fault(rounds[-1].span("rejected"), "the last review rejected the work, and none approved it")


_ALL_MET = lazy_pattern(
    r"(?i)\ball (?P<count>\d{1,2}|three|four|five|six|seven|eight|nine|ten) (?P<what>(?:success|acceptance) criteria)"
    r"[^\r\n.]{0,20}\b(?:verified|met|passe?d?|satisfied|confirmed)\b"
)


class CriteriaUnlisted(RoleRule):
    """Claim that all criteria are met, without naming any

    A reader can check neither which criteria there were nor how they were verified.

    Remedy: list the criteria, each with what proves it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: RoleProgress) -> Iterator[Problem]:
        said = _ALL_MET.search(document.source.text, document.body) if document.source.mentions(b"criteria") else None
        if said is not None and not any("criteria" in section.name for section in document.sections()):
            yield self.fault(said.span(), f"{said[0]!r}, but none of them is named")


class RoleZombie(RepositoryRule):
    """Open role checkpoint in a completed feature

    Resuming the role would continue work that is already finished.

    Remedy: set the role's status to complete, or run `workpacket runtime progress close FEATURE`.
    """

    # A team may omit it on purpose; `resume` and `progress` refuse to continue it anyway.
    severity = "warning"
    strict_severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        finishing = [(path, role["finishes"]) for path, role in sorted(repository.roles.items()) if role["finishes"]]
        closing: dict[str, str] = {}
        for path, role in repository.roles.items():
            feature = role["feature"]
            if not role["is_checkpoint"] or not feature or not is_open(role["status"]):
                continue
            if feature not in closing:
                closing[feature] = closing_of(feature, finishing, repository.lanes)
            if closing[feature]:
                message = f"the status is {role['status']}, but {feature} is complete ({closing[feature]})"
                yield self.finding(path, role["status_place"], message, hint="set the status to complete")


class RoleTwice(RepositoryRule):
    """Two checkpoints for the same role and feature

    It is unclear which of the checkpoints will be resumed.

    Remedy: keep the later one.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        named = [
            ((role["feature"].casefold(), role["team"].casefold(), role["agent"].casefold()), path, role)
            for path, role in sorted(repository.roles.items())
            if role["is_checkpoint"] and role["feature"] and role["agent"]
        ]
        # The file with the right name is kept; the finding is on the other one.
        named.sort(key=lambda item: not item[1].endswith(f"/{item[2]['feature']}-{item[2]['agent']}.md"))
        for (_, path, role), (_, earlier, _) in repeated(named, lambda item: item[0]):
            message = f"{role['agent']} already has a checkpoint for {role['feature']}: {earlier}"
            yield self.finding(path, role["agent_place"], message)
