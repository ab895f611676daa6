"""Headless Chromium, driven over its pipe: messages of the DevTools protocol, each ended by a zero byte.

No network is used: the browser gets a host resolver that knows this machine alone, and every request it makes is noted.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost", "--remote-debugging-pipe", "--window-size=1280,900",
    "--force-color-profile=srgb", "--hide-scrollbars", "about:blank",
)  # fmt: skip
PATIENCE = 60.0
Reply = dict[str, Any]


def found() -> str | None:
    """The browser, if this machine has one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Page:
    """One page. `requests` are the addresses that it asked for, `complaints` what the console said of errors.

    `loader` is the browser's name for the load that ended last.
    """

    send_to: int
    read_from: int
    session: str = ""
    number: int = 0
    buffer: bytes = b""
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    loader: str = ""

    def call(self, method: str, **parameters: Any) -> Reply:
        self.number += 1
        message: Reply = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                result: Reply = answer["result"]
                return result

    def _next(self) -> Reply:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_from], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            self.buffer += os.read(self.read_from, 1 << 20)
        text, _, self.buffer = self.buffer.partition(b"\0")
        message: Reply = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: Reply) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in {"error", "warning", "assert"}:
            self.complaints.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(str(parameters["entry"]))
        elif method == "Page.lifecycleEvent" and parameters["name"] == "load":
            self.loader = parameters["loaderId"]

    def open(self, address: str) -> None:
        """Until this page has been loaded, not one that the browser was still busy with."""
        loader = self.call("Page.navigate", url=address).get("loaderId", self.loader)
        end = time.monotonic() + PATIENCE
        while self.loader != loader:
            assert time.monotonic() < end, f"{address} has not been loaded, or led elsewhere"
            self._next()
        self.ask("1")

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, in the page."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def settle(self) -> None:
        """Until the page has been drawn once more, so that what an event started is done."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

    def go(self, fragment: str) -> None:
        self.ask(f"location.hash = {json.dumps(fragment)}")
        self.settle()

    def type(self, text: str) -> None:
        self.type_at_once(text)
        self.settle()

    def type_at_once(self, text: str) -> None:
        """Without waiting for what it changes."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        more = {"text": "\r"} if key == "Enter" else {"text": " "} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            own = more if kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **own)

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = "") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme, media=media)
        self.settle()

    def picture(self, path: Path, *, whole: bool = False) -> None:
        reply = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(reply["data"]))

    def printed(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


@contextlib.contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """A browser of its own, with a new profile, ended by its id."""
    commands, send_to = os.pipe()
    read_from, answers = os.pipe()

    def place_pipes() -> None:
        # The browser reads from 3 and writes to 4.
        for number in (commands, answers):
            os.set_inheritable(number, True)

    place_pipes()
    script = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
    with (profile.parent / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/bash", "-c", script, program, f"--user-data-dir={profile}", *ARGUMENTS],
            pass_fds=(commands, answers), stdout=log, stderr=log,
        )  # fmt: skip
    os.close(commands)
    os.close(answers)
    try:
        page = Page(send_to, read_from)
        target = next(one for one in page.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        page.session = page.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        page.look()
        yield page
    finally:
        os.close(send_to)
        process.terminate()
        process.wait(20)
        os.close(read_from)
