"""Tell people that they are needed: through a command set by the user, or through one webhook in the policy.

Both are off by default. The command is in the environment, WORKPACKET_NOTIFY, because a repository must not choose what
runs on the machines of those who clone it; it gets the message as JSON on standard input. The webhook is in the base's
policy, and nothing is sent without the secret, WORKPACKET_WEBHOOK_SECRET. Messages are signed according to the Standard
Webhooks specification, so that receivers can use the libraries for that specification.

A failure is a note in the answer and never fails the command, which has written everything by then.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import http.client
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.value import Value

COMMAND = "WORKPACKET_NOTIFY"
SECRET = "WORKPACKET_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
_TRIES: Final = 3
# The command has done its work, and the person waits for the prompt.
_PATIENCE: Final = 5.0
_PAUSE: Final = 0.5
# Plain HTTP reaches only this machine.
_ADDRESS: Final = re.compile(r"https://[^\s/]+\S*|http://(?:localhost|127\.0\.0\.1)(?::[0-9]+)?(?:/\S*)?")
_BY_EVENT: Final = {"refinement.presented": "approval", "submitted": "review", "blocked": "question"}


class Need(Value):
    """What a person is needed for: `approval`, `review`, `question`, `merge` or `lease_end`. `id` is the same in each
    attempt, so that receivers can ignore what they have already received.
    """

    id: str
    kind: str
    packet: str
    since: str
    by: str = ""
    detail: str = ""

    def encode(self) -> bytes:
        then = f"workpacket why {self.packet}"
        data = {"packet": self.packet, "by": self.by, "detail": self.detail, "next": then}
        said = {"type": f"needed.{self.kind}", "timestamp": self.since, "data": data}
        return json.dumps(said, ensure_ascii=True, separators=(",", ":")).encode()


def needs_of(events: Iterable[LogEvent], *, approvals: bool) -> Iterator[Need]:
    """Yield what people are needed for after these events. `approvals`: whether light packets need an approval."""
    for event in events:
        kind = _BY_EVENT.get(event.type, "")
        if event.type == "created" and event.text("form") == LIGHT_FORM and approvals:
            kind = "approval"
        elif event.lane_to == "MERGE_PENDING" and event.moves_lane:
            kind = "merge"
        if kind:
            detail = event.text("reason") or event.text("until") or ""
            yield Need(event.id, kind, event.packet, event.at, event.actor.id, detail[:500])


def tell(
    webhook: str,
    needs: Sequence[Need],
    environ: Mapping[str, str],
    pause: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Send each message, and return notes about what was not delivered."""
    command = environ.get(COMMAND, "")
    notes = [_run(command, need) for need in needs if command]
    if webhook and needs:
        notes += _post_all(webhook, environ.get(SECRET, ""), needs, pause)
    return [note for note in dict.fromkeys(notes) if note]


def _run(command: str, need: Need) -> str:
    """Run the person's own command, in the way git runs an alias that begins with an exclamation mark."""
    said = ["/bin/sh", "-c", command]
    try:
        # S603: the person asked for this command.
        done = subprocess.run(said, input=need.encode(), capture_output=True, timeout=_PATIENCE, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        problem = "it took too long"
    except OSError as error:
        problem = str(error.strerror)
    else:
        problem = f"exit status {done.returncode}" if done.returncode else ""
    return f"{COMMAND} failed for {need.packet}: {problem}" if problem else ""


def _post_all(webhook: str, secret: str, needs: Sequence[Need], pause: Callable[[float], None]) -> Iterator[str]:
    if not _ADDRESS.fullmatch(webhook):
        yield "the webhook was not called: notify.webhook is not an https address"
        return
    if not secret:
        yield f"the webhook was not called: {SECRET} is not set"
        return
    for need in needs:
        problem = _post(webhook, _key(secret), need, pause)
        if problem:
            yield f"the webhook did not accept the message about {need.packet}: {problem}"


def _key(secret: str) -> bytes:
    """Return the key: the base64 after `whsec_`, which is how the specification writes secrets; otherwise the text
    itself."""
    if secret.startswith("whsec_"):
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


def signature(key: bytes, identity: str, timestamp: str, body: bytes) -> str:
    signed = hmac.new(key, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _post(webhook: str, key: bytes, need: Need, pause: Callable[[float], None]) -> str:
    """Send one message, and return why it was not delivered; '' if it was. Redirects are not followed."""
    problem = ""
    for number in range(_TRIES):
        if number:
            pause(_PAUSE * 2**number)
        try:
            status = _request(webhook, key, need)
        except (OSError, http.client.HTTPException) as error:
            problem = str(error) or type(error).__name__
            continue
        if 200 <= status < 300:
            return ""
        problem = f"it answered {status}"
        # The server understood and refused: the same request would be refused again.
        if status < 500 and status != http.HTTPStatus.TOO_MANY_REQUESTS:
            break
    return problem


def _request(webhook: str, key: bytes, need: Need) -> int:
    address = urlsplit(webhook)
    body, now = need.encode(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": need.id,
        "webhook-timestamp": now,
        "webhook-signature": signature(key, need.id, now, body),
    }
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=_PATIENCE)
    try:
        connection.request("POST", urlunsplit(("", "", address.path or "/", address.query, "")), body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
