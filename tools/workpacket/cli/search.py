"""`search`: find packets by words, in an index that is part of the cache.

A word contains no white space, so a text contains it if one of the text's tokens (the parts between white space) does.
The index has the distinct tokens of each document and of each packet's log, folded to one case, in a few dozen long
strings. A query searches these strings, and reads only the files of the packets that it shows.

Before each query, the times of all documents and of the folders of all logs are compared with those of the index; what
has changed is read again. A file in a log is named by the digest of its content, so the times of its folder are
sufficient; `check` reports an event that was edited in place. Without a cache, everything is read.
"""

from __future__ import annotations

import os
import time
from array import array

from workpacket.cli.options import Arguments, usage
from workpacket.cli.views import SHOWN, limited
from workpacket.cli.workspace import (
    SETTINGS_FILES,
    GarbageCollectionOff,
    Output,
    open_workspace,
    progress_bar,
    show,
    show_fresh,
)
from workpacket.documents.places import kind_of, names_in
from workpacket.model import exits
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.layout import LOG_FOLDER, PACKETS, REFINEMENTS
from workpacket.model.wording import counted, next_line
from workpacket.shell.cache import RACY_NS, Cache, RestsOn
from workpacket.shell.tree import find_documents, link_on_the_way, look_at, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from workpacket.model.canonical import Json
    from workpacket.model.lanes import LaneTable
    from workpacket.shell.tree import Found

_FOLDERS = (PACKETS, REFINEMENTS, "kitty-specs")
_WORK = frozenset({"stub", "packet", "work_package"})
_LOG = "log"

# A question reads all parts of the index; a change writes only those that contain the changed packets.
_PARTS = 64
_FEW = 1000
# As many as thirty work trees have.
_MOST_PARTS = 2000
_MISSING, _UNSETTLED = -1, 0
_BY_DESCRIPTOR = os.scandir in os.supports_fd and hasattr(os, "O_DIRECTORY")
# No document and no event is longer.
_LONGEST = 10_000_000
_PUNCTUATION = ".,:;!?()[]`'\"*_-"
_LINES_OF_A_FILE = 20
_LINES_SHOWN = 2
_ROOM = 100


