"""The loss of power at any moment, by every way in which writes that were not synced can be lost.

The program's writes are recorded with strace. From the recording, the states a disk may be left in are built: what was
synced is there; of what was not, nothing, everything, the first writes only, a random part, half of the last write,
or zeros in its place; and files whose folder was not synced may be missing. In every one of them each acknowledged
event has to be there. Two controls show that the test can see: without syncs, and with `synchronous=NORMAL`, it fails.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import workpacket
from runtime.damage import quick_folder
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine
from workpacket.runtime.testing import STREAM

PROGRAM = Path(__file__).with_name("recorder_program.py")
TRACED = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink,mkdir"
LINE = re.compile(r"^\d+ +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")


@dataclass(frozen=True)
class Operation:
    """What happened to a file: write (offset, data), truncate (offset), sync, create, delete; or `told`."""

    what: str
    file: str = ""
    offset: int = 0
    data: bytes = b""


def recorded(*arguments: str) -> list[Operation]:
    with quick_folder() as folder:
        log = folder / "log"
        command = ["strace", "-f", "-y", "-xx", "-s", "70000", "-o", str(log), "-e", f"trace={TRACED}"]
        environment = os.environ | {"PYTHONPATH": str(Path(workpacket.__file__).parents[1])}
        subprocess.run([*command, sys.executable, str(PROGRAM), str(folder), *arguments], check=True, env=environment)
        return list(operations(log.read_text(), folder))


def operations(log: str, folder: Path) -> Iterator[Operation]:
    existing: set[str] = set()
    for line in log.splitlines():
        match = LINE.match(line)
        if match is None or int(match["result"]) < 0:
            continue
        call, arguments = match["call"], match["arguments"]
        if call == "openat":
            yield from opened(arguments, folder, existing)
            continue
        path = path_of(arguments)
        if path == str(folder / "told"):
            yield Operation("told")
        elif path.startswith(str(folder / "store")):
            yield from changed(call, arguments, Path(path).name if path != str(folder / "store") else "")
            if call == "unlink":
                existing.discard(Path(path).name)


def opened(arguments: str, folder: Path, existing: set[str]) -> Iterator[Operation]:
    path = text_of(arguments.split(", ")[1])
    name = Path(path).name
    if path.startswith(str(folder / "store") + "/") and "O_CREAT" in arguments and name not in existing:
        existing.add(name)
        yield Operation("create", name)


def changed(call: str, arguments: str, name: str) -> Iterator[Operation]:
    if call == "pwrite64":
        _, data, _, offset = arguments.rsplit(", ", 3)
        yield Operation("write", name, int(offset), text_of(data).encode("latin-1"))
    elif call == "ftruncate":
        yield Operation("truncate", name, int(arguments.rsplit(", ", 1)[1]))
    elif call in {"fdatasync", "fsync"}:
        yield Operation("sync", name)
    elif call == "unlink":
        yield Operation("delete", name)


def path_of(arguments: str) -> str:
    descriptor = re.match(r"\d+<([^>]*)>", arguments)
    return text_of(f'"{descriptor[1]}"') if descriptor else text_of(arguments.split(", ", maxsplit=1)[0])


def text_of(quoted: str) -> str:
    return str(ast.literal_eval(quoted))


@dataclass
class Disk:
    """What is on the disk for certain, and what was written since without being synced."""

    files: dict[str, bytes] = field(default_factory=dict)
    pending: list[Operation] = field(default_factory=list)
    unnamed: set[str] = field(default_factory=set)

    def apply(self, operation: Operation, *, syncs: bool) -> None:
        if operation.what == "sync" and syncs:
            self._sync(operation.file)
        elif operation.what != "sync":
            self.pending.append(operation)
            if operation.what == "create":
                self.unnamed.add(operation.file)

    def _sync(self, name: str) -> None:
        if name == "":  # the folder
            self.unnamed.clear()
        done = [o for o in self.pending if name in {"", o.file} and (name or o.what in {"create", "delete"})]
        self.pending = [o for o in self.pending if o not in done]
        write(self.files, done)

    def states(self, chance: random.Random) -> Iterator[dict[str, bytes]]:
        pending = self.pending
        yield self._with([])
        yield self._with(pending)
        yield self._with(pending[: chance.randint(0, len(pending))])
        yield self._with([o for o in pending if chance.random() < 0.5])
        if pending and pending[-1].what == "write":
            last = pending[-1]
            half = Operation("write", last.file, last.offset, last.data[: len(last.data) // 2])
            zeros = Operation("write", last.file, last.offset, bytes(len(last.data)))
            yield self._with([*pending[:-1], half])
            yield self._with([*pending[:-1], zeros])
        without = self._with(pending)
        yield {name: content for name, content in without.items() if name not in self.unnamed}

    def _with(self, operations: list[Operation]) -> dict[str, bytes]:
        files = dict(self.files)
        write(files, operations)
        return files


def write(files: dict[str, bytes], operations: list[Operation]) -> None:
    for operation in operations:
        content = files.get(operation.file, b"")
        if operation.what == "write":
            content = content.ljust(operation.offset, b"\0")
            files[operation.file] = (
                content[: operation.offset] + operation.data + content[operation.offset + len(operation.data) :]
            )
        elif operation.what == "truncate":
            files[operation.file] = content[: operation.offset].ljust(operation.offset, b"\0")
        elif operation.what == "create":
            files.setdefault(operation.file, b"")
        elif operation.what == "delete":
            files.pop(operation.file, None)


def bad_states(history: list[Operation], *, syncs: bool = True) -> tuple[int, list[str]]:
    """How many states were judged, and what is wrong with those that are bad."""
    chance = random.Random(1)
    disk, told, judged = Disk(), 0, 0
    bad: list[str] = []
    with quick_folder() as folder:
        for operation in history:
            told += operation.what == "told"
            disk.apply(operation, syncs=syncs)
            for state in disk.states(chance):
                judged += 1
                wrong = judgement(folder / "store", state, min(told, 12))
                bad += [f"after {told} acknowledged: {wrong}"] if wrong else []
    return judged, bad


def judgement(folder: Path, files: dict[str, bytes], told: int) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        if not name.endswith("-shm"):
            (folder / name).write_bytes(content)
    try:
        store = SQLiteStore(folder / "runs.db")
        try:
            present = len(list(store.read(STREAM)))
            problems = examine(store)
        finally:
            store.close()
    except RuntimeFault as fault:
        return f"{fault.code}: {fault.message}" if told else ""
    if present < told:
        return f"only {present} are there"
    return str(problems[0]) if problems else ""


def test_no_loss_of_power_loses_an_acknowledged_event() -> None:
    judged, bad = bad_states(recorded())
    assert judged > 1000
    assert bad == []


def test_the_control_without_syncs_goes_red() -> None:
    assert bad_states(recorded(), syncs=False)[1]


def test_the_control_with_synchronous_normal_goes_red() -> None:
    assert bad_states(recorded("NORMAL"))[1]
