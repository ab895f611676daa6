"""Runs that are workflows: outputs link to their pages on Temporal, at the address that the policy names."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from audit.audited import WORKED, Audited
from live.serving import served
from workpacket.ledger.fold import LinkedRun
from workpacket.ledger.log import NewLogEvent
from workpacket.model.events import Actor, LogEvent
from workpacket.report.runs import page_of

PAGES = "https://temporal.example.org/ui"
RUN = "order/14 <b>&\"'"
PAGE = f"{PAGES}/namespaces/team%20a%2F%22/workflows/order%2F14%20%3Cb%3E%26%22%27"

# What a policy may say, and whether it is an address to which a page may link.
ADDRESSES = {
    "http://localhost:8233": True,
    "https://temporal.example.org": True,
    "https://temporal.example.org/": True,
    "https://temporal.example.org:443/a/b-c_d~e.f": True,
    "": False,
    "javascript:alert(1)//": False,
    "JAVASCRIPT:alert(1)": False,
    "data:text/html,<script>": False,
    "file:///etc/passwd": False,
    "ftp://example.org": False,
    "//example.org": False,
    "https://": False,
    "https:///path": False,
    "https://user:secret@example.org": False,
    "https://example.org?next=javascript:1": False,
    "https://example.org#fragment": False,
    'https://example.org/" onmouseover="alert(1)': False,
    "https://example.org/'><script>alert(1)</script>": False,
    "https://example.org/a b": False,
    "https://example.org\nhttps://evil.example": False,
    "https://example.org/\x1b[31m": False,
    "https://ex\u0430mple.org": False,
    "https://example.org/\u202e": False,
    " https://example.org": False,
    "https://example.org:123456": False,
}


def linked(store: str, run: str = "r") -> LinkedRun:
    data = {"run": run, "stream": run, **({"store": store} if store else {})}
    return LinkedRun(run, LogEvent("", "run.linked", "WP-1-A-v1", 1, (), "", Actor("a", "human"), "", "", (), (), data))


@pytest.mark.parametrize("address", ADDRESSES)
def test_only_an_address_that_is_harmless_everywhere_becomes_a_link(address: str) -> None:
    assert bool(page_of(linked("temporal:default"), address)) == ADDRESSES[address]


@pytest.mark.parametrize("store", ["", "a-store-of-sqlite", "Temporal:default", "postgresql://temporal:default"])
def test_a_run_of_another_engine_has_no_page(store: str) -> None:
    assert page_of(linked(store), PAGES) == ""


@pytest.mark.parametrize("name", ["../../x", "a/b?c#d", "%2e%2e", "\udcff", "\u202e", "\x1b[31m", "'\"><b>", "a b"])
def test_a_name_stays_one_part_of_the_address(name: str) -> None:
    page = page_of(linked(f"temporal:{name}", name), PAGES)
    assert re.fullmatch(
        r"https://temporal\.example\.org/ui/namespaces/[A-Za-z0-9%._~-]+/workflows/[A-Za-z0-9%._~-]+", page
    )


class Links(HTMLParser):
    """The addresses of a page's links, as a browser understands them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        assert "<b>&" not in page  # of the run's name
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


@pytest.fixture
def town(audited: Audited) -> Audited:
    """A repository in which a workflow works on a packet."""
    audited.record(WORKED, NewLogEvent("run.linked", {"run": RUN, "stream": RUN, "store": 'temporal:team a/"'}))
    audited.write(
        ".GOV/policy/policy.toml", audited.read(".GOV/policy/policy.toml") + f'\n[temporal]\nui = "{PAGES}"\n'
    )
    audited.commit("A workflow")
    return audited


def test_every_output_about_a_packet_links_to_the_page_of_its_workflow(town: Audited) -> None:
    assert PAGE in town("show", WORKED).out
    assert PAGE in town("why", WORKED).out
    for words in (("show", WORKED), ("why", WORKED)):
        assert [run["page"] for run in town.json(*words)["data"]["runs"]] == [PAGE], words
    assert [run["page"] for run in town.json("board", "show")["data"]["runs"][WORKED]] == [PAGE]
    (packet,) = [one for one in town.json("audit")["data"]["packets"] if one["id"] == WORKED]
    assert [run["page"] for run in packet["runs"]] == [PAGE]
    assert PAGE in town("audit", "--format", "html").out
    assert PAGE in Links(town("board", "export", "--format", "html").out).found


def test_the_live_board_links_to_the_page_of_a_workflow(town: Audited) -> None:
    with served(town.root) as running:
        browser = running.browser()
        for path in ("/0/", f"/0/packet/{WORKED}"):
            assert PAGE in Links(browser.get(path).text).found, path
        assert running.end() == (0, "")


def test_no_output_links_to_an_address_that_the_policy_may_not_name(town: Audited) -> None:
    town.replace(".GOV/policy/policy.toml", PAGES, "javascript:alert(1)")
    town.commit("Harm")
    assert town.json("show", WORKED)["data"]["runs"][0]["page"] == ""
    for page in (town("audit", "--format", "html").out, town("board", "export", "--format", "html").out):
        assert "javascript:alert" not in "".join(Links(page).found)
    assert "policy.toml" in town("check").out
