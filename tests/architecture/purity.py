"""Find what a pure layer must not do: touch the disk, the clock, randomness, processes, the network or the terminal.

Imports are judged by an allow-list, because a list of what is forbidden is never complete. Of the allowed modules, the
few functions that do touch the world are named one by one, whatever name they are imported under.

A module may be imported by a computed name only where the text of the call shows that it is one of the same layer;
of other such imports the contracts in pyproject.toml would know nothing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from architecture.source_tree import nodes

PURE_LAYERS = ("model", "text", "documents", "ledger", "approvals", "evidence", "lifecycle", "rules", "audit")

# fmt: off
PURE_STANDARD_MODULES = frozenset({
    "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "codecs", "collections",
    "contextlib",
    "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions", "functools",
    "graphlib", "hashlib", "heapq", "hmac", "html", "importlib", "inspect", "io", "ipaddress", "itertools", "json",
    "keyword", "math", "numbers", "operator", "pathlib", "posixpath", "re", "shlex", "statistics", "string", "struct",
    "sys", "textwrap", "tomllib", "types", "typing", "unicodedata", "urllib.parse", "uuid", "weakref",
    "xml.etree", "zlib",
})

# Libraries that compute and do nothing else, as we use them.
PURE_LIBRARIES = frozenset({"cryptography", "jsonschema", "markdown_it", "mdurl", "referencing", "yaml"})

# What is impure in the modules allowed above.
IMPURE_NAMES = {
    "codecs": {"open"},
    "cryptography": {"generate", "generate_private_key"},
    "datetime": {"now", "today", "utcnow"},
    "hashlib": {"file_digest"},
    "importlib": {"abc", "invalidate_caches", "machinery", "metadata", "reload", "resources", "util"},
    "inspect": {"currentframe", "findsource", "getsource", "getsourcefile", "getsourcelines", "stack"},
    "io": {"FileIO", "open", "open_code"},
    "pathlib": {"Path", "PosixPath", "WindowsPath"},
    "posixpath": {
        "abspath", "exists", "expanduser", "expandvars", "getatime", "getctime", "getmtime", "getsize", "isdir",
        "isfile", "islink", "ismount", "lexists", "realpath", "relpath", "samefile",
    },
    "sys": {"argv", "exit", "path", "platform", "setrecursionlimit", "stderr", "stdin", "stdout"},
    "uuid": {"getnode", "uuid1", "uuid4"},
    "xml.etree": {"parse", "iterparse"},
}

IMPURE_BUILTINS = frozenset({"open", "print", "input", "breakpoint", "eval", "exec", "__import__", "exit", "quit"})

DYNAMIC_IMPORT = "importlib.import_module"

# Methods that only objects have which stand for files; such an object may have been handed in.
IMPURE_METHODS = frozenset({
    "iterdir", "mkdir", "read_bytes", "read_text", "rglob", "rmdir", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text",
})
# fmt: on


@dataclass(frozen=True)
class Impurity:
    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def impurities(tree: ast.Module, layer: str) -> list[Impurity]:
    """Everything in the module `tree` that a module of the pure layer `layer` must not contain."""
    names = dict(_imported_names(tree))
    innocent = set(_parameters_named_like_builtins(tree, names)) | set(_imports_within(layer, tree, names))
    found = {
        Impurity(line, what) for node in nodes(tree) if node not in innocent for line, what in _in_node(node, names)
    }
    return sorted(found, key=lambda impurity: (impurity.line, impurity.what))


def _parameters_named_like_builtins(tree: ast.Module, names: dict[str, str]) -> Iterator[ast.AST]:
    """Uses of a parameter `open`, which is not the builtin of that name."""
    for function in nodes(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            spec = function.args
            named = {argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
            parameters = {name for name in named if names.get(name, name) in IMPURE_BUILTINS | {DYNAMIC_IMPORT}}
            if not parameters:
                continue
            body = function.body if isinstance(function.body, list) else [function.body]
            inside = (node for statement in body for node in ast.walk(statement))
            yield from (node for node in inside if isinstance(node, ast.Name) and node.id in parameters)


def _imports_within(layer: str, tree: ast.Module, names: dict[str, str]) -> Iterator[ast.AST]:
    """The `import_module` of calls whose argument begins with the name of the module's own layer."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and _qualified(node.func, names) == DYNAMIC_IMPORT and node.args:
            argument = node.args[0]
            first = argument.values[0] if isinstance(argument, ast.JoinedStr) and argument.values else argument
            if isinstance(first, ast.Constant) and str(first.value).startswith(f"workpacket.{layer}."):
                yield node.func


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local name and what it stands for, of every import anywhere in the module."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or name, name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _in_node(node: ast.AST, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if not _is_pure_module(alias.name):
                yield node.lineno, f"imports {alias.name}"
    elif isinstance(node, ast.ImportFrom):
        yield from _in_import_from(node)
    elif isinstance(node, ast.Attribute):
        qualified = _qualified(node, names)
        if qualified is not None and (qualified == DYNAMIC_IMPORT or _is_impure_name(qualified)):
            yield node.lineno, f"uses {qualified}"
        elif node.attr in IMPURE_METHODS:
            yield node.lineno, f"uses .{node.attr}"
    elif isinstance(node, ast.Name) and names.get(node.id, node.id) in IMPURE_BUILTINS | {DYNAMIC_IMPORT}:
        yield node.lineno, f"uses {node.id}"


def _in_import_from(node: ast.ImportFrom) -> Iterator[tuple[int, str]]:
    module = node.module or ""
    if node.level:
        yield node.lineno, "imports relatively, which hides the layer"
    elif not _is_pure_module(module):
        yield node.lineno, f"imports {module}"
    else:
        for alias in node.names:
            if _is_impure_name(f"{module}.{alias.name}"):
                yield node.lineno, f"imports {module}.{alias.name}"


def _is_pure_module(module: str) -> bool:
    """Whether it may be imported. Which module of our own may be imported by which is the contracts' business."""
    top = module.partition(".")[0]
    if top == "workpacket":
        return True
    if top in sys.stdlib_module_names:
        return (module in PURE_STANDARD_MODULES or top in PURE_STANDARD_MODULES) and not _is_impure_name(module)
    return top in PURE_LIBRARIES


def _is_impure_name(name: str) -> bool:
    module, *inner = name.split(".")
    return not IMPURE_NAMES.get(module, set()).isdisjoint(inner)


def _qualified(node: ast.expr, names: dict[str, str]) -> str | None:
    """`dt.now` as `datetime.datetime.now`, where `dt` was imported; else None."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _qualified(node.value, names)
        return None if owner is None else f"{owner}.{node.attr}"
    return None
