"""Failures: how a failure is recorded, its stop reason, and how a finished run raises it again with the same class and
arguments.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from workpacket.model.canonical import Json, NotCanonical
from workpacket.problem import WorkpacketError
from workpacket.runtime.errors import RuntimeFault, StepFailed
from workpacket.runtime.records.events import Data, members, text, texts
from workpacket.runtime.records.jcs import storable, stored_text

if TYPE_CHECKING:
    from workpacket.model.reasons import Registry, StopReason

ERROR_LENGTH = 2000
LONGEST_SEARCHED = 1_000_000  # characters of a text that are searched for secrets before it is cut


@cache
def _registry() -> Registry:
    # The table is built when a code is first looked up: a run that does not stop never needs it.
    from workpacket.model.reason_tables.stops import REASONS
    from workpacket.model.reasons import Registry

    return Registry(REASONS)


def reason_of(code: str) -> StopReason:
    """Return the stop reason for a code or alias; `unregistered` (exit status 9) for any other string."""
    registry = _registry()
    return cast("StopReason", registry[code] if code in registry else registry["unregistered"])


def described(error: BaseException) -> str:
    """Return the error in a form that a record can store, whatever its text."""
    try:
        said = str(error)
    except Exception as broken:
        said = f"(its text raised {type(broken).__name__})"
    return storable(f"{type(error).__name__}: {said}"[:LONGEST_SEARCHED])


def failure_data(error: BaseException) -> dict[str, Json]:
    """Return the fields of a record that describe a failure."""
    own = [kind for kind in type(error).__mro__ if issubclass(kind, BaseException)]
    types: list[Json] = [f"{kind.__module__}:{kind.__qualname__}" for kind in own[: own.index(BaseException)]]
    raised: dict[str, Json] = {"types": types or ["builtins:BaseException"]}
    if isinstance(error, WorkpacketError):
        raised |= {"code": error.code, "hint": storable(error.problem.hint)}
    else:
        arguments = _plain(_arguments(error))
        if arguments is not None:
            raised["args"] = arguments
    return {"error": described(error), "raised": raised}


def _arguments(error: BaseException) -> tuple[object, ...]:
    if isinstance(error, OSError) and error.filename is not None:
        return (error.errno, error.strerror, error.filename)
    return error.args


def _plain(values: tuple[object, ...]) -> list[Json] | None:
    """Return the arguments of an exception if they can be stored and are within the limit for error text."""
    listed: Any = list(values)
    try:
        # Arguments that were cut short would raise an exception that never happened.
        return listed if len(stored_text(listed)) <= ERROR_LENGTH else None
    except NotCanonical:
        return None


def failure_again(data: Data) -> BaseException:
    """Return the recorded exception; for an unknown class, an exception of its nearest known base class."""
    said = text(data, "error")
    name, _, message = said.partition(": ")
    raised = members(data, "raised")
    known = [kind for kind in map(_class_named, texts(raised, "types") or (f"builtins:{name}",)) if kind is not None]
    if not known or (known[0] in {Exception, BaseException} and name not in {"Exception", "BaseException"}):
        return StepFailed(said)
    kind = known[0]
    if issubclass(kind, WorkpacketError):
        return _fault_again(kind, raised, message)
    arguments = raised.get("args")
    return _made(kind, tuple(arguments) if isinstance(arguments, list) else (message,))


def _class_named(name: str) -> type[BaseException] | None:
    """Find the class only in modules that the program has imported: a record never causes code to run."""
    module, _, path = name.partition(":")
    found: Any = builtins if module == "builtins" else sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _fault_again(kind: type[WorkpacketError], raised: Mapping[str, Json], message: str) -> WorkpacketError:
    error = kind.__new__(kind, message)
    WorkpacketError.__init__(error, text(raised, "code"), message, hint=text(raised, "hint"))
    if isinstance(error, RuntimeFault):
        error.details, error.run, error._notes = {}, "", []
    return error


def _made(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    try:
        return kind(*arguments)
    except Exception:  # its constructor takes other arguments than it passed on
        error = kind.__new__(kind)
        error.args = arguments
        return error
