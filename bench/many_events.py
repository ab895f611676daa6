"""Makes governed repositories whose packets have long logs of signed events, and the rows about them.

A packet with a review, a block and a hand-over has twenty events; a standing packet, or one that a team of agents works
on, can have a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path

from bench.governance import PYTHON, forget, wait_until_at_rest
from bench.governed_trees import commit, git, history, next_of, write_refinement
from bench.rows import Row, Sampler, command, program
from bench.sides import Side
from bench.signed_logs import EventSigner, write_policy
from bench.trees import write_tree
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent

# Each is a type of event, the lanes that it moves between, and the rest of its data. A round ends where it began.
_LEASE: Mapping[str, Json] = {"holder": "ann", "lease": "L1", "expires_at": "2026-03-08T00:00:00Z"}
_ROUND: tuple[tuple[str, str, str, Mapping[str, Json]], ...] = (
    ("claimed", "READY_FOR_DEV", "IN_PROGRESS", {**_LEASE, "branch": "work"}),
    ("noted", "", "", {"text": "the parser reads the whole file before it looks for the first heading"}),
    ("lease.renewed", "", "", _LEASE),
    ("waived", "", "", {"rule": "hint_text", "reason": "measured", "expires_at": "2099-12-31T00:00:00Z"}),
    ("blocked", "IN_PROGRESS", "BLOCKED", {"reason": "the archive is not readable", "until": "it is readable"}),
    ("unblocked", "BLOCKED", "IN_PROGRESS", {"reason": "it is readable"}),
    ("noted", "", "", {"text": "the second reader agrees on all files but one, which has no final newline"}),
    ("noted", "", "", {"text": "the file without a final newline is read as the manual says"}),
    ("released", "IN_PROGRESS", "READY_FOR_DEV", {"reason": "someone else continues", "holder": "ann"}),
)
_NOTE: Mapping[str, Json] = {"text": "asked the author of the archive which of the two readings was meant"}


def rows() -> Iterator[Row]:
    """Measure every command that reads logs, in both trees: ten thousand packets of twenty events, and few of many."""
    many, few = "10000x20", "20x1000"
    yield from _looks(many, {"check": 25_000, "next": 4000}, warm={"check": 300, "next": 500})
    others = dict.fromkeys(("board show", "status", "list"), 4000)
    yield from _looks(many, others, warm=dict.fromkeys(others, 500))
    for words, target in (("check --base main", 30_000), ("audit --out ../audit.html", 12_000)):
        judged = command(*words.split(), within=_tree(many))
        yield Row(_name(words, many), judged, f"{target}", PYTHON, repeats=1)
        yield Row(f"{_name(words, many)}-memory", judged, "400 MB", PYTHON, repeats=1)
    for shape in (few, many):
        for verb in ("show", "why"):
            yield Row(f"{verb}-{shape}", _of_one_packet(shape, verb), "150" if shape == few else "300", PYTHON)
        yield Row(f"claim-{shape}", _claimed(shape), "150" if shape == few else "300", PYTHON)


def _looks(shape: str, cold: Mapping[str, int], *, warm: Mapping[str, int]) -> Iterator[Row]:
    for words, target in cold.items():
        uncached = command(*words.split(), within=_tree(shape), before=forget)
        yield Row(f"{_name(words, shape)}-cold", uncached, f"{target}", PYTHON, repeats=1)
        yield Row(f"{_name(words, shape)}-cold-memory", uncached, "400 MB", PYTHON, repeats=1)
        cached = command(*words.split(), within=_tree(shape))
        yield Row(f"{_name(words, shape)}-warm", cached, f"{warm[words]}", PYTHON, repeats=3)


def _name(words: str, shape: str) -> str:
    return "-".join([*(word.lstrip("-") for word in words.split() if "/" not in word and word not in _SETTING), shape])


_SETTING = ("main", "--out")


def _of_one_packet(shape: str, verb: str) -> Callable[[Side], Sampler]:
    return lambda side: command(verb, _a_packet(_tree(shape)(side)), within=_tree(shape))(side)


def _claimed(shape: str) -> Callable[[Side], Sampler]:
    """Claim and release one packet repeatedly, with events that are signed."""

    def prepare(side: Side) -> Sampler:
        root = _tree(shape)(side)
        name = _a_packet(root)
        signing = ["env", f"WORKPACKET_EVENT_KEY={key_of(root)}", "WORKPACKET_ACTOR=ann", side.workpacket]

        def release(side: Side, root: Path) -> None:
            side.run([*signing, "release", name, "--reason", "measured"], root, statuses=range(256))

        return program(lambda _: [*signing, "claim", name], within=lambda _: root, before=release)(side)

    return prepare


def _a_packet(root: Path) -> str:
    return min(path.stem for path in (root / ".GOV/task_packets").glob("WP-*.md"))


def _tree(shape: str) -> Callable[[Side], Path]:
    packets, events = map(int, shape.split("x"))

    def make(root: Path) -> Path:
        write_long_logs(root, packets, events)
        git(root, "repack", "-adq")  # as in a clone
        git(root, "checkout", "--quiet", "-b", "work")
        wait_until_at_rest(root)
        return root

    return lambda side: side.made(f"long-{shape}", make)


def write_long_logs(root: Path, packets: int, events: int) -> Path:
    """Make a committed repository of packets with this many signed events each; half of them are stubs."""
    write_tree(root, packets)
    signer = EventSigner()
    for path in sorted((root / ".GOV/task_packets").rglob("WP-*.md")):
        for event in signer.chain(life(path.stem, events, activated=path.parent.name != "stubs")):
            place = root / event.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(event.encode())
    write_policy(root, signer)
    write_refinement(root)
    commit(root)
    signer.save(key_of(root))
    return root


def key_of(root: Path) -> Path:
    """Return the event key of the writer. A key inside the repository is refused."""
    return root.with_name(f"{root.name}-event-key")


def life(name: str, events: int, *, activated: bool) -> list[LogEvent]:
    """Make the log of a packet that is in the lane of its document after this many events."""
    log = history(name, activated=activated)
    rounds = (events - len(log)) // len(_ROUND) if activated else 0
    for kind, before, then, says in islice(cycle(_ROUND), rounds * len(_ROUND)):
        moved: Mapping[str, Json] = {"lane_from": before, "lane_to": then} if before else {}
        log.append(next_of(name, kind, {**moved, **says}, log))
    while len(log) < events:
        log.append(next_of(name, "noted", _NOTE, log))
    return log
