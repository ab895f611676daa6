"""Compare two states of lock files and manifests, and judge the changes according to the policy. Direct dependencies
are listed one by one; transitive ones are counted. No direct dependency may change without permission. A permission
never covers the following changes, for direct and transitive packages alike:

  source     a package comes from an origin not used before
  integrity  the digest of a version changed or is gone; or a new version has none although all others have one
  removed    a lock file was deleted, so its versions are no longer pinned

Every command that reads a policy imports this module, so the parsers are imported only when they are needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, cast

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    names_a_place,
    python_name,
    without_credentials,
)
from workpacket.model.canonical import Json
from workpacket.model.ids import matches
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.text.source import Source
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class LockFormat(NamedTuple):
    """The format of a lock file. `manifests` are the files next to it that list its direct packages; the first one that
    exists counts.
    """

    name: str
    ecosystem: str
    files: str
    reader: str
    locks: bool
    manifests: tuple[str, ...] = ()


FORMATS: Final[tuple[LockFormat, ...]] = (
    LockFormat("npm", "npm", r"package-lock\.json|npm-shrinkwrap\.json", "read_npm", True, ("package.json",)),
    LockFormat("pnpm", "npm", r"pnpm-lock\.yaml", "read_pnpm", True, ("package.json",)),
    LockFormat("yarn", "npm", r"yarn\.lock", "read_yarn", True, ("package.json",)),
    LockFormat("uv", "pypi", r"uv\.lock", "read_uv", True, ("pyproject.toml",)),
    LockFormat("poetry", "pypi", r"poetry\.lock", "read_poetry", True, ("pyproject.toml",)),
    LockFormat("pipenv", "pypi", r"Pipfile\.lock", "read_pipenv", True, ("Pipfile",)),
    LockFormat("cargo", "cargo", r"Cargo\.lock", "read_cargo", True, ("Cargo.toml",)),
    LockFormat("go.sum", "go", r"go\.sum", "read_go_sum", True, ("go.mod",)),
    LockFormat("go.mod", "go", r"go\.mod", "read_go_mod", False),
    LockFormat("package.json", "npm", r"package\.json", "read_package_json", False),
    LockFormat("pyproject.toml", "pypi", r"pyproject\.toml", "read_pyproject", False),
    LockFormat("Pipfile", "pypi", r"Pipfile", "read_pipfile", False),
    LockFormat("requirements", "pypi", r"(?:.+[-_.])?requirements(?:[-_.].+)?\.(?:txt|in)", "read_requirements", False),
    LockFormat("Cargo.toml", "cargo", r"Cargo\.toml", "read_cargo_manifest", False),
)  # fmt: skip

# Copies of other people's packages, whose manifests require nothing here.
INSTALLED: Final = frozenset({"node_modules", ".venv", "site-packages"})

_PATTERNS: Final = tuple((re.compile(row.files), row) for row in FORMATS)


def format_of(path: str) -> LockFormat | None:
    """Return the format of the file at `path` (with '/'), if it is a dependency file."""
    *folders, name = path.split("/")
    if INSTALLED.intersection(folders):
        return None
    if folders and folders[-1] == "requirements" and name.endswith((".txt", ".in")):
        return next(row for row in FORMATS if row.name == "requirements")
    return next((row for pattern, row in _PATTERNS if pattern.fullmatch(name)), None)


def read_dependencies(source: Source, known: LockFormat) -> Dependencies:
    """Return the content of the whole file; raise `WorkpacketError` with the location if it is malformed."""
    from workpacket.documents.lockfiles import formats

    read = cast("Callable[[Source], Dependencies]", getattr(formats, known.reader))
    try:
        return read(source)
    except WorkpacketError as error:
        raise WorkpacketError.of(source.placed(error.problem)) from None


class State:
    """One of the compared states. `files` maps each path to its bytes, or to a sentence that says why they are missing.
    Each file is parsed once. `label` is the display name of this state.
    """

    def __init__(self, label: str, files: Mapping[str, bytes | str]) -> None:
        self.label = label
        self.files = files
        self._read: dict[str, Dependencies | Problem] = {}
        self._sources: dict[str, Source] = {}

    def __contains__(self, path: str) -> bool:
        return path in self.files

    def source(self, path: str) -> Source:
        if path not in self._sources:
            data = self.files.get(path, b"")
            self._sources[path] = Source.from_bytes(path, data if isinstance(data, bytes) else b"")
        return self._sources[path]

    def read(self, path: str) -> Dependencies:
        """Return the content of the file, or an empty one if it is missing; raise `WorkpacketError` if it cannot be
        read."""
        if path not in self._read:
            self._read[path] = self._examined(path)
        found = self._read[path]
        if isinstance(found, Problem):
            raise WorkpacketError.of(found)
        return found

    def asked_below(self, folder: str, names: tuple[str, ...]) -> Mapping[str, str] | None:
        """Return the requirements in the manifests with these names at or below `folder`, including workspace members;
        None if there are none.
        """
        found: dict[str, str] = {}
        above = f"{folder}/" if folder else ""
        manifests = [
            path for path in sorted(self.files)
            if path.startswith(above) and path.rpartition("/")[2] in names and format_of(path) is not None
        ]  # fmt: skip
        for path in manifests:
            for asked, requirement in (self.read(path).direct or {}).items():
                found[asked] = " | ".join(dict.fromkeys(filter(None, (found.get(asked), requirement))))
        return found if manifests else None

    def _examined(self, path: str) -> Dependencies | Problem:
        if path not in self.files:
            return Dependencies(direct={})
        data = self.files[path]
        if isinstance(data, str):
            return self._unreadable(Location(path), data)
        if len(data) > LOCKFILE.size:
            return self._unreadable(Location(path), LOCKFILE.size_fault(0).message)
        known = format_of(path)
        assert known is not None, f"{path} has an unknown format"
        try:
            return read_dependencies(self.source(path), known)
        except WorkpacketError as error:
            return self._unreadable(error.problem.location, error.message)

    def _unreadable(self, place: Location, message: str) -> Problem:
        return Problem("lockfile_malformed", f"{message} (in {self.label})", place)


Kind = Literal["added", "removed", "updated"]

# The number of known sources that a message names.
_SHOWN: Final = 3


class DependencyChange(Value):
    """A direct dependency that changed; `old` and `new` are versions or requirements."""

    name: str
    kind: Kind
    old: str
    new: str
    line: int


class Suspicion(Value):
    """A change to a dependency that is not covered by any permission for the package's name."""

    name: str
    kind: Literal["source", "integrity", "removed"]
    message: str
    line: int


