"""Runs first in every Python process of a proof, as its `sitecustomize`: finds the tree being proved, and watches this
process if a test started it.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

from . import watch as probe


def begin(folder: str) -> None:
    found = probe.configuration()
    if found is not None:
        _come_home(found)
        test = os.environ.get(probe.TEST)
        if test:
            _watch(probe.Watch(found), test, found)
    _import_next(folder)


def _watch(watch: probe.Watch, test: str, found: dict[str, Any]) -> None:
    watch.alone = True
    watch.listen()
    watch.begin(test)
    probe.BEFORE.append(watch)
    if os.environ.get(probe.RUNNING):
        return
    atexit.register(watch.credit_loaded)
    if _is_of_the_tree(found["root"]):
        watch.say(kind="process", test=test)


def _is_of_the_tree(root: str) -> bool:
    """Whether the program is a script or module of the repository, or code in the command. A type checker, by contrast,
    only reads the files that it checks.
    """
    words = list(getattr(sys, "orig_argv", sys.argv))
    name = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    place = os.path.join(root, *name.split(".")) if name else os.path.realpath(sys.argv[0])
    if name:
        return os.path.exists(f"{place}.py") or os.path.isdir(place)
    inside = place.startswith(root + os.sep) and os.path.isfile(place)
    return sys.argv[:1] == ["-c"] or inside


def _come_home(found: dict[str, Any]) -> None:
    """Redirect an editable installation, which points to the work tree, to the tree being proved."""
    sys.path[:] = [_moved(place, found) for place in sys.path]
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None) if name.startswith("__editable__") else None
        if isinstance(mapping, dict):
            mapping.update({key: _moved(place, found) for key, place in mapping.items()})


def _moved(place: str, found: dict[str, Any]) -> str:
    root, original = found["root"], found["original"]
    if place != original and not place.startswith(original + os.sep):
        return place
    new = root + place[len(original) :]
    # Linked folders, such as an environment, stay where they are.
    inside = os.path.realpath(new).startswith(root + os.sep) or os.path.realpath(new) == root
    return new if inside and os.path.exists(new) else place


def _import_next(folder: str) -> None:
    """Import the `sitecustomize` that this one has replaced."""
    others = [place for place in sys.path if os.path.realpath(place) != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
