"""A person is told that they are needed, by a webhook on this machine and by a command; a failure is a note."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lifecycle.governed import TOKENS_COUNT, Governed, Quiet, govern
from workpacket.shell.notify import SECRET, Need, tell

NAME = "WP-1-Greeting-v1"
KEY = b"a secret of the test"
NEED = Need("e" * 64, "review", NAME, "2026-03-01T08:00:00Z", "coder")


class Receiver(BaseHTTPRequestHandler):
    """Answers with these statuses in turn, then with 204, and keeps what it got."""

    answers: ClassVar[list[int]] = []
    got: ClassVar[list[tuple[dict[str, str], bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append(({key.lower(): value for key, value in self.headers.items()}, body))
        self.send_response(self.answers.pop(0) if self.answers else 204)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Governed:
    return Quiet(tmp_path, None, govern(tmp_path, monkeypatch, None).clock)


@pytest.fixture
def webhook() -> Iterator[str]:
    Receiver.answers, Receiver.got = [], []
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/needed?team=a"
    server.shutdown()
    thread.join()
    server.server_close()


def sent(webhook: str, *answers: int, secret: str = KEY.decode()) -> tuple[list[str], list[float]]:
    Receiver.answers[:] = answers
    pauses: list[float] = []
    return tell(webhook, [NEED], {SECRET: secret} if secret else {}, pauses.append), pauses


def test_the_message_is_signed_as_standard_webhooks_are(webhook: str) -> None:
    assert sent(webhook) == ([], [])
    headers, body = Receiver.got[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"
    assert headers["webhook-id"] == NEED.id
    assert json.loads(body)["type"] == "needed.review"
    assert json.loads(body)["data"]["packet"] == NAME
    sent(webhook, secret=f"whsec_{base64.b64encode(KEY).decode()}")
    assert len(Receiver.got) == 2


def test_a_receiver_that_is_overloaded_is_tried_again(webhook: str) -> None:
    notes, pauses = sent(webhook, 503, 429)
    assert (notes, len(pauses), len({headers["webhook-id"] for headers, _ in Receiver.got})) == ([], 2, 1)
    assert pauses == sorted(pauses)


@pytest.mark.parametrize(("answers", "tries"), [((500, 500, 500), 3), ((404,), 1), ((302,), 1)])
def test_what_was_not_delivered_is_said(webhook: str, answers: tuple[int, ...], tries: int) -> None:
    notes, _ = sent(webhook, *answers)
    assert notes == [f"the webhook did not accept the message about {NAME}: it answered {answers[-1]}"]
    assert len(Receiver.got) == tries


def test_nothing_is_sent_without_the_secret_or_over_plain_http(webhook: str) -> None:
    assert sent(webhook, secret="")[0] == [f"the webhook was not called: {SECRET} is not set"]
    for address in ("http://example.org/", "http://localhost.example.org/", "file:///etc/passwd", "ftp://127.0.0.1/"):
        assert sent(address)[0] == ["the webhook was not called: notify.webhook is not an https address"]
    assert Receiver.got == []


def test_a_machine_that_does_not_answer_is_a_note() -> None:
    notes, pauses = sent("http://127.0.0.1:9/")
    assert (len(notes), len(pauses)) == (1, 2)


@pytest.mark.parametrize("command", ["cat > told.json", "exit 3"])
def test_a_submission_tells_the_command_of_the_person(
    governed: Governed, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    monkeypatch.setenv("WORKPACKET_NOTIFY", command)
    done = governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    if command == "exit 3":
        assert f"WORKPACKET_NOTIFY failed for {NAME}: exit status 3" in done.out
    else:
        assert json.loads((governed.root / "told.json").read_text())["type"] == "needed.review"


def test_the_webhook_of_the_policy_is_called_by_commands_and_fails_none(
    governed: Governed, monkeypatch: pytest.MonkeyPatch, webhook: str
) -> None:
    governed.begin(policy=f'{TOKENS_COUNT}\n[notify]\nwebhook = "{webhook}"\n')
    monkeypatch.setenv(SECRET, KEY.decode())
    governed.activate(NAME)
    governed.work(NAME)
    Receiver.got.clear()
    Receiver.answers[:] = [404]
    done = governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    assert "the webhook did not accept the message" in done.out
    governed.done("report", "waiting", "--notify")
    assert [json.loads(body)["type"] for _, body in Receiver.got] == ["needed.review", "needed.review"]
    assert len({headers["webhook-id"] for headers, _ in Receiver.got}) == 1


def test_leases_that_end_soon_are_reported(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("claim", NAME, "--as", "coder", "--branch", "b")
    assert governed.json("report", "waiting")["data"]["leases"] == []
    governed.clock.turn(hours=70)
    said = governed.done("report", "waiting").out
    assert said.startswith(("lease expires in 1 hour", "lease expires in 2 hours"))
    assert f"{NAME}, held by coder" in said


def test_status_says_how_long_a_packet_waits_also_when_it_is_cached(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    for hours, said in ((0, "0 minutes"), (3, "3 hours"), (72, "3 days")):
        governed.clock.turn(hours=hours)
        assert f"needs a verdict: {NAME} for {said}: submitted by coder" in governed.done("status").out


def test_a_secret_is_no_part_of_a_message_or_note(webhook: str, tmp_path: Path) -> None:
    notes, _ = sent(webhook, 500, 500, 500)
    told = b"".join(body for _, body in Receiver.got).decode() + " ".join(notes)
    assert KEY.decode() not in told
