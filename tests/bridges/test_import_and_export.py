"""Foreign checkpoints go into the log whole or not at all, and come out as they went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridges.samples import BATCH, ROLE, SAMPLES, STEP, STEP_EVENT, artifact, lines
from git.scratch import begin_repository
from workpacket.bridges.foreign import BRIDGES, Foreign, bridge_named
from workpacket.cli.main import main
from workpacket.problem import Problem
from workpacket.runtime import Runtime
from workpacket.runtime.model_sessions.session import open_session
from workpacket.runtime.step import load_checkpoint


class Place:
    """A repository in which the two commands are called."""

    def __init__(self, root: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capture = capture

    def __call__(self, *words: str) -> tuple[int, str]:
        status = main(list(words))
        said = self.capture.readouterr()
        return status, said.out + said.err

    def write(self, data: bytes, name: str = "file") -> str:
        (self.root / name).write_bytes(data)
        return name

    def streams(self) -> list[str]:
        with Runtime.open() as runtime:
            return [head.stream for head in runtime.store.heads()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    begin_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path, capsys)


def test_every_form_has_a_canonical_sample() -> None:
    assert SAMPLES.keys() == BRIDGES.keys()


@pytest.mark.parametrize("form", BRIDGES)
def test_a_canonical_file_comes_back_byte_for_byte(place: Place, form: str) -> None:
    file = place.write(SAMPLES[form])
    assert place("log", "import", form, file)[0] == 0
    assert place("log", "export", form, "--out", "again")[0] == 0
    assert (place.root / "again").read_bytes() == SAMPLES[form]
    assert place("log", "export", form)[1].encode() == SAMPLES[form]


@pytest.mark.parametrize("form", BRIDGES)
def test_the_same_file_again_changes_nothing(place: Place, form: str) -> None:
    file = place.write(SAMPLES[form])
    place("log", "import", form, file)
    with Runtime.open() as runtime:
        before = runtime.store.heads()
    status, said = place("log", "import", form, file, "--json")
    assert status == 0
    assert {row["outcome"] for row in json.loads(said)["data"]["streams"]} == {"unchanged"}
    with Runtime.open() as runtime:
        assert runtime.store.heads() == before


@pytest.mark.parametrize("form", BRIDGES)
def test_what_a_form_cannot_carry_is_said(place: Place, form: str) -> None:
    place("log", "import", form, place.write(SAMPLES[form]))
    data = json.loads(place("log", "export", form, "--json")[1])["data"]
    assert data["lossy"] == list(bridge_named(form).lossy)
    assert data["lossy"]
    assert data["text"].encode() == SAMPLES[form]


SUMMARY = b"---\nfeature: login\nstatus: complete\ncompleted: 2026-03-01\n---\n\nAll of it.\n"


@pytest.mark.parametrize("name", ["login-summary.md", "login-cost-summary.md", "_template.md"])
def test_what_lies_beside_the_checkpoints_of_roles_is_passed_over_by_name(place: Place, name: str) -> None:
    file, other = place.write(SAMPLES["role"]), place.root / name
    other.write_bytes(SUMMARY)
    status, said = place("log", "import", "role", file, str(other), "--json")
    data = json.loads(said)["data"]
    assert (status, [row["outcome"] for row in data["streams"]]) == (0, ["genesis"])
    assert [row["path"] for row in data["passed_over"]] == [str(other)]
    assert f"{name}  skipped: it is a " in place("log", "import", "role", file, str(other))[1]


def test_a_broken_checkpoint_among_them_still_keeps_everything_out(place: Place) -> None:
    (place.root / "login-summary.md").write_bytes(SUMMARY)
    broken = place.root / "login-coder.md"
    broken.write_bytes(SAMPLES["role"].replace(b"agent:", b"agentt:"))
    words = [place.write(SAMPLES["role"]), str(broken), str(place.root / "login-summary.md")]
    assert place("log", "import", "role", *words)[0] == 1
    with Runtime.open() as runtime:
        assert not list(runtime.store.heads())


def test_a_summary_alone_is_no_checkpoint(place: Place) -> None:
    (place.root / "login-summary.md").write_bytes(SUMMARY)
    status, said = place("log", "import", "role", str(place.root / "login-summary.md"))
    assert (status, "nothing was imported" in said) == (1, True)


_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cn", "Co"]), min_size=1, max_size=12)
_SCALARS = st.none() | st.booleans() | st.integers(1 - 10**15, 10**15 - 1) | _TEXTS
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3), max_leaves=6
)


@pytest.mark.parametrize("form", ["batch", "role"])
@given(more=st.dictionaries(_TEXTS.map(lambda key: f"x{key}"), _VALUES, max_size=4))
@example(more={"x0": {"last_commit": False, "tasks": [7]}})
def test_keys_that_nobody_knows_come_back_as_they_were(form: str, more: dict[str, Any]) -> None:
    bridge = bridge_named(form)
    (checkpoint,) = bridge.read("file", SAMPLES[form])
    assert isinstance(checkpoint, Foreign)
    values = dict(checkpoint.values)
    if form == "role":
        values["front"] = {**cast("dict[str, Any]", values["front"]), **more}
    else:
        values |= more
    written = bridge.write([checkpoint._replace(values=values)])
    (again,) = bridge.read("file", written)
    assert isinstance(again, Foreign), again
    assert again.values == values
    assert bridge.write([again]) == written


@pytest.mark.parametrize("form", BRIDGES)
@given(data=st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(form: str, data: bytes) -> None:
    read = bridge_named(form).read("file", data)
    assert all(isinstance(one, Problem) for one in read) or not any(isinstance(one, Problem) for one in read)


@pytest.mark.parametrize("form", ["session", "step"])
def test_a_file_that_was_cut_off_is_refused_whole(form: str) -> None:
    data = SAMPLES[form]
    for cut in range(1, len(data) - 1, 97):
        read = bridge_named(form).read("file", data[:cut])
        whole = data[:cut].rstrip().endswith(b"}") and form == "step"
        assert isinstance(read[0], Problem) != whole


@pytest.mark.parametrize("form", ["batch", "role"])
def test_a_file_cut_off_where_its_form_lets_it_end_is_seen_once_the_log_knows_more(place: Place, form: str) -> None:
    """A beginning of YAML or Markdown may be a whole file. It is never half of one: what it says is kept, or nothing.

    What belongs to the view of the work is compared with the log; text and further keys are whoever's wrote them.
    """
    data = SAMPLES[form]
    assert place("log", "import", form, place.write(data))[0] == 0
    refused = [
        cut for cut in range(1, len(data)) if isinstance(bridge_named(form).read("file", data[:cut])[0], Problem)
    ]
    assert len(refused) > len(data) // 3
    for cut in sorted(set(range(1, len(data), 7)) - set(refused)):
        status, said = place("log", "import", form, place.write(data[:cut], "cut"))
        assert (status, "view_conflict" in said) == (69, True) or "unchanged" in said, data[:cut]
        assert place("log", "export", form)[1].encode() == data


def test_an_invalid_line_is_named_with_line_and_column_and_nothing_is_taken_over(place: Place) -> None:
    good = place.write(STEP, "good")
    bad = place.write(STEP + lines({**STEP_EVENT, "strictness": "high"}) + b'{"torn', "bad")
    status, said = place("log", "import", "step", good, bad)
    assert status == 1
    column = lines({**STEP_EVENT, "strictness": "high"}).index(b'"high"') + 1
    assert f"bad:6:{column}: strictness: it must be off, medium or max (checkpoint_malformed)" in said
    assert "bad:7:" in said
    assert "nothing was imported" in said
    assert place.streams() == []
    assert json.loads(place("log", "import", "step", bad, "--json")[1])["findings"][0]["line"] == 6


@pytest.mark.parametrize(
    ("form", "data", "where"),
    [
        ("step", b"[1]\n", "file:1:1"),
        ("step", lines({**STEP_EVENT, "cursor": ""}), "file:1:12"),
        ("step", lines({**STEP_EVENT, "retry_token": 7}), "retry_token: it must be a UUID"),
        ("step", b"\xff\n", "file:1:1"),
        ("step", b"\n", "it contains no step checkpoints"),
        ("session", b"[]", "the document must be a mapping, not a list"),
        ("session", artifact().replace(b"0.5", b"0.25"), "file:2:18: artifact_id: does not match the content"),
        ("session", artifact(schema_version=2), "`schema_version` must be 1, not 2"),
        ("session", artifact(kind="sometimes"), "`kind` must be periodic, event_triggered"),
        ("session", b'{"schema_version": 1, "kind": "periodic"}', "`session_id` is missing"),
        ("session", b'{"a": 1, "a": 2}', "file:1:10"),
        ("batch", b"tasks: []\n", "the `checkpoint` mapping is missing"),
        ("batch", BATCH.replace(b"  branch: main", b"  branch: [main"), "file:"),
        ("batch", BATCH.replace(b"    completed:\n      - T001", b"    completed: 7"), "file:10:"),
        ("batch", b"a: 1\na: 2\n", "file:2:1"),
        ("role", b"# a note\n", "the front matter is missing"),
        ("role", ROLE.replace(b'team: "build"\n', b""), "the checkpoint lacks team (role_key_missing)"),
        ("role", ROLE.replace(b'"build"', b'""'), "the checkpoint lacks team"),
        ("role", ROLE.replace(b"run: 7", b"feature: x"), "file:11:1"),
        ("role", ROLE.replace(b"run: 7", b"type: cost-summary"), "this is not a role checkpoint"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_refused_where_it_is_wrong(place: Place, form: str, data: bytes, where: str) -> None:
    status, said = place("log", "import", form, place.write(data))
    assert status == 1
    assert where in said
    assert place.streams() == []


def test_an_event_log_that_grew_extends_its_streams(place: Place) -> None:
    place("log", "import", "step", place.write(STEP))
    more = lines({**STEP_EVENT, "timestamp": "2026-02-17T12:00:00+00:00"})
    status, said = place("log", "import", "step", place.write(STEP + more))
    assert status == 0
    assert "step/041-mission/run%2F1/specify  extended, 2 known, 1 new\n" in said
    assert place("log", "export", "step")[1].encode() == STEP + more
    assert place("log", "export", "step", "041-mission/run%2F1/plan")[1].encode() == lines(
        {**STEP_EVENT, "step_id": "plan"}
    )


@pytest.mark.parametrize(
    "changed",
    [lines(STEP_EVENT), STEP.replace(b"v3", b"v4", 1)],
    ids=["shorter", "edited"],
)
def test_a_view_that_differs_from_its_stream_blocks_and_nothing_of_it_is_taken_over(
    place: Place, changed: bytes
) -> None:
    place("log", "import", "step", place.write(STEP))
    before = place.streams()
    other = lines({**STEP_EVENT, "mission_id": "first"})
    status, said = place("log", "import", "step", place.write(other + changed, "changed"))
    assert status == 69
    assert "view_conflict" in said
    assert place.streams() == before
    data = json.loads(place("log", "import", "step", "changed", "--plan", "--json")[1])["data"]
    assert data["facts"]["stream"] == "step/041-mission/run%2F1/specify"
    assert sorted(data["facts"]["differences"]) == ([] if changed == lines(STEP_EVENT) else ["scope_refs"])


def test_planning_writes_nothing(place: Place) -> None:
    status, said = place("log", "import", "step", "--plan", place.write(STEP))
    assert status == 0
    assert "would be imported" in said
    assert not (place.root / ".git" / "workpacket").exists()


def test_a_file_with_a_secret_is_not_taken_over(place: Place) -> None:
    status, said = place("log", "import", "step", place.write(lines({**STEP_EVENT, "note": "ghp_" + "a" * 36})))
    assert status == 77
    assert "redaction_failed" in said
    assert place.streams() == []


def test_nothing_is_written_over(place: Place) -> None:
    file = place.write(STEP)
    place("log", "import", "step", file)
    status, said = place("log", "export", "step", "--out", file)
    assert status == 6
    assert "was not overwritten" in said


def test_of_several_files_one_has_to_be_named(place: Place) -> None:
    place(
        "log",
        "import",
        "step",
        place.write(STEP, "one"),
        place.write(lines({**STEP_EVENT, "mission_id": "two"}), "two"),
    )
    status, said = place("log", "export", "step")
    assert status == 68
    assert "is ambiguous; it matches several files: one, two" in said
    assert place("log", "export", "step", "two")[1].encode() == lines({**STEP_EVENT, "mission_id": "two"})
    assert place("log", "export", "step", "041")[0] == 68


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("import",), "missing_argument"),
        (("import", "yaml", "x"), "invalid_value"),
        (("import", "step"), "missing_argument"),
        (("import", "step", "none"), "file_unreadable"),
        (("export", "step", "a", "b"), "unexpected_argument"),
    ],
    ids=["no-form", "other-form", "no-file", "missing-file", "two-keys"],
)
def test_a_call_that_does_not_fit_is_refused(place: Place, words: tuple[str, ...], code: str) -> None:
    assert code in place(*words)[1]


def test_imported_checkpoints_are_no_runs(place: Place) -> None:
    place("log", "import", "step", place.write(STEP))
    assert place("runtime", "runs", "list", "--json")[0] == 0
    assert json.loads(place("runtime", "runs", "list", "--json")[1])["data"]["runs"] == []
    assert place("resume")[1] == "nothing is unfinished\n"
    assert place("runtime", "runs", "verify")[0] == 0


def test_a_session_of_this_store_is_written_as_it_stands_and_read_on_another_machine(place: Place) -> None:
    with Runtime.open() as runtime, open_session(runtime, "s", model="m", packet="WP-1-X-v1") as session:
        session.add("user", "hello")
        session.checkpoint(state={"todo": [1]})
    exported = place("log", "export", "session", "WP-1-X-v1/s")[1].encode()
    values: dict[str, Any] = json.loads(exported)
    assert (values["state"], values["kind"], values["messages"]) == ({"todo": [1]}, "pre_shutdown", 1)
    assert "unchanged" in place("log", "import", "session", place.write(exported))[1]
    assert place("log", "import", "session", place.write(artifact(session_id="s", packet="WP-1-X-v1")))[0] == 69
    (place.root / ".git" / "workpacket" / "runs.db").rename(place.root / "elsewhere.db")
    for file in (place.root / ".git" / "workpacket").iterdir():
        file.unlink()
    assert "imported" in place("log", "import", "session", place.write(exported))[1]
    assert place("log", "export", "session", "WP-1-X-v1/s")[1].encode() == exported


def test_an_exported_event_log_can_be_resumed_from(place: Place) -> None:
    place("log", "import", "step", place.write(STEP))
    place("log", "export", "step", "--out", "log.jsonl")
    checkpoint = load_checkpoint("log.jsonl", "specify")
    assert checkpoint is not None
    assert checkpoint.retry_token.endswith("5f")
