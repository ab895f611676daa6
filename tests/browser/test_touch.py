"""Approving by touch as a person does it: the page in a real browser, a key that it simulates, a real command.

The last word has plain `ssh-keygen -Y verify`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browser.chromium import Page
from browser.test_live import at, click, until
from git.scratch import git, make_repository
from lifecycle.governed import Quiet
from live.serving import served
from workpacket.approvals.envelope import pae
from workpacket.approvals.sshsig import NAMESPACE, armor
from workpacket.approvals.webauthn import (
    NewKey,
    Registered,
    Touched,
    challenge_for,
    key_from,
    read_answer,
    signature_from,
)
from workpacket.report.approval_text import Asked, TouchPage, render_touch_page, security_policy
from workpacket.report.audit_page import PageFiles
from workpacket.shell.audit import page_file
from workpacket.shell.one_shot_page import Shown, Told, one_shot_page

NAME = "WP-1-Greeting-v1"
ANN = "ann@example.org"
STUB = f".GOV/task_packets/stubs/{NAME}.md"
REFINEMENT = f".GOV/refinements/{NAME}.md"
TOUCHES = int(os.environ.get("WORKPACKET_TOUCHES", "20"))
POLICY = f"""
[approvals]
repository = "example/greeter"

[approvals.roles]
approver = ["{ANN}"]

[approvals.gates.activation]
roles = ["approver"]
threshold = 1
separation = []
hardware = "touch"

[approvals.gates.policy]
roles = ["approver"]
threshold = 1
separation = []

