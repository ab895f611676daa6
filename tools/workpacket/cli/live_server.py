"""The server of `serve`: who may ask for what, and for how long. `live_listener` asks it about every request.

What it defends against, and how: foreign names that point to this machine (DNS rebinding): Host must be a name of this
machine. Pages on other sites and other ports: each request must come from the server's own pages, as the browser states
in Origin and Sec-Fetch-Site; the cookie is not sent from other sites; a form must repeat a secret that only its page
has; and no answer allows another origin to read it. Other servers on this machine: cookies do not depend on the port,
so the paths of all pages begin with a secret, and the cookie is sent only there. People without the address: its token
works once, and is exchanged for a cookie. Hostile text: no page may run or load anything but the server's own two
files. Connections that are slow or silent are closed.

Programs running under the same account can do everything that the browser can: see docs/howto/serve.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Scope

from workpacket.cli.live_actions import (
    ACTS,
    APPROVE,
    COMMANDS,
    answer_form,
    faults,
    packet_forms,
    run_forms,
    store_forms,
)
from workpacket.cli.live_readings import PYTHON, Commands, Served
from workpacket.model.ids import is_packet_id
from workpacket.model.wording import counted
from workpacket.problem import WorkpacketError
from workpacket.report import live_page
from workpacket.report.live_overview import history_content, trace_content, waiting_content
from workpacket.report.live_packet import PacketPage, packet_trace
from workpacket.report.live_page import GROUPS, Site, Wanted
from workpacket.report.live_run import QueuedJobs, run_content, runs_content
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.stores.place import store_url
from workpacket.shell.audit import page_file, web_address

_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_METHODS: Final = "Pages are read with GET, and actions are sent with POST."
_FORM: Final = "application/x-www-form-urlencoded"
_LARGEST_BODY: Final = 128 * 1024
_MOST_FIELDS: Final = 50
_LONGEST_QUERY: Final = 4096
_LONGEST_HEAD: Final = 32 * 1024
_SILENCE: Final = 10.0
_LAST_WORDS: Final = 1.0
# How often a stream that has nothing to say shows that it is still there.
_HEARTBEAT: Final = 15.0
_MOST_STREAMS: Final = 500
_MOST_KEPT: Final = 100
T = TypeVar("T")
_LINES: Final = 2000  # of the log of a run


class Live:
    """The pages of one or more repositories. `write`: actions are possible; `actor` is the name given with --as."""

    def __init__(self, roots: Sequence[str], port: int, *, write: bool, actor: str, name: str) -> None:
        self._reader = ThreadPoolExecutor(1, "reader")
        self.served = [Served(root, self._reader) for root in roots]
        self._write, self._name = write, name
        self._commands = Commands(actor, COMMANDS if write else ())
        self._secret = secrets.token_bytes(32)
        self._cookie = f"workpacket-{port}"
        # The paths of all pages begin with it. Only they get the cookie.
        self.home = f"/{secrets.token_hex(8)}"
        self._tokens: set[str] = set()
        self._sessions: dict[str, None] = {}
        self._outcomes: dict[str, str] = {}
        self._audits: dict[int, tuple[int, bytes]] = {}
        self._traces: dict[tuple[int, int, tuple[str, ...]], dict[str, Any]] = {}
        self._auditing = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._touched: list[asyncio.subprocess.Process] = []
        self._streams = 0
        self.stopping = asyncio.Event()
        self._files = {
            name: (page_file(name).encode(), kind)
            for name, kind in (("live.css", "text/css"), ("live.js", "text/javascript"))
        }
        digests = {name: hashlib.sha256(data).hexdigest()[:16] for name, (data, _) in self._files.items()}
        self._style, self._script = (f"/static/{name}?{digests[name]}" for name in ("live.css", "live.js"))

    def token(self) -> str:
        """Return a new token, which lets one browser in once."""
        made = secrets.token_urlsafe(32)
        if len(self._tokens) >= _MOST_KEPT:
            self._tokens.clear()
        self._tokens.add(made)
        return made

    def application(self) -> Starlette:
        routes = [
            Route("/", self._home),
            Route("/address", self._another_browser, methods=["POST"]),
            Route("/static/{name}", self._static),
            Route("/{number}/", self._board),
            Route("/{number}/waiting", self._waiting),
            Route("/{number}/runs", self._runs),
            Route("/{number}/run/{name:path}", self._run),
            Route("/{number}/history", self._history),
            Route("/{number}/trace", self._trace),
            Route("/{number}/audit", self._audit),
            Route("/{number}/packet/{name}", self._packet),
            Route("/{number}/packet/{name}/why", self._why),
            Route("/{number}/packet/{name}/trace", self._packet_trace),
            Route("/{number}/changes", self._changes),
            Route("/{number}/result/{key}", self._result),
            Route("/{number}/act/{action}", self._act, methods=["POST"]),
        ]
        handlers: Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
            404: self._not_found,
            405: self._not_allowed,
            WorkpacketError: self._refused,
            Exception: self._broken,
        }
        starlette = Starlette(routes=routes, exception_handlers=handlers)
        starlette.router.redirect_slashes = False
        return starlette

    async def stop(self) -> None:
        """Wait for commands that have started, and stop those that are waiting for a touch."""
        for process in self._touched:
            if process.returncode is None:
                process.terminate()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._commands.stop()
        self._reader.shutdown(wait=True)

    # ---- who asks ----

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return why a request is refused before anything is read; None if it may proceed."""
        headers = _headers(scope)
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        name, _, port = hosts[0].rpartition(":") if len(hosts) == 1 else ("", "", "")
        is_ours = name in _NAMES and port.isascii() and port.isdigit()
        foreign = any(origin != f"http://{hosts[0]}" for origin in origins) if is_ours else True
        foreign = foreign or any(site not in {"same-origin", "none"} for site in headers.get("sec-fetch-site", []))
        method, length = scope["method"], sum(len(key) + len(value) for key, value in scope["headers"])
        reasons = (
            (
                not is_ours,
                403,
                "This host name is not served by the board. Open the address that the command printed.",
            ),
            (foreign, 403, "Another site asked."),
            (method not in {"GET", "HEAD", "POST"}, 405, _METHODS),
            (len(scope["query_string"]) > _LONGEST_QUERY, 414, "The address is too long."),
            (length > _LONGEST_HEAD, 431, "The headers are too long."),
            (method == "POST" and not origins, 403, "An action must come from a page of this server."),
        )
        return next(((status, told) for refused, status, told in reasons if refused), None)

    def session(self, request: Request) -> str:
        """Return the session of the request; '' if it has none."""
        pairs = (pair.partition("=") for each in request.headers.getlist("cookie") for pair in each.split(";"))
        # Another server on this machine may have set a cookie with the same name.
        given = (value.strip() for name, _, value in pairs if name.strip() == self._cookie)
        return next((each for each in given if each in self._sessions), "")

    def enter(self, token: str) -> str:
        """Return the cookie that a token is exchanged for; '' if the token is unknown or has already been used."""
        known = next(
            (one for one in self._tokens if hmac.compare_digest(one.encode(), token.encode("utf-8", "replace"))), ""
        )
        if not known:
            return ""
        self._tokens.discard(known)
        if len(self._sessions) >= _MOST_KEPT:
            del self._sessions[next(iter(self._sessions))]
        made = secrets.token_urlsafe(32)
        self._sessions[made] = None
        return f"{self._cookie}={made}; Path={self.home}/; HttpOnly; SameSite=Strict"

    def _csrf(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def _site(self, request: Request, served: Served | None = None, part: str = "") -> Site:
        session = self.session(request)
        return Site(
            repositories=[each.name for each in self.served] if session else [],
            style=self._style,
            script=self._script,
            current=self.served.index(served) if served is not None else -1,
            part=part,
            version=served.version if served is not None else 0,
            actor=self._name if self._write else "",
            csrf=self._csrf(session) if session else "",
            home=self.home if session else "",
        )

    async def _given(self, request: Request) -> dict[str, str]:
        """Return the fields of a form; raise WorkpacketError if it was not submitted from a page of this server."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise _Refusal(415, "a form is expected")
        body = await self._body(request)
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace"
            )
        except ValueError:
            raise _Refusal(400, "the form cannot be read") from None
        given = dict(pairs)
        csrf = given.pop("csrf", "")
        if not hmac.compare_digest(csrf.encode("utf-8", "replace"), self._csrf(self.session(request)).encode()):
            raise _Refusal(403, "the form was not created by this server; open the page again")
        if len(pairs) != len(given) + 1:
            raise _Refusal(400, "a field appears twice")
        return given

    async def _body(self, request: Request) -> bytes:
        """Return the request body. If it is too large, keep reading for a moment, because a browser that cannot finish
        sending does not show the answer.
        """
        length = request.headers.get("content-length", "0")
        body = b""
        with suppress(TimeoutError):
            fits = length.isascii() and length.isdigit() and len(length) <= 9 and int(length) <= _LARGEST_BODY
            async with asyncio.timeout(_SILENCE if fits else _LAST_WORDS):
                async for part in request.stream():
                    body += part if len(body) <= _LARGEST_BODY else b""
                if fits and len(body) <= _LARGEST_BODY:
                    return body
        if fits and len(body) <= _LARGEST_BODY:
            raise _Refusal(408, "the form did not arrive in time")
        raise _Refusal(413, f"a form must not exceed {_LARGEST_BODY:,} bytes")

    def _at(self, request: Request) -> Served:
        number = request.path_params["number"]
        if len(number) > 3 or not (number.isascii() and number.isdigit()) or int(number) >= len(self.served):
            raise _Refusal(404, "this server has no such repository")
        return self.served[int(number)]

    # ---- pages ----

    async def _home(self, request: Request) -> Response:
        if not self.session(request):
            return self._sign_in(request)
        if len(self.served) == 1:
            return RedirectResponse(f"{self.home}/0/", 303)
        counts = [counted(len((await each.lanes())[0]), "packet") for each in self.served]
        return _html(live_page.home(self._site(request), counts))

    def _sign_in(self, request: Request) -> Response:
        cookie = self.enter(request.query_params.get("token", ""))
        if cookie:
            return RedirectResponse(f"{self.home}/", 303, {"Set-Cookie": cookie})
        return self.stranger(request)

    def stranger(self, request: Request) -> Response:
        told = (
            "This address has already been used, or the server was restarted. The terminal where the server "
            "runs shows the address that opens the board; a browser where the board is already open can show a "
            "new one."
        )
        return _html(live_page.message(self._site(request), "The board is not open in this browser", told), 401)

    async def _another_browser(self, request: Request) -> Response:
        await self._given(request)
        address = f"http://{request.headers['host']}{self.home}/?token={self.token()}"
        told = "Open this address in the other browser. It works once."
        return _html(live_page.message(self._site(request), "For another browser", told, address))

    async def _static(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None:
            raise _Refusal(404, "file not found")
        data, kind = found
        return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=31536000, immutable"})

    async def _board(self, request: Request) -> Response:
        served, query = self._at(request), request.query_params
        more: dict[str, int] = {}
        for one in query.getlist("more")[:50]:
            key, _, count = one.rpartition(":")
            if count.isascii() and count.isdigit() and len(count) <= 6:
                more[key] = int(count)
        group, at = query.get("group", ""), query.get("at", "")
        if at.startswith("-") or "\0" in at:
            raise _Refusal(400, f"{at!r} is not a commit")
        wanted = Wanted(query.get("q", "")[:200], group if group in GROUPS else "", at, more)
        return _html(await served.board(self._site(request, served, "board"), wanted))

    def _name_of(self, request: Request) -> str:
        name: str = request.path_params["name"]
        if not is_packet_id(name):
            raise _Refusal(404, "packet not found")
        return name

    async def _packet(self, request: Request) -> Response:
        served, name = self._at(request), self._name_of(request)
        site = self._site(request, served, "board")
        show = await served.answer("show", "--full", "--", name)
        if not show["ok"]:
            return self._failure(site, show)
        history = await served.answer("log", "show", "--", name)
        approvals = await served.answer("approvals", "list", "--", name)
        found, excerpts = await served.found_in(list(show["data"]["files"].values()))
        changes: list[str] = []
        if show["data"]["contract_changed"]:
            told = await served.text("packet", "contract", "--color", "never", "--", name)
            changes = told[told.find("\n--- ") + 1 :].splitlines()
        lanes, table = await served.lanes()
        light = any(event.get("data", {}).get("form") == "light" for event in history["data"].get("events", ()))
        forms = list(packet_forms(name, lanes.get(name, ""), light, table))
        page = PacketPage(show["data"], history["data"], approvals["data"], found, excerpts, changes, _forge_of(served))
        return _html(page.render(site, forms))

    async def _packet_trace(self, request: Request) -> Response:
        served, name = self._at(request), self._name_of(request)
        site = self._site(request, served, "board")
        answer = await self._traced(served, "trace", "--", name)
        if not answer["ok"] or not answer["data"]["packets"]:
            return self._failure(site, answer)
        traced = packet_trace(answer["data"]["packets"][0], _forge_of(served))
        back = f'<p class="crumb">{live_page.packet_link(site, name)}</p>\n<h1>Trace</h1>\n<div id="part">\n'
        content = (back, *traced, "</div>\n")
        return _html(live_page.page(site, f"Trace of {name}", content, live=False))

    async def _traced(self, served: Served, *words: str) -> dict[str, Any]:
        """Return the answer of a command that reads everything: in a process of its own, one at a time."""
        async with self._auditing:
            key = (self.served.index(served), served.version, words)
            if key not in self._traces:
                if len(self._traces) >= _MOST_KEPT:
                    self._traces.clear()
                at = words.index("--")
                self._traces[key] = await self._commands.run(
                    served.root, [*words[:at]], [*words[at + 1 :]], acting=False
                )
            return self._traces[key]

    async def _why(self, request: Request) -> Response:
        served, name = self._at(request), self._name_of(request)
        site = self._site(request, served)
        why = await served.answer("why", "--", name)
        if not why["ok"]:
            return self._failure(site, why)
        return _html(live_page.conditions(why["data"]))

    async def _waiting(self, request: Request) -> Response:
        served = self._at(request)
        questions = await served.answer("runtime", "questions")
        site = self._site(request, served, "waiting")
        waiting, leases, conflicts = await served.needs(self._name)
        asked = [(one, [answer_form(str(one["run"]), one)]) for one in questions["data"].get("questions", ())]
        content = waiting_content(site, waiting, leases, conflicts, asked, _problem(questions))
        return _html(live_page.page(site, "Waiting", content))

    async def _history(self, request: Request) -> Response:
        served = self._at(request)
        site = self._site(request, served, "history")
        return _html(live_page.page(site, "History", history_content(site, *await served.history())))

    async def _trace(self, request: Request) -> Response:
        served, query = self._at(request), request.query_params
        site = self._site(request, served, "trace")
        asked, about = query.get("q", "").strip()[:500], "impact" if query.get("about") == "impact" else ""
        answer, problem = None, ""
        if asked.startswith("-") or "\0" in asked:
            raise _Refusal(400, f"{asked!r} is not a packet, file or place")
        if asked or query.get("all"):
            command = ("trace", "impact", "--", asked) if about else ("trace", "--", *([asked] if asked else []))
            said = await self._traced(served, *command)
            answer = said["data"] if said["ok"] else None
            problem = next((str(one["message"]) for one in said["findings"] if not said["ok"]), "")
        return _html(live_page.page(site, "Trace", trace_content(site, asked, about, answer, problem), live=False))

    async def _runs(self, request: Request) -> Response:
        served = self._at(request)
        runs = await served.answer("runtime", "runs", "list")
        queue = None
        if store_url():
            jobs = await served.answer("runtime", "queue", "list")
            queue = QueuedJobs(jobs["data"].get("jobs", ()), _problem(jobs))
        data = {**runs["data"], "threads": await served.threads() if runs["ok"] else []}
        site = self._site(request, served, "runs")
        forms = list(store_forms(queue.jobs if queue is not None else ()))
        content = runs_content(site, data, queue, forms, datetime.now(UTC), _problem(runs))
        return _html(live_page.page(site, "Runs", content))

    async def _run(self, request: Request) -> Response:
        served, name = self._at(request), request.path_params["name"]
        site = self._site(request, served, "runs")
        if name.startswith(THREADS):
            return await self._thread(request, served, name)
        if not await self._has_run(served, name):
            raise _Refusal(404, "no such run")
        shown = await served.answer("runtime", "runs", "show", "--values", f"--lines={_LINES}", "--", name)
        if not shown["ok"]:
            return self._failure(site, shown)
        plan = await served.answer("resume", "--plan", "--", name)
        asked = await served.answer("runtime", "questions", "--", name)
        forms = list(run_forms(shown["data"], asked["data"].get("questions", [])))
        return _html(live_page.page(site, name, run_content(site, shown["data"], plan["data"], forms)))

    async def _thread(self, request: Request, served: Served, name: str) -> Response:
        """Show the records of a LangGraph thread."""
        if name not in [one["run"] for one in await served.threads()]:
            raise _Refusal(404, "no such thread")
        tail = await served.answer("runtime", "runs", "tail", f"--lines={_LINES}", "--", name)
        site = self._site(request, served, "runs")
        content = run_content(site, {**tail["data"], "run": name, "state": "thread"}, {}, ())
        return _html(live_page.page(site, name, content))

    async def _has_run(self, served: Served, name: str) -> bool:
        """Whether there is such a run; a new one may not have been noticed yet."""
        for fresh in (False, True):
            runs = await served.answer("runtime", "runs", "list", fresh=fresh)
            if any(one["run"] == name for one in runs["data"].get("runs", ())):
                return True
        return False

    async def _audit(self, request: Request) -> Response:
        """Show the page that `audit --out` writes, with its own content security policy, which is stricter about
        requests."""
        served = self._at(request)
        number = self.served.index(served)
        async with self._auditing:
            version = served.version
            if self._audits.get(number, (0,))[0] != version:
                self._audits[number] = version, await self._commands.audit(served.root)
        head = f'<header>\n<p><a href="{self.home}/{number}/">Board</a></p>\n'.encode()
        page = self._audits[number][1].replace(b"<header>\n", head, 1)
        return Response(page, media_type="text/html; charset=utf-8", headers={"X-Own-Policy": "1"})

    async def _changes(self, request: Request) -> Response:
        served = self._at(request)
        if self._streams >= _MOST_STREAMS:
            raise _Refusal(503, "too many pages are open")
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._stream(served), media_type="text/event-stream")

    async def _stream(self, served: Served) -> AsyncIterator[str]:
        self._streams += 1
        served.listeners += 1
        try:
            yield f"retry: 2000\ndata: {served.version}\n\n"
            while not self.stopping.is_set():
                version, waits = (
                    served.version,
                    [asyncio.ensure_future(each.wait()) for each in (served.changed, self.stopping)],
                )
                try:
                    await asyncio.wait(waits, timeout=_HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for wait in waits:
                        wait.cancel()
                yield f"data: {served.version}\n\n" if served.version != version else ": here\n\n"
        finally:
            self._streams -= 1
            served.listeners -= 1

    # ---- actions ----

    async def prepare(self) -> None:
        """Have the next command ready."""
        await self._commands.prepare()

    def _later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin something that is completed before the server ends."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _act(self, request: Request) -> Response:
        served, action = self._at(request), request.path_params["action"]
        given = await self._given(request)
        act = APPROVE if action == "approve" else ACTS.get(action)
        if act is None or (action == "approve" and not given):
            raise _Refusal(404, "action not found")
        if not self._write:
            raise _Refusal(403, "these pages are read-only; to allow actions: workpacket board serve --write")
        known = act.about != "run" or await self._has_run(served, given.get("id", ""))
        fault = "no such run" if not known else next(faults(act, given), "")
        if fault:
            raise _Refusal(400, fault)
        before, after = act.words(given)
        said = " ".join(("workpacket", *before, *after))
        if action == "approve":
            return await self._touch(request, served, before, after)
        work = self._later(self._commands.run(served.root, before, after, acting=act.acting))
        answer = await asyncio.shield(work)
        await served.look()
        self._later(self.prepare())
        packet = given["id"] if act.about == "packet" else ""
        key = secrets.token_urlsafe(16)
        if len(self._outcomes) >= _MOST_KEPT:
            del self._outcomes[next(iter(self._outcomes))]
        self._outcomes[key] = live_page.outcome(self._site(request, served), said, answer, packet)
        return RedirectResponse(f"{self.home}/{self.served.index(served)}/result/{key}", 303)

    async def _result(self, request: Request) -> Response:
        self._at(request)
        found = self._outcomes.get(request.path_params["key"])
        if found is None:
            raise _Refusal(404, "this result is no longer available")
        return _html(found)

    async def _touch(self, request: Request, served: Served, before: list[str], after: list[str]) -> Response:
        """Start `approve --browser`, and link once to the page that it serves."""
        site = self._site(request, served)
        environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        process = await asyncio.create_subprocess_exec(
            *PYTHON, "-m", "workpacket", *before, "--", *after, cwd=served.root, env=environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        told: list[str] = []
        async for line in process.stdout:
            told.append(line.decode(errors="replace"))
            if "Open this page" in told[-1]:
                self._touched.append(process)
                address = told[-1].rpartition(" ")[2].strip()
                return _html(live_page.touch(site, after[0], address))
        await process.wait()
        answer = {"ok": False, "findings": [{"message": line.strip()} for line in told if line.strip()], "data": {}}
        return _html(live_page.outcome(site, " ".join(("workpacket", *before, *after)), answer, after[0]), 409)

    # ---- what goes wrong ----

    def _failure(self, site: Site, answer: Mapping[str, Any]) -> Response:
        first = (answer["findings"] or [{"code": "", "message": "the command failed"}])[0]
        status = 404 if first.get("code") in {"packet_unknown", "run_unknown", "packet_ambiguous"} else 409
        return _html(live_page.message(site, "Not shown", str(first["message"]), str(first.get("hint", ""))), status)

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        return _html(live_page.message(self._site(request), "Not found", "Page not found."), 404)

    async def _not_allowed(self, request: Request, _error: Exception) -> Response:
        return _html(live_page.message(self._site(request), "Not possible", _METHODS), 405)

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, WorkpacketError)
        status = error.status if isinstance(error, _Refusal) else 400
        hint = "" if isinstance(error, _Refusal) else error.hint
        return _html(live_page.message(self._site(request), "Not possible", error.message, hint), status)

    async def _broken(self, request: Request, error: Exception) -> Response:
        sys.stderr.write(f"internal error on {request.url.path[:200]!r}: {error!r}\n")
        return _html(live_page.message(self._site(request), "Internal error", repr(error)[:500]), 500)


class _Refusal(WorkpacketError):
    """A request that is answered with a specific status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("invalid_value", message)
        self.status = status


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return found


def _html(page: str, status: int = 200) -> Response:
    return Response(page.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8")


def _forge_of(served: Served) -> str:
    return web_address(served.repository.settings.get("remote.origin.url", ""))


def _problem(answer: Mapping[str, Any]) -> str:
    findings = answer.get("findings") or []
    return "" if answer["ok"] or answer["data"] or not findings else str(findings[0]["message"])
