"""The server of `mcp`: it uses the official SDK for the protocol, and runs the commands of `cli.mcp`."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import anyio
import mcp_types as types
from anyio.abc import Process
from jsonschema import Draft202012Validator
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from workpacket import __version__
from workpacket.cli.mcp import COMPLETIONS, PROMPTS, RESOURCES, TEMPLATES, TOOLS, output_schema
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model import exits
from workpacket.report.tool_text import page_of

_INSTRUCTIONS: Final = (
    "Packets govern the work. Start with `next`; if a call is refused, do what each condition requires. A "
    "command in an answer, `workpacket NAME ...`, is the tool NAME; `packet note` is the tool note, `claim` is "
    "start, `submit` is done. Ask a person to run any other workpacket command."
)

# Seconds between two reports of progress; and those that a cancelled command has to clean up.
_PROGRESS: Final = 2.0
_GRACE: Final = 3.0
_LONGEST: Final = 200
_LONGEST_NAME: Final = 500
_MOST_VALUES: Final = 100
# The first version of the protocol in which the server answers "input required" instead of asking the client itself.
_ANSWERS: Final = "2026-07-28"
_PAGE_SHOWN: Final = "shown only once): "

Context = ServerRequestContext[Any, Any]


class Touch(NamedTuple):
    """A page that is waiting for a person: its process, and the call that continues once the person has touched a
    key."""

    process: Process
    url: str
    name: str
    given: Mapping[str, Any]


class AgentServer:
    """What the server was started with, and the pages that are waiting for a person."""

    def __init__(self, actor: Sequence[str], commit: Sequence[str]) -> None:
        self._actor = actor
        self._commit = commit
        # Commands that only read also depend on who asks.
        self._environment = {**os.environ, **({"WORKPACKET_ACTOR": actor[1]} if actor else {})}
        self._touches: dict[str, Touch] = {}

    # --- commands ---

    async def run(
        self, before: Sequence[str], after: Sequence[str], *, writing: bool = False, context: Context | None = None
    ) -> dict[str, Any]:
        """Run a command, and return its answer. If the caller gives up, interrupt the command."""
        own = (*self._actor, *self._commit) if writing else ()
        command = [sys.executable, "-P", "-m", "workpacket", *before, *own, "--json", "--", *after]
        try:
            started = await anyio.open_process(command, stdin=-3, env=self._environment, start_new_session=True)
        except OSError as error:  # for example, this folder is gone
            return _without_answer(exits.INTERNAL, f"the command cannot be run: {error.strerror}")
        async with started as process:
            try:
                async with anyio.create_task_group() as tasks:
                    said: dict[str, bytes] = {}
                    tasks.start_soon(_collect, process, "stdout", said)
                    tasks.start_soon(_collect, process, "stderr", said)
                    await _until_ended(process, context, before[-1])
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                raise
        try:
            answer: dict[str, Any] = json.loads(said["stdout"])
        except ValueError:
            text = said["stderr"].decode(errors="replace").strip() or f"exit status {process.returncode}"
            return _without_answer(process.returncode or exits.INTERNAL, text[-500:])
        return answer

    async def call(self, name: str, given: Mapping[str, Any], context: Context | None = None) -> types.CallToolResult:
        tool = TOOLS.get(name)
        if tool is None:
            return _failure(f"unknown tool {name!r}; available: {', '.join(TOOLS)}")
        fault = next(iter(Draft202012Validator(tool.schema).iter_errors(given)), None)
        if fault is not None:
            return _failure(f"{'.'.join(map(str, fault.path)) or 'the arguments'}: {_shortened(fault.message)}")
        if any("\0" in word for word in _strings(given)):
            return _failure("an argument cannot contain a NUL character")
        before, after = tool.words(given)
        answer = await self.run(before, after, writing=tool.writing, context=context)
        text = page_of(answer, int(given.get("page", 1)))  # JSON does not tell 1.0 from 1
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, structured_content=answer, is_error=not answer["ok"])

    # --- a person who must touch a key ---

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run a tool. If only an approval is missing and the client can show a page to a person, have the page shown,
        and run the tool again after the touch. The server signs nothing: the page does, with the person's key.
        """
        name, given = params.name, params.arguments or {}
        touch = self._touches.pop(params.request_state or "", None)
        if touch is not None:
            said = (params.input_responses or {}).get("approval")
            agreed = isinstance(said, types.ElicitResult) and said.action == "accept"
            if (touch.name, touch.given) == (name, given):
                await self._touched(touch, context, agreed=agreed)
            else:
                await _end(touch.process)
            return await self.call(name, given, context)
        result = await self.call(name, given, context)
        if not TOOLS.get(name, TOOLS["next"]).writing or not _shows_pages(context):
            return result
        # The client did not come back to the page of an earlier call, and the port is needed.
        for state in [state for state, one in self._touches.items() if (one.name, one.given) == (name, given)]:
            await _end(self._touches.pop(state).process)
        touch = await self._asked(result, name, given)
        if touch is None:
            return result
        state = secrets.token_urlsafe(32)
        message = f"{given['id']} needs your approval. The page shows what you would approve; touch your key there."
        if context.protocol_version >= _ANSWERS:
            self._touches[state] = touch
            request = types.ElicitRequest(params=types.ElicitRequestURLParams(message=message, url=touch.url))
            return types.InputRequiredResult(input_requests={"approval": request}, request_state=state)
        try:
            said = await context.session.elicit_url(message, touch.url, state, context.request_id)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _end(touch.process)
            raise
        await self._touched(touch, context, agreed=said.action == "accept")
        return await self.call(name, given, context)

    async def _asked(self, result: types.CallToolResult, name: str, given: Mapping[str, Any]) -> Touch | None:
        """Have the command that requests the missing approval serve its page; return None if no approval is missing or
        no page can be shown here.
        """
        unmet = ((result.structured_content or {}).get("data") or {}).get("unmet") or [{}]
        commands = {one.get("command", "") for one in unmet}
        words = shlex.split(commands.pop()) if len(commands) == 1 else []
        if words[:3] != ["workpacket", "approve", given.get("id")]:
            return None
        command = [sys.executable, "-m", *words, "--browser"]
        environment = {**os.environ, "BROWSER": "none"}
        process = await anyio.open_process(
            command, stdin=-3, stdout=-3, env=environment, start_new_session=True
        )  # the client opens the page
        text = b""
        assert process.stderr is not None
        with suppress(anyio.EndOfStream):
            while b"\n" not in text.partition(_PAGE_SHOWN.encode())[2]:
                text += await process.stderr.receive()
        url = text.decode(errors="replace").partition(_PAGE_SHOWN)[2].partition("\n")[0].strip()
        if not url:
            await _end(process)
            return None
        return Touch(process, url, name, given)

    async def _touched(self, touch: Touch, context: Context, *, agreed: bool) -> None:
        """Wait until the person has answered on the page, which times out by itself after a few minutes."""
        try:
            if agreed:
                await _until_ended(touch.process, context, "approve")
        finally:
            with anyio.CancelScope(shield=True):
                await _end(touch.process)

    async def close(self) -> None:
        for touch in self._touches.values():
            await _end(touch.process)

    # --- lists ---

    async def list_tools(self, _context: object, _params: object) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=name,
                description=tool.description,
                input_schema=tool.listed,
                output_schema=output_schema(name),
                annotations=types.ToolAnnotations(read_only_hint=not tool.writing, open_world_hint=False),
            )
            for name, tool in TOOLS.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def list_resources(self, _context: object, _params: object) -> types.ListResourcesResult:
        listed = [
            types.Resource(uri=uri, name=name, mime_type="application/json") for uri, (name, _) in RESOURCES.items()
        ]
        return types.ListResourcesResult(resources=listed)

    async def list_templates(self, _context: object, _params: object) -> types.ListResourceTemplatesResult:
        listed = [
            types.ResourceTemplate(uri_template=uri, name=name, mime_type="application/json")
            for uri, (name, _) in TEMPLATES.items()
        ]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(
        self, _context: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        head, _, coded = uri.rpartition("/")
        last = unquote(coded)
        found = [words for template, (_, words) in TEMPLATES.items() if template.rpartition("/")[0] == head and last]
        if uri in RESOURCES:
            answer = await self.run(RESOURCES[uri][1], ())
        elif found and "\0" not in last and len(last) <= _LONGEST_NAME:
            answer = await self.run(found[0], [last])
        else:
            raise MCPError(code=types.INVALID_PARAMS, message=f"unknown resource {uri[:200]}")
        if not answer["ok"]:
            raise MCPError(code=types.INVALID_PARAMS, message=_shortened(answer["findings"][0]["message"]))
        text = json.dumps(answer["data"], ensure_ascii=False)
        content = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, _context: object, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=name, description=text.partition(":")[0]) for name, text in PROMPTS.items()]
        )

    async def get_prompt(self, _context: object, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in PROMPTS:
            raise MCPError(code=types.INVALID_PARAMS, message=f"unknown prompt {params.name[:200]!r}")
        text = types.TextContent(type="text", text=PROMPTS[params.name])
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    async def complete(self, _context: object, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return the ids, headings and codes that begin with what was typed."""
        command, of = COMPLETIONS.get(params.argument.name, ((), None))
        found: list[str] = []
        if of is not None:
            begun = params.argument.value.casefold()
            known = of((await self.run(command, ()))["data"])
            found = [value for value in dict.fromkeys(known) if value.casefold().startswith(begun)]
        most = found[:_MOST_VALUES]
        completion = types.Completion(values=most, total=len(found), has_more=len(most) < len(found))
        return types.CompleteResult(completion=completion)

    def server(self) -> Server[Any]:
        """Return the server without starting it."""
        return Server(
            "workpacket",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )


async def _collect(process: Process, name: str, said: dict[str, bytes]) -> None:
    said[name] = b""
    async for part in getattr(process, name):
        said[name] += part


async def _until_ended(process: Process, context: Context | None, name: str) -> None:
    """Wait for a process; if the client asked for progress, report every two seconds that the process is still
    running."""
    seconds = 0.0
    while True:
        with anyio.move_on_after(_PROGRESS):
            await process.wait()
            return
        seconds += _PROGRESS
        if context is not None:
            await context.session.report_progress(seconds, None, f"{name} has been running for {seconds:.0f} seconds")


async def _end(process: Process) -> None:
    """Interrupt a process and those that it started; kill them if they do not exit."""
    for number, grace in ((signal.SIGINT, _GRACE), (signal.SIGKILL, None)):
        if process.returncode is not None:
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(grace) if grace else anyio.CancelScope():
            await process.wait()
    await process.aclose()


def _shows_pages(context: Context) -> bool:
    capabilities = context.session.client_capabilities
    asked = capabilities.elicitation if capabilities is not None else None
    return asked is not None and asked.url is not None


def _strings(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


def _shortened(text: str) -> str:
    """Return an error message without most of the value that it begins with."""
    return text if len(text) <= _LONGEST else f"{text[:40]}...{text[-100:]}"


def _without_answer(status: int, text: str) -> dict[str, Any]:
    hint = "call the tool again; an interrupted command is first completed or undone"
    problem = {"code": "internal_error", "message": text, "hint": hint}
    return {"ok": False, "exit_code": status, "findings": [problem], "data": {}}


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


# In JSON: an escaped backslash, a character in two halves, or only one half.
_HALVES: Final = lazy_pattern(r"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..")


class _Lines(TextIOWrapper):
    """Standard input, in which half of a surrogate pair is replaced by a replacement character. The SDK does not answer
    a message that contains an unpaired half; programs that truncate text after a fixed number of units send such
    messages.
    """

    def readline(self, size: int = -1) -> str:  # type: ignore[override]  # the size has another name there
        return _HALVES.sub(lambda found: "\\ufffd" if len(found[0]) == _ONE else found[0], super().readline(size))


_ONE: Final = len("\\ud800")


def serve(actor: Sequence[str], commit: Sequence[str]) -> int:
    """Serve standard input and output until the client closes them."""
    agents = AgentServer(actor, commit)
    server = agents.server()

    async def run() -> None:
        try:
            lines = anyio.wrap_file(_Lines(sys.stdin.buffer, encoding="utf-8", errors="replace"))
            async with stdio_server(lines) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
        finally:
            with anyio.CancelScope(shield=True):
                await agents.close()

    anyio.run(run)
    return exits.OK