"""
HOSTILE = "<script>window.harmed = true</script><img src=x onerror='window.harmed = true'>"


@dataclass
class Command:
    """A running command that waits for its page; `address` is where that is."""

    process: subprocess.Popen[str]
    address: str

    def ended(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@dataclass
class Town:
    """A repository whose approvals are given by touch, and the folder of the person who gives them."""

    root: Path
    home: Path
    port: int

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def governed(self) -> Quiet:
        return Quiet(self.root, None)

    @property
    def environment(self) -> dict[str, str]:
        keep = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        settings = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}
        return keep | settings | {"WORKPACKET_ACTOR": "ann"}

    def commit(self, message: str) -> None:
        """Now, as the commands that a browser waits for have no other clock."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", message, date=now)

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self._line(words), cwd=self.root, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def asking(self, *words: str) -> Iterator[Command]:
        process = subprocess.Popen(
            self._line(words), cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        try:
            assert address is not None, line + process.stderr.read()
            yield Command(process, address.group())
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(20)
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                stream.close()

    def _line(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "workpacket", *words]

    def written(self) -> str:
        """What is not committed, in whole."""
        return git(self.root, "status", "--porcelain", "--untracked-files=all")


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@contextmanager
def authenticator(page: Page, **options: Any) -> Iterator[str]:
    """A security key that the browser simulates, and that its owner touches at once."""
    usual = {"protocol": "ctap2", "transport": "usb", "hasUserVerification": True, "isUserVerified": True}
    usual |= {"automaticPresenceSimulation": True} | options
    page.call("WebAuthn.enable")
    name = str(page.call("WebAuthn.addVirtualAuthenticator", options=usual)["authenticatorId"])
    try:
        yield name
    finally:
        page.call("WebAuthn.removeVirtualAuthenticator", authenticatorId=name)
        page.call("WebAuthn.disable")


@pytest.fixture
def key(page: Page) -> Iterator[str]:
    page.look()
    page.open("about:blank")
    page.requests.clear()
    page.complaints.clear()
    with authenticator(page) as name:
        yield name


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    """Nothing is ready but the policy, which names the page."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WORKPACKET_ACTOR", "ann")
    root, home = tmp_path / "town", tmp_path / "home"
    home.mkdir()
    make_repository(root)
    town = Town(root, home, free_port())
    pages = f'[approvals.webauthn]\nrp_ids = ["localhost"]\norigins = ["{town.origin}"]\nport = {town.port}\n'
    town.governed.begin_by_commands(POLICY + pages)
    return town


@pytest.fixture
def ready(town: Town, page: Page, key: str) -> Town:
    """Ann has a key, and a packet waits for her approval."""
    line = registered(page, town).splitlines()[1]
    governed = town.governed
    governed.write(".GOV/policy/allowed_signers", f"{line}\n")
    town.commit("Ann may approve")
    governed.stub(NAME)
    governed.replace(STUB, "- The name is printed.", f"- The name is printed. {HOSTILE}")
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    town.commit("Refined")
    return town


def press(page: Page, button: str) -> str:
    """What the page says after a button was pressed and everything is done."""
    page.ask(f"document.getElementById({button!r}).click()")
    look = "const look = () => said.className ? done(said.textContent) : setTimeout(look, 20)"
    return str(page.ask(f"(said => new Promise(done => {{ {look}; look() }}))(document.getElementById('said'))"))


def registered(page: Page, town: Town) -> str:
    with town.asking("key", "init", "--browser", "--principal", ANN) as command:
        page.open(command.address)
        told = press(page, "yes")
        status, said = command.ended()
    assert status == 0, said
    assert told.startswith("Registered SHA256:")
    return said


def confirmed(town: Town, envelope: Path, folder: Path) -> str:
    """What plain ssh-keygen says of the signature in an envelope."""
    (signature,) = json.loads(envelope.read_bytes())["signatures"]
    payload = base64.b64decode(json.loads(envelope.read_bytes())["payload"])
    (folder / "signature").write_text(armor(base64.b64decode(signature["sig"])))
    command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", ANN, "-s", str(folder / "signature")]
    command += ["-f", str(town.root / ".GOV/policy/allowed_signers")]
    return subprocess.run(command, input=pae(payload), capture_output=True, check=True).stdout.decode()


def test_a_touch_approves_what_the_page_has_shown(page: Page, ready: Town, tmp_path: Path) -> None:
    with ready.asking("approve", NAME, "--browser") as command:
        page.requests.clear()
        page.complaints.clear()
        page.open(command.address)
        shown = str(page.ask("document.body.innerText"))
        for words in ("The name is printed.", "It ends with a line feed.", "Greet the user", "People like it",
                      "--- the contract, in full:", f"--- {REFINEMENT}", "in words", "nonce", HOSTILE):  # fmt: skip
            assert words in shown, words
        assert page.ask("document.title") == f"Approve {NAME} at the gate activation"
        assert page.ask("window.harmed") is None
        assert page.ask("document.querySelectorAll('img, iframe').length") == 0
        told = press(page, "yes")
        status, said = command.ended()
    assert (status, told) == (0, f"Approved: {NAME} at the gate activation. You can close this page.")
    assert f"{ANN} approved {NAME} at the gate activation" in said
    assert page.requests == [command.address, f"{ready.origin}/answer"]
    assert page.complaints == []
    (envelope,) = (ready.root / ".GOV/attestations").iterdir()
    assert confirmed(ready, envelope, tmp_path).startswith(f'Good "{NAMESPACE}" signature for {ANN} with ECDSA-SK key')
    ready.commit("Approved")
    assert "is ready for dev" in ready.run("packet", "activate", NAME)
    ready.commit("Activated")
    ready.run("approvals", "verify")


@pytest.mark.parametrize("place", [f"/0/packet/{NAME}", "/0/waiting"], ids=["packet", "waiting"])
def test_the_live_board_leads_to_the_same_page(page: Page, ready: Town, tmp_path: Path, place: str) -> None:
    """With the mouse, from the page of the packet, and from that of what waits, where it is asked of Ann's own key."""
    with served(ready.root, options=("--write", "--as", "ann"), environment=ready.environment) as running:
        page.open(running.address)
        page.open(at(running, place))
        assert "from someone else" not in str(page.ask("document.body.innerText"))
        form = "details[id^=act-approve]"
        click(page, f"{form} summary")
        click(page, f"{form} button")
        until(page, "document.body.innerText.includes('Open the page')")
        assert ready.written() == "", "nothing is signed before the touch"
        page.open(str(page.ask("document.querySelector('a.button').href")))
        assert "in words" in str(page.ask("document.body.innerText"))
        assert press(page, "yes").startswith(f"Approved: {NAME}")
        page.open(at(running, f"/0/packet/{NAME}"))
        until(page, f"document.body.innerText.includes('approve by {ANN}')")
        page.open(at(running, "/0/waiting"))
        told = str(page.ask("document.body.innerText"))
        assert ("Needs an approval" in told, "Approved, not yet activated" in told) == (False, True)
        assert running.end() == (0, "")
    (envelope,) = (ready.root / ".GOV/attestations").iterdir()
    assert confirmed(ready, envelope, tmp_path).startswith("Good")


def test_an_approval_that_only_other_keys_can_give_is_not_asked_of_me(page: Page, ready: Town) -> None:
    mine = ready.environment | {"HOME": str(ready.root), "XDG_CONFIG_HOME": str(ready.root / "none")}
    with served(ready.root, options=("--write", "--as", "bob"), environment=mine) as running:
        page.open(running.address)
        page.open(at(running, "/0/waiting"))
        assert "Needs an approval from someone else" in str(page.ask("document.body.innerText"))
        assert page.ask("document.querySelector('details[id^=act-approve]')") is None
        assert running.end() == (0, "")


def test_the_page_is_shown_once_and_takes_one_answer(page: Page, ready: Town) -> None:
    with ready.asking("approve", NAME, "--browser") as command:
        page.open(command.address)
        asked = page.ask("document.getElementById('asked').textContent")
        page.open(command.address)
        assert "has already been shown" in str(page.ask("document.body.innerText"))
        secret = json.loads(asked)["page"]
        for secret, status in (("", 403), ("x" * 43, 403), (json.loads(asked)["page"], 200)):
            headers = json.dumps({"Content-Type": "application/json", "X-Page": secret})
            options = f"{{method: 'POST', headers: {headers}, body: '{{\"declined\": true}}'}}"
            assert page.ask(f"fetch('/answer', {options}).then(reply => reply.status)") == status
        status, said = command.ended()
    assert status != 0
    assert "approval_not_given" in said
    assert ready.written() == ""


def test_declined_is_written_nowhere(page: Page, ready: Town) -> None:
    with ready.asking("approve", NAME, "--browser") as command:
        page.open(command.address)
        assert press(page, "no") == "the request was declined on the page, so nothing was signed"
        status, said = command.ended()
    assert status == 3, said
    assert "approval_not_given" in said
    assert ready.written() == ""


def test_a_key_that_may_be_copied_is_not_registered(page: Page, town: Town) -> None:
    asking = town.asking("key", "init", "--browser", "--principal", ANN)
    with authenticator(page, defaultBackupEligibility=True), asking as command:
        page.open(command.address)
        assert press(page, "yes") == "the passkey can be copied to other devices, which the policy does not allow"
        status, said = command.ended()
    assert status != 0
    assert "passkey_synced" in said
    assert not list(town.home.rglob("*.pub"))


def test_a_touch_that_was_not_given_can_be_given_later(page: Page, ready: Town, key: str) -> None:
    with ready.asking("approve", NAME, "--browser") as command:
        page.open(command.address)
        credentials = page.call("WebAuthn.getCredentials", authenticatorId=key)["credentials"]
        page.call("WebAuthn.clearCredentials", authenticatorId=key)
        assert press(page, "yes") != ""
        assert command.process.poll() is None
        for credential in credentials:
            page.call("WebAuthn.addCredential", authenticatorId=key, credential=credential)
        page.ask("document.getElementById('said').className = ''")
        assert press(page, "yes").startswith("Approved")
        assert command.ended()[0] == 0


@pytest.mark.parametrize("delay", [None, 0.0, 0.05, 0.2])
def test_a_command_that_is_killed_leaves_nothing_half_written(page: Page, ready: Town, delay: float | None) -> None:
    """`None`: before anybody has answered."""
    with ready.asking("approve", NAME, "--browser") as command:
        page.open(command.address)
        if delay is not None:
            page.ask("document.getElementById('yes').click()")
            time.sleep(delay)
        os.kill(command.process.pid, signal.SIGKILL)
        command.process.wait(20)
    ready.run("log", "recover")
    written = ready.written().splitlines()
    assert len(written) in ({0} if delay is None else {0, 2}), written
    if not written:
        with ready.asking("approve", NAME, "--browser") as command:
            page.open(command.address)
            assert press(page, "yes").startswith("Approved")
            assert command.ended()[0] == 0


def test_all_that_chromium_signs_is_accepted_by_us_and_by_openssh(page: Page, key: str, tmp_path: Path) -> None:
    """It adds members to the client data at random, in one of five."""
    registered_at, message = free_port(), b"what is signed"
    files = PageFiles(page_file("touch.css"), page_file("touch.js"))
    challenge = b"c" * 32
    made: NewKey | None = None
    lengths = set()
    for number in range(TOUCHES + 1):
        with one_shot_page(registered_at) as served:
            wanted = challenge_for(message) if made is not None else challenge
            asked = Asked(
                kind="touched" if made is not None else "registered",
                page=served.secret,
                origin=served.origin,
                party="localhost",
                challenge=encoded(wanted),
                milliseconds=10_000,
                credential=encoded(made.credential) if made is not None else "",
                user=encoded(b"user"),
                person=ANN,
            )
            served.show(Shown(render_touch_page(TouchPage("", "", "", "Yes", asked), files), security_policy(files)))
            page.open(served.address)
            page.ask("document.getElementById('yes').click()")
            if made is None:
                answer = served.wait(lambda document: (read_answer(document, "registered"), Told("", good=True)), 30)
                assert isinstance(answer, Registered)
                key_made = key_from(answer, challenge, served.origin, synced=False)
                assert isinstance(key_made, NewKey), key_made
                made = key_made
                continue
            answer = served.wait(lambda document: (read_answer(document, "touched"), Told("", good=True)), 30)
            assert isinstance(answer, Touched)
            blob = signature_from(answer, made.public, served.origin, message)
            assert isinstance(blob, bytes), (number, blob)
        lengths.add(len(answer.client_data))
        line = f'{ANN} namespaces="{NAMESPACE}" {made.public.kind} {base64.b64encode(made.public.blob).decode()}\n'
        (tmp_path / "signers").write_text(line)
        (tmp_path / "signature").write_text(armor(blob))
        command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", ANN, "-s", str(tmp_path / "signature")]
        done = subprocess.run(
            [*command, "-f", str(tmp_path / "signers")], input=message, capture_output=True, check=False
        )
        assert done.returncode == 0, (number, done)
    print(f"{TOUCHES} touches, client data of {sorted(lengths)} bytes")


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


LOOKS = [("wide", 1280, False), ("wide-dark", 1280, True), ("narrow", 360, False), ("narrow-dark", 360, True)]


def test_the_page_can_be_read_everywhere(page: Page, ready: Town, tmp_path: Path) -> None:
    """With WORKPACKET_PICTURES the pictures are kept there, to be looked at."""
    pictures = Path(os.environ.get("WORKPACKET_PICTURES", tmp_path))
    with ready.asking("approve", NAME, "--browser") as command:
        page.open(command.address)
        for name, width, dark in LOOKS:
            page.look(width=width, height=800, dark=dark)
            assert page.ask("document.documentElement.scrollWidth") <= width
            for selector in ("h1", "header p", ".rows", "button", "button.no"):
                assert contrast(page, selector) >= 4.5, (name, selector)
            page.picture(pictures / f"touch-{name}.png")
            assert page.ask("document.getElementById('yes').getBoundingClientRect().top") > 800
            page.picture(pictures / f"touch-{name}-whole.png", whole=True)
        page.look()
        reached = set()
        for _ in range(4):
            page.press("Tab")
            reached.add(page.ask("document.activeElement.id"))
        assert {"yes", "no"} <= reached
        assert page.ask("document.documentElement.lang") == "en"
        assert page.ask("document.getElementById('said').getAttribute('role')") == "status"


def contrast(page: Page, selector: str) -> float:
    """The ratio of luminances of an element's text and of what lies behind it, as WCAG counts."""
    script = """(selector => {
      const numbers = text => text.match(/[0-9.]+/g).map(Number);
      const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map(v => v / 255)
        .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * x + .7152 * y + .0722 * z; };
      const element = document.querySelector(selector);
      const was = [...document.querySelectorAll('button')].map(each => each.disabled);
      document.querySelectorAll('button').forEach(each => each.disabled = false);
      let place = element, behind;
      do { behind = numbers(getComputedStyle(place).backgroundColor); place = place.parentElement; }
      while (behind.length === 4 && behind[3] === 0 && place);
      const own = light(numbers(getComputedStyle(element).color)), under = light(behind);
      document.querySelectorAll('button').forEach((each, index) => each.disabled = was[index]);
      return (Math.max(own, under) + .05) / (Math.min(own, under) + .05); })"""
    return float(page.ask(f"{script}({selector!r})"))


PAGE = Path(__file__).parents[2] / "docs/approvals/touch-page.html"


@contextmanager
def static_page() -> Iterator[str]:
    """The page of docs/approvals on an origin of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(PAGE.read_bytes())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()


def test_a_statement_is_signed_on_an_origin_of_ones_own(page: Page, town: Town, key: str, tmp_path: Path) -> None:
    """Registered, shown and signed in the static page; the command attaches it by the rules of the policy."""
    with static_page() as origin:
        policy = town.governed.read(".GOV/policy/policy.toml")
        both = policy.replace(f'"{town.origin}"', f'"{town.origin}", "{origin}"')
        town.governed.write(".GOV/policy/policy.toml", both)
        page.open(f"{origin}/")
        page.complaints.clear()
        line = pressed(page, "register", "key")
        public = tmp_path / "own.pub"
        public.write_text(line + "\n")
        town.governed.write(
            ".GOV/policy/allowed_signers", f'{ANN} namespaces="{NAMESPACE}" {" ".join(line.split()[:2])}\n'
        )
        town.commit("Ann may approve")
        town.governed.stub(NAME)
        town.governed.refine(NAME)
        town.governed.done("refine", NAME, "--present")
        town.commit("Refined")
        statement = tmp_path / "statement"
        town.run("approve", NAME, "--key", str(public), "--statement-out", str(statement))
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        chooser = page.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
        page.call("DOM.setFileInputFiles", nodeId=chooser, files=[str(statement)])
        ready = "!sign.disabled && document.getElementById('statement').textContent"
        page.ask(f"new Promise(d => {{ const look = () => {ready} ? d() : setTimeout(look, 20); look() }})")
        shown = json.loads(str(page.ask("document.getElementById('statement').textContent")))
        assert shown["predicate"]["packet"] == NAME
        Path(f"{statement}.sig").write_text(pressed(page, "sign", "signature"))
        pictures = Path(os.environ.get("WORKPACKET_PICTURES", tmp_path))
        for name, width, dark in LOOKS:
            page.look(width=width, height=800, dark=dark)
            assert page.ask("document.documentElement.scrollWidth") <= width
            page.picture(pictures / f"static-{name}.png")
        assert [each for each in page.complaints if "pubKeyCredParams" not in each] == []
    done = town.run("approve", "--attach", str(statement))
    assert f"{ANN} approved {NAME} at the gate activation" in done
    (envelope,) = (town.root / ".GOV/attestations").iterdir()
    assert confirmed(town, envelope, tmp_path).startswith(f'Good "{NAMESPACE}" signature for {ANN} with ECDSA-SK key')


def pressed(page: Page, button: str, field: str) -> str:
    """What a field of the static page holds once a button has filled it in."""
    page.ask(f"document.getElementById({button!r}).click()")
    look = "const look = () => area.value ? done(area.value) : setTimeout(look, 20)"
    return str(page.ask(f"(area => new Promise(done => {{ {look}; look() }}))(document.getElementById({field!r}))"))