class Compared(Value):
    """One changed file. The three counts are for transitive packages; `lines` are the numbers of added and removed
    lines.
    """

    path: str
    format: str
    ecosystem: str
    direct: tuple[DependencyChange, ...]
    transitive: Mapping[str, int]
    lines: tuple[int, int]
    new_packages: int
    suspicions: tuple[Suspicion, ...]


def compare(before: State, after: State) -> tuple[tuple[Compared, ...], tuple[Problem, ...]]:
    """Return all changed files by path, and all files that could not be compared."""
    changed: list[Compared] = []
    unreadable: dict[Problem, None] = {}
    for path in sorted({*before.files, *after.files}):
        known = format_of(path)
        if known is None or (path in before and path in after and before.files[path] == after.files[path]
                             and isinstance(after.files[path], bytes)):  # fmt: skip
            continue
        try:
            changed.append(_compared(path, known, before, after))
        except WorkpacketError as error:
            unreadable[error.problem] = None
    return tuple(changed), tuple(unreadable)


def _compared(path: str, known: LockFormat, before: State, after: State) -> Compared:
    new, old = after.read(path), before.read(path)
    asked_new, asked_old = _asked(path, known, new, after), _asked(path, known, old, before)
    first = known.locks and path not in before
    direct = tuple(_changes(old, new, asked_old, asked_new, after.source(path), first=first))
    names = {*asked_old, *asked_new}
    return Compared(
        path, known.name, known.ecosystem, direct, _transitive(old, new, names), _lines(before, after, path),
        len({package.name for package in new.packages} - {package.name for package in old.packages}),
        tuple(_suspicions(path, known, before, after, old, new)),
    )  # fmt: skip


