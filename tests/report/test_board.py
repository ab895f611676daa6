"""The board on a terminal of any width and as a page, whatever its packets are called."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.samples import texts
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import LANES
from workpacket.report.board import SIGNS, Card, Column, columns, render_board, render_page
from workpacket.report.terminal import NARROWEST, Style, text_width

LANE_TOKENS = [FORKED, *(lane.token for lane in LANES)]
CARDS = [
    Card("WP-1-Greeting-v1", "STUB"),
    Card("WP-1-Parser-v1", "IN_PROGRESS", "ann, until 2026-03-04T08:00:00Z"),
    Card("WP-1-Parser-v2", "READY_FOR_DEV"),
    Card("WP-1-Song-v1", "BLOCKED", "no test data / until: data is there"),
    Card("WP-2-Voice-v1", "VALIDATED"),
    Card("WP-2-Voice-v2", "FAIL"),
]
cards = st.builds(
    Card,
    id=st.from_regex(r"WP-[0-9]-[A-Za-z]{1,60}-v[1-9]", fullmatch=True),
    lane=st.sampled_from(LANE_TOKENS),
    note=texts,
    title=texts,
)
boards = st.lists(cards, max_size=30, unique_by=lambda card: card.id).map(columns)


def test_every_lane_has_a_sign_of_its_own() -> None:
    assert set(SIGNS) == set(LANE_TOKENS)
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert all(len(sign) == 1 and sign.isascii() for sign in SIGNS.values())


def test_lanes_stand_side_by_side_where_there_is_room() -> None:
    lines = render_board(columns(CARDS), Style(width=160)).splitlines()
    assert re.split(r"  +", lines[0]) == [
        "Ready for Dev 1", "Stub Backlog 1", "In Progress 1", "Done 2", "Blocked 1",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[2:3]] == ["o"]
    assert "> WP-1-Parser-v1" in lines[2]
    assert "ann, until" in lines[3]
    assert "empty: In Review, Superseded" in lines


def test_lanes_stand_below_one_another_where_there_is_none() -> None:
    lines = render_board(columns(CARDS), Style(width=40)).splitlines()
    headings = [line for line in lines if re.search(r" \d+$", line)]
    assert headings == [
        "Ready for Dev 1", "Stub Backlog 1", "In Progress 1", "Done 2", "Blocked 1",
    ]  # fmt: skip


def test_who_sees_no_colours_sees_the_signs_and_what_they_mean() -> None:
    plain = render_board(columns(CARDS), Style(width=160))
    coloured = render_board(columns(CARDS), Style(width=160, colour=True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b[" in coloured
    assert plain.splitlines()[-1].split("   ") == [
        ". STUB", "o READY_FOR_DEV", "> IN_PROGRESS", "! BLOCKED", "+ VALIDATED", "x FAIL",
    ]  # fmt: skip


@given(boards, st.integers(1, 250))
def test_no_line_is_wider_than_the_terminal(board: tuple[Column, ...], width: int) -> None:
    screen = render_board(board, Style(width=width))
    assert all(text_width(line) <= max(width, NARROWEST) for line in screen.splitlines())
    assert "\x1b" not in screen


@given(boards, st.integers(30, 250))
def test_every_packet_that_is_open_is_shown(board: tuple[Column, ...], width: int) -> None:
    screen = render_board(board, Style(width=width))
    signs = Counter(card.lane for column in board if column.open for card in column.cards)
    for lane, count in signs.items():
        shown = len(re.findall(rf"(?:^|  ){re.escape(SIGNS[lane])} WP-", screen, re.MULTILINE))
        assert shown == count


def test_wide_characters_take_the_room_that_they_take() -> None:
    board = columns([Card("WP-1-A", "BLOCKED", "漢字漢字 🚀 e\u0301"), Card("WP-1-B", "STUB")])
    lines = render_board(board, Style(width=60)).splitlines()
    second = next(line for line in lines if line.startswith("Stub"))
    start = text_width(second.partition("Blocked")[0])
    assert all(text_width(line) >= start for line in lines if "漢" in line)


def test_of_what_is_over_the_last_ones_are_shown_and_the_others_counted() -> None:
    done = [Card(f"WP-1-Part{number:02}", "VALIDATED") for number in range(15)]
    screen = render_board(columns(done), Style(width=80))
    assert "(5 earlier ones not shown: workpacket list)" in screen
    assert "Part04" not in screen
    assert "Part05" in screen


# --- the page


class Reader(HTMLParser):
    """Elements with their attributes; text outside of style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


@given(boards, texts)
def test_a_page_holds_its_own_elements_and_no_others(board: tuple[Column, ...], as_of: str) -> None:
    page = render_page(board, as_of)
    reader = Reader(page)
    assert reader.open == []
    assert {tag for tag, _ in reader.tags} <= {
        "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "p", "time", "nav", "ul", "li", "main",
        "section", "h2", "span",
    }  # fmt: skip
    attributes = {name for _, attrs in reader.tags for name in attrs}
    assert attributes <= {
        "lang", "charset", "http-equiv", "content", "name", "class", "href", "id", "tabindex", "aria-label",
        "aria-labelledby", "aria-hidden",
    }  # fmt: skip
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] or "" for tag, attrs in reader.tags if tag == "a"]
    assert all(link.startswith("#") and link[1:] in ids for link in links)


def test_hostile_words_are_words() -> None:
    evil = '</style><script>alert(1)</script>" onload="x \u202e \x1b[2J'
    page = render_page(columns([Card("WP-1-A", "BLOCKED", evil, evil)]), evil)
    assert "<script" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert Reader(page).text.count("<script>alert(1)</script>") == 3


def test_the_policy_of_the_page_lets_nothing_in_but_its_own_style() -> None:
    page = render_page(columns(CARDS), "")
    style = page.partition("<style>")[2].partition("</style>")[0]
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(attrs["content"] for tag, attrs in Reader(page).tags if attrs.get("http-equiv"))
    assert policy == f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in page


def test_equal_boards_give_equal_pages() -> None:
    assert render_page(columns(CARDS), "x") == render_page(columns(list(CARDS)), "x")


def _luminance(colour: str) -> float:
    digits = colour if len(colour) == 6 else "".join(digit * 2 for digit in colour)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_stand_out_from_what_they_stand_on(scheme: int) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    page = render_page((), "")
    sets = [dict(re.findall(r"--(\w+): #([0-9a-f]+);", block)) for block in re.findall(r":root \{([^}]*)\}", page)]
    colours = sets[scheme]
    for ink in ("ink", "soft", "link", "alarm", "wait", "work", "good"):
        for ground in ("paper", "card"):
            low, high = sorted((_luminance(colours[ink]), _luminance(colours[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)
