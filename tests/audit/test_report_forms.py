"""The forms of the report: deterministic, complete, and harmless whatever the repository says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from audit.audited import DONE, REPORT, STUCK, WORKED, Audited
from audit.pages import ATTACKS, audit_of, hostile_audit, hostile_page, many_packets, packet
from audit.test_planted_faults import FAULTS
from git.scratch import git
from workpacket.audit.overview import board_history, lane_order
from workpacket.audit.packet_row import moves_of
from workpacket.model.lanes import BUILT_IN
from workpacket.problem import Location, Problem
from workpacket.report.audit_data import audit_json, render_audit_markdown, render_audit_text
from workpacket.report.catalogue import catalogue

FORMS = ("text", "html", "json", "sarif", "markdown")


@pytest.mark.parametrize("form", FORMS)
def test_the_same_repository_gives_the_same_bytes(audited: Audited, tmp_path: Path, form: str) -> None:
    audited.write(REPORT, "Changed.\n")
    audited.commit("A fault")
    first = audited("audit", "--format", form).out
    audited.clock.turn(days=400)
    assert audited("audit", "--format", form).out == first
    git(tmp_path, "clone", "--quiet", "--no-hardlinks", str(audited.root), "elsewhere")
    elsewhere = Audited(tmp_path / "elsewhere", None, audited.clock)
    assert elsewhere("audit", "--format", form).out == first


def test_the_log_root_changes_with_the_log_and_with_nothing_else(audited: Audited) -> None:
    before = audited.json("audit")["data"]["log_root"]
    audited.write(REPORT, "Changed.\n")
    assert audited.json("audit")["data"]["log_root"] == before
    FAULTS["zombie run"][0](audited)
    assert audited.json("audit")["data"]["log_root"] != before


def test_the_ending_of_the_file_says_the_form_and_only_a_report_is_replaced(audited: Audited, tmp_path: Path) -> None:
    for ending, start in ((".html", "<!doctype"), (".json", "{"), (".sarif", "{"), (".md", "# Audit")):
        path = tmp_path / f"report{ending}"
        assert audited("audit", "--out", str(path)).status == 0
        assert path.read_text("utf-8").startswith(start)
        assert audited("audit", "--out", str(path)).status == 0
    own = tmp_path / "notes.md"
    own.write_text("My notes.\n")
    assert audited("audit", "--out", str(own)).status == 6
    assert own.read_text() == "My notes.\n"
    assert audited("audit", "--out", str(tmp_path / "report.docx")).status == 2
    assert sorted(path.suffix for path in tmp_path.glob("report*")) == [".html", ".json", ".md", ".sarif"]


def test_an_audit_that_cannot_be_read_by_the_check_of_json_is_none(audited: Audited) -> None:
    told = audited.json("audit")
    assert told["command"] == "audit"
    assert {one["id"] for one in told["data"]["packets"]} == {
        one["revisions"][0]["id"] for one in told["data"]["bases"]
    }
    assert json.loads(audited("audit", "--format", "sarif").out)["runs"][0]["results"] == []


def test_registry_audit_and_impact_tell_of_the_packet(audited: Audited) -> None:
    rows = {row["active"]: row for row in audited.json("board", "registry", "audit")["data"]["bases"]}
    assert rows[DONE]["criteria"] == {"proved": 2, "of": 2}
    assert rows[STUCK]["lane"] == "BLOCKED"
    asked = {"src/greet.py": {DONE, WORKED, STUCK}, REPORT: {DONE}, ".GOV/policy": set(), ".GOV/spec/SPEC_v1.md:6": {
        DONE, WORKED, STUCK}, ".GOV/spec/SPEC_v1.md:1": set()}  # fmt: skip
    for what, expected in asked.items():
        assert {row["packet"] for row in audited.json("trace", "impact", what)["data"]["rests"]} == expected, what


@pytest.mark.parametrize("asked", ["nothing.txt", "nothing.txt:3", "../outside", "/etc/passwd", "Spec 9.9 Nowhere", ""])
def test_what_is_neither_a_file_nor_an_anchor_is_not_said_to_have_no_impact(audited: Audited, asked: str) -> None:
    told = audited("trace", "impact", asked)
    assert (told.status, "(path_not_found)" in told.err) == (2, True), told


def test_a_packet_nobody_knows_cannot_be_traced(audited: Audited) -> None:
    assert "packet_unknown" in audited("trace", "WP-9-None-v1").err


class Reader(HTMLParser):
    """Elements, attributes and the texts of scripts, as a browser would take them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside = ""
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag if tag in {"script", "style"} else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.texts[self.inside].append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_nothing_that_a_stranger_writes_becomes_markup() -> None:
    reader = read(hostile_page())
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"img", "iframe", "object", "embed", "base", "form action"}
    assert not [key for _, attributes in reader.elements for key in attributes if key.startswith("on")]
    links = [attributes["href"] or "" for tag, attributes in reader.elements if tag in {"a", "link"}]
    assert all(link.startswith("#") or link == "data:," for link in links)
    scripts = [attributes for tag, attributes in reader.elements if tag == "script"]
    assert [one.get("type") for one in scripts] == ["application/json", "application/json", None]


