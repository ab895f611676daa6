"""Values whose named fields never change.

    class Edit(Value):
        start: int
        end: int
        text: str = ""

Type checkers and readers see a frozen data class. It uses inheritance instead of `dataclasses.dataclass`, which
generates and compiles six functions for every class: that takes 0.3 ms per class and 5 ms for the import, and a
lifecycle command needs a hundred such classes before it can begin.

For the same reason, `NamedTuple` and `TypedDict` are here for modules that short commands import. Type checkers take
them for those of `typing`, which need four times as long for a class.
"""

from __future__ import annotations

import copyreg
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Final, NamedTuple, TypedDict, TypeVar, dataclass_transform

    V = TypeVar("V", bound="Value")
else:
    # Importing typing takes 3 ms, and at run time nothing here uses this decorator.
    def dataclass_transform(**_):
        return lambda cls: cls

    TypedDict = dict  # its fields are checked where they are written, and JSON Schemas check what is read

    class _Named(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            from collections import namedtuple  # few commands that repeat an earlier output need it

            fields = [*namespace.get("__annotations__", ())]
            defaults = [namespace[field] for field in fields if field in namespace]
            made = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            for key, value in namespace.items():
                if key not in {*fields, "__module__", "__qualname__", "__annotations__"}:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Named):
        pass


# The default of a field that is a mapping.
NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# Values are given to other processes with their defaults, and this type cannot be pickled by itself.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))


@dataclass_transform(frozen_default=True)
class Value:
    """The base of value classes. Fields are the annotations of the class, preceded by those of its base class. A
    default is shared, so it must not change.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        """Collect the fields. `kw_only` is only for the type checker: it lets fields without a default follow fields
        that have one.
        """
        own = [name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar")]
        cls._fields = (*cls._fields, *own)
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}
        type.__setattr__(cls, "__match_args__", cls._fields)  # which the type checker takes for a constant

    def __init__(self, /, *values: Any, **named: Any) -> None:
        fields = self.__dict__
        fields.update(zip(self._fields, values, strict=False), **named)
        # If each field was given in its place, there is nothing to check.
        if named or len(values) != len(self._fields):
            given = len(fields)
            if given < len(self._names):
                for name, value in self._defaults.items():
                    fields.setdefault(name, value)
            if given != len(values) + len(named) or fields.keys() != self._names:
                raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._fields)}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check conditions between fields; called after all fields are set."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot change")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        fields = zip(self._fields, _values(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"


def replace(value: V, **changes: Any) -> V:
    """Return the same value with some fields changed."""
    return type(value)(**{**dict(zip(value._fields, _values(value), strict=True)), **changes})


def _values(value: Any) -> tuple[Any, ...]:
    fields = value.__dict__
    return tuple([fields[name] for name in value._fields])


__all__ = ["NOTHING", "NamedTuple", "TypedDict", "Value", "replace"]
