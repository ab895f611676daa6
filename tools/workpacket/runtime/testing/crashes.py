"""The contract under kills, failing calls, power failures and altered bytes; for a store in files on this machine.

After a kill, everything that was written is still in the files. After a power failure, only what was synced is certain;
of the rest, the disk may have nothing, all of it, a first part, a random part, half of the last write, or zeros in its
place. Names and contents are tracked separately, because a file whose folder was not synced may be missing, and a
renamed file whose content was not synced may be empty. Writes through mmap are not seen.
"""

from __future__ import annotations

import ast
import base64
import fnmatch
import os
import random
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.runtime.errors import PayloadErased, RuntimeFault
from workpacket.runtime.records.events import INDEXED, Event, NewEvent, index_of
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.testing.cases import (
    DOOMED,
    MOVED,
    SEVERAL,
    STREAM,
    Import,
    ManualClock,
    StoreTestCase,
    Writer,
    acts,
    do,
    refused,
)

WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync")
NAMES = ("unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat")
TRACED = ("openat", "open", "creat", "read", "lseek", "ftruncate", "truncate", *WRITES, *SYNCS, *NAMES)
_LINE = re.compile(r"^\d+ +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_FILE = re.compile(r"^(?P<number>\d+)<(?P<path>[^>]*)>")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Operation(NamedTuple):
    """What happened to a file: create, write, truncate, sync, sync_folder, rename (from the name in `data`), delete. Or
    `told`: the output of the program.

    `call` is the storage call, and `number` says how often the program had made that call by then.
    """

    what: str
    file: int = 0
    name: str = ""
    offset: int = 0
    data: bytes = b""
    call: str = ""
    number: int = 0


class Recording:
    """Reads strace's log; `operations` are the operations on the files in the folder, in order."""

    def __init__(self, log: str, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.operations: list[Operation] = []
        self._files: dict[str, int] = {}  # the names at this moment
        self._sizes: dict[int, int] = {}
        self._at: dict[str, int] = {}  # the position of each open file
        self._appends: set[str] = set()
        self._durable: set[str] = set()  # files opened so that each write is a sync
        self._counts: dict[str, int] = {}
        with open(log, encoding="ascii", errors="replace") as lines:
            for line in lines:
                match = _LINE.match(line)
                if match is not None:
                    self._counts[match["call"]] = self._counts.get(match["call"], 0) + 1
                    if int(match["result"]) >= 0:
                        self._one(match["call"], match["arguments"], int(match["result"]))

    def _one(self, call: str, arguments: str, result: int) -> None:
        file = _FILE.match(arguments)
        number = file["number"] if file else ""
        path = _decoded(file["path"]) if file else ""
        if call in {"write", "writev"} and number == "1":
            self._add("told", call, data=_data(arguments))
        elif call in {"open", "openat", "creat"}:
            self._opened(call, arguments, str(result))
        elif call in NAMES or call == "truncate":
            self._renamed(call, arguments)
        elif path == self.folder or path.startswith(self.folder + os.sep):
            self._changed(call, arguments, result, number, path[len(self.folder) + 1 :])

    def _opened(self, call: str, arguments: str, number: str) -> None:
        flags = "O_CREAT|O_TRUNC" if call == "creat" else arguments
        path = _decoded(_TEXT.findall(arguments)[0])
        folder = re.match(r"[\w-]+<([^>]*)>", arguments)
        name = self._name(os.path.join(_decoded(folder[1]), path) if folder else path)
        if name is None:
            return
        if name not in self._files and "O_CREAT" in flags:
            self._files[name] = len(self._sizes) + 1
            self._sizes[self._files[name]] = 0
            self._add("create", call, name, self._files[name])
        elif name in self._files and "O_TRUNC" in flags:
            self._sizes[self._files[name]] = 0
            self._add("truncate", call, name, self._files[name])
        self._at[number] = 0
        (self._appends.add if "O_APPEND" in flags else self._appends.discard)(number)
        (self._durable.add if re.search(r"O_D?SYNC", flags) else self._durable.discard)(number)

    def _changed(self, call: str, arguments: str, result: int, number: str, name: str) -> None:
        file = self._files.get(name, 0)
        if call in SYNCS:
            self._add("sync" if file else "sync_folder", call, name, file)
        elif not file:
            return
        elif call == "lseek":
            self._at[number] = result
        elif call == "read":
            self._at[number] = self._at.get(number, 0) + result
        elif call == "ftruncate":
            self._sizes[file] = int(arguments.rsplit(", ", 1)[1])
            self._add("truncate", call, name, file, self._sizes[file])
        elif call in WRITES:
            self._written(call, arguments, result, number, name, file)

    def _written(self, call: str, arguments: str, result: int, number: str, name: str, file: int) -> None:
        data = _data(arguments)[:result]
        if call.startswith("pwrite"):
            offset = int(re.findall(r", (\d+)", arguments)[-1])
        else:
            offset = self._sizes[file] if number in self._appends else self._at.get(number, 0)
            self._at[number] = offset + result
        self._sizes[file] = max(self._sizes[file], offset + result)
        self._add("write", call, name, file, offset, data)
        if number in self._durable:
            self._add("sync", call, name, file)

    def _renamed(self, call: str, arguments: str) -> None:
        names = [self._name(_decoded(text)) for text in _TEXT.findall(arguments)]
        first = names[0]
        if call == "truncate":
            if first in self._files:
                self._sizes[self._files[first]] = int(arguments.rsplit(", ", 1)[1])
                self._add("truncate", call, first, self._files[first], self._sizes[self._files[first]])
            return
        file = 0 if first is None else self._files.get(first, 0)
        if first is None or not file:
            return
        if not call.startswith("link"):
            del self._files[first]
        target = names[1] if len(names) > 1 else None
        if target is None:
            self._add("delete", call, first)
        else:
            self._files[target] = file
            old = b"" if call.startswith("link") else first.encode("utf-8", "surrogateescape")
            self._add("rename", call, target, file, data=old)

    def _name(self, path: str) -> str | None:
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return path[len(self.folder) + 1 :] if path.startswith(self.folder + os.sep) else None

    def _add(
        self, what: str, call: str, name: str = "", file: int = 0, offset: int = 0, data: bytes = b""
    ) -> None:  # fmt: skip
        self.operations.append(Operation(what, file, name, offset, data, call, self._counts[call]))


def _decoded(text: str) -> str:
    return str(ast.literal_eval(f'b"{text}"').decode("utf-8", "surrogateescape"))


def _data(arguments: str) -> bytes:
    """Return the data of a write: one string, or several for `writev`."""
    return b"".join(ast.literal_eval(f'b"{text}"') for text in _TEXT.findall(arguments.partition(">")[2]))


Files = dict[str, bytes]
_OF_NAMES = frozenset({"create", "rename", "delete"})


@dataclass
class Disk:
    """What is certain to be on the disk, and the later changes in order."""

    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    pending: list[Operation] = field(default_factory=list)

    def apply(self, operation: Operation) -> None:
        if operation.what == "sync":
            self._settle(lambda one: one.what in {"write", "truncate"} and one.file == operation.file)
        elif operation.what == "sync_folder":
            self._settle(
                lambda one: one.what in _OF_NAMES and os.path.dirname(one.name) == operation.name
            )  # fmt: skip
        elif operation.what != "told":
            self.pending.append(operation)

    def _settle(self, certain: Callable[[Operation], bool]) -> None:
        done = [one for one in self.pending if certain(one)]
        self.pending = [one for one in self.pending if not certain(one)]
        _perform(self.names, self.contents, done)

    def after_a_kill(self) -> Files:
        return self._with(self.pending)

    def after_a_loss_of_power(self, chance: random.Random) -> Iterator[Files]:
        pending = self.pending
        names = [one for one in pending if one.what in _OF_NAMES]
        contents = [one for one in pending if one.what not in _OF_NAMES]
        yield self._with([])
        yield self._with(pending)
        yield self._with(names)
        yield self._with(contents)
        yield self._with(pending[: chance.randint(0, len(pending))])
        yield self._with([*names, *(one for one in contents if chance.random() < 0.5)])
        if contents and contents[-1].what == "write":
            last = contents[-1]
            rest = [one for one in pending if one is not last]
            yield self._with([*rest, last._replace(data=last.data[: len(last.data) // 2])])
            yield self._with([*rest, last._replace(data=bytes(len(last.data)))])

    def _with(self, operations: list[Operation]) -> Files:
        names, contents = dict(self.names), dict(self.contents)
        _perform(names, contents, operations)
        return {name: contents.get(file, b"") for name, file in names.items()}


def _perform(names: dict[str, int], contents: dict[int, bytes], operations: list[Operation]) -> None:
    for one in operations:
        content = contents.get(one.file, b"")
        if one.what == "create":
            names[one.name] = one.file
        elif one.what == "rename":
            names.pop(one.data.decode("utf-8", "surrogateescape"), None)
            names[one.name] = one.file
        elif one.what == "delete":
            names.pop(one.name, None)
        elif one.what == "truncate":
            contents[one.file] = content[: one.offset].ljust(one.offset, b"\0")
        else:
            content = content.ljust(one.offset, b"\0")
            contents[one.file] = content[: one.offset] + one.data + content[one.offset + len(one.data) :]


def files_in(folder: str) -> Files:
    found: Files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def put_files(folder: str, files: Files) -> None:
    """Replace whatever is in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


class Kills(StoreTestCase):
    def test_what_a_killed_writer_was_told_is_stored_is_there(self) -> None:
        for acknowledged in (1, 7, 40):
            stream = f"conformance/killed-after-{acknowledged}@00000001"
            told = self.killed_after(stream, acknowledged)
            with self.store() as store:
                stored = list(store.read(stream))
                assert [event.hash for event in stored[: len(told)]] == told
                assert len(stored) <= len(told) + 1
                lease = store.acquire(stream, "heir", 30, over=1)
                store.append(Writer(f"heir of {stream}", stream).request("b", fence=lease.token))

    def killed_after(self, stream: str, acknowledged: int) -> list[str]:
        """Have another process append until it has acknowledged this many events; then kill it, and return their
        hashes."""
        with self.process(f"append_for_ever(store, {stream!r})") as child:
            assert child.stdout is not None
            told = [child.stdout.readline().strip() for _ in range(acknowledged)]
            child.send_signal(signal.SIGKILL)
            told += [line.strip() for line in child.stdout if line.endswith("\n")]
        return told


class Reboots(StoreTestCase):
    def test_a_lease_ends_with_its_boot(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 10**6)
            store.append(Writer("one").request("a", fence=lease.token))
        clock.reboot()
        with self.store(clock) as store:
            assert store.lease(STREAM) is None
            assert store.leases() == ()
            with refused(RuntimeFault):
                store.append(Writer("zombie").request("b", fence=lease.token))
            store.acquire(STREAM, "two", 30)

    def test_tokens_grow_across_reboots(self) -> None:
        clock = ManualClock()
        tokens = []
        for _ in range(3):
            with self.store(clock) as store:
                tokens.append(store.acquire(STREAM, "one", 30).token)
            clock.reboot()
        assert tokens == sorted(set(tokens))


class Crashes(StoreTestCase):
    """`folder` contains all files of the store and nothing else. `volatile` are patterns for files that the store maps
    into memory and does not need after a crash. At most `most_states` of the possible disk states are tried.
    """

    folder: str | os.PathLike[str] = ""
    volatile: tuple[str, ...] = ()
    most_states = 300

    def test_a_kill_inside_an_append_leaves_all_of_it_or_nothing(self) -> None:
        disk, told = Disk(), 0
        states: dict[str, tuple[int, Files]] = {}
        for operation in self.recorded():
            disk.apply(operation)
            told += operation.what == "told" and operation.data.startswith(b"done")
            files = disk.after_a_kill()
            states[repr((told, files))] = (told, files)
        self.all_keep_their_word(list(states.values()))

    def test_a_power_failure_loses_nothing_that_was_acknowledged(self) -> None:
        chance = random.Random(1)  # noqa: S311  # not a secret
        disk, told = Disk(), 0
        states: dict[str, tuple[int, Files]] = {}
        for operation in self.recorded():
            disk.apply(operation)
            told += operation.what == "told" and operation.data.startswith(b"done")
            for files in disk.after_a_loss_of_power(chance):
                states.setdefault(repr((told, files)), (told, files))
        self.all_keep_their_word(list(states.values()))

    def test_a_failing_storage_call_is_reported_and_the_request_can_be_repeated(self) -> None:
        for number, (call, count) in enumerate(self.calls_of_several()):
            error = ("EIO", "ENOSPC")[number % 2]
            text, _ = self.run_traced("do_all_acts(store)", f"inject={call}:error={error}:when={count}")
            assert f"done {len(acts()) - 1}\n" in text, f"{error} of {call}: stopped after {text.splitlines()[-1:]}"
            self.keeps_its_word(len(acts()), f"after {error} of {call}")

    def test_nothing_is_acknowledged_while_syncs_fail(self) -> None:
        operations = list(self.recorded())
        begun = next(i for i, one in enumerate(operations) if one.data == b"begin %d\n" % SEVERAL)
        used = {one.call for one in operations[begun:] if one.call in SYNCS or one.what == "sync"}
        assert used, "the store never syncs a file"
        injected = []
        for call in sorted(used):
            before = [one.number for one in operations[:begun] if one.call == call]
            injected.append(f"inject={call}:error=EIO:when={max(before, default=0) + 1}+")
        text, _ = self.run_traced("do_while_syncs_fail(store)", *injected)
        assert f"begin {SEVERAL}\n" in text
        assert f"done {SEVERAL}\n" not in text, "an append was acknowledged although its sync failed"

    # ---- parts ---------------------------------------------------------------------------------------------------

    def recorded(self) -> Iterator[Operation]:
        """Record the storage calls of all acts on a new store."""
        text, recording = self.run_traced("do_all_acts(store)")
        assert "fault" not in text
        disk = Disk()
        for operation in recording.operations:
            disk.apply(operation)
        assert self.lasting(disk.after_a_kill()) == self.lasting(files_in(os.fspath(self.folder))), (
            "the recorded calls do not explain the store's files: in `volatile`, list the files that the store "
            "maps into memory and does not need"
        )
        yield from recording.operations

    def run_traced(self, program: str, *injected: str) -> tuple[str, Recording]:
        """Run a program on a new store, with failing calls; return its output and the recording."""
        assert self.folder, "define `folder`, which contains all of the store's files and nothing else"
        assert shutil.which("strace"), "strace is required to observe what the store does to its files"
        shutil.rmtree(self.folder, ignore_errors=True)
        with tempfile.NamedTemporaryFile() as log:
            more = [word for one in injected for word in ("-e", one)]
            trace = ["strace", "-f", "-y", "-xx", "-s", "2000000", "-o", log.name, "-e", f"trace={','.join(TRACED)}"]
            child = self.process(program, traced=[*trace, *more])
            text = child.communicate()[0]
            assert child.returncode == 0, (
                f"{' '.join(injected)}: the process failed with an error that is not a RuntimeFault"
            )
            return text, Recording(log.name, os.fspath(self.folder))

    def calls_of_several(self) -> list[tuple[str, int]]:
        """Return the storage calls inside the append of several events, each with its number."""
        operations = list(self.recorded())
        begun = next(i for i, one in enumerate(operations) if one.data == b"begin %d\n" % SEVERAL)
        done = next(i for i, one in enumerate(operations) if one.data == b"done %d\n" % SEVERAL)
        inside = [one for one in operations[begun:done] if one.what != "told"]
        return list(
            dict.fromkeys((one.call, one.number) for one in inside if one.call in {*WRITES, *SYNCS, "ftruncate"})
        )

    def lasting(self, files: Files) -> Files:
        """Return the files except the volatile ones."""
        return {
            name: content
            for name, content in files.items()
            if not any(fnmatch.fnmatch(name, pattern) for pattern in self.volatile)
        }

    def all_keep_their_word(self, states: list[tuple[int, Files]]) -> None:
        chosen = random.Random(1).sample(states, min(self.most_states, len(states)))  # noqa: S311  # not a secret
        for told, files in chosen:
            put_files(os.fspath(self.folder), self.lasting(files))
            self.keeps_its_word(told, f"after {told} acknowledged acts")

    def keeps_its_word(self, told: int, when: str) -> None:
        """Require that everything acknowledged is present, that nothing is partial, and that the next act can be
        repeated."""
        try:
            store = self.open_store(ManualClock())
        except RuntimeFault as fault:
            if told:
                raise AssertionError(f"{when}, the store cannot be opened: {fault}") from fault
            return
        try:
            self.judge(store, told, when)
            if told < len(acts()):
                do(store, acts()[told])
                self.judge(store, told + 1, f"{when}, and one repeated")
        finally:
            store.close()
        with self.store() as again:
            self.judge(again, min(told + 1, len(acts())), f"{when}, one repeated, then opened again")

    def judge(self, store: Store, told: int, when: str) -> None:
        try:
            judge(store, told)
        except (RuntimeFault, AssertionError) as wrong:
            raise AssertionError(f"{when}: {wrong}") from wrong


def judge(store: Store, told: int) -> None:
    """Require that the store has all acknowledged acts, the next one completely or not at all, and no others."""
    least, most = expected_after(told), expected_after(told + 1)
    events, moved = list(store.read(STREAM)), list(store.read(MOVED))
    assert len(events) in {len(least.events), len(most.events)}, (
        f"{len(events)} events are present; {len(least.events)} were acknowledged"
    )
    assert len(moved) in {least.moved, most.moved}, f"{len(moved)} events of an imported stream are present"
    for event, new in zip(events, most.events, strict=False):
        assert (event.type, event.data) == (new.type, new.data)
        found = payload_or_none(store, event)
        allowed = {one.payload_of(new) for one in (least, most)}
        assert found in allowed, f"version {event.version}: its payload is missing, or an erased payload has reappeared"
    index = {entry for kind in {one.kind for one in INDEXED.values()} for entry in store.entries(kind)}
    assert index == set(index_of([*events, *moved]).values()), "the index differs from the events"


class WhatShouldBeThere(NamedTuple):
    events: list[NewEvent]
    moved: int
    erased: bool

    def payload_of(self, new: NewEvent) -> bytes | None:
        return None if self.erased and new.payload == DOOMED else new.payload


def expected_after(count: int) -> WhatShouldBeThere:
    done = acts()[:count]
    events = [event for act in done if isinstance(act, Append) for event in act.events]
    moved = sum(len(act.events) for act in done if isinstance(act, Import))
    return WhatShouldBeThere(events, moved, any(isinstance(act, str) for act in done))


def payload_or_none(store: Store, event: Event) -> bytes | None:
    try:
        return store.payload(event)
    except PayloadErased:
        return None


class Bytes(StoreTestCase):
    """The contents of the files in `folder`."""

    folder: str | os.PathLike[str] = ""
    volatile: tuple[str, ...] = ()
    most_bytes = 60

    def test_an_erased_payload_is_gone_from_the_disk(self) -> None:
        secret = b"erase me: " + base64.b32encode(os.urandom(40))
        with self.store() as store:
            writer = Writer("w")
            request = writer.request("a")
            (event,) = store.append(request._replace(events=(request.events[0]._replace(payload=secret),))).events
            store.append(writer.request("b"))
            assert self.found_on_disk(secret), "the payload cannot be found before it is erased: define `found_on_disk`"
            assert store.erase(event.payload or "")
            assert not self.found_on_disk(secret)
        assert not self.found_on_disk(secret)

    def found_on_disk(self, secret: bytes) -> bool:
        """Look for the bytes verbatim, in hexadecimal, and in base64. A store that packs them has to unpack them."""
        forms = [re.escape(secret), re.escape(secret.hex().encode())]
        for start in range(3):  # where the bytes begin within a group of three
            middle = base64.b64encode(bytes(start) + secret)[4:-4]
            forms.append(re.escape(middle))
        content = b"\n".join(files_in(os.fspath(self.folder)).values())
        return re.search(b"|".join(forms), content, re.IGNORECASE) is not None

    def test_altered_bytes_are_never_returned(self) -> None:
        streams = (STREAM, "conformance/other@00000001")
        truth: dict[str, list[tuple[Event, bytes | None]]] = {}
        with self.store() as store:
            for stream in streams:
                writer = Writer(f"w of {stream}", stream)
                events = [*store.append(writer.request("run.started", "checkpoint")).events]
                events += store.append(writer.request("step.completed", "a", "b")).events
                truth[stream] = [(event, store.payload(event)) for event in events]
        files = files_in(os.fspath(self.folder))
        places = [(name, at) for name, content in sorted(files.items()) for at, byte in enumerate(content) if byte]
        places = [place for place in places if not any(fnmatch.fnmatch(place[0], one) for one in self.volatile)]
        for name, at in random.Random(1).sample(places, min(self.most_bytes, len(places))):  # noqa: S311  # not a secret
            altered = bytearray(files[name])
            altered[at] ^= 1
            put_files(os.fspath(self.folder), files | {name: bytes(altered)})
            for event, payload in self.believed(streams):
                wanted = truth[event.stream][event.version - 1]
                assert event == wanted[0], f"byte {at} of {name} was altered, and an altered event was returned"
                assert payload == wanted[1], f"byte {at} of {name} was altered, and an altered payload was returned"

    def believed(self, streams: tuple[str, ...]) -> Iterator[tuple[Event, bytes | None]]:
        """Yield what the store returns until it reports damage."""
        try:
            with self.store() as store:
                for stream in streams:
                    for event in store.read(stream):
                        yield event, store.payload(event)
        except RuntimeFault:
            return