def test_what_a_stranger_writes_is_there_as_text() -> None:
    reader = read(hostile_page())
    index = json.loads(reader.texts["script"][0])
    assert len(index["rows"]) == len(ATTACKS)
    assert any("onerror" in row[2] for row in index["rows"])
    assert any("<img src=x" in text for text in reader.texts[""])


def test_no_character_of_the_page_steers_or_hides() -> None:
    page = hostile_page()
    assert not re.search("[\u2028\u2029\u202a-\u202e\u2066-\u2069\x00\x1b\ud800-\udfff]", page)
    for text in (render_audit_text(hostile_audit(), catalogue()), render_audit_markdown(hostile_audit(), catalogue())):
        assert not re.search("[\u2028\u2029\u202a-\u202e\u2066-\u2069\x00\x1b\ud800-\udfff]", text)
        assert text.encode("utf-8")


def test_markdown_holds_no_markup_of_a_stranger() -> None:
    text = render_audit_markdown(hostile_audit(), catalogue())
    assert not re.search(r"(?<!\\)<(?:script|img|svg|!--)", text)


def test_the_policy_of_the_page_names_its_own_style_and_script_and_nothing_else() -> None:
    page = hostile_page()
    reader = read(page)
    policy = next(a["content"] or "" for t, a in reader.elements if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    for kind, content in (("style", reader.texts["style"][0]), ("script", reader.texts["script"][-1])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in page


def test_ten_thousand_packets_are_data_and_not_markup() -> None:
    page = many_packets(300)
    assert len([tag for tag, _ in read(page).elements if tag == "tr"]) < 160
    assert page.count('id="chunk-') == 6


def test_a_report_of_nothing_can_be_made(tmp_path: Path) -> None:
    made = audit_of({})
    assert render_audit_text(made, catalogue()).startswith("Nothing is wrong.")
    assert audit_json(made)["packets"] == []


def test_the_board_over_time_counts_every_packet_once() -> None:
    packets = [packet(f"WP-1-Part-{number}-v1") for number in range(3)]
    moves = [move for each in packets for move in moves_of(each)]
    order = lane_order(moves, BUILT_IN)
    history = board_history(moves, order)
    assert [sum(point.counts) for point in history] == [3] * len(history)
    assert history[-1].counts[order.index("ABANDONED")] == 3


def test_the_commands_of_the_page_about_audits_work(audited: Audited) -> None:
    from architecture.source_tree import ROOT

    page = (ROOT / "docs" / "audit.md").read_text("utf-8")
    commands = re.findall(r"^\$ workpacket (.*)$", page, re.MULTILINE)
    assert len(commands) >= 10
    for command in commands:
        assert audited(*command.split()).status == 0, command
    assert (audited.root / "audit.html").exists()


def test_every_code_that_the_page_names_is_one() -> None:
    from architecture.source_tree import ROOT

    page = (ROOT / "docs" / "audit.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", page))
    assert len(named) > 10
    assert named <= set(catalogue())


def test_what_is_not_shown_is_counted_and_what_is_in_no_packet_is_said() -> None:
    for count, last in ((20, "row 19"), (21, "and 1 more")):
        findings = [Problem("stub_without_row", f"row {line}", Location("board.md", line, 1)) for line in range(count)]
        lines = render_audit_text(audit_of({}, findings=findings), catalogue()).splitlines()
        assert lines[0] == f"{count} errors."
        assert next(line for line in reversed(lines) if line.startswith("  ")).endswith(last)
    name = "WP-1-Part-v1"
    own = [Problem("run_zombie", "it runs", Location(f".GOV/log/{name}/x.json", 1, 1))]
    other = [Problem("stub_without_row", "a row", Location("board.md", 1, 1), severity="warning")]
    for found, told in (
        (own, "1 error in 1 packet."),
        (own + other, "1 error and 1 warning in 1 packet and other files."),
    ):
        assert render_audit_text(audit_of({name: packet(name)}, findings=found), catalogue()).startswith(told)