class WordIndex:
    """The words of all packets in a work tree. `unread` are the documents that could not be read.

    A part has two lines for each document and for each log: its path, the id of its packet, its kind, its title and
    facts about the work, or the lane of light work, separated by tabs; and its tokens. Everything that belongs to one
    packet is in one part.
    """

    def __init__(self, root: str, cache: Cache) -> None:
        self._root, self._cache = root, cache
        place, started = f"{root!r}\t", time.time_ns()
        paths, stamps = _seen(root)
        names = _on_one_line(paths)
        joined, times = "\n".join(names), stamps.tobytes().hex()
        kept = cache.recall_below("words", place)
        lanes, unread, then, before = kept.pop(place, "\n\n\n").split("\n", 3)
        self.parts = {int(key.rpartition("\t")[2]): text for key, text in kept.items()}
        self.unread = unread.split("\t") if unread else []
        if then == times and before == joined:
            return
        known = dict(zip(before.split("\n"), array("q", bytes.fromhex(then)), strict=True)) if then else {}
        changed = {
            name: path for name, path, stamp in zip(names, paths, stamps, strict=True) if known.get(name) != stamp
        }
        from workpacket.shell.configuration import lanes_here

        table = lanes_here(root)
        if table.key != lanes:
            changed = dict(zip(names, paths, strict=True))
        written = self._remove({*changed, *known.keys() - set(names)}) | self._add(changed, table)
        at_rest = array("q", [stamp if stamp + RACY_NS < started else _UNSETTLED for stamp in stamps])
        state = "\n".join((table.key, "\t".join(self.unread), at_rest.tobytes().hex(), joined))
        cache.make_room("words", _MOST_PARTS)
        cache.keep("words", [(place, state), *((f"{place}{part}", self.parts[part]) for part in written)])

    def _remove(self, names: set[str]) -> set[int]:
        """Remove the index entries for these files; return the changed parts."""
        self.unread = [name for name in self.unread if name not in names]
        changed = set()
        for part, text in self.parts.items():
            lines = text.split("\n") if text else []
            pairs = zip(lines[::2], lines[1::2], strict=True)
            left = [line for pair in pairs if pair[0].partition("\t")[0] not in names for line in pair]
            if len(left) < len(lines):
                self.parts[part] = "\n".join(left)
                changed.add(part)
        return changed

    def _add(self, files: Mapping[str, str], table: LaneTable) -> set[int]:
        """Read these files, and the logs in these folders; return the changed parts."""
        from zlib import crc32

        added: dict[int, list[str]] = {}
        for name, whose, kind, called, about, words in self._read(files, table):
            owner, title = " ".join(whose.split()), " ".join(called.split())
            tokens = _tokens(f"{owner} {title} {words}")
            lines = added.setdefault(crc32(owner.encode("utf-8", "surrogateescape")) % _PARTS, [])
            lines += ["\t".join((name, owner, kind, title, about)), tokens]
        for part, lines in added.items():
            self.parts[part] = "\n".join([*filter(None, [self.parts.get(part)]), *lines])
        return set(added)

    def _read(self, files: Mapping[str, str], table: LaneTable) -> Iterator[tuple[str, str, str, str, str, str]]:
        """Yield the name, the packet, the kind, the title, facts and the text of each file."""
        work: list[tuple[str, Found]] = []
        for name, path in files.items():
            kind = kind_of(path)
            if kind in _WORK:
                work.append((name, look_at(self._root, path, kind)))
            elif kind == "refinement":
                from workpacket.documents.document import stem_of

                yield name, stem_of(path), kind, "", "", _text(self._root, path)
            elif path.startswith(f"{LOG_FOLDER}/"):
                said = [text for _, head, texts in _events(self._root, path) for text in (head, *texts)]
                owner = path.rpartition("/")[2]
                yield name, owner, _LOG, "", _lane_of(self._root, owner) if LIGHT_FORM in said else "", " ".join(said)
        if work:
            yield from self._read_work(work, table)

    def _read_work(
        self, work: Sequence[tuple[str, Found]], table: LaneTable
    ) -> Iterator[tuple[str, str, str, str, str, str]]:
        import json

        from workpacket.shell.checking import known_or_examined

        results = known_or_examined(self._root, [found for _, found in work], self._cache, progress_bar(), table)
        for (name, found), result in zip(work, results, strict=True):
            if not result.summary:
                self.unread.append(name)
                continue
            says = json.loads(result.summary)
            about = json.dumps([says["lanes"], says.get("form"), says["id"], says["title"]], separators=(",", ":"))
            yield name, says["id"], found.kind, says["title"], about, _text(self._root, found.path)

    def matches(self, words: Sequence[str]) -> Iterator[Match]:
        """Yield the packets that contain all the words, which are already case-folded."""
        for text in self.parts.values():
            if not all(word in text for word in words):
                continue
            lines = text.split("\n")
            rows, tokens = [head.split("\t") for head in lines[::2]], lines[1::2]
            owners = set.intersection(
                *({row[1] for row, has in zip(rows, tokens, strict=True) if word in has} for word in words)
            )
            rows = [row for row in rows if row[1] in owners]
            # A packet is in only one lane at a time, so stubs that became packets are left out.
            packets = {row[1] for row in rows if row[2] in _WORK and row[2] != "stub"}
            for row in rows:
                if row[2] in _WORK and not (row[2] == "stub" and row[1] in packets):
                    yield Match(words, row, rows)


