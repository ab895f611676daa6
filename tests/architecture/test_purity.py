"""The layers from audit down to model are pure: the same arguments, the same result, and nothing else happens."""

from __future__ import annotations

import ast

import pytest

from architecture.purity import PURE_LAYERS, impurities
from architecture.source_tree import PACKAGE, parsed, python_files, relative

PLANTED = {
    "open('x')": "line 1: uses open",
    "read = open": "line 1: uses open",
    "print('x')": "line 1: uses print",
    "answer = input()": "line 1: uses input",
    "eval('1')": "line 1: uses eval",
    "module = __import__('os')": "line 1: uses __import__",
    "import os": "line 1: imports os",
    "import os.path": "line 1: imports os.path",
    "from os import environ": "line 1: imports os",
    "import subprocess": "line 1: imports subprocess",
    "import time": "line 1: imports time",
    "import random": "line 1: imports random",
    "import secrets": "line 1: imports secrets",
    "import socket": "line 1: imports socket",
    "import sqlite3": "line 1: imports sqlite3",
    "import tempfile": "line 1: imports tempfile",
    "import threading": "line 1: imports threading",
    "import logging": "line 1: imports logging",
    "import urllib.request": "line 1: imports urllib.request",
    "import importlib.resources": "line 1: imports importlib.resources",
    "from importlib import resources": "line 1: imports importlib.resources",
    "from importlib import import_module as load\nload('os')": "line 2: uses load",
    "import importlib\nimportlib.import_module(f'workpacket.shell.{1}')": "line 2: uses importlib.import_module",
    "from importlib import import_module\nload = import_module": "line 2: uses import_module",
    "import requests": "line 1: imports requests",
    "from . import sibling": "line 1: imports relatively, which hides the layer",
    "from pathlib import Path": "line 1: imports pathlib.Path",
    "import pathlib\npathlib.Path('x')": "line 2: uses pathlib.Path",
    "from uuid import uuid4": "line 1: imports uuid.uuid4",
    "import uuid as u\nu.uuid1()": "line 2: uses uuid.uuid1",
    "import datetime\ndatetime.datetime.now()": "line 2: uses datetime.datetime.now",
    "import datetime as d\nd.date.today()": "line 2: uses datetime.date.today",
    "from datetime import datetime as dt\ndt.utcnow()": "line 2: uses datetime.datetime.utcnow",
    "from datetime import datetime\nclock = datetime.now": "line 2: uses datetime.datetime.now",
    "def late():\n    import os": "line 2: imports os",
    "def late():\n    from io import open as read\n    read('x')": "line 2: imports io.open",
    "import sys\nsys.stdout.write('x')": "line 2: uses sys.stdout",
    "import sys\nsys.exit(1)": "line 2: uses sys.exit",
    "import posixpath\nposixpath.exists('x')": "line 2: uses posixpath.exists",
    "def size(file):\n    return len(file.read_bytes())": "line 2: uses .read_bytes",
    "def drop(file):\n    file.unlink()": "line 2: uses .unlink",
    "def lane(*, print):\n    open('x')": "line 2: uses open",
    "def lane(*, open=open):\n    return open": "line 1: uses open",
}

LEFT_ALONE = (
    "import hashlib, json\nhashlib.sha256(json.dumps({}).encode()).hexdigest()",
    "from pathlib import PurePosixPath\nPurePosixPath('a') / 'b'",
    "import posixpath\nposixpath.normpath('a/../b')",
    "from datetime import UTC, datetime\ndatetime.fromisoformat('2026-01-01').astimezone(UTC)",
    "from uuid import UUID\nUUID(int=0)",
    "from urllib.parse import urlsplit\nurlsplit('x')",
    "import tomllib\ntomllib.loads('')",
    "import yaml\nyaml.safe_load('')",
    "import sys\nsys.intern('x')",
    "from workpacket.problem import Problem",
    "def at(facts):\n    return facts.now",
    "def at(facts):\n    return facts.today()",
    "text = 'open(1)'  # print",
    "def lane(*, open):\n    return [open for _ in range(2)]",
    "from importlib import import_module\nimport_module(f'workpacket.documents.{1}')",
    "from importlib import import_module\nimport_module('workpacket.documents.stub')",
)


@pytest.mark.parametrize(("code", "impurity"), PLANTED.items(), ids=PLANTED)
def test_a_planted_impurity_is_found_at_its_line(code: str, impurity: str) -> None:
    assert impurity in [str(found) for found in impurities(ast.parse(code), "documents")]


@pytest.mark.parametrize("code", LEFT_ALONE)
def test_what_only_computes_is_left_alone(code: str) -> None:
    assert impurities(ast.parse(code), "documents") == []


def test_the_pure_layers_are_pure() -> None:
    found = {
        relative(path): [str(impurity) for impurity in impurities(parsed(path), layer)]
        for layer in PURE_LAYERS
        for path in python_files(PACKAGE / layer)
    }

    assert len(found) > len(PURE_LAYERS)
    assert {path: impure for path, impure in found.items() if impure} == {}
