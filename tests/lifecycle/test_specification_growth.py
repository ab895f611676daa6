"""Which texts only add to a specification, and which say something else than it did."""

from __future__ import annotations

import pytest

from workpacket.lifecycle.coverage import only_adds
from workpacket.text.source import Source

SPEC = """# Greeter

It is small.

## 1 Main body

### 1.1 Greeting
It greets.

#### 1.1.1 Loudly
It shouts.

### 1.2 Singing

It sings.

## 2 Roadmap

Later it dances.
"""


def adds(after: str, before: str = SPEC) -> bool:
    return only_adds(Source.from_bytes("spec.md", before.encode()), Source.from_bytes("spec.md", after.encode()))


@pytest.mark.parametrize(
    "text", ["It waits.", "It prints `<name>`.", "1 < 2", "It prints ``a `<b>` c``.", "See `~~~`."]
)
@pytest.mark.parametrize("place", ["### 1.2 Singing", "## 2 Roadmap"])
def test_a_new_section_of_plain_text_only_adds(place: str, text: str) -> None:
    assert adds(SPEC.replace(place, f"### 1.3 Waiting\n\n{text}\n\n{place}"))


def test_a_new_section_at_the_end_only_adds() -> None:
    assert adds(f"{SPEC}\n### 2.1 Waiting\n\nIt waits.\n")


@pytest.mark.parametrize(
    "hiding", ["<!--", "<details>", "</div>", "<?php", "```", "  ~~~", "a <b", "<!DOCTYPE", "`<p>``", r"\`<p>\`"]
)
def test_a_new_section_that_could_hide_the_next_one_does_not_only_add(hiding: str) -> None:
    assert not adds(SPEC.replace("### 1.2 Singing", f"### 1.3 Waiting\n\n{hiding}\n\n### 1.2 Singing"))


@pytest.mark.parametrize("place", ["### 1.2 Singing", "## 2 Roadmap"])
def test_a_new_section_with_the_titles_of_another_one_could_pass_for_it(place: str) -> None:
    again = "### 1.1 Greeting\nIt greets nobody.\n\n"
    assert not adds(SPEC.replace(place, again + place))
    assert not adds(SPEC.replace("### 1.1 Greeting", again + "### 1.1 Greeting"))
    assert adds(SPEC + "\n" + again), "below another chapter"


LINKED = SPEC.replace("It sings.", "It sings [the  Song].")


@pytest.mark.parametrize("name", ["the Song", "THE SONG", "the\nsong", " the song "])
def test_a_new_section_does_not_say_where_the_links_of_another_one_lead(name: str) -> None:
    section = f"\n## 3 More\n\n[{name}]: https://example.org/\n"
    assert not adds(LINKED + section, LINKED)
    assert adds(SPEC + section, SPEC), "no other section has this link"


@pytest.mark.parametrize("name", [r"a\]b", r"\[a\]", r"a\\", "a\\\nb"])
def test_brackets_in_the_name_of_a_link_hide_no_target(name: str) -> None:
    linked = SPEC.replace("It sings.", f"It sings [{name}].")
    section = f"\n## 3 More\n\n[{name}]: https://example.org/\n"
    assert not adds(linked + section, linked)
    assert adds(SPEC + section, SPEC)


def test_a_new_section_may_have_links_of_its_own_and_those_of_others() -> None:
    assert adds(LINKED + "\n## 3 More\n\nIt sings [the song] and [a tune].\n\n[a tune]: b.md\n", LINKED)


def test_a_comment_that_the_specification_had_is_no_addition() -> None:
    commented = SPEC.replace("It sings.", "It sings. <!-- Well. -->")
    assert adds(commented + "\n## 3 More\n\nIt rests.\n", commented)


def test_blank_lines_between_sections_say_nothing() -> None:
    assert adds(SPEC.replace("\n### 1.2", "\n\n\n### 1.2"))
    assert adds(SPEC)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It is small.", "It is large."),
        ("# Greeter\n", "New.\n\n# Greeter\n"),
        ("It greets.", "It greets nobody."),
        ("It greets.", "It greets.\nIt does not greet."),
        ("It sings.\n", ""),
        ("### 1.2 Singing\n\nIt sings.\n\n", ""),
        ("### 1.1 Greeting", "### 1.1 Silence"),
        ("#### 1.1.1 Loudly", "## 9 Not in force\n\n#### 1.1.1 Loudly"),
        ("### 1.2 Singing", "## 3 Later\n\n### 1.2 Singing"),
        ("Later it dances.\n", ""),
        ("## 2 Roadmap\n\nLater it dances.\n", ""),
    ],
)
def test_what_a_section_says_stays_as_it_was_and_where_it_was(old: str, new: str) -> None:
    assert old in SPEC
    assert not adds(SPEC.replace(old, new))


def test_sections_stay_in_order() -> None:
    greeting, singing = "### 1.1 Greeting\nIt greets.\n\n", "### 1.2 Singing\n\nIt sings.\n\n"
    before = f"# Greeter\n\n## 1 Main body\n\n{greeting}{singing}"
    assert not adds(f"# Greeter\n\n## 1 Main body\n\n{singing}{greeting}", before)


def test_a_text_without_sections_is_one_piece() -> None:
    assert adds("It greets.\n\n# Singing\n", "It greets.\n")
    assert not adds("It greets.\nIt sings.\n", "It greets.\n")
