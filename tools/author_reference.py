"""The reference for authors of programs: every public name of the runtime with its signature, what it does, and an
example that a test runs. `just reference` writes docs/reference/runtime.md from the code and author_examples.txt.

An example belongs to one name. Examples of a method of `Run`, `Runtime` or a session are run inside the `with` block
that FRAMES gives.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_overloads

from workpacket import runtime as public
from workpacket.runtime import AsyncRun, Run, Runtime, decorators
from workpacket.runtime.attempts.starter import RunRequest
from workpacket.runtime.model_sessions.async_session import AsyncModelRun, AsyncOpenSession, open_async_session
from workpacket.runtime.model_sessions.session import ModelRun, OpenSession, open_session
from workpacket.runtime.run import BaseRun

EXAMPLES = Path(__file__).with_name("author_examples.txt")
NOTE = "<!-- Written by `just reference`; edit the code or tools/author_examples.txt, not this page. -->"

_OPEN = "from workpacket.runtime import Runtime\n"
_SESSION = "from workpacket.runtime.model_sessions.session import open_session\n"
_ASYNC_SESSION = "from workpacket.runtime.model_sessions.async_session import open_async_session\n"
_MAIN = "async def main():\n    with Runtime.open() as runtime:\n        async with "
_ASYNC_SESSION_OPENED = 'open_async_session(runtime, "example", model="m") as session:\n'
# The program around an example, by the class that it belongs to.
FRAMES: Mapping[str, tuple[str, int, str]] = {
    "Runtime": (f"{_OPEN}\nwith Runtime.open() as runtime:\n", 4, ""),
    "Run": (f'{_OPEN}\nwith Runtime.open() as runtime, runtime.run("example") as run:\n', 4, ""),
    "AsyncRun": (
        f'import asyncio\n\n{_OPEN}\n{_MAIN}runtime.async_run("example") as run:\n', 12, "\nasyncio.run(main())\n"
    ),
    "OpenSession": (
        f'{_OPEN}{_SESSION}\nwith Runtime.open() as runtime, open_session(runtime, "example", model="m") as session:\n',
        4, "",
    ),
    "AsyncOpenSession": (
        f"import asyncio\n\n{_OPEN}{_ASYNC_SESSION}\n{_MAIN}{_ASYNC_SESSION_OPENED}",
        12, "\nasyncio.run(main())\n",
    ),
}  # fmt: skip


LONGEST = 100  # a longer signature has one line for each parameter


class Example(NamedTuple):
    code: str
    printed: str

    def program(self, name: str) -> str:
        """Return the whole program."""
        frame = FRAMES.get(name.partition(".")[0]) if "." in name else None
        if frame is None:
            return self.code
        begin, depth, end = frame
        return begin + "".join(f"{' ' * depth}{line}".rstrip() + "\n" for line in self.code.splitlines()) + end


def examples() -> dict[str, Example]:
    """Return the examples, by name."""
    found: dict[str, Example] = {}
    for section in re.split(r"^== ", EXAMPLES.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        lines = body.rstrip().splitlines()
        said = [line.removeprefix("-> ") for line in lines if line.startswith("-> ")]
        code = "\n".join(line for line in lines if not line.startswith("-> ")) + "\n"
        if name in found:
            raise ValueError(f"{name} has two examples")
        found[name] = Example(code, "".join(f"{line}\n" for line in said))
    return found


SECTIONS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    ("Runtime", "`with Runtime.open() as runtime:`", (Runtime,)),
    ("Run", '`with runtime.run("example") as run:`', (BaseRun, Run)),
    ("AsyncRun", '`async with runtime.async_run("example") as run:`; `Run` has the properties', (AsyncRun,)),
    ("OpenSession", '`with open_session(runtime, "example", model="m") as session:`', (OpenSession,)),
    (
        "AsyncOpenSession", '`async with open_async_session(runtime, "example", model="m") as session:`',
        (AsyncOpenSession,),
    ),
)  # fmt: skip
FUNCTIONS: Mapping[str, Any] = {
    "step": decorators.step,
    "effect": decorators.effect,
    "open_session": open_session,
    "ModelRun.chunks": ModelRun.chunks,
    "open_async_session": open_async_session,
    "AsyncModelRun.chunks": AsyncModelRun.chunks,
    "Retry.wait_after": public.Retry.wait_after,
}
# What a session is built from, for the module beside it.
INSIDE = frozenset({"begin_answer", "end_answer", "boundary", "last_checkpoint"})


def names() -> dict[str, Any]:
    """Return every public name with its object, in the order of the page."""
    found: dict[str, Any] = {}
    for title, _, kinds in SECTIONS:
        for kind in kinds:
            found |= {f"{title}.{name}": one for name, one in vars(kind).items() if _is_public(kind, name)}
    left = [name for name in public.__all__ if name not in {"Run", "AsyncRun", "Runtime"}]
    return {**found, **{name: getattr(public, name) for name in left}, **FUNCTIONS}


def _is_public(kind: type, name: str) -> bool:
    inside = kind is OpenSession and name in INSIDE
    return not (name.startswith("_") or inside) and (
        callable(getattr(kind, name)) or isinstance(vars(kind)[name], property)
    )


class _Plain:
    """An annotation that is shown as it is written."""

    def __init__(self, text: object) -> None:
        self._text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self) -> str:
        return str(self._text)


def signature_of(name: str, one: Any) -> str:
    """Return the signature as it is written, or those of all forms."""
    if isinstance(one, property):
        return f"{name}: {_Plain(inspect.signature(one.fget).return_annotation)}" if one.fget else name
    function = one.__func__ if isinstance(one, classmethod) else one
    forms = get_overloads(function) if inspect.isfunction(function) else []
    if isinstance(one, type) and issubclass(one, BaseException):
        return f"class {name}({one.__mro__[1].__name__})"
    begin = "async " if inspect.iscoroutinefunction(function) else ""
    return "\n".join(f"{begin}{name}{_parameters(form)}" for form in forms or [function])


def _parameters(function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_Plain(parameter.annotation))
        if parameter.annotation is not parameter.empty
        else parameter
        for parameter in signature.parameters.values()
        if parameter.name not in {"self", "cls"}
    ]
    returned = signature.return_annotation
    shown = str(inspect.Signature(parameters, return_annotation=_Plain(returned)))
    shown = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", shown)
    shown = re.sub(r"<[^<>]*>", "...", shown)  # a default that has no notation
    if len(shown) < LONGEST:
        return shown
    inside, end = shown[1:].rsplit(") -> ", 1)
    return "(\n    " + ",\n    ".join(_parts(inside)) + f",\n) -> {end}"


def _parts(text: str) -> list[str]:
    """Split at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def page() -> str:
    """docs/reference/runtime.md"""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    known = examples()
    yield NOTE
    yield "# Reference for authors\n"
    yield "Every public name of the runtime. [The tutorial](../runtime/tutorial.md) and"
    yield "[the recipes](../runtime/recipes.md) show how they work together. All examples are run by a test.\n"
    yield "Import the classes and exceptions from `workpacket.runtime`, `step` and `effect` from"
    yield "`workpacket.runtime.decorators`, and sessions from `workpacket.runtime.model_sessions.session` and"
    yield "`workpacket.runtime.model_sessions.async_session`. [LangGraph](../runtime/langgraph.md) and"
    yield "[stores of your own](../runtime/stores.md) have their own pages.\n"
    titles = {title: inside for title, inside, _ in SECTIONS}
    last = ""
    for name, one in names().items():
        title = name.partition(".")[0] if name.partition(".")[0] in titles else "Functions, settings and exceptions"
        if title != last:
            yield f"## {title}\n"
            last = title
            if title in titles:
                yield f"The examples are run inside {titles[title]}.\n"
        yield from _entry(name, one, known[name])
        if name == "Runtime.run":
            yield from _request()


def _entry(name: str, one: Any, example: Example) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"```text\n{signature_of(name, one)}\n```\n"
    said = inspect.getdoc(one.fget if isinstance(one, property) else one)
    if said and not said.startswith(f"{name}("):
        yield f"{said}\n"
    yield f"```python\n{example.code}```\n"
    if example.printed:
        yield f"```text\n{example.printed}```\n"


def _request() -> Iterator[str]:
    """The options of a run, with the comments that explain them."""
    yield "| option | type | meaning |\n|---|---|---|"
    for line in inspect.getsource(RunRequest).splitlines():
        found = re.fullmatch(r"    (\w+): (.+?)  # (.+)", line)
        if found:
            yield f"| `{found[1]}` | `{found[2]}` | {found[3]} |"
    yield ""