def _asked(path: str, known: LockFormat, found: Dependencies, state: State) -> Mapping[str, str]:
    """Return the direct dependencies. If a lock file does not mark them, its manifests list them; without manifests,
    every package counts as direct. If there was no lock file before, the requirements in the manifests count as the
    previous state.
    """
    if found.direct is not None and (path in state or not known.locks):
        return found.direct
    asked = state.asked_below(path.rpartition("/")[0], known.manifests)
    names = {package.name for package in found.packages}
    if asked is None:
        return dict.fromkeys(names, "")
    return asked if path not in state else {name: "" for name in asked if name in names}


def _changes(
    old: Dependencies, new: Dependencies, asked_old: Mapping[str, str], asked_new: Mapping[str, str],
    source: Source, *, first: bool,
) -> Iterator[DependencyChange]:  # fmt: skip
    """Yield the changes.

    `first` means that there was no lock file before, so a pinned version does not change a requirement.
    """
    for name in sorted({*asked_old, *asked_new}):
        was, now = _said(old, asked_old, name), _said(new, asked_new, name)
        line = source.line_and_column(new.place(name))[0] if name in asked_new else 0
        if name not in asked_old:
            yield DependencyChange(without_credentials(name), "added", "", now, line)
        elif name not in asked_new:
            if not first:
                yield DependencyChange(without_credentials(name), "removed", was, "", line)
        elif not first and (old.versions(name) != new.versions(name) or asked_old[name] != asked_new[name]):
            yield DependencyChange(without_credentials(name), "updated", was, now, line)


def _said(found: Dependencies, asked: Mapping[str, str], name: str) -> str:
    """Return the versions if they are known, otherwise the requirement."""
    versions = " | ".join(sorted(filter(None, found.versions(name))))
    requirement = without_credentials(asked.get(name, ""))
    if not versions or not requirement or requirement == versions:
        return versions or requirement
    return f"{versions} ({requirement})"


def _transitive(old: Dependencies, new: Dependencies, direct: set[str]) -> dict[str, int]:
    was, now = (_versions(found.packages, direct) for found in (old, new))
    return {
        "added": len(now.keys() - was.keys()),
        "removed": len(was.keys() - now.keys()),
        "updated": sum(was[name] != now[name] for name in was.keys() & now.keys()),
    }