class Match:
    """A packet that contains all the words. `rank` is 0 if its id contains them, 1 if its id and title together do,
    otherwise 2."""

    __slots__ = ("_rows", "about", "kind", "name", "owner", "rank")

    def __init__(self, words: Sequence[str], row: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.name, self.owner, self.kind, title, self.about = row
        self._rows = rows
        name = self.owner.casefold()
        rank = 0
        if not all(word in name for word in words):
            title = title.casefold()
            rank = 1 if all(word in name or word in title for word in words) else 2
        self.rank = (rank, self.owner, self.name)

    def files(self) -> list[str]:
        """Return the packet's documents and its log."""
        return [row[0] for row in self._rows if row[1] == self.owner]

    def lane_in_log(self) -> str:
        return next((row[4] for row in self._rows if row[1:3] == [self.owner, _LOG]), "")


def _tokens(text: str) -> str:
    """Return the distinct tokens of a text, without those that also occur with punctuation, because the longer ones
    contain them."""
    if not text.isascii():  # an event may have half a character, which cannot be stored
        text = text.encode("utf-8", "replace").decode()
    tokens = dict.fromkeys(text.casefold().split())
    for token in [*tokens]:
        bare = token.strip(_PUNCTUATION)
        if len(bare) < len(token):
            tokens.pop(bare, None)
    return " ".join(tokens)


def _seen(root: str) -> tuple[list[str], array[int]]:
    """Return the settings, the files in folders of documents and the folders of logs, each with a number that changes
    when it does.
    """
    paths, stamps = [*SETTINGS_FILES], [_stamp(os.path.join(root, path)) for path in SETTINGS_FILES]
    waiting = [folder for folder in _FOLDERS if not link_on_the_way(root, folder)]
    while waiting:
        folder = waiting.pop()
        _look_into(root, folder, paths, stamps, waiting)
    _look_into(root, LOG_FOLDER, paths, stamps, None)
    return paths, array("q", stamps)


def _stamp(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return _MISSING


def _look_into(root: str, folder: str, paths: list[str], stamps: list[int], below: list[str] | None) -> None:
    """Add the contents of a folder. With `below`, add its files if there may be documents among them, and add its
    folders to `below`; without it, add everything."""
    wanted = below is None or names_in(folder)
    full = os.path.join(root, folder)
    try:
        # By descriptor, because with a path, the system would look up each folder on the way for every file.
        at: int | str = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) if _BY_DESCRIPTOR else full
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    if below is not None and entry.is_dir(follow_symlinks=False):
                        below.append(f"{folder}/{entry.name}")
                    elif wanted:
                        stamps.append(entry.stat(follow_symlinks=False).st_ctime_ns)
                        paths.append(f"{folder}/{entry.name}")
        finally:
            if isinstance(at, int):
                os.close(at)
    except OSError:
        return


def _on_one_line(paths: list[str]) -> list[str]:
    """Return the paths; those with line breaks, tabs or unusual characters are in quotes."""
    joined = "".join(paths)
    if joined.isascii() and joined.isprintable():
        return paths
    return [path if path.isascii() and path.isprintable() else ascii(path) for path in paths]


def _path_of(name: str) -> str:
    if not name.startswith(("'", '"')):
        return name
    from ast import literal_eval  # for few names

    return str(literal_eval(name))


def _text(root: str, path: str) -> str:
    try:
        return read_bytes(root, path, _LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _events(root: str, folder: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the path, the kind with date and actor, and the texts of each event in a packet's log, but not the event's
    keys, hashes or signature."""
    import json

    try:
        names = sorted(os.listdir(os.path.join(root, folder)))
    except OSError:
        return
    for name in names:
        path = f"{folder}/{name}"
        try:
            event = json.loads(_text(root, path))
            head = f"{event['at'][:10]} {event['type']} by {event['actor']['id']}"
            yield path, head, [*_texts_in(event["data"])]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)
    elif isinstance(value, str) and value:
        yield value


def run(arguments: Arguments) -> int:
    """Answer `search`."""
    words = tuple(word.casefold() for given in arguments.words for word in given.split())
    if not words:
        raise usage(arguments.command, "missing_argument", "expected at least one WORD")
    workspace = open_workspace()
    cache = workspace.open_cache()

    def compute() -> Output:
        with GarbageCollectionOff():
            return _answer(arguments, workspace.root, cache, words)

    try:
        if workspace.is_partial:
            from workpacket.cli.read_only import say_what_is_missing

            say_what_is_missing(workspace.root)
        elif _is_small(workspace.root):
            files = [found for found in find_documents(workspace.root, _FOLDERS) if found.kind in _WORK]
            return show(arguments, workspace, files, cache, compute)
        return show_fresh(compute())
    finally:
        cache.close()


def _is_small(root: str) -> bool:
    """Whether it costs less to see that an answer is still correct than to answer again."""
    try:
        return len(os.listdir(os.path.join(root, LOG_FOLDER))) <= _FEW
    except OSError:
        return True


def _answer(arguments: Arguments, root: str, cache: Cache, words: Sequence[str]) -> Output:
    index = WordIndex(root, cache)
    shown, more = limited(arguments, sorted(index.matches(words), key=lambda match: match.rank), SHOWN)
    found, rests_on = _described(root, shown, words)
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        data: dict[str, Json] = {"found": [*found], "unreadable": [*map(_path_of, index.unread)], "more": more}
        return Output(render_envelope("search", exits.OK, [], data), exits.OK, rests_on)
    return Output("\n".join([*_as_text(found, words, more, index.unread), ""]), exits.OK, rests_on)


def _described(root: str, matches: Sequence[Match], words: Sequence[str]) -> tuple[list[dict[str, Any]], RestsOn]:
    """Return what `search --json` says about these packets, and what that depends on besides the documents."""
    rests_on = RestsOn((f"{LOG_FOLDER}/", f"{REFINEMENTS}/"))
    if not matches:
        return [], rests_on
    import json

    from workpacket.model.lanes import LANDS_AS

    rows = [json.loads(match.about) for match in matches]
    light = {
        row[2]: match
        for match, row in zip(matches, rows, strict=True)
        if (match.kind, row[1]) == ("packet", LIGHT_FORM)
    }
    in_log = {name: match.lane_in_log() for name, match in light.items()}
    # The lane of merged work is not the one in its log.
    landing = [name for name, lane in in_log.items() if not lane or lane in LANDS_AS]
    if landing:
        now, more = _lanes_now(landing)
        in_log, rests_on = in_log | now, rests_on | more
    return [
        {
            "id": name,
            "kind": match.kind,
            "path": _path_of(match.name),
            "lanes": [in_log[name]] if in_log.get(name) else lanes,
            "title": title,
            "lines": [line for file in match.files() for line in _lines(root, file, words)],
        }
        for match, (lanes, _, name, title) in zip(matches, rows, strict=True)
    ], rests_on


def _lane_of(root: str, name: str) -> str:
    """Return the lane in the log of a packet."""
    from workpacket.ledger.fold import fold
    from workpacket.problem import WorkpacketError
    from workpacket.shell.governed_files import GovernedFiles

    governed = GovernedFiles(root)
    governed.look_for_log(name)
    try:
        return fold(governed.log(name)).lane
    except WorkpacketError:
        return ""


def _lanes_now(names: Sequence[str]) -> tuple[dict[str, str], RestsOn]:
    from workpacket.cli.read_only import NOBODY, output
    from workpacket.model.ids import is_packet_id
    from workpacket.shell.governing.execution import gather, here

    repository = here()
    packets = gather(repository, [name for name in names if is_packet_id(name)], NOBODY).packets
    return {name: packet.lane for name, packet in packets.items()}, output(repository, "").rests_on


def _lines(root: str, name: str, words: Sequence[str]) -> Iterator[dict[str, Json]]:
    """Yield the first lines of a document, or events of a log, that contain any of the words."""
    path = _path_of(name)
    if path.startswith(f"{LOG_FOLDER}/"):
        for file, head, texts in _events(root, path):
            named = next((text for text in texts if any(word in text.casefold() for word in words)), "")
            if named or any(word in head.casefold() for word in words):
                yield {"path": file, "line": 1, "text": f"{head}: {named}" if named else head}
        return
    left = _LINES_OF_A_FILE
    for number, text in enumerate(_text(root, path).splitlines(), 1):
        if left and any(word in text.casefold() for word in words):
            left -= 1
            yield {"path": path, "line": number, "text": text}


def _as_text(found: Sequence[dict[str, Any]], words: Sequence[str], more: int, unread: Sequence[str]) -> Iterator[str]:
    if not found and not unread:
        yield from (counted(0, "packet"), next_line("workpacket list"))
        return
    from workpacket.model.lanes import lane_words
    from workpacket.report.terminal import escape

    for one in found:
        lane = ", ".join(map(lane_words, one["lanes"])) or "-"
        yield f"{escape(one['id'])}  {escape(lane)}  {escape(' '.join(one['title'].split()))}".rstrip()
        for line in one["lines"][:_LINES_SHOWN]:
            place = "log" if line["path"].startswith(LOG_FOLDER) else f"{escape(line['path'])}:{line['line']}"
            yield f"    {place}: {escape(_cut(line['text'], words))}"
    yield counted(len(found), "packet") + (f", {more} more with --limit {len(found) + more}" if more else "")
    if unread:
        yield f"not searched because unreadable: {', '.join(escape(_path_of(name)) for name in unread)}"
    yield next_line(f"workpacket show {found[0]['id']}" if found else "workpacket list")


def _cut(text: str, words: Sequence[str]) -> str:
    """Return the part of a line around the first matching word."""
    line = " ".join(text.split())
    at = min((place for word in words if (place := line.casefold().find(word)) >= 0), default=0)
    start = max(at - _ROOM // 3, 0) if len(line) > _ROOM else 0
    return f"{'…' if start else ''}{line[start : start + _ROOM]}{'…' if len(line) > start + _ROOM else ''}"
