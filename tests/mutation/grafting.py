"""Puts a change into a module that is loaded: the code of functions is exchanged, constants wherever they went."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

_PLAIN = (bool, int, str, bytes, tuple, list, dict, frozenset, re.Pattern, timedelta, datetime)


def graft(module: ModuleType, tree: ast.Module) -> None:
    """What cannot be exchanged stays as it is: defaults of arguments and of fields."""
    changed: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(tree, str(module.__file__), "exec"), changed)
    _exchange_code(vars(module), changed)
    _exchange_constants(vars(module), changed)
    _forget_results()


def _exchange_code(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name, value in new.items():
        if isinstance(value, type) and isinstance(old.get(name), type) and value.__module__ == old[name].__module__:
            _exchange_code(vars(old[name]), vars(value))
            continue
        was, now = _function(old.get(name)), _function(value)
        if was is not None and now is not None and was.__module__ == now.__module__:
            was.__code__ = now.__code__


def _function(value: Any) -> FunctionType | None:
    """The function in a property, a class method or a cache."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, cached_property):
        value = value.func
    value = getattr(value, "__wrapped__", getattr(value, "__func__", value))
    return value if isinstance(value, FunctionType) else None


def _exchange_constants(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name, value in new.items():
        was = old.get(name)
        if name.startswith("__") or not isinstance(was, _PLAIN) or (type(was), was) == (type(value), value):
            continue
        for module in list(sys.modules.values()):
            if vars(module).get(name) is was:
                setattr(module, name, value)


def _forget_results() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("workpacket"):
            for value in list(vars(module).values()):
                forget = getattr(value, "cache_clear", None)
                if callable(forget):
                    forget()
