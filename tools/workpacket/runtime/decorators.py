"""`@step` and `@effect`: functions that are steps or effects of the run in whose `with` block they are called.

Outside of a run they are ordinary functions, so that they can be tested as such. Import them from here:
`workpacket.runtime.step` is the package for steps of a pipeline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from workpacket.runtime.attempts.effects import EffectOptions, Recovery
from workpacket.runtime.attempts.steps import Retry
from workpacket.runtime.run import carry_out, current_run

P = ParamSpec("P")
T = TypeVar("T")


class _Decorator(Protocol):
    def __call__(self, function: Callable[P, T], /) -> Callable[P, T]: ...


def _decorator(
    call: Callable[[Any, str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any], name: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that passes each call of the function to `call` if the call is made in a run."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        called = name or function.__name__

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            run = current_run(called)
            return function(*args, **kwargs) if run is None else call(run, called, function, args, kwargs)

        return wrapper

    return decorate


@overload
def step(function: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def step(
    *,
    name: str = "",
    retry: Retry | None = None,
    version: str | None = None,
    changed: Literal["block", "redo"] | None = None,
) -> _Decorator: ...
def step(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    retry: Retry | None = None,
    version: str | None = None,
    changed: Literal["block", "redo"] | None = None,
) -> Any:
    """Make each call of the function a step of the current run. In an async run, the function must be async."""

    def call(run: Any, called: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return run.using(retry=retry, version=version, changed=changed).step(called, function, *args, **kwargs)

    return _decorator(call, name) if function is None else _decorator(call, name)(function)


@overload
def effect(function: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def effect(
    *,
    name: str = "",
    key: Callable[..., str] | None = None,
    recovery: Recovery = "manual",
    target: str = "",
    confirm: bool = False,
    retry: Retry | None = None,
) -> _Decorator: ...
def effect(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    key: Callable[..., str] | None = None,
    recovery: Recovery = "manual",
    target: str = "",
    confirm: bool = False,
    retry: Retry | None = None,
) -> Any:
    """Make each call of the function an effect of the current run. `key` computes the effect's key from the
    arguments."""

    def call(run: Any, called: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = None if key is None else key(*args, **kwargs)
        how = EffectOptions(key=own, recovery=recovery, target=target, probe=None, compensate=None)
        return carry_out(run.using(retry=retry), (called, function, args, kwargs), how, confirm=confirm)

    return _decorator(call, name) if function is None else _decorator(call, name)(function)
