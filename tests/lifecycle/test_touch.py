"""`approve --browser` and `key init --browser` up to the browser itself, which tests/browser has: a test answers."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from lifecycle.governed import Governed
from lifecycle.signed import ALICE, NAME, POLICY, Signed
from shell.agents import make_key_file
from softkeys import SoftKey, make_key
from workpacket.approvals.webauthn import NewKey, client_data_of, decode_base64url, public_line
from workpacket.cli import touch
from workpacket.report.approval_text import TouchPage
from workpacket.shell.one_shot_page import OneShotPage

KIND = "sk-ecdsa-sha2-nistp256@openssh.com"
RULES = (
    '\n[approvals.gates.activation]\nroles = ["approver"]\nthreshold = 1\nseparation = []\nhardware = "{hardware}"\n'
)
LAST = '\n[approvals.gates.policy]\nroles = ["operator"]\nthreshold = 1\nseparation = []\n'

Answer = Callable[[OneShotPage, TouchPage], object]


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("person")
    monkeypatch.setenv("HOME", str(folder))
    return folder


class Asked:
    """The pages that commands have shown; `answer` says what the person does."""

    def __init__(self) -> None:
        self.pages: list[TouchPage] = []
        self.answer: Answer = lambda *_: {"declined": True}

    def __call__(self, page: OneShotPage, asked: TouchPage) -> None:
        self.pages.append(asked)
        document = self.answer(page, asked)
        threading.Timer(0.01, lambda: page.accept(page.secret, document)).start()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    monkeypatch.setattr(touch, "_ask", found)
    return found


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def touching(key: SoftKey, flags: int = 1) -> Answer:
    """What browser and token answer."""

    def answer(page: OneShotPage, asked: TouchPage) -> object:
        data = hashlib.sha256(b"localhost").digest() + bytes([flags]) + bytes(4)
        said = client_data_of(decode_base64url(asked.asked.challenge), page.origin) + b"}"
        assert isinstance(key.private, ec.EllipticCurvePrivateKey)
        numbers = key.private.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        return {"authenticatorData": encoded(data), "clientDataJSON": encoded(said), "signature": encoded(numbers)}

    return answer


def begin(signed: Signed, home: Path, *, pages: str = "", hardware: str = "none") -> SoftKey:
    """Alice has the key of a page, whose public half lies where `key init --browser` puts it."""
    port = free_port()
    table = f'\n[approvals.webauthn]\nrp_ids = ["localhost"]\norigins = ["http://localhost:{port}"]\nport = {port}\n'
    key = make_key(KIND, "localhost")
    governed = signed.governed
    governed.begin(policy=POLICY + RULES.format(hardware=hardware) + LAST + (table + pages if pages != "none" else ""))
    governed.write(".GOV/policy/allowed_signers", key.line(ALICE) + "\n")
    governed.commit("Anchor")
    (home / ".ssh").mkdir()
    (home / ".ssh/workpacket_touch.pub").write_text(public_line(NewKey(key.public, b"\1\2\3")) + "\n")
    signed.ready()
    return key


def envelopes(governed: Governed) -> list[str]:
    return [path for path in governed.files() if path.startswith(".GOV/attestations/")]


def test_a_touch_approves(signed: Signed, home: Path, asked: Asked) -> None:
    asked.answer = touching(begin(signed, home))
    done = signed.governed.done("approve", NAME, "--browser")
    assert f"{ALICE} approved {NAME} at the gate activation" in done.out
    assert len(envelopes(signed.governed)) == 1
    (page,) = asked.pages
    assert page.title == f"Approve {NAME} at the gate activation"
    assert page.yes == "Approve with a touch"
    assert ALICE in page.lead
    assert "--- the contract, in full:\n" in page.text
    assert "| The name is printed.\n" in page.text
    assert (page.asked.kind, page.asked.party, page.asked.pin) == ("touched", "localhost", False)
    assert decode_base64url(page.asked.credential) == b"\1\2\3"
    signed.governed.done("packet", "activate", NAME)


def test_the_page_shows_what_the_terminal_shows(
    signed: Signed, home: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(signed, home)
    monkeypatch.setenv("COLUMNS", "9999")
    assert signed.governed("approve", NAME, "--browser").codes == ["approval_not_given"]
    public = home / ".ssh/workpacket_touch.pub"
    out = str(home / "statement")
    terminal = signed.governed.done("approve", NAME, "--key", str(public), "--statement-out", out).out

    def without_moment(text: str) -> list[str]:
        kept = [line for line in text.splitlines() if not line.startswith(("valid ", "nonce ", "next: "))]
        return [
            line for line in kept if "USER_SIGNATURE" not in line and "sha256" not in line and "in words" not in line
        ]

    assert without_moment(asked.pages[0].text) == without_moment(terminal)


def test_a_rejection_is_called_one(signed: Signed, home: Path, asked: Asked) -> None:
    asked.answer = touching(begin(signed, home))
    done = signed.governed.json("approve", NAME, "--browser", "--decision", "reject")
    assert done["data"]["decision"] == "reject"
    assert (asked.pages[0].title, asked.pages[0].yes) == (
        f"Reject {NAME} at the gate activation",
        "Reject with a touch",
    )


def test_an_approval_is_taken_back_by_touch(signed: Signed, home: Path, asked: Asked) -> None:
    asked.answer = touching(begin(signed, home))
    made = signed.governed.json("approve", NAME, "--browser")["data"]["envelope"]
    signed.wait(minutes=1)
    signed.governed.done("approvals", "revoke", Path(made).name[:12], "--browser")
    assert asked.pages[1].yes == "Revoke with a touch"
    assert "approval_revoked" in signed.governed("approvals", "list", NAME).out


def test_declined_or_unfit_answers_write_nothing(signed: Signed, home: Path, asked: Asked) -> None:
    key = begin(signed, home)
    before = signed.governed.files()
    answers: list[tuple[Answer, str]] = [
        (lambda *_: {"declined": True}, "approval_not_given"),
        (lambda *_: {"signature": 1}, "page_answer_unfit"),
        (touching(make_key(KIND, "localhost")), "signature_invalid"),
        (touching(key, 0), "touch_missing"),
        (touching(key, 0x09), "passkey_synced"),
    ]
    for answer, code in answers:
        asked.answer = answer
        assert signed.governed("approve", NAME, "--browser").codes == [code]
        assert signed.governed.files() == before


@pytest.mark.parametrize(("pages", "hardware"), [("pin = true\n", "none"), ("", "pin")])
def test_a_pin_is_asked_for_where_it_is_needed(
    signed: Signed, home: Path, asked: Asked, pages: str, hardware: str
) -> None:
    key = begin(signed, home, pages=pages, hardware=hardware)
    asked.answer = touching(key)
    assert signed.governed("approve", NAME, "--browser").codes == ["pin_missing"]
    asked.answer = touching(key, 5)
    signed.governed.done("approve", NAME, "--browser")
    assert [page.asked.pin for page in asked.pages] == [True, True]


def test_without_a_page_in_the_policy_none_is_shown(signed: Signed, home: Path, asked: Asked) -> None:
    begin(signed, home, pages="none")
    assert signed.governed("approve", NAME, "--browser").codes == ["webauthn_not_accepted"]
    assert asked.pages == []


def test_on_a_port_in_use_no_page_is_shown(signed: Signed, home: Path, asked: Asked) -> None:
    begin(signed, home)
    port = int(signed.governed.read(".GOV/policy/policy.toml").rpartition("port = ")[2])
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        refused = signed.governed("approve", NAME, "--browser")
    assert refused.codes == ["page_port_taken"]
    assert f"http://localhost:{port} is in use by another program" in refused.err
    assert asked.pages == []


def test_each_way_needs_a_key_of_its_kind(signed: Signed, home: Path, asked: Asked) -> None:
    begin(signed, home)
    public = str(home / ".ssh/workpacket_touch.pub")
    in_terminal = signed.governed("approve", NAME, "--key", public)
    assert in_terminal.codes == ["signing_key_unfit"]
    assert "help: add --browser" in in_terminal.err
    make_key_file(home / "software")
    other = home / "other.pub"
    other.write_text(make_key(KIND, "example.org").public_line + "\n")
    for key in (other, home / "software"):
        in_page = signed.governed("approve", NAME, "--browser", "--key", str(key))
        assert in_page.codes == ["signing_key_unfit"]
        assert "workpacket key init --browser" in in_page.err
    assert signed.governed("approve", NAME, "--browser", "--statement-out", "x").codes == ["conflicting_options"]
    assert asked.pages == []


def registering(key: SoftKey, flags: int = 0x41) -> Answer:
    point = key.public.blob[-65 - 13 : -13]
    cose = bytes.fromhex("a5010203262001215820") + point[1:33] + bytes.fromhex("225820") + point[33:]

    def answer(page: OneShotPage, asked: TouchPage) -> object:
        data = hashlib.sha256(b"localhost").digest() + bytes([flags]) + bytes(4) + bytes(16) + b"\0\3\1\2\3" + cose
        said = client_data_of(decode_base64url(asked.asked.challenge), page.origin, "webauthn.create") + b"}"
        return {"authenticatorData": encoded(data), "clientDataJSON": encoded(said)}

    return answer


def test_a_key_is_registered_and_trusted(signed: Signed, home: Path, asked: Asked) -> None:
    begin(signed, home)
    key = make_key(KIND, "localhost")
    asked.answer = registering(key)
    path = home / "keys/touch"
    made = signed.governed.json("key", "init", str(path), "--browser", "--principal", ALICE)["data"]
    assert made == {"path": f"{path}.pub", "fingerprint": key.fingerprint, "line": key.line(ALICE)}
    assert Path(f"{path}.pub").read_text() == public_line(NewKey(key.public, b"\1\2\3")) + "\n"
    assert [each.name for each in path.parent.iterdir()] == ["touch.pub"]
    assert (asked.pages[0].asked.kind, asked.pages[0].asked.person) == ("registered", ALICE)
    signed.governed.done("policy", "trust", "--key", f"{path}.pub", "--principal", ALICE)
    assert key.line(ALICE) in signed.governed.read(".GOV/policy/allowed_signers")


def test_no_key_is_written_that_the_policy_would_refuse(signed: Signed, home: Path, asked: Asked) -> None:
    begin(signed, home)
    asked.answer = registering(make_key(KIND, "localhost"), 0x49)
    path = home / "keys/touch.pub"
    assert signed.governed("key", "init", str(path), "--browser", "--principal", ALICE).codes == ["passkey_synced"]
    asked.answer = lambda *_: {"declined": True}
    assert signed.governed("key", "init", str(path), "--browser", "--principal", ALICE).codes == ["approval_not_given"]
    assert not path.exists()


def test_a_key_file_is_never_overwritten(signed: Signed, home: Path, asked: Asked) -> None:
    begin(signed, home)
    assert signed.governed("key", "init", "--browser", "--principal", ALICE).codes == ["key_exists"]
    assert asked.pages == []


def test_the_address_is_told_and_opened_where_there_is_a_browser(
    signed: Signed, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(signed, home)
    monkeypatch.setattr(OneShotPage, "wait", lambda *_: 0)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    told = ""
    for display in ("", ":0"):
        monkeypatch.setenv("DISPLAY", display)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        told = signed.governed("approve", NAME, "--browser").err
        assert told.startswith("Open this page (it is shown only once): http://localhost:")
    (address,) = opened
    assert told.strip().endswith(address)


def test_the_answer_in_json_has_its_form(signed: Signed, home: Path, asked: Asked) -> None:
    asked.answer = touching(begin(signed, home))
    data: dict[str, Any] = json.loads(signed.governed("approve", NAME, "--browser", "--json").out)["data"]
    assert data["met"] is True
