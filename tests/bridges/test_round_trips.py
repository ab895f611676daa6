"""Whatever a checkpoint says, its canonical file says the same when it is read, and is written again byte for byte."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.samples import SAMPLES
from workpacket.bridges.foreign import BRIDGES, Foreign, bridge_named
from workpacket.model.canonical import Json
from workpacket.runtime.model_sessions.record import artifact_id

# No control characters and no halves of characters: those are refused, and other tests see to it.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff\u2028\u2029\ufffe\uffff")
)
WORDS = st.text("abc XYZ 0123456789 -_:#'\"[]{}&*!|>%@`~?,.=<é€", max_size=20)
VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15) + 1, 10**15 - 1) | TEXT | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz_", min_size=1), inner, max_size=3),
    max_leaves=6,
)


def read_one(form: str, data: bytes) -> Foreign:
    (first, *_) = bridge_named(form).read("file", data)
    assert isinstance(first, Foreign), first
    return first


def same_again(form: str, values: dict[str, Json]) -> None:
    bridge = bridge_named(form)
    held = read_one(form, SAMPLES[form])._replace(values=values)
    written = bridge.write([held])
    again = read_one(form, written)
    assert again.values == values
    assert bridge.write([again]) == written


@pytest.mark.parametrize("form", BRIDGES)
@given(value=VALUE)
def test_any_value_under_a_key_that_nobody_knows_comes_back(form: str, value: Any) -> None:
    values = dict(read_one(form, SAMPLES[form]).values)
    if form == "role":
        values["front"] = {**cast("dict[str, Json]", values["front"]), "mine": value}
    else:
        values |= {"mine": value}
    if form == "session":
        body = {name: item for name, item in values.items() if name != "artifact_id"}
        values = {**body, "artifact_id": artifact_id(body)}
    same_again(form, values)


@given(action=(TEXT | WORDS).filter(str.strip), notes=st.lists(TEXT | WORDS, max_size=4))
def test_whatever_a_role_says_comes_back(action: str, notes: list[str]) -> None:
    values = dict(read_one("role", SAMPLES["role"]).values)
    values["front"] = {**cast("dict[str, Json]", values["front"]), "last_action": action}
    values["body"] = "\n## Progress Notes\n\n" + "".join(f"- [10:00] {note}\n" for note in notes)
    same_again("role", values)


@given(
    label=WORDS.filter(str.strip),
    names=st.lists(TEXT | WORDS, min_size=1, max_size=3),
    issues=st.lists((TEXT | WORDS).filter(str.strip), max_size=3),
    sha=st.text("0123456789abcdef", min_size=7, max_size=40),
)
def test_whatever_a_batch_says_comes_back(label: str, names: list[str], issues: list[str], sha: str) -> None:
    values = dict(read_one("batch", SAMPLES["batch"]).values)
    tasks: list[Json] = [{"id": f"T{number}", "name": name} for number, name in enumerate(names, 100)]
    values["checkpoint"] = {
        **cast("dict[str, Json]", values["checkpoint"]),
        "last_batch": label, "last_commit": sha, "deferred_issues": list(issues),
        "tasks": {"completed": [], "in_progress": [], "pending": tasks},
    }  # fmt: skip
    same_again("batch", values)
