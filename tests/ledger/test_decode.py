"""Reading one event file: the name proves the bytes, the bytes are canonical, the value has its closed shape."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import remembered
from ledger.stories import ALL_TYPES, PACKET, Story, data_of, rewritten
from workpacket.ledger import log
from workpacket.ledger.log import EventWriter, Format, NewLogEvent, decode_event, is_event_name, next_event
from workpacket.model.canonical import Json, NotCanonical
from workpacket.model.event_types import DATA
from workpacket.model.events import Actor, ChangedFile, LogEvent, encode_event, event_id
from workpacket.model.layout import LARGEST_EVENT
from workpacket.problem import Problem

FOLDER = f".GOV/log/{PACKET}"


def event() -> LogEvent:
    return Story().add("created")


def reading(data: bytes, *, folder: str = FOLDER) -> tuple[str, str]:
    """The code and the message for a rightly named file with these bytes."""
    found = decode_event(folder, f"{hashlib.sha256(data).hexdigest()}.json", data)
    assert isinstance(found, Problem), found
    assert (found.severity, found.line, found.path) == ("error", 0, f"{folder}/{hashlib.sha256(data).hexdigest()}.json")
    assert found.hint
    return found.code, found.message


def test_what_was_written_is_read_back() -> None:
    written = next_event(
        EventWriter(Actor("ci", "ci"), "2026-01-01T00:00:00Z", "0190a5de-ac96-774b-bcce-b302099a8057", "workpacket 1"),
        PACKET,
        NewLogEvent("created", data_of("created"), (ChangedFile("ü/x.md", None, "a" * 64),), ("b" * 64, "a" * 64)),
        after=[],
    )
    assert decode_event(FOLDER, f"{written.id}.json", written.encode()) == written
    assert written.path == f"{FOLDER}/{written.id}.json"
    assert written.attest == ("a" * 64, "b" * 64)
    assert len({written, event()}) == 2


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_every_type_is_read_back(kind: str) -> None:
    story = Story("_checkpoints" if kind == "checkpoint" else PACKET)
    if kind not in ("created", "adopted", "checkpoint"):
        story.add("created")
    written = story.add(kind)
    assert decode_event(f".GOV/log/{story.packet}", f"{written.id}.json", written.encode()) == written
    assert written.moves_lane == ("lane_to" in written.data)


def test_all_types_are_tried_here() -> None:
    assert set(ALL_TYPES) == set(DATA), "add an example of it to tests/ledger/stories.py"


def test_sha256sum_alone_verifies_a_log(tmp_path: Path) -> None:
    story = Story()
    story.tell("created", "activated", "claimed")
    for name, data in story.files().items():
        (tmp_path / name).write_bytes(data)
    listing = "".join(f"{name.removesuffix('.json')}  {name}\n" for name in story.files())
    subprocess.run(["sha256sum", "--check", "--strict"], input=listing.encode(), cwd=tmp_path, check=True)


def test_any_flipped_bit_is_found() -> None:
    original = event()
    data = original.encode()
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            found = decode_event(FOLDER, f"{original.id}.json", bytes(flipped))
            assert isinstance(found, Problem)
            assert found.code == "event_edited"


def test_any_truncation_is_found_under_either_name() -> None:
    original = event()
    data = original.encode()
    for length in range(len(data)):
        assert isinstance(decode_event(FOLDER, f"{original.id}.json", data[:length]), Problem)
        assert reading(data[:length])[0] == "event_not_canonical"


def test_changed_line_ends_are_told_from_an_edit() -> None:
    original = event()
    found = decode_event(FOLDER, f"{original.id}.json", original.encode().replace(b"\n", b"\r\n"))
    assert isinstance(found, Problem)
    assert (found.code, ".gitattributes" in found.hint) == ("event_line_ends", True)


def test_exchanged_names_are_told_from_an_edit() -> None:
    story = Story()
    story.tell("created", "activated")
    first, second = story.files()
    found = decode_event(FOLDER, first, story.files()[second], names=story.files())
    assert isinstance(found, Problem)
    assert found.code == "event_names_swapped"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n",
        lambda text: text.replace(":", ": ", 1),
        lambda text: text.replace('"clock":1', '"clock":1,"clock":1'),
        lambda text: text.replace('"clock":1', '"clock":1e0'),
        lambda text: text.replace('"clock":1', '"clock":01'),
        lambda text: text.replace('"clock":1', '"clock":NaN'),
        lambda text: text.replace("ann", "\\u0061nn"),
        lambda text: text.replace("ann", "\\ud800"),
        lambda text: text.replace('{"actor"', '{"v":1,"actor"'),
        lambda text: text.replace('{"actor"', '{"v":2,"actor"').replace(',"v":2}', "}"),
        lambda _text: "[]\n",
        lambda _text: "\n",
        lambda _text: "[" * 100_000 + "\n",
        lambda _text: "9" * 10_000 + "\n",
    ],
)
def test_anything_but_the_canonical_form_is_refused(change: Callable[[str], str]) -> None:
    text = event().encode().decode()
    assert reading(change(text).encode())[0] == "event_not_canonical"


@pytest.mark.parametrize("data", [b"\xff\n", b"\xef\xbb\xbf{}\n", "é".encode("latin-1")])
def test_bytes_that_are_not_utf_8_are_refused(data: bytes) -> None:
    assert reading(data)[0] == "event_not_canonical"


def test_an_event_too_large_is_not_even_parsed() -> None:
    assert reading(b"[" * (LARGEST_EVENT + 1))[0] == "event_too_large"
    assert reading(b"[" * LARGEST_EVENT)[0] == "event_not_canonical"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a" * 64 + ".json", True), ("a" * 64 + ".jso", False), ("a" * 63 + ".json", False), ("A" * 64 + ".json", False),
     ("a" * 64 + ".json\n", False), ("a" * 64 + "-json", False)],
)  # fmt: skip
def test_the_name_of_an_event_is_its_digest_and_an_ending(name: str, is_one: bool) -> None:
    assert is_event_name(name) is is_one


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": 0}, "/v: `v` must be at least 1, not 0"),
        ({"v": True}, "/v: `v` must be a whole number, not true"),
        ({"v": 1, "sig": "U1NI"}, "/sig: an event of version 1 has no signature"),
        ({"sig": ""}, "/sig: `sig` is empty; it must have at least 1 character"),
        ({"sig": "a b"}, "/sig: `sig` is not a valid SSHSIG signature"),
        ({"extra": 1}, "/extra: `extra` is not a known field"),
        ({"type": "exploded"}, "/type: `type` must be one of created, adopted"),
        ({"clock": 0}, "/clock: `clock` must be at least 1, not 0"),
        ({"parents": ["a" * 64, "a" * 64]}, "/parents: must be sorted and contain no duplicates"),
        ({"parents": ["b" * 64, "a" * 64]}, "/parents: must be sorted"),
        ({"attest": ["a" * 64, "a" * 64]}, "/attest: must be sorted and contain no duplicates"),
        (
            {"data": data_of("created", dependencies=["WP-2-B-v1", "WP-1-A-v1"])},
            "/data/dependencies: must be sorted and contain no duplicates",
        ),
        (
            {"type": "reapproved", "data": data_of("reapproved", replaces=["b" * 64, "a" * 64])},
            "/data/replaces: must be sorted and contain no duplicates",
        ),
        (
            {"type": "fork.resolved", "data": data_of("fork.resolved", moves=["b" * 64, "a" * 64])},
            "/data/moves: must be sorted and contain no duplicates",
        ),
        ({"data": data_of("created", base="WP-1-Kettle\n")}, "/data/base: `base`"),
        ({"parents": ["A" * 64]}, "/parents/0: item 1 of `parents` is not a valid SHA-256"),
        ({"parents": ["a" * 64 + "\n"]}, "/parents/0: item 1 of `parents` has 65 characters; at most 64"),
        (
            {"at": "2026-02-30T00:00:00Z"},
            "/at: `at` does not have the right form: `2026-02-30T00:00:00Z` (is not a valid date: day 30 of month 02",
        ),
        ({"at": "2026-02-03"}, "/at: `at` does not have the right form: `2026-02-03` (has no time of day)"),
        ({"at": "2026-02-03T24:00:00Z"}, "(is not a valid time: 24:00)"),
        ({"actor": {"id": "x", "kind": "robot"}}, "/actor/kind: `kind` must be human, agent or ci, not `robot`"),
        ({"actor": {"id": "x\ny", "kind": "human"}}, "/actor/id: `id` is not a valid single-line name"),
        ({"tx": "0190a5de-ac96-474b-bcce-b302099a8057"}, "/tx: `tx` is not a valid transaction, a UUID of version 7"),
        (
            {"subjects": [{"path": "../x", "prev": None, "sha256": None}]},
            "/subjects/0/path: `path` is not a valid path",
        ),
        (
            {"subjects": [{"path": "a/./x", "prev": None, "sha256": None}]},
            "/subjects/0/path: `path` is not a valid path",
        ),
        ({"subjects": [{"path": "/x", "prev": None, "sha256": None}]}, "/subjects/0/path: `path` is not a valid path"),
        ({"subjects": [{"path": "x", "prev": None}]}, "/subjects/0: `sha256` is missing"),
        ({"subjects": {}}, "/subjects: `subjects` must be a list"),
        ({"data": []}, "/data: `data` must be a mapping"),
        ({"data": {"base": "WP-1-X", "lane_from": None}}, "/data: `lane_to` is missing"),
        (
            {"data": data_of("created", lane_from="STUB")},
            "/data/lane_from: `lane_from` must be empty, not the text `STUB`",
        ),
        (
            {"data": data_of("created", lane_to="Stub")},
            "/data/lane_to: `lane_to` is not a valid lane, like IN_PROGRESS",
        ),
        ({"data": data_of("created", base=7)}, "/data/base: `base` must be text, not 7"),
        ({"packet": "_checkpoints"}, "/packet: events of type checkpoint, and only these"),
        ({"type": "checkpoint", "data": data_of("checkpoint")}, "/packet: events of type checkpoint"),
        (
            {"type": "fork.resolved", "data": data_of("fork.resolved", moves=["a" * 64])},
            "/data/moves: `moves` has 1 item; it must have at least 2 items",
        ),
        (
            {"type": "abandoned", "data": data_of("abandoned", reason="")},
            "/data/reason: `reason` is empty; it must have at least 1 character",
        ),
        (
            {"type": "abandoned", "data": data_of("abandoned", reason=None)},
            "/data/reason: `reason` is empty; it must be text",
        ),
    ],
)
def test_a_value_of_the_wrong_shape_names_the_place(changes: dict[str, Json], message: str) -> None:
    code, said = reading(rewritten(event(), **changes)[1])
    assert code == "event_malformed"
    assert message in said


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (str(2**53), "must be at most 9007199254740991"),
        ("1.5", "must be a whole number, not 1.5"),
        ("-1", "must be at least 1"),
        ("1e+16", "must be at most 9007199254740991"),
        ("1.0", "a whole number is written with a fraction"),
    ],
)
def test_a_number_outside_the_profile_is_refused(number: str, message: str) -> None:
    code, said = reading(event().encode().replace(b'"clock":1', f'"clock":{number}'.encode()))
    assert code == "event_malformed"
    assert message in said


def test_a_fraction_that_json_schema_overlooks_is_explained() -> None:
    _, message = reading(event().encode().replace(b'"clock":1', b'"clock":1.0'))
    assert message == "/: a whole number is written with a fraction or an exponent"


def test_a_long_value_is_not_repeated_whole() -> None:
    _, data = rewritten(event(), type="x" * 10_000)
    assert len(reading(data)[1]) < 500 + sum(len(kind) + 2 for kind in DATA)


def test_an_event_in_another_packets_log_is_refused() -> None:
    code, message = reading(event().encode(), folder=".GOV/log/WP-2-Other-v1")
    assert code == "event_wrong_packet"
    assert PACKET in message


def test_an_event_of_a_newer_version_is_named_as_such() -> None:
    _, data = rewritten(event(), v=3, novelty="x")
    assert reading(data) == ("event_version_unknown", "format version 3; supported: up to 2")


def test_an_event_of_version_1_is_read_as_it_is_and_keeps_its_bytes() -> None:
    name, data = rewritten(event(), v=1)
    found = decode_event(FOLDER, name, data)
    assert isinstance(found, LogEvent)
    assert (found.v, found.sig, found.encode(), f"{found.id}.json") == (1, "", data, name)


def test_the_signature_is_part_of_the_file_and_not_of_what_is_signed() -> None:
    name, data = rewritten(event(), sig="U1NIU0lH")
    found = decode_event(FOLDER, name, data)
    assert isinstance(found, LogEvent)
    assert (found.sig, found.encode(), found.signed_bytes()) == ("U1NIU0lH", data, event().encode())
    assert found.id != event().id


def test_older_versions_are_brought_up_to_date_and_keep_their_id() -> None:
    def shout(value: dict[str, Json]) -> dict[str, Json]:
        return {**value, "tool": f"{value['tool']}!"}

    # Version 1 stands for "up to date" here, -1 and 0 for two older ones.
    form = Format(1, {-1: shout, 0: shout})
    name, data = rewritten(event(), v=-1)
    found = decode_event(FOLDER, name, data, form=form)
    assert isinstance(found, LogEvent)
    assert (found.tool, f"{found.id}.json") == ("workpacket test!!", name)
    name, data = rewritten(event(), v=-2)
    without_way = decode_event(FOLDER, name, data, form=form)
    assert isinstance(without_way, Problem)
    assert without_way.code == "event_malformed"


@pytest.mark.parametrize("version", ["1", True, None, 1.0, 2])
def test_what_is_no_older_version_is_left_as_it_is(version: Json) -> None:
    form = Format(2, {1: lambda value: {**value, "tool": "other"}})
    value: dict[str, Json] = {"v": version}
    assert form.upcast(value) == value
    assert not form.too_new(value)


def test_only_a_whole_number_is_too_new() -> None:
    form = Format(2)
    assert [form.too_new({"v": version}) for version in (3, "3", 3.0, None)] == [True, False, False, False]
    assert not form.too_new({})


def test_the_heads_in_a_checkpoint_are_sorted() -> None:
    row: Json = {"packet": PACKET, "heads": ["b" * 64, "a" * 64], "events": 2}
    _, data = rewritten(event(), packet="_checkpoints", type="checkpoint", data=data_of("checkpoint", logs=[row]))
    code, message = reading(data, folder=".GOV/log/_checkpoints")
    assert (code, message) == ("event_malformed", "/data/logs/0/heads: must be sorted and contain no duplicates")


def test_a_wrong_shape_in_the_program_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match=r"event abandoned of WP-1-Kettle-v1: /data: `reason` is missing"):
        next_event(
            EventWriter(Actor("ann", "human"), "2026-01-01T00:00:00Z", "0190a5de-ac96-774b-bcce-b302099a8057", "t"),
            PACKET,
            NewLogEvent("abandoned", {"lane_from": "STUB", "lane_to": "ABANDONED"}),
            after=[],
        )


def test_an_event_speaks_of_its_data() -> None:
    story = Story()
    story.add("created")
    spoken = story.add("fork.resolved", moves=["a" * 64, "b" * 64])
    assert (spoken.lane_from, spoken.lane_to) == ("FORKED", "IN_PROGRESS")
    assert spoken.texts("moves") == ("a" * 64, "b" * 64)
    assert spoken.texts("reason") == ()
    assert spoken.text("moves") is None
    assert event_id(encode_event(json.loads(spoken.encode()))) == spoken.id


# Bytes to put into an event anywhere: what could make the pattern for usual events accept more than the schema does.
PIECES = (
    b'"', b"\\", b",", b"]", b"}", b"{", b"[", b" ", b"\n", b"0", b"9" * 16, b"-1", b"1.0", b"null", b"\xc3\xbc",
    b"\xff", b"\x7f", b'"a":1,', b'"sig":"AAAA",', b"\\u0041", b'"subjects":[],', b"=", b"Z", b"A" * 5000,
)  # fmt: skip


def mutilated(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.choices(range(len(data) + 1), k=2))
    match chance.randrange(4):
        case 0:
            return data[:start] + chance.choice(PIECES) + data[start:]
        case 1:
            return data[:start] + chance.choice(PIECES) + data[start + 1 :]
        case 2:
            return data[:start] + data[end:] if chance.random() < 0.5 else data[:start] + data[start + 1 :]
        case _:
            return data[:start] + data[start:end] + data[start:end] + data[end:]


def versions(kind: str, chance: random.Random) -> Iterator[bytes]:
    """An event as it is written, signed, with other fields, and mutilated in many ways."""
    story = Story()
    story.add("created")
    data = story.add(kind).encode() if kind not in ("created", "adopted") else Story().add(kind).encode()
    yield data
    value = json.loads(data)
    others: list[dict[str, Json]] = [
        {"sig": "U1NIU0lH"}, {"v": 1}, {"v": 1, "sig": "U1NIU0lH"}, {"at": "2026-02-30T00:00:00Z"}, {"clock": 2**53},
        {"at": "2026-01-31T23:59:59Z"}, {"tool": "a\tb"}, {"tool": 'say "a"'}, {"tool": "x" * 201}, {"clock": 0},
        {"parents": ["b" * 64, "a" * 64]}, {"attest": ["a" * 64, "a" * 64]}, {"packet": "WP-2-Other-v1"},
        {"subjects": [{"path": "a/b.md", "prev": None, "sha256": "a" * 64}]}, {"type": "noted"}, {"type": "checkpoint"},
        {"subjects": [{"path": "../b.md", "prev": None, "sha256": "a" * 64}]}, {"data": {**value["data"], "more": 1}},
        {"attest": [f"{number:064x}" for number in range(51)]}, {"data": {**value["data"], "dependencies": ["b", "a"]}},
    ]  # fmt: skip
    for changes in others:
        with suppress(NotCanonical):
            yield encode_event({**value, **changes})
    for text in (b'"subjects":[ ]', b'"subjects":[[]]', b'"subjects":[null]'):
        yield data.replace(b'"subjects":[]', text)
    for _ in range(150):
        yield mutilated(data, chance)
        yield mutilated(encode_event({**value, "sig": "U1NIU0lH"}), chance)


@pytest.mark.parametrize("kind", [kind for kind in ALL_TYPES if kind != "checkpoint"])
def test_an_event_in_the_usual_form_is_read_as_in_the_general_way(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [
        (f"{hashlib.sha256(data).hexdigest()}.json", data)
        for data in versions(kind, random.Random(ALL_TYPES.index(kind)))
    ]
    usual = sum(log._usual_event(FOLDER, data, name[:64]) is not None for name, data in told)
    found = [remembered.really_decode(FOLDER, name, data) for name, data in told]
    monkeypatch.setattr(log, "_usual_event", lambda *_: None)
    assert found == [remembered.really_decode(FOLDER, name, data) for name, data in told]
    assert usual > 2
    assert {type(one) for one in found} == {LogEvent, Problem}


def test_a_long_event_is_read_in_the_general_way_because_the_pattern_could_take_long() -> None:
    text = '},"packet":"a","parents":[],"subjects":[' * 5000
    _, data = rewritten(event(), data={"text": text}, type="noted")
    assert log._usual_event(FOLDER, data, "a" * 64) is None


def test_no_more_events_are_remembered_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_ACCEPTED", 2)
    story = Story()
    told = [story.add("created"), story.add("activated"), story.add("claimed")]
    with log.each_event_decoded_once():
        again = [
            [remembered.really_decode(FOLDER, f"{each.id}.json", each.encode()) for each in told] for _ in range(2)
        ]
    assert [one is other for one, other in zip(*again, strict=True)] == [True, True, False]
    assert again[0] == again[1] == told
