"""What could stand in the place of a piece of a module and be wrong."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Mod: ast.Mult,
}  # fmt: skip
_OTHER_NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}


class Change(NamedTuple):
    """One change: the statement it is in, before and after, and the whole module with it.

    `lines` are those of the statement, without its body if it has one. `in_function` is False for what a module or a
    class does when it is imported.
    """

    where: str
    before: str
    now: str
    repetition: int  # of the same change in the same place: `a == 0 or b == 0` has two that read alike elsewhere
    lines: range
    in_function: bool
    tree: ast.Module

    @property
    def name(self) -> tuple[str, str, str]:
        return self.where, self.before, self.now

    def is_in_share(self, share: int) -> bool:
        """One in `share`, the same ones whatever else changes in the module."""
        said = "\0".join((*self.name, str(self.repetition)))
        return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big") % share == 0


class _Place(NamedTuple):
    statement: ast.AST
    where: str
    in_function: bool


def changes(source: str) -> Iterator[Change]:
    """Each change of the module. Its tree is only that of the change until the next one is asked for."""
    tree = ast.parse(source)
    passed_over = {id(part) for node in ast.walk(tree) for idle in _without_behaviour(node) for part in ast.walk(idle)}
    seen: Counter[tuple[str, str, str]] = Counter()
    for parent, place in _parts(tree, _Place(tree, "", False)):
        if id(parent) in passed_over:
            continue
        for name, field in ast.iter_fields(parent):
            for position, node in enumerate(field if isinstance(field, list) else [field]):
                if not isinstance(node, ast.AST) or id(node) in passed_over:
                    continue
                here = _inside(parent, node, place)
                before = _header(here.statement)
                for other in _others(node):
                    ast.fix_missing_locations(ast.copy_location(other, node))
                    setattr(parent, name, _put(field, position, other))
                    now = _header(other if here.statement is node else here.statement)
                    said = (here.where, before, now)
                    seen[said] += 1
                    yield Change(*said, seen[said], _lines(here.statement), here.in_function, tree)
                    setattr(parent, name, field)


def _put(field: object, position: int, other: ast.AST) -> object:
    return [*field[:position], other, *field[position + 1 :]] if isinstance(field, list) else other


def _parts(node: ast.AST, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
    yield node, place
    for child in ast.iter_child_nodes(node):
        yield from _parts(child, _inside(node, child, place))


def _inside(parent: ast.AST, child: ast.AST, place: _Place) -> _Place:
    """Where a child of `parent` stands, which itself stands at `place`."""
    statement, where, in_function = place
    if isinstance(child, ast.stmt | ast.match_case | ast.ExceptHandler):
        statement = child
    if isinstance(child, ast.FunctionDef | ast.ClassDef):
        where = f"{where}.{child.name}".lstrip(".")
    if isinstance(parent, ast.FunctionDef):
        in_function = child in parent.body
    return _Place(statement, where, in_function)


def _header(statement: ast.AST) -> str:
    """The statement in one line, without what stands indented below it."""
    return next(line for line in ast.unparse(statement).split("\n") if line and not line.startswith("@"))


def _lines(statement: ast.AST) -> range:
    body = getattr(statement, "body", None)
    first = getattr(statement, "lineno", None)
    if isinstance(statement, ast.match_case):
        first = statement.pattern.lineno
    last = body[0].lineno - 1 if isinstance(body, list) and body else getattr(statement, "end_lineno", None)
    return range(first, max(first, last) + 1) if first and last else range(0)


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in the place of this node and be wrong."""
    yield from _other_operations(node)
    yield from _other_statements(node)


def _other_operations(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for place, op in enumerate(node.ops):
                if type(op) in _OTHER:
                    yield _with(node, ops=[*node.ops[:place], _OTHER[type(op)](), *node.ops[place + 1 :]])
        case ast.BoolOp():
            yield _with(node, op=_OTHER[type(node.op)]())
            for left_out in range(len(node.values)):
                rest = [value for number, value in enumerate(node.values) if number != left_out]
                yield _with(node, values=rest) if len(rest) > 1 else rest[0]
        case ast.BinOp() if type(node.op) in _OTHER:
            yield _with(node, op=_OTHER[type(node.op)]())
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.comprehension() if node.ifs:
            yield _with(node, ifs=[])
        case ast.Constant():
            yield from (ast.Constant(value) for value in _other_values(node.value))
        case ast.Name() if node.id in _OTHER_NAMES:
            yield ast.Name(_OTHER_NAMES[node.id], node.ctx)


def _other_statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If() | ast.IfExp():
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Return() if not _is_said_otherwise(node.value):
            yield ast.Return(ast.Constant(None))
        case ast.Raise() | ast.AugAssign() | ast.Continue():
            yield ast.Pass()
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield ast.Pass()
        case _:
            return


def _is_said_otherwise(value: ast.AST | None) -> bool:
    """Whether `return None` would be no change, or much the same as that of True or False."""
    return value is None or (isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool)))


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _other_values(value: object) -> list[bool | int | str]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    return [_other_text(value)] if isinstance(value, str) and value else []


def _other_text(text: str) -> str:
    """A pattern of which the last part may be left out, or that takes one character more; another word."""
    if not _is_pattern(text):
        return text + "x"
    return text + ("!?" if text[-1] in "*+?}" else "?")


def _without_behaviour(node: ast.AST) -> list[ast.AST]:
    """Docstrings, types, imports, decorators with their sizes of caches; and messages: no test should hold fast their
    exact words."""
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return [*node.decorator_list, *filter(None, [getattr(node, "returns", None)])]
        case ast.AnnAssign():
            return [
                node if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias" else node.annotation
            ]
        case ast.Assert(msg=ast.Constant() as said):
            return [said]
        case ast.Call():
            return [argument for argument in node.args if _is_message(argument)]
        # A docstring; a name for a type; what only a type checker imports.
        case (
            ast.Expr(value=ast.Constant())
            | ast.Assign(value=ast.Subscript())
            | ast.Assign(targets=[ast.Name("TYPE_CHECKING")])
            | ast.If(test=ast.Name("TYPE_CHECKING"))
        ):
            return [node]
        case _:
            return [node] if isinstance(node, ast.ImportFrom | ast.Import | ast.JoinedStr | ast.arg) else []


def _is_message(node: ast.AST) -> bool:
    """A sentence that is given to a function: three words and no sign of a pattern."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text.count(" ") > 1 and not set(text) & set("\\*+^${")


def _is_pattern(text: str) -> bool:
    return bool(set(text) & set("()[]\\*+^${"))
