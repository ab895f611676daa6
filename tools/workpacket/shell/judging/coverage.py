"""Gather what coverage needs from git: the contents of the change, the judged work, and the approved scopes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Final

from workpacket.digests import sha256
from workpacket.documents.document import read_once
from workpacket.documents.packet import Packet
from workpacket.documents.spec_pointer import specification_places
from workpacket.git.merging import Difference, TrialMerges, trial_merges
from workpacket.git.objects import FIRST_PARENTS, changes_before, read_blobs, read_objects
from workpacket.git.repository import Repository, is_ancestor, merge_base, resolved
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.fold import fold, standing
from workpacket.ledger.log import Log, read_logs
from workpacket.lifecycle.coverage import (
    Cover,
    Kind,
    Landing,
    StatedScope,
    Uncovered,
    instructs_agents,
    is_governance,
    judging,
    kind_of,
    only_adds,
    stated_scope,
    uncovered,
)
from workpacket.lifecycle.gates import ends_unjudged
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.layout import GOVERNANCE_FOLDER, LOG_FOLDER, SPEC_POINTER, packet_paths
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem, Severity
from workpacket.shell.base import held_since, landed_at, tree_at
from workpacket.shell.judging.merged_tree import reverted
from workpacket.shell.work_done import is_described
from workpacket.text.source import Source
from workpacket.value import Value, replace

_FILE = "100644 "
# A report is for people to read; a program or an agent must not execute any of it.
_REPORT_ENDINGS = (".md", ".markdown", ".rst")


# Kinds of packets that cover a change; for the others, the reason why they do not is reported.
_ANSWERING: Final[Collection[Kind]] = ("work", "verdict", "ready")
# The field, with everything indented below it.
_SCOPE_FIELD = lazy_pattern(r"IN_SCOPE_PATHS([^\n]*(?:\n[ \t]*(?=\n)|\n[ \t]+[^\n]*)*)", re.IGNORECASE)


_NOTHING_APPROVED = StatedScope((), None)


class _Judged(Value):
    """Judged work. `required`: the verdict is part of this change, so all of the work must be in it."""

    packet: str
    commit: str
    required: bool


def coverage_problems(
    repository: Repository, base: str, head: str, logs: Mapping[str, Log], policy: LifecyclePolicy
) -> list[Problem]:
    """Return what no packet covers in the change from `base` to `head`. The logs are read from `head`, the policy from
    the base.
    """
    if policy.coverage.mode == "off":
        return []
    from workpacket.shell.actor import moment

    today = date.fromisoformat(moment().now[:10])
    with trial_merges(repository) as trials:
        found = uncovered_paths(repository, trials, base, head, logs, policy, today)
    severity: Severity = "error" if policy.coverage.mode == "required" else "warning"
    return [
        Problem(one.code, one.message, Location(one.path), CHANGE_BY_CODE[one.code].remedy, severity=severity)
        for one in found
    ]


def uncovered_paths(
    repository: Repository,
    trials: TrialMerges,
    base: str,
    head: str,
    logs: Mapping[str, Log],
    policy: LifecyclePolicy,
    today: date,
) -> list[Uncovered]:
    """Return the paths that no packet covers, regardless of the mode."""
    return _Coverage(repository, trials, base, head, logs, policy, today).uncovered()


class Anchors:
    """The documents in the governance folder that determine which specification is current at a commit, and what it
    says.

    Packets are anchored to that text, so a change to it needs a packet. Sections are added before a packet quotes them,
    with `new --requirement`, so a new section needs none.
    """

    def __init__(self, trials: TrialMerges, commit: str) -> None:
        self._trials = trials
        self._commit = commit

    @cached_property
    def _paths(self) -> frozenset[str]:
        pointer = self._trials.read((f"{self._commit}:{SPEC_POINTER}",)).values()
        places = [place for data in pointer for place in _named(data)]
        there = self._trials.read(f"{self._commit}:{place}" for place in places)
        first = next((index for index, place in enumerate(places) if f"{self._commit}:{place}" in there), None)
        # A file at an earlier place would take over.
        return frozenset(places[: first + 1] if first is not None else ())

    def rewritten(self, one: Difference) -> bool:
        """Whether the difference makes a different specification current, or changes the text of the current one."""
        if not is_governance(one.path) or one.path not in {SPEC_POINTER, *self._paths}:
            return False
        before, after = (
            self._trials.read((_id(state),)).get(_id(state)) if state else None for state in (one.old, one.new)
        )
        if one.path == SPEC_POINTER:
            # Where no specification can be read, no packet can be refined either.
            return bool(self._paths) and _named(before or b"") != _named(after or b"")
        if before is None or after is None:
            return True
        return not only_adds(Source.from_bytes(one.path, before), Source.from_bytes(one.path, after))

    def keeps_all(self, path: str, sides: Sequence[str], landing: str) -> bool:
        """Whether this is the specification and the merge only adds to the versions at all these commits: parallel
        packets add sections at the same position, which git reports as a conflict.
        """
        names = [f"{commit}:{path}" for commit in (*sides, landing)]
        found = self._trials.read(names) if is_governance(path) and path in self._paths else {}
        if len(found) < len(names):
            return False
        *texts, last = (Source.from_bytes(path, found[name]) for name in names)
        return all(only_adds(text, last) for text in texts)


def _named(pointer: bytes) -> tuple[str, ...]:
    return specification_places(Source.from_bytes(SPEC_POINTER, pointer))


def logs_at(repository: Repository, commit: str, names: Collection[str]) -> dict[str, Log]:
    """Return the logs of these packets at the commit."""
    folders = [f"{LOG_FOLDER}/{name}" for name in sorted(names)]
    there = {path: blob for folder in folders for path, blob in tree_at(repository, commit, folder).items()}
    contents = read_blobs(repository, there.values())
    return read_logs({path: contents[blob] for path, blob in there.items()})[0]


class _Coverage:
    """Judges the coverage of one change."""

    def __init__(
        self, repository: Repository, trials: TrialMerges, base: str, head: str, logs: Mapping[str, Log],
        policy: LifecyclePolicy, today: date,
    ) -> None:  # fmt: skip
        self.repository = repository
        self.trials = trials
        self.base = base
        self.head = head
        self.logs = logs
        self.policy = policy
        self.today = today
        self.verdicts = {name: said for name, log in logs.items() if (said := judging(log)) is not None}
        self.known = frozenset(path.rpartition("/")[2].removesuffix(".json") for path in self._log_of_base())
        # A branch that lacks the newest commits of the base does not revert them.
        begun = base if is_ancestor(repository, base, head) else merge_base(repository, base, head) or base
        revert = reverted(repository, trials, begun, head)
        self.start = revert.commit if revert is not None else begun
        self.anchors = Anchors(trials, self.start)
        self.documents = _Documents(repository)

    def _log_of_base(self) -> Iterable[str]:
        return tree_at(self.repository, self.base, LOG_FOLDER)

    def uncovered(self) -> list[Uncovered]:
        """Return what no packet covers in the change, and what a verdict in it leaves unjudged on the base."""
        verdicts = {name: said[1] for name, said in self.verdicts.items() if said[0].id not in self.known}
        here = [self._here(_Judged(name, commit, required=True)) for name, commit in verdicts.items()]
        return [*self.found(), *(left for one in here if one is not None for left in self._unjudged(one))]

    def found(self, without: str = "") -> list[Uncovered]:
        """Return what no packet covers in the change. The packet `without` is ignored."""
        changed = self._changed
        kinds = {name: self._kind(name, log) if name != without else "" for name, log in self.logs.items()}
        covers = list(self._covers(kinds, _ANSWERING, changed)) if changed else []
        judged = [(one, self._here(one)) for one in self._judged(kinds, covers, changed)]
        missing = [one for one, here in judged if here is None]
        landing = self._landing(changed, [here for _, here in judged if here is not None])
        # A change that touches other paths only, or none, may lack work that its verdict requires.
        if landing.paths - changed.keys():
            covers = list(self._covers(kinds, _ANSWERING, landing.paths))
        exempt = self.policy.coverage.exempt
        found = list(uncovered(landing, covers, exempt))
        if any(not one.packet for one in found):
            found = list(uncovered(landing, [*covers, *self._covers(kinds, {""}, landing.paths)], exempt))
        return [*(self._unknown(one) for one in missing if one.required), *found]

    @cached_property
    def _changed(self) -> Mapping[str, Difference]:
        return self._outside(self.trials.differences(self.start, self.head))

    def _kind(self, name: str, log: Log) -> Kind:
        stand = standing(log)
        kind = kind_of(stand.lane, self.policy.lanes)
        # Work that no one must judge is finished once its submission has landed, and covers no later change.
        if stand.lane == "IN_REVIEW" and all(move.id in self.known for move in stand.latest):
            kind = "" if ends_unjudged(fold(log), self.policy) else kind
        finished = stand.lane == "VALIDATED" and all(move.id in self.known for move in stand.latest)
        return "" if kind == "verdict" and (name not in self.verdicts or finished) else kind

    def _judged(
        self, kinds: Mapping[str, Kind], covers: Sequence[Cover], changed: Mapping[str, Difference]
    ) -> Iterator[_Judged]:
        touched = {cover.packet for cover in covers if any(cover.has(path) for path in changed)}
        for name, (verdict, commit) in self.verdicts.items():
            required = verdict.id not in self.known
            if kinds[name] == "verdict" and (required or name in touched):
                yield _Judged(name, commit, required)

    def _here(self, judged: _Judged) -> _Judged | None:
        """Return the work with a substitute commit if this clone lacks the work's own commit but the submission
        describes the merged work; None if the submission does not, so the work cannot be judged.
        """
        if resolved(self.repository, f"{judged.commit}^{{commit}}") is not None:
            return judged
        submitted = self.logs[judged.packet].submission_before(self.verdicts[judged.packet][0])
        if submitted is None or not is_described(self.repository, submitted, self.head):
            return None
        work = submitted.data["work"]
        assert isinstance(work, Mapping)
        base, changed = str(work["base"]), set(submitted.texts("changed"))
        landed = {path: one for path, one in self.trials.differences(base, self.head).items() if path in changed}
        # The description leaves out governance documents.
        if any(map(self.anchors.rewritten, landed.values())):
            return None
        own = {path: one.new for path, one in landed.items()}
        return replace(judged, commit=self.trials.commit(self.trials.overlaid(base, own), base))

    def _unknown(self, judged: _Judged) -> Uncovered:
        fetch = f"git fetch origin {judged.commit}"
        message = (
            f"the judged commit of {judged.packet} is not in this clone, so it is unknown how it was merged; {fetch}"
        )
        return Uncovered("landed_otherwise", packet_paths(judged.packet)[0], judged.packet, message)

    def _landing(self, changed: Mapping[str, Difference], judged: Sequence[_Judged]) -> Landing:
        """Merge the judged commits one after another into the base, and compare the result with what was merged."""
        commit, conflicts, brought = self.start, set[str](), dict[str, dict[str, str]]()
        for one in judged:
            trial = self.trials.merge(commit, one.commit)
            merged = self.trials.commit(trial.tree, commit, one.commit)
            brought[one.packet] = self._brought(one.commit)
            conflicts |= trial.conflicts
            commit = merged
        differing = self._outside(self.trials.differences(commit, self.head)) if judged else changed
        required = frozenset[str]().union(*(brought[one.packet] for one in judged if one.required))
        absent = (differing.keys() & required) - changed.keys()
        otherwise = (differing.keys() & changed.keys()) | (absent - self._held_once(absent, judged))
        return Landing(
            frozenset(changed),
            frozenset(otherwise),
            frozenset(conflicts & otherwise),
            brought,
            frozenset((*self._reports({**differing, **changed}), *self._shipped({**differing, **changed}))),
            frozenset(
                path for path, one in {**differing, **changed}.items() if one.new and not one.new.startswith(_FILE)
            ),
            frozenset(path for path, one in {**differing, **changed}.items() if _is_document(one)),
        )

    def _brought(self, commit: str) -> dict[str, str]:
        """Return what a judged commit changed since it branched off the base, if it still differs from the base."""
        now = self._outside(self.trials.differences(self.start, commit))
        begun = self.trials.merge_base(self.start, commit)
        work = self._outside(self.trials.differences(begun, commit)) if begun else now
        return {path: one.new for path, one in work.items() if path in now}

    def _held_once(self, paths: Iterable[str], judged: Iterable[_Judged]) -> set[str]:
        """Return the paths at which the base had the judged content at some time since the work branched off: these
        paths were merged before the verdict.
        """
        held: set[str] = set()
        wanted = set(paths)
        for one in judged if wanted else ():
            begun = self.trials.merge_base(one.commit, self.base)
            if not begun:
                continue
            work = self._outside(self.trials.differences(begun, one.commit))
            blobs = {path: _id(work[path].new) for path in sorted(wanted & work.keys())}
            since = (*FIRST_PARENTS, f"^{begun}")
            line = changes_before(self.repository, self.base, *blobs, options=since) if blobs else ()
            for _, changes in line:
                held |= {one.path for one in changes if one.blob == blobs.get(one.path)}
        return held

    def _unjudged(self, judged: _Judged) -> Iterator[Uncovered]:
        """Yield the paths at which work on this packet was merged before the verdict, covered by this packet alone, and
        is missing from the judged commit.
        """
        begun = self.trials.merge_base(judged.commit, self.base)
        if not begun or self.policy.coverage.mode != "required":
            return
        done: set[str] = set()
        line = changes_before(self.repository, self.base, options=(*FIRST_PARENTS, f"^{begun}"), form="%H")
        for commit, changes in line:
            paths = {one.path for one in changes if not is_governance(one.path)} - done
            paths = {path for cover in self._scopes_of([judged.packet], paths) for path in paths if cover.has(path)}
            before = resolved(self.repository, f"{commit}^1^{{commit}}") if paths else None
            if before is None:
                continue
            # Newest first: before a landing as it was judged, the path may have been anything.
            merged = self.trials.differences(self.trials.merge(before, judged.commit).tree, commit)
            otherwise = paths & merged.keys() & self.trials.differences(judged.commit, commit).keys()
            own = otherwise & self._only(judged.packet, before, commit, otherwise)
            done |= (paths - otherwise) | own
            for path in sorted(own):
                message = f"{commit[:12]} changed it before the verdict on {judged.packet}, and was not judged"
                yield Uncovered("landed_otherwise", path, judged.packet, message)

    def _scopes_of(self, packets: Iterable[str], paths: Iterable[str]) -> Iterator[Cover]:
        yield from self._covers(dict.fromkeys(packets, "work"), _ANSWERING, paths)

    def _only(self, packet: str, before: str, commit: str, paths: Collection[str]) -> set[str]:
        """Return the paths that only this packet covered when the commit was merged."""
        if not paths:
            return set()
        having = {cover.packet for cover in self._scopes_of(self.logs, paths) if any(map(cover.has, paths))}
        touched = {
            path.split("/")[2] for path in self.trials.differences(before, commit) if path.startswith(f"{LOG_FOLDER}/")
        }
        logs = logs_at(self.repository, commit, having | touched)
        day = landed_at(self.repository, commit, commit).date()
        then = _Coverage(self.repository, self.trials, before, commit, logs, self.policy, day)
        return {one.path for one in then.found(packet)} - {one.path for one in then.found()}

    def _reports(self, differing: Mapping[str, Difference]) -> Iterator[str]:
        """Yield reports that a verdict in this change lists with these bytes. They must be new files or have already
        been reports.
        """
        verdicts = [event for log in self.logs.values() for event in log.events if event.type == "verdict.given"]
        named: dict[str, set[str]] = {}
        before: set[str] = set()
        for event in verdicts:
            report = event.data.get("report")
            if isinstance(report, Mapping) and event.id in self.known:
                before.add(str(report["path"]))
            elif isinstance(report, Mapping):
                named.setdefault(str(report["path"]), set()).add(str(report["sha256"]))
        for path in named.keys() & differing.keys():
            there = differing[path]
            if not _may_be_report(path) or not there.new.startswith(_FILE) or (there.old and path not in before):
                continue
            contents = read_objects(self.repository, (_id(there.new),)).values()
            yield from (path for data in contents if sha256(data).hexdigest() in named[path])

    def _shipped(self, differing: Mapping[str, Difference]) -> Iterator[str]:
        """Yield files in the governance folder that are, byte for byte, what `init` writes or once wrote."""
        own = {path: _id(one.new) for path, one in differing.items() if path.startswith(f"{GOVERNANCE_FOLDER}/")}
        if not own:
            return
        from workpacket.shell.package_files import read_shipped

        shipped = read_shipped()
        contents = read_objects(self.repository, filter(None, own.values()))
        for path, identity in own.items():
            data = contents.get(identity)
            if data is not None and sha256(data).hexdigest() in shipped.get(path, ()):
                yield path

    def _outside(self, differences: Mapping[str, Difference]) -> dict[str, Difference]:
        """Leave out documents in the governance folder, except those that become a program there or differ from the
        current specification.
        """
        return {path: one for path, one in differences.items() if not _is_document(one) or self.anchors.rewritten(one)}

    # --- scopes ---

    def _covers(self, kinds: Mapping[str, Kind], wanted: Collection[Kind], paths: Iterable[str]) -> Iterator[Cover]:
        """Yield the scopes of packets of these kinds that may contain any of the paths."""
        names = [name for name, kind in kinds.items() if kind in wanted]
        tops = {path.partition("/")[0] for path in paths}
        now = self.documents.scopes(dict.fromkeys(names, self.head), tops)
        commits = {name: commit for name in now if (commit := self._approved_at(name))}
        approved = self.documents.scopes(commits, tops)
        for name, scope in now.items():
            scopes = (scope, approved.get(name, _NOTHING_APPROVED)) if name in commits else (scope,)
            days = [each.until for each in scopes]
            kind, why = kinds[name], f"it is {standing(self.logs[name]).lane}"
            if kind in {"work", "ready"} and any(days):
                kind, why = self._standing(days)
            yield Cover(name, kind, tuple(each.entries for each in scopes), why)

    def _standing(self, days: Sequence[date | None]) -> tuple[Kind, str]:
        """Return the kind of a standing packet, which covers changes until its approved or its current last day,
        whichever is earlier.
        """
        until = [day for day in days if day is not None]
        if len(until) < len(days):
            return "", "it was not approved as a standing packet"
        return ("standing", "") if self.today <= min(until) else ("", f"it ended on {min(until)}")

    def _approved_at(self, name: str) -> str:
        """Return the base commit that has the packet as last approved; '' if this change adds it."""
        events = [event for event in self.logs[name].events if event.type in {"activated", "amended"}]
        if not events:
            return self.base if any(event.id in self.known for event in self.logs[name].events) else ""
        if events[-1].id not in self.known:
            return ""
        held = held_since(self.repository, self.base, LOG_FOLDER).get(events[-1].path)
        return held[0] if held is not None else self.base


class _Documents:
    """The packets at some commits. Each is read and parsed once: every landing on a branch asks for the same ones."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._asked: set[str] = set()
        self._contents: dict[str, bytes] = {}
        self._scopes: dict[str, StatedScope] = {}

    def scopes(self, commits: Mapping[str, str], tops: Collection[str]) -> dict[str, StatedScope]:
        """Return the scopes of packets, each as it is at a commit; none for a packet that is missing or irrelevant."""
        places = {name: [f"{commit}:{path}" for path in packet_paths(name)] for name, commit in commits.items()}
        self._read(place for both in places.values() for place in both)
        found: dict[str, StatedScope] = {}
        for name, both in places.items():
            place = next((place for place in both if place in self._contents), None)
            source = Source.from_bytes(place, self._contents[place]) if place is not None else None
            if source is not None and _may_matter(source.text, tops):
                found[name] = self._scope(source)
        return found

    def _read(self, places: Iterable[str]) -> None:
        wanted = [place for place in places if place not in self._asked]
        self._asked.update(wanted)
        self._contents.update(read_objects(self._repository, wanted))

    def _scope(self, source: Source) -> StatedScope:
        if source.path not in self._scopes:
            self._scopes[source.path] = stated_scope(read_once(Packet, source))
        return self._scopes[source.path]


def _may_matter(text: str, tops: Collection[str]) -> bool:
    """Whether the scope may contain a path that begins with one of these parts. Parsing every packet to find out would
    take too long, because finished packets are included.
    """
    fields = _SCOPE_FIELD.findall(text)
    if len(fields) != 1 or not any(character.isalnum() for character in fields[0]):
        return True
    if any(mark in fields[0] for mark in "*?"):
        return True
    return any(top in fields[0] or f"`{top}`" in text for top in tops)


def _is_document(one: Difference) -> bool:
    """Whether the path is a document in the governance folder that does not become a program."""
    mode = one.new.partition(" ")[0]
    return is_governance(one.path) and (not mode or f"{mode} " == _FILE or mode == one.old.partition(" ")[0])


def _id(state: str) -> str:
    return state.partition(" ")[2]


def _may_be_report(path: str) -> bool:
    parts = path.casefold().split("/")
    hidden = any(part.startswith(".") for part in parts)
    return not hidden and parts[-1].endswith(_REPORT_ENDINGS) and not instructs_agents(path)
