"""What a foreign page, a foreign program or a hostile text may try against the live board: `attacks.jsonl` has the
requests and the answers that each must get.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.audited import WORKED, Audited
from live.serving import Browser, Server

ATTACKS = [json.loads(line) for line in (Path(__file__).parent / "attacks.jsonl").read_text("utf-8").splitlines()]
PAGES = (
    "/0/",
    f"/0/packet/{WORKED}",
    "/0/waiting",
    "/0/runs",
    "/0/?group=holder",
    "/0/?q=song",
    f"/0/packet/{WORKED}/why",
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["what"])
def test_each_attack_gets_its_answer(attack: dict[str, Any], server: Server, browser: Browser, town: Audited) -> None:
    before = sorted(path.name for path in (town.root / ".GOV/log").rglob("*.json"))
    words = {
        "{port}": str(server.port), "{packet}": WORKED, "{csrf}": browser.csrf(f"/0/packet/{WORKED}"),
        "{cookie_name}": browser.cookie.partition("=")[0], "{token}": server.token,
        "{cookie}": browser.cookie.partition("=")[2], "{prefix}": server.prefix,
    }  # fmt: skip

    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    path = filled(attack.get("path", ""))
    if "path_repeat" in attack:
        before_it, part, count, after_it = attack["path_repeat"]
        path = f"{before_it}{part * count}{after_it}"
    body = filled(attack.get("body", "")).encode()
    if "body_size" in attack:
        body = b"csrf=" + words["{csrf}"].encode() + b"&text=" + b"a" * attack["body_size"]
    if "fields" in attack:
        body = "&".join(f"f{number}=x" for number in range(attack["fields"])).encode()
    headers = {name: filled(value) if value is not None else None for name, value in attack.get("headers", {}).items()}
    if "header_size" in attack:
        headers["X-Long"] = "a" * attack["header_size"]
    if "raw_body" in attack:
        body = attack["raw_body"].encode()
    if "twice" in attack:
        name, value = attack["twice"]
        headers[name.lower()] = value
    asking = browser if attack.get("signed_in", True) else Browser(server.port, prefix=server.prefix)

    # `outside`: the path does not begin with the secret part of the address.
    ask = asking.ask_outside if attack.get("outside") else asking.ask
    reply = ask(attack["method"], path, body, headers)

    expected = attack["status"] if isinstance(attack["status"], list) else [attack["status"]]
    assert reply.status in expected, reply.text[:500]
    if "never" in attack:
        assert filled(attack["never"]) not in reply.text
    if "never_header" in attack:
        assert attack["never_header"].lower() not in reply.head.lower()
    if attack.get("empty"):
        assert reply.body == b""
    assert "access-control-allow" not in reply.head.lower()
    assert before == sorted(path.name for path in (town.root / ".GOV/log").rglob("*.json")), "something was written"
    assert browser.get("/0/").status == 200


def test_the_token_works_once_and_the_cookie_is_for_this_server_alone(server: Server, browser: Browser) -> None:
    again = Browser(server.port, prefix=server.prefix).get(f"/?token={server.token}")
    assert again.status == 401
    assert not again.header("Set-Cookie")
    csrf = browser.csrf(f"/0/packet/{WORKED}")
    shown = browser.ask("POST", "/address", f"csrf={csrf}".encode())
    other = Browser(server.port, prefix=server.prefix)
    reply = other.enter(shown.text.partition("token=")[2].partition("<")[0])
    assert reply.status == 303
    said = reply.header("Set-Cookie")
    assert all(word in said for word in ("HttpOnly", "SameSite=Strict", str(server.port), f"Path={server.prefix}/;"))
    assert other.get("/0/").status == 200
    assert other.csrf(f"/0/packet/{WORKED}") != csrf


@pytest.mark.parametrize("page", PAGES)
def test_every_page_forbids_what_it_does_not_need(page: str, browser: Browser) -> None:
    reply = browser.get(page)
    assert reply.status == 200
    policy = reply.header("Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.header("X-Content-Type-Options") == "nosniff"
    assert reply.header("Referrer-Policy") == "same-origin"
    assert reply.header("Cache-Control") == "no-store"
    for forbidden in ("<style", " style=", "javascript:", " onclick", " onload"):
        assert forbidden not in reply.text
