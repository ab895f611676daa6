"""`--browser` in `approve`, `revoke` and `key init`: the same question on a page, answered by touching a key."""

from __future__ import annotations

import base64
import io
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from workpacket.approvals.policy import Trusted
from workpacket.approvals.webauthn import (
    LOCAL,
    USUAL_PORT,
    Declined,
    NewKey,
    PagesAccepted,
    Registered,
    Touched,
    challenge_for,
    credential_in,
    key_from,
    public_line,
    read_answer,
    signature_from,
)
from workpacket.cli.options import Arguments, usage
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.approval_text import Asked, TouchPage, render_touch_page, security_policy
from workpacket.report.audit_page import PageFiles
from workpacket.report.terminal import Style
from workpacket.shell.approvals.decisions import StatementDraft, trusted_or_error
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.audit import page_file
from workpacket.shell.keys import OwnKey, find_key, touch_key_path, write_public_key
from workpacket.shell.one_shot_page import PATIENCE, OneShotPage, Shown, Told, one_shot_page

# The window wraps the rows, and marks where.
_UNBROKEN = Style(width=100_000)
_YES = {"approve": "Approve with a touch", "reject": "Reject with a touch", "revoke": "Revoke with a touch"}
_CLOSE = "You can close this page."
_MILLISECONDS = int(PATIENCE * 1000)
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_DONE = {"approve": "Approved", "reject": "Rejected", "revoke": "Revoked"}


def chosen_key(arguments: Arguments) -> OwnKey:
    """Return the given key, or the default one.

    A key registered on a page can sign only on a page, and other keys cannot sign there.
    """
    browser = arguments.flag("browser")
    if browser and arguments.value("statement-out"):
        raise usage(arguments.command, "conflicting_options", "--browser and --statement-out cannot be used together")
    key = find_key(arguments.value("key") or (str(touch_key_path()) if browser else ""))
    if browser and key.public.application != LOCAL:
        what = f"{key.path} was not registered for {LOCAL}, so no page on this machine can use it"
        raise WorkpacketError("signing_key_unfit", what, hint="workpacket key init --browser", path=key.path)
    if key.public.signs_in_pages and not browser and not arguments.value("statement-out"):
        what = f"{key.path} was registered for web pages, so ssh-keygen cannot use it"
        raise WorkpacketError("signing_key_unfit", what, hint="add --browser", path=key.path)
    return key


def decide_in_page(
    approvals: Approvals,
    draft: StatementDraft,
    key: OwnKey,
    show: Callable[[TextIO, Style], None],
    finish: Callable[[bytes], int],
) -> int:
    """Show on a page what the terminal would show, wait for the touch, pass the signature to `finish`, and return the
    exit status.
    """
    trusted = trusted_or_error(approvals)
    port = _port(trusted)
    public = Path(key.path if key.path.endswith(".pub") else f"{key.path}.pub")
    text, said = io.StringIO(), draft.statement
    show(text, _UNBROKEN)
    gate = trusted.policy.rules_of(said.gate)
    pin = trusted.policy.pages is not None and trusted.policy.pages.pin
    pin = pin or (gate is not None and gate.hardware == "pin")
    with one_shot_page(port) as page:
        asked = Asked(
            kind="touched",
            page=page.secret,
            origin=page.origin,
            party=LOCAL,
            challenge=_encoded(challenge_for(draft.message)),
            milliseconds=_MILLISECONDS,
            credential=_encoded(credential_in(public.read_text("utf-8", "replace"))),
            pin=pin,
        )
        title = f"{said.decision.capitalize()} {said.packet} at the gate {said.gate}"
        lead = (
            f"Signing as {said.approver} ({said.role}) for {said.repository.name}. The buttons are below the "
            "text to be signed."
        )
        _ask(page, TouchPage(title, lead, text.getvalue(), _YES[said.decision], asked))
        return page.wait(lambda document: _decided(document, page.origin, draft, key, finish))


def _decided(
    document: object, origin: str, draft: StatementDraft, key: OwnKey, finish: Callable[[bytes], int]
) -> tuple[int, Told]:
    answer = read_answer(document, "touched")
    if not isinstance(answer, Touched):
        raise _refused(answer)
    blob = signature_from(answer, key.public, origin, draft.message)
    if isinstance(blob, Problem):
        raise WorkpacketError.of(blob)
    status, said = finish(blob), draft.statement
    return status, Told(f"{_DONE[said.decision]}: {said.packet} at the gate {said.gate}. {_CLOSE}", good=True)


def register(principal: str, path: Path, trusted: Trusted | None) -> NewKey:
    """Register a new key on a page in the browser; its public half is written to `path`."""
    pages = (trusted.policy.pages if trusted is not None else None) or PagesAccepted((), ())
    if path.exists():
        hint = "choose a different file: workpacket key init --browser PATH"
        raise WorkpacketError("key_exists", "the file already exists", hint=hint, path=str(path))
    challenge = secrets.token_bytes(32)
    with one_shot_page(pages.port or USUAL_PORT) as page:
        asked = Asked(
            kind="registered",
            page=page.secret,
            origin=page.origin,
            party=LOCAL,
            challenge=_encoded(challenge),
            milliseconds=_MILLISECONDS,
            user=_encoded(secrets.token_bytes(16)),
            person=principal,
        )
        lead = f"{principal} can approve with this key once .GOV/policy/allowed_signers on the base contains its line."
        _ask(page, TouchPage("Register a key for approvals", lead, "", "Register with a touch", asked))

        def judge(document: object) -> tuple[NewKey, Told]:
            answer = read_answer(document, "registered")
            if not isinstance(answer, Registered):
                raise _refused(answer)
            key = key_from(answer, challenge, page.origin, synced=pages.synced)
            if isinstance(key, Problem):
                raise WorkpacketError.of(key)
            write_public_key(path, public_line(key))
            return key, Told(f"Registered {key.public.fingerprint}. {_CLOSE}", good=True)

        return page.wait(judge)


def _refused(answer: object) -> WorkpacketError:
    if isinstance(answer, Problem):
        return WorkpacketError.of(answer)
    assert isinstance(answer, Declined)
    return WorkpacketError("approval_not_given", "the request was declined on the page, so nothing was signed")


def _port(trusted: Trusted) -> int:
    pages = trusted.policy.pages
    if pages is None or not pages.port:
        raise WorkpacketError(
            "webauthn_not_accepted",
            "the policy on the base sets no port for pages on this machine, so approvals cannot be given on a page",
            hint="workpacket policy trust --key FILE.pub adds [approvals.webauthn] for such a key",
        )
    return pages.port


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _ask(page: OneShotPage, asked: TouchPage) -> None:
    """Serve the page, print its address in the terminal, and open a browser if there is one.

    A browser that runs in the terminal is not used: it would take over the terminal, and it does not support security
    keys.
    """
    files = PageFiles(page_file("touch.css"), page_file("touch.js"))
    page.show(Shown(render_touch_page(asked, files), security_policy(files)))
    sys.stderr.write(f"Open this page (it is shown only once): {page.address}\n")
    sys.stderr.flush()
    if os.environ.get("BROWSER") == "none":  # the program that started the command shows the page
        return
    if os.name == "nt" or sys.platform == "darwin" or any(os.environ.get(name) for name in _DISPLAYS):
        import webbrowser

        webbrowser.open(page.address)