def _versions(packages: Iterable[Package], without: set[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package in packages:
        if package.name not in without:
            found.setdefault(package.name, set()).add(package.version)
    return found


def _lines(before: State, after: State, path: str) -> tuple[int, int]:
    """Return the numbers of added and removed lines; moved lines do not count."""
    was, now = (Counter(state.source(path).text.splitlines()) for state in (before, after))
    return (now - was).total(), (was - now).total()


# ---- what no leave covers --------------------------------------------------------------------------------------------


def _suspicions(
    path: str, known: LockFormat, before: State, after: State, old: Dependencies, new: Dependencies
) -> Iterator[Suspicion]:
    if known.locks and path in before and path not in after:
        if old.packages:
            yield Suspicion("", "removed", "the lock file was deleted, so its versions are no longer pinned", 0)
        return
    source = after.source(path)
    if not known.locks:
        folder = path.rpartition("/")[0]
        for name, requirement in (new.direct or {}).items():
            if names_a_place(requirement or name, folder) and (old.direct or {}).get(name) != requirement:
                line = source.line_and_column(new.place(name))[0]
                shown = without_credentials(requirement or name)
                yield Suspicion(without_credentials(name), "source", f"requested by location: {shown}", line)
        return
    seen: set[Suspicion] = set()
    for package in new.packages:
        line = source.line_and_column(package.start)[0]
        for kind, message in _of_package(package, old):
            one = Suspicion(package.name, kind, message, line)
            if one not in seen:
                seen.add(one)
                yield one


def _of_package(package: Package, old: Dependencies) -> Iterator[tuple[Literal["source", "integrity"], str]]:
    """Yield suspicious changes to a package. A comparison with an empty lock file yields none."""
    if not old.packages:
        return
    same = [one for one in old.by_name.get(package.name, ()) if one.version == package.version]
    known_origins = frozenset(origin for one in same for origin in one.origins) or old.origins
    for origin in sorted(package.origins - known_origins):
        before = ", ".join(sorted(filter(None, known_origins))[:_SHOWN]) or "the default registry"
        yield "source", f"{package.name} {package.version} comes from {origin or 'the default registry'}, not {before}"
    if same:
        yield from _integrity(package, same)
    elif not package.integrity and old.all_digested:
        yield "integrity", f"{package.name} {package.version} has no digest, although every package had one before"


def _integrity(package: Package, same: list[Package]) -> Iterator[tuple[Literal["integrity"], str]]:
    digests: dict[str, set[str]] = {}
    for one in same:
        for label, digest in one.integrity.items():
            digests.setdefault(label, set()).add(digest)
    what = f"{package.name} {package.version}"
    if digests and not package.integrity:
        if any(not one.integrity for one in same):
            return
        yield "integrity", f"{what} has lost its digest"
    elif digests and not digests.keys() & package.integrity.keys():
        yield "integrity", f"{what} has only new kinds of digests, which cannot be compared with the old ones"
    for label in sorted(digests.keys() & package.integrity.keys()):
        if package.integrity[label] not in digests[label]:
            yield "integrity", f"the digest of {what} has changed ({label.partition(':')[2]})"


# If one file has more new packages than this, someone should look at them, even if the change is allowed.
NEW_PACKAGES: Final = 50


class Leave(Value):
    """The permission for a change: the direct dependencies that may change (`*` matches any characters), and how many
    new packages are too many.
    """

    patterns: tuple[str, ...] = ()
    threshold: int = NEW_PACKAGES

    def covers(self, name: str) -> bool:
        return any(matches(pattern, name) for pattern in self.patterns)


class DependencyViolation(Value):
    path: str
    line: int
    name: str
    what: str
    message: str

    def as_json(self) -> dict[str, Json]:
        return {"path": self.path, "line": self.line, "name": self.name, "what": self.what, "message": self.message}


class FileVerdict(Value):
    """The verdict on one file."""

    file: Compared
    allowed: tuple[str, ...]
    violations: tuple[DependencyViolation, ...]
    warning: str

    def as_json(self) -> dict[str, Json]:
        """Return the row for this file in the `lockfile_changed` event."""
        direct: dict[str, Json] = {
            kind: [_row(change) for change in self.file.direct if change.kind == kind]
            for kind in ("added", "removed", "updated")
        }
        added, removed = self.file.lines
        return {
            "path": self.file.path, "format": self.file.format, "direct": direct,
            "transitive": dict(self.file.transitive), "diffstat": {"added": added, "removed": removed},
            "new_packages": self.file.new_packages, "allowed": list(self.allowed),
            "violations": [violation.as_json() for violation in self.violations],
        }  # fmt: skip


def _row(change: DependencyChange) -> dict[str, Json]:
    return {"name": change.name, "old": change.old, "new": change.new}


def judge(files: Sequence[Compared], leave: Leave) -> tuple[FileVerdict, ...]:
    return tuple(_judged(file, leave) for file in files)


def _judged(file: Compared, leave: Leave) -> FileVerdict:
    if file.ecosystem == "pypi":  # its names have one spelling here, but people write them in several
        leave = Leave(tuple(python_name(pattern) for pattern in leave.patterns), leave.threshold)
    covered = [change.name for change in file.direct if leave.covers(change.name)]
    violations = [
        DependencyViolation(file.path, change.line, change.name, change.kind, _sentence(change))
        for change in file.direct
        if not leave.covers(change.name)
    ]
    violations += [DependencyViolation(file.path, one.line, one.name, one.kind, one.message) for one in file.suspicions]
    many = file.new_packages > leave.threshold
    warning = f"{file.new_packages} new packages, more than {leave.threshold}" if many else ""
    return FileVerdict(file, tuple(covered), tuple(violations), warning)


def _sentence(change: DependencyChange) -> str:
    if change.kind == "added":
        return f"{change.name} {change.new} was added".replace("  ", " ")
    if change.kind == "removed":
        return f"{change.name} was removed"
    return f"{change.name} was updated: {change.old or 'any version'} -> {change.new or 'any version'}"
