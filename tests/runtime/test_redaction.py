"""Secrets are taken out before anything is stored, or nothing is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.worlds import BROKEN, World
from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.records.events import KINDS, RecordKind
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.records.redaction import RULES, Redactor, SecretRule, clean_record, names_a_secret

CASES = Path(__file__).parent / "cases"
REDACTOR = Redactor()


def example_of(rule: SecretRule) -> str:
    return rule.begins + min(rule.alphabet & set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) * rule.at_least


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.begins.strip())
def test_each_rule_finds_its_secret_wherever_it_stands(rule: SecretRule) -> None:
    secret = example_of(rule)
    value: Any = {"list": [f"before {secret}\n"], secret: 1}
    cleaned, found = REDACTOR.clean_value(value, json.dumps(value, ensure_ascii=False))
    assert found == 2
    assert secret not in json.dumps(cleaned)
    assert f"[redacted:{rule.name}]" in json.dumps(cleaned)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.begins.strip())
def test_a_mere_beginning_is_no_secret(rule: SecretRule) -> None:
    assert REDACTOR.clean_value(rule.begins, json.dumps(rule.begins)) == (rule.begins, 0)


@pytest.mark.parametrize("text", ["task-based", "the sky-high risk-", "high_five", "Basic idea", "through the night"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert REDACTOR.clean_value(text, json.dumps(text)) == (text, 0)


def cases(name: str) -> list[str]:
    return [line for line in (CASES / name).read_text("utf-8").splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("row", cases("secret_names.tsv"))
def test_a_name_hides_its_value_only_if_it_names_a_secret(row: str) -> None:
    name, expected = row.split("\t")
    assert ("secret" if names_a_secret(name) else "harmless") == expected


@pytest.mark.parametrize("receipt", cases("harmless_receipts.txt"))
def test_a_receipt_without_a_secret_comes_back_as_it_was(receipt: str) -> None:
    world = World()
    with world.crashing(world.runtime.run("push")) as run:
        run.effect("push", world.note, receipt, key="p")
        world.crash()
    with world.runtime.run("push") as run:
        assert run.effect("push", world.note, receipt, key="p") == receipt
    assert world.calls == [receipt]


@pytest.mark.parametrize("before", ["", "key=", "a.", '"', "\\n", "%20", "%3D", "\\u003d", "\x1b[32m", "\n", "_"])
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.in_words], ids=lambda rule: rule.begins.strip())
def test_a_secret_is_found_at_the_beginning_of_a_word_however_that_is_written(rule: SecretRule, before: str) -> None:
    text = before + example_of(rule)
    assert REDACTOR.clean_text(text) == f"{before}[redacted:{rule.name}]"


# Few leaves: to draw a hundred of them for each example takes a hundred times as long as to clean them.
@given(
    st.recursive(
        st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
    )
)
def test_what_is_not_secret_is_not_touched(value: Any) -> None:
    assert REDACTOR.clean_value(value, json.dumps(value, ensure_ascii=False)) == (value, 0)


def test_values_of_secret_environment_variables_are_found_verbatim() -> None:
    redactor = Redactor.from_environment({"DB_PASSWORD": 'pa"ss\nword', "HOME": "/home/me", "API_TOKEN": "short"})
    value = ['x pa"ss\nword y', "/home/me short"]
    cleaned, found = redactor.clean_value(list(value), json.dumps(value, ensure_ascii=False))
    assert cleaned == ["x [redacted:environment] y", "/home/me short"]
    assert found == 1


def test_unknown_fields_are_dropped_and_counted() -> None:
    text = clean_record(KINDS["step.failed"], {"step": "a", "argv": ["x"], "env": {"A": "b"}}, REDACTOR)
    assert json.loads(text) == {"dropped": 2, "step": "a"}


def test_listed_fields_that_must_not_be_kept_are_dropped() -> None:
    text = clean_record(KINDS["attempt.started"], {"attempt": 1, "env": {"A": "b"}}, REDACTOR)
    assert json.loads(text) == {"attempt": 1, "dropped": 1}


def test_fields_that_are_kept_as_hashes_only_are_hashed() -> None:
    kind = RecordKind("x", {"who": "hash"})
    assert clean_record(kind, {"who": "me"}, REDACTOR) == json.dumps({"who": jcs_hash("me")}, separators=(",", ":"))


SECRET = example_of(RULES[0])


def dump(world: World) -> str:
    events = [event for head in world.store.heads() for event in world.store.read(head.stream)]
    payloads = [world.store.payload(event) or b"" for event in events]
    return repr(events) + repr(payloads)


def test_no_secret_reaches_the_store_by_any_way() -> None:
    world = World(redactor=Redactor.from_environment({"MY_SECRET": "correct horse"}))

    def failing() -> None:
        raise ValueError(f"cannot log in with {SECRET}")

    with pytest.raises(ValueError), world.runtime.run("a", inputs={"token": SECRET}) as run:  # noqa: PT012
        run.step("result", lambda: {"got": SECRET, "and": "correct horse"})
        run.effect("send", lambda: SECRET, key=SECRET)
        run.step("fails", failing)
    world.runtime.cancel(run.id, f"because of {SECRET}")
    assert SECRET not in dump(world)
    assert "correct horse" not in dump(world)


def test_a_step_whose_result_held_a_secret_is_done_again_and_that_is_reported() -> None:
    world = World()
    with world.crashing(world.runtime.run("a")) as run:
        assert run.step("login", world.note, SECRET) == SECRET
        world.crash()
    with world.runtime.run("a") as run:
        assert run.step("login", world.note, SECRET) == SECRET
        assert run.repeated == ("login",)
    assert world.calls == [SECRET, SECRET]


def test_a_cursor_that_holds_a_secret_is_refused() -> None:
    world = World()
    with world.crashing(world.runtime.run("a")) as run:
        with pytest.raises(RedactionFailed, match="cursor"):
            run.checkpoint({"token": SECRET})
        world.crash()


def test_a_checkpoint_is_made_whatever_its_random_id_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    looks_like_a_card = "4093609377352800"
    assert REDACTOR.clean_text(looks_like_a_card) != looks_like_a_card
    with world.runtime.run("a") as run:
        monkeypatch.setattr(run._session, "ids", lambda: looks_like_a_card * 2)
        assert run.checkpoint({"next": 1}).id == looks_like_a_card
    assert world.runtime.state(run.id).status == "completed"


def test_an_id_that_a_caller_gives_is_not_stored_if_it_looks_like_a_secret() -> None:
    with pytest.raises(RedactionFailed, match=r"a name in langgraph\.checkpoint"):
        clean_record(RecordKind("langgraph.checkpoint", {"id": "public"}), {"id": SECRET}, REDACTOR)


def test_if_redaction_fails_nothing_is_stored() -> None:
    world = World()
    with world.crashing(world.runtime.run("a")) as run:
        before = len(list(world.store.read(run.id)))
        world.redactor.rules = (BROKEN,)
        with pytest.raises(RedactionFailed):
            run.step("leak", lambda: "ghp_" + "a" * 30)
        assert len(list(world.store.read(run.id))) == before
        world.crash()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("password=hunter2hunter2 --verbose", "password=[redacted:assigned-secret] --verbose"),
        ("api_key: 'a8f5f167f44f4964'", "api_key: '[redacted:assigned-secret]'"),
        ("export DB_PASSWORD=x9x9x9x9", "export DB_PASSWORD=[redacted:assigned-secret]"),
        ("postgres://u:s3cretpw@h/db", "postgres://u:[redacted:url-password]@h/db"),
        ("password=correcthorsebattery", None),  # words, as names of settings are
        ("password=$PASSWORD, token=<TOKEN>", None),
        ("max_tokens: 40961024", None),
        ("tokenizer=bpe-openai-100k", None),
        ("https://user:password@example.org", None),
        ("ssh://git@example.org:2222/x", None),
    ],
)
def test_a_secret_is_told_by_its_place(text: str, cleaned: str | None) -> None:
    value, found = Redactor().clean_value([text], json.dumps([text]))
    assert (value, found) == ([text if cleaned is None else cleaned], 0 if cleaned is None else 1)


def test_a_secret_is_told_by_its_place_behind_any_escape_and_beside_a_url() -> None:
    for text in ("x\napi_key: a8f5f167f44f4964", '{"password": "hunter2hunter2"}', "token\tx\tpostgres://u:s3cretpw@h"):
        value, found = Redactor().clean_value([text], json.dumps([text]))
        assert found == 1, (text, value)
