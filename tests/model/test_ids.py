"""The grammar of ids, the ways they are compared, and finding them in prose."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.model.ids import MAX_LENGTH, InvalidId, WorkPacketId, find_ids, nearest, next_revision

# The pattern of the format description, to the letter, with the phase made general as it says.
GRAMMAR = re.compile(
    r"^WP-(?P<phase>\d+|[A-Z][A-Z0-9]*)-(?P<slug>[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*?)(?:-v(?P<rev>[1-9]\d*))?\Z",
    re.ASCII,
)

words = st.text("ABCXYZabcxyz0189", min_size=1, max_size=6)
phases = st.one_of(
    st.integers(0, 99).map(str), st.from_regex(r"[A-Z][A-Z0-9]{0,5}", fullmatch=True).filter(lambda p: p != "CON")
)
slugs = st.builds(
    lambda first, rest: first + "".join(separator + word for separator, word in rest),
    words.filter(lambda word: word.lower() not in {"con", "prn", "aux", "nul"}),
    st.lists(st.tuples(st.sampled_from(".-"), words), max_size=4),
)
bases = st.builds("WP-{}-{}".format, phases, slugs).filter(lambda text: not re.search(r"-v[1-9][0-9]*\Z", text))


def ids_in(text: str) -> list[str]:
    return [str(packet) for packet, _, _ in find_ids(text)]


@pytest.mark.parametrize(
    ("text", "phase", "slug", "revision"),
    [
        ("WP-1-Parser", "1", "Parser", None),
        ("WP-1-Parser-v2", "1", "Parser", 2),
        ("WP-12-Line-Reader-v10", "12", "Line-Reader", 10),
        ("WP-KERNEL-Log", "KERNEL", "Log", None),
        ("WP-K2-Log-v1", "K2", "Log", 1),
        ("WP-1-EXE-v1.2-Runtime", "1", "EXE-v1.2-Runtime", None),
        ("WP-1-EXE-v1.2-Runtime-v3", "1", "EXE-v1.2-Runtime", 3),
        ("WP-1-Spec-v2.2.1", "1", "Spec-v2.2.1", None),
        ("WP-1-Spec-v2.2.1-v1", "1", "Spec-v2.2.1", 1),
        ("WP-1-v2", "1", "v2", None),
        ("WP-1-X-v2-v3", "1", "X-v2", 3),
        ("WP-1-X-v0", "1", "X-v0", None),
        ("WP-1-X-v01", "1", "X-v01", None),
        ("WP-1-Store-20260131", "1", "Store-20260131", None),
    ],
)
def test_an_id_has_phase_slug_and_perhaps_a_revision(text: str, phase: str, slug: str, revision: int | None) -> None:
    packet = WorkPacketId.parse(text)

    assert (packet.phase, packet.slug, packet.revision) == (phase, slug, revision)
    assert (packet.kind, packet.mission, packet.short) == ("packet", "", "")


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("WP-1-Parser", "WP-1-Parser"),
        ("WP-1-Parser-v2", "WP-1-Parser"),
        ("WP-1-Spec-v2.2.1-v1", "WP-1-Spec-v2.2.1"),
        ("WP-1-X-v2-v3", "WP-1-X-v2"),
        ("WP07", "WP07"),
        ("012-parser--WP07", "012-parser--WP07"),
    ],
)
def test_the_base_is_the_id_without_its_revision(text: str, base: str) -> None:
    assert WorkPacketId.parse(text).base == base


def test_a_work_package_is_short_within_its_mission_and_scoped_outside() -> None:
    short = WorkPacketId.parse("WP07")
    scoped = short.scoped("012-parser-01KS52BD")

    assert (short.kind, short.short, short.mission) == ("short", "WP07", "")
    assert (scoped.kind, scoped.short, scoped.mission) == ("scoped", "WP07", "012-parser-01KS52BD")
    assert str(scoped) == "012-parser-01KS52BD--WP07"


@pytest.mark.parametrize("text", ["WP-1-Parser", "012-parser--WP07"])
def test_only_a_short_id_is_scoped(text: str) -> None:
    with pytest.raises(InvalidId, match="is a complete id; only a short id"):
        WorkPacketId.parse(text).scoped("013-other")


@pytest.mark.parametrize("mission", ["", "a--b", "-a", "a b", "con", "x" * 80])
def test_a_mission_that_is_no_name_is_refused(mission: str) -> None:
    with pytest.raises(InvalidId):
        WorkPacketId.parse("WP07").scoped(mission)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("WP-1-" + "x" * 76, "has 81 characters; an id can have at most 80"),
        ("WP-1-Pärser", "is not ASCII"),
        ("WP-\u0661-Parser", "is not ASCII"),
        ("WP-1-Parser\n", "has leading or trailing whitespace"),
        (" WP-1-Parser", "has leading or trailing whitespace"),
        ("wp-1-Parser", "does not begin with `WP` in upper case"),
        ("WP-1-CON", "contains a name that Windows reserves for a device"),
        ("WP-1-aux.parser-v2", "contains a name that Windows reserves for a device"),
        ("WP-LPT1-Parser", "contains a name that Windows reserves for a device"),
        ("nul--WP07", "contains a name that Windows reserves for a device"),
        *(
            (text, "is not of the form `WP-<phase>-<slug>-v<N>`, such as `WP-1-Parser-v2`")
            for text in (
                *("Parser", "WP", "WP-", "WP-1", "WP-1-", "WP--Parser", "WP-1-Parser-", "WP-1-Parser--v2", "WP-1-.x"),
                *("WP-1-x..y", "WP-1-a_b", "WP-1-a/b", "WP-1-../x", "WP-a-Parser", "WP-1a-Parser", "WP-1-Parser.md."),
                *("WP7", "WP-7", "WP07-x", "--WP07", "a--b--WP07", "WP-{phase}-{name}", "WP-1-a\x00b", "WP-1-a\\b"),
            )
        ),
    ],
)
def test_what_is_no_id_is_refused_with_the_reason(text: str, complaint: str) -> None:
    assert WorkPacketId.try_parse(text) is None
    with pytest.raises(InvalidId) as caught:
        WorkPacketId.parse(text)
    assert str(caught.value) == complaint


@given(st.one_of(st.text(max_size=90), st.text("WP-0v1.xA_\n", max_size=12).map("WP-1-".__add__), bases))
def test_the_grammar_is_the_one_of_the_format_description(text: str) -> None:
    parsed = WorkPacketId.try_parse(text)
    match = GRAMMAR.match(text)

    if parsed is not None and parsed.kind == "packet":
        assert match is not None
        assert (parsed.phase, parsed.slug) == (match["phase"], match["slug"])
        assert parsed.revision == (int(match["rev"]) if match["rev"] else None)
    elif match is not None:
        device = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?\Z", re.IGNORECASE | re.DOTALL)
        assert len(text) > MAX_LENGTH or device.match(match["slug"]) or device.match(match["phase"])


@given(bases, st.integers(1, 999))
def test_a_base_with_a_revision_is_an_id_of_that_base(base: str, revision: int) -> None:
    packet = WorkPacketId.parse(f"{base}-v{revision}")

    assert packet.base == base
    assert packet.revision == revision


def test_ids_are_equal_by_text_and_unique_by_key() -> None:
    one, same, other = (WorkPacketId.parse(text) for text in ("WP-1-Parser", "WP-1-Parser", "WP-1-PARSER"))

    assert one == same
    assert one != other
    assert one != "WP-1-Parser"
    assert len({one, same, other}) == 2
    assert one.key == other.key
    assert repr(one) == "WorkPacketId('WP-1-Parser')"


def test_an_id_does_not_change() -> None:
    packet = WorkPacketId.parse("WP-1-Parser-v2")

    with pytest.raises(AttributeError, match="cannot be changed: revision"):
        packet.revision = 3
    with pytest.raises(AttributeError, match="cannot be changed: slug"):
        del packet.slug
    assert packet == copy.deepcopy(packet) == pickle.loads(pickle.dumps(packet))


def parsed(*texts: str) -> list[WorkPacketId]:
    return [WorkPacketId.parse(text) for text in texts]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], "WP-1-Parser-v1"),
        (["WP-1-Parser"], "WP-1-Parser-v2"),
        (["WP-1-Parser-v1", "WP-1-Parser-v7"], "WP-1-Parser-v8"),
        (["WP-1-Parser-Lines-v9", "WP-2-Parser-v9", "WP07"], "WP-1-Parser-v1"),
        (["WP-1-PARSER-v3"], "WP-1-Parser-v4"),
    ],
)
def test_the_next_revision_counts_on_from_the_known_ones(known: list[str], expected: str) -> None:
    assert str(next_revision("WP-1-Parser", parsed(*known))) == expected


def test_a_revision_that_makes_the_id_too_long_is_refused() -> None:
    with pytest.raises(InvalidId, match="82 characters"):
        next_revision("WP-1-" + "x" * 74, [])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("wp-1-parser-v2", "WP-1-Parser-v2"),
        ("WP-1-Parser-v9", "WP-1-Parser-v2"),
        ("WP-1-Parser", "WP-1-Parser-v2"),
        ("WP-1-Pasrer-v2", "WP-1-Parser-v2"),
        ("WP-1-Line Reader", "WP-1-Line-Reader"),
        ("WP-1-Zebra", None),
        ("WP08", None),
        ("x" * 1000, None),
        ("", None),
    ],
)
def test_the_nearest_id_is_the_one_that_was_probably_meant(text: str, meant: str | None) -> None:
    known = parsed("WP-1-Line-Reader", "WP-1-Parser-v1", "WP-1-Parser-v2", "WP-1-Other", "WP07")

    found = nearest(text, known)

    assert (str(found) if found else None) == meant


@pytest.mark.parametrize(
    "text",
    [
        "WP-1-Parser-v2",
        "see WP-1-Parser-v2.",
        "WP-1-Parser-v2...",
        "(WP-1-Parser-v2)",
        "[WP-1-Parser-v2](stubs/x)",
        "`WP-1-Parser-v2`:",
        "**WP-1-Parser-v2**",
        "*WP-1-Parser-v2*",
        "_WP-1-Parser-v2_",
        "__WP-1-Parser-v2__",
        "___WP-1-Parser-v2___",
        "| WP-1-Parser-v2 |",
        "|WP-1-Parser-v2<br>",
        '"WP-1-Parser-v2"',
        "WP-1-Parser-v2's",
        "WP-1-Parser-v2; more",
        "WP-1-Parser-v2?",
        "WP-1-Parser-v2\n",
        "feat/WP-1-Parser-v2",
        "logs/WP-1-Parser-v2/run",
        "active=WP-1-Parser-v2;",
        "stubs/WP-1-Parser-v2.md",
        "stubs/WP-1-Parser-v2.md.",
        "stubs/WP-1-Parser-v2.md:12",
        "validator_gates/WP-1-Parser-v2.json",
        "stubs/WP-1-Parser-v2.MD",
        "§WP-1-Parser-v2",
        "WP-1-Parser-v2\u200b",
    ],
)
def test_an_id_is_found_in_prose(text: str) -> None:
    ((packet, start, end),) = find_ids(text)

    assert text[start:end] == str(packet) == "WP-1-Parser-v2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "WP",
        "WP-{phase}-{name}",
        "WP-{phase}-{name}-v{N}",
        "WP-...",
        "WP-1-...",
        "WP-1-Parser-...",
        "WP-1-Parser-v{N}",
        "WP-1-Parser-<suffix>",
        "WP-1-Parser*",
        "*WP-1-Parser-*",
        "WP-1-Parser[12]",
        "WP-1-Parser$x",
        "WP-1-Parser.log",
        "logs/WP-1-Parser-v2.LOG",
        "WP-1-Parser.txt",
        "WP-1-Parser_old",
        "WP-1-Parser____",
        "____WP-1-Parser",
        "x_WP-1-Parser",
        "wt-WP-1-Parser",
        "xWP-1-Parser",
        "WP-1-Parserö",
        "EVT-WP-001",
        "WP-001",
        "WP-in-flight",
        "wp-1-parser",
        "WP-1-CON",
        "WP-1-" + "x" * 90,
        "WAIVER_ID: WP-1-Parser-SCAN-001 | Date",
        "waived under `WP-1-Parser-SCAN-001` (Waiver ID=WP-1-Parser-SCAN-001;)",
        "WP7",
        "WP07x",
        "WP07.3",
        "xWP07",
        "task-WP07",
        "--WP07",
        "WP07*",
        "x--y--WP07",
        "ö012-parser--WP07",
        "a" * 90 + "--WP07",
    ],
)
def test_what_only_looks_like_an_id_is_left_alone(text: str) -> None:
    assert ids_in(text) == []


def test_an_id_is_never_found_within_another() -> None:
    text = "WP-1-Parser WP-1-Parser-Lines WP-1-Parser-Lines-v2 WP-1-Parser-v2"

    assert ids_in(text) == text.split()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("depends on WP01, WP02 (WP03's).", ["WP01", "WP02", "WP03"]),
        ("WP01-WP06", ["WP01", "WP06"]),
        ("WP05\u201307", ["WP05"]),
        ("tasks/WP07-tests.md and WP08.yaml", ["WP07", "WP08"]),
        ("012-parser--WP07 after WP06", ["012-parser--WP07", "WP06"]),
        ("WP01--WP06", ["WP01"]),
        ("WP01 --WP06", ["WP01"]),
        ("WP07.", ["WP07"]),
        ("_WP07_ **WP08**", ["WP07", "WP08"]),
        ("WP07/WP08", ["WP07", "WP08"]),
    ],
)
def test_work_packages_are_found_short_and_scoped(text: str, found: list[str]) -> None:
    assert ids_in(text) == found


@given(st.lists(st.tuples(bases, st.sampled_from([" ", ", ", ". ", "\n", "` `", " / ", ") ("]))))
def test_ids_between_ordinary_punctuation_are_all_found(parts: list[tuple[str, str]]) -> None:
    parts = [(base, separator) for base, separator in parts if not re.search(r"\.[a-z]+\Z", base, re.IGNORECASE)]
    text = "".join(base + separator for base, separator in parts)

    assert ids_in(text) == [base for base, _ in parts]


@given(st.text(st.sampled_from("WP-01vXy.md_*{ log\n"), max_size=60))
def test_what_is_found_stands_there_in_order_and_does_not_overlap(text: str) -> None:
    position = 0
    for packet, start, end in find_ids(text):
        assert position <= start
        assert text[start:end] == packet.text
        assert WorkPacketId.try_parse(packet.text) == packet
        position = end


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WP-" * 60_000, 0),
        ("WP-1-" * 40_000, 0),
        ("_" * 200_000, 0),
        ("a--WP07" * 20_000, 0),
        ("WP07-" * 30_000, 30_000),
    ],
)
def test_hostile_prose_is_searched_to_its_end(text: str, found: int) -> None:
    assert len(find_ids(text)) == found  # of 200 kilobytes; a quadratic search would not end within the test run


def test_importing_ids_loads_nothing_heavy() -> None:
    code = "import sys; import workpacket.model.ids; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code_with_path(code)], capture_output=True, text=True, check=True
    )

    assert {"dataclasses", "typing", "difflib", "inspect"}.isdisjoint(loaded.stdout.split())


def code_with_path(code: str) -> str:
    import workpacket

    root = next(iter(workpacket.__path__)).rpartition("workpacket")[0]
    return f"import sys; sys.path.insert(0, {root!r}); {code}"
