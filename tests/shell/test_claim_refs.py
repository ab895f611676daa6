"""Of many clones that claim the same packet, the remote lets one have it, and tells the others who."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

from git.scratch import commit, git, make_repository
from workpacket.git.repository import find_repository
from workpacket.shell.claim_refs import ClaimRefs, RemoteClaim, Unarbitrated
from workpacket.value import replace

NAME = "WP-1-Parser-v1"
NOW, END, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
PATTERN = "refs/workpacket/claims/{id}"


class Hub(NamedTuple):
    folder: Path
    pattern: str
    address: str = "hub.git"

    def clone(self, who: str) -> ClaimRefs:
        if not (self.folder / who).exists():
            git(self.folder, "clone", "--quiet", self.address, who)
        return ClaimRefs(find_repository(self.folder / who), "origin", self.pattern)

    def claim(
        self, who: str, lease: str = "", now: str = NOW, known: tuple[str, ...] = ()
    ) -> RemoteClaim | Unarbitrated:
        return self.clone(who).take(RemoteClaim(NAME, who, lease or f"lease of {who}", END), now, known)

    def holder(self) -> str:
        return git(self.folder / "hub.git", "log", "-1", "--format=%an", self.pattern.replace("{id}", NAME))


OTHERS = (pytest.param(name, marks=pytest.mark.long) for name in ("a branch", "over HTTP"))


@pytest.fixture(params=["a reference of its own", *OTHERS])
def hub(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Hub]:
    make_repository(tmp_path / "first")
    (tmp_path / "first" / "file").write_text("text")
    commit(tmp_path / "first", "start")
    git(tmp_path, "clone", "--quiet", "--bare", "first", "hub.git")
    if request.param == "over HTTP":
        git(tmp_path / "hub.git", "config", "http.receivepack", "true")
        with served(tmp_path) as address:
            yield Hub(tmp_path, PATTERN, f"{address}/hub.git")
    else:
        yield Hub(tmp_path, PATTERN if "own" in request.param else "refs/heads/claims/{id}")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the repositories in a folder with git's smart protocol, on this machine only."""

    class Backend(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = {
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env={**os.environ, **said}, capture_output=True, check=True
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def holder_of(claim: RemoteClaim | Unarbitrated) -> str:
    assert isinstance(claim, RemoteClaim), claim
    return claim.holder


def test_the_first_claim_holds_and_the_second_is_told_by_whom_and_until_when(hub: Hub) -> None:
    assert holder_of(hub.claim("ann")) == "ann"
    refused = hub.claim("bob")
    assert isinstance(refused, RemoteClaim)
    assert (refused.holder, refused.lease, refused.expires_at) == ("ann", "lease of ann", END)
    assert hub.holder() == "ann"


def test_a_claim_is_replaced_once_its_lease_has_ended(hub: Hub) -> None:
    hub.claim("ann")
    assert holder_of(hub.claim("bob", now=LATER)) == "bob"
    assert hub.holder() == "bob"


def test_a_claim_is_replaced_by_a_clone_whose_log_has_it(hub: Hub) -> None:
    hub.claim("ann")
    assert holder_of(hub.claim("bob", known=("lease of ann",))) == "bob"


def test_a_clone_that_was_killed_after_its_claim_makes_it_again_and_another_of_the_same_name_does_not(hub: Hub) -> None:
    hub.claim("ann", "first")
    again = hub.claim("ann", "second")
    assert isinstance(again, RemoteClaim)
    assert again.lease == "second"
    other = hub.clone("other").take(RemoteClaim(NAME, "ann", "third", END), NOW, ())
    assert isinstance(other, RemoteClaim)
    assert other.lease == "second"


def test_a_claim_that_was_not_recorded_is_given_back(hub: Hub) -> None:
    claim = hub.claim("ann")
    assert isinstance(claim, RemoteClaim)
    hub.clone("ann").give_back(claim)
    assert holder_of(hub.claim("bob")) == "bob"
    hub.clone("ann").give_back(claim)
    assert hub.holder() == "bob"


def test_what_is_no_claim_is_one_without_an_end(hub: Hub) -> None:
    tip = git(hub.folder / "first", "rev-parse", "HEAD")
    git(hub.folder / "first", "push", "--quiet", "../hub.git", f"{tip}:{PATTERN.replace('{id}', NAME)}")
    git(hub.folder / "hub.git", "update-ref", hub.pattern.replace("{id}", NAME), tip)
    found = hub.claim("bob", now="9999-01-01T00:00:00Z")
    assert isinstance(found, RemoteClaim)
    assert replace(found, seen="") == RemoteClaim(NAME, "someone", "", "", tip)


def test_a_remote_that_does_not_answer_has_not_decided(hub: Hub) -> None:
    hub.clone("ann")
    (hub.folder / "hub.git").rename(hub.folder / "away")
    found = hub.claim("ann")
    assert isinstance(found, Unarbitrated)
    assert "does not appear to be a git repository" in found.why or "not found" in found.why


def test_a_remote_that_refuses_the_reference_says_why(hub: Hub) -> None:
    hook = hub.folder / "hub.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho only branches may be pushed >&2\nexit 1\n")
    hook.chmod(0o755)
    found = hub.claim("ann")
    assert isinstance(found, Unarbitrated)
    assert "only branches may be pushed" in found.why


def test_of_many_clones_that_claim_at_once_one_wins_and_all_others_are_told_who(hub: Hub) -> None:
    names = [f"coder-{number}" for number in range(8)]
    refs = [hub.clone(name) for name in names]
    with ThreadPoolExecutor(len(names)) as pool:
        for turn in range(1, 4):
            # Each round begins with a claim whose lease has ended.
            now, end = f"2026-02-{turn:02}T00:00:00Z", f"2026-02-{turn:02}T12:00:00Z"
            wanted = [RemoteClaim(NAME, name, f"{name} {turn}", end) for name in names]
            claims = pool.map(partial(ClaimRefs.take, now=now, known=()), refs, wanted)
            assert {holder_of(claim) for claim in claims} == {hub.holder()}
