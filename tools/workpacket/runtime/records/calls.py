"""A call as the log knows it: a key that is the same in every attempt, and a hash of each argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from workpacket.model.canonical import Json, NotCanonical
from workpacket.runtime.records.jcs import jcs_hash

LONGEST_NAME = 200


@dataclass(slots=True)
class Scope:
    """Where in the nesting of steps the code is. Names are counted: the third "fetch" here is "fetch#3" every time."""

    owner: object
    path: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    reached_new_work: bool = False

    def next_key(self, name: str) -> str:
        if not name or len(name) > LONGEST_NAME or "/" in name or "#" in name:
            raise ValueError(f"{name!r} is no step name: 1 to {LONGEST_NAME} characters without '/' and '#'")
        number = self.counters[name] = self.counters.get(name, 0) + 1
        return f"{self.path}{name}" if number == 1 else f"{self.path}{name}#{number}"

    def inner(self, key: str) -> Scope:
        return Scope(self.owner, f"{key}/")


def name_and_function(
    first: str | Callable[..., object], rest: tuple[object, ...]
) -> tuple[str, Callable[..., object], tuple[object, ...]]:
    """Take apart `step(fn, *args)` and `step("name", fn, *args)`."""
    if isinstance(first, str):
        function = rest[0] if rest else None
        if not callable(function):
            raise TypeError(f"the step {first!r} needs a function to call")
        return first, function, rest[1:]
    return getattr(first, "__name__", type(first).__name__).strip("<>"), first, rest


def argument_hashes(args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """The hash of each argument that is JSON, and the names of those that are not and so are not compared."""
    hashes: dict[str, str] = {}
    opaque: list[str] = []
    for name, value in _by_name(args, kwargs).items():
        try:
            hashes[name] = jcs_hash(value)
        except NotCanonical:
            opaque.append(name)
    return hashes, opaque


def shown_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Json]:
    """The arguments by name, for a person to read; of one that is not JSON, the class."""
    shown: dict[str, Json] = {}
    for name, value in _by_name(args, kwargs).items():
        try:
            jcs_hash(value)
        except NotCanonical:
            shown[name] = f"<{type(value).__qualname__}>"
        else:
            shown[name] = cast("Json", value)
    return shown


def arguments_hash(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """One hash of all arguments; `NotCanonical` naming the one that is not JSON."""
    return jcs_hash(_by_name(args, kwargs))


def _by_name(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    named: dict[str, object] = {str(index): value for index, value in enumerate(args)}
    named.update(kwargs)
    return named
