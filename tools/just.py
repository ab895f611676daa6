#!/usr/bin/env python3
"""Run a recipe of the justfile on a machine that has only Python and git: `python3 tools/just.py test`.

Makes sure that `.venv` in the repository root contains the package and the development tools that pyproject.toml
lists, then runs the `just` in it. Uses only the standard library, and the syntax of Python 3.6, so that an old
Python can say what is missing instead of showing a syntax error. Everything slow is in bootstrap.py, which is
imported only if there is something to install; `os.path` instead of `pathlib` keeps every other start short.
"""

import hashlib
import os
import sys
from collections.abc import Iterator

NEEDED = (3, 11)
SUPPORTED_MINORS = (14, 13, 12, 11)
ENVIRONMENT_FAULT = 6
INTERRUPTED = 130

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
BIN = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin")
STAMP = os.path.join(VENV, "setup-stamp.txt")
SUFFIX = ".exe" if os.name == "nt" else ""
JUST = os.path.join(BIN, "just" + SUFFIX)
PYTHON = os.path.join(BIN, "python" + SUFFIX)

# Recipes that sign with throw-away keys, or compare our verifier with OpenSSH.
SIGNING_RECIPES = frozenset(["test", "test-all", "tour", "proof", "fuzz", "bench", "bench-quick", "nightly", "ci"])


def main(arguments: "list[str]") -> None:
    if sys.version_info[:2] < NEEDED:
        hand_over_to_newer_python(arguments)
    require_program("git", "install git (https://git-scm.com)")
    if SIGNING_RECIPES.intersection(arguments):
        require_program("ssh-keygen", "install OpenSSH's client (Debian, Ubuntu: apt install openssh-client)")
    if not is_ready():
        set_up()
    run_just(arguments)


def hand_over_to_newer_python(arguments: "list[str]") -> None:
    """Start again with a supported Python from the PATH, skipping shims that do not lead to one."""
    import subprocess

    probe = f"import sys; sys.exit(sys.version_info[:2] < {NEEDED})"
    quiet = subprocess.DEVNULL
    for candidate in (path for minor in SUPPORTED_MINORS for path in programs(f"python3.{minor}")):
        if subprocess.call([candidate, "-c", probe], stdout=quiet, stderr=quiet) == 0:
            os.execv(candidate, [candidate, os.path.abspath(__file__), *arguments])
    found = ".".join(str(part) for part in sys.version_info[:3])
    stop(f"Python 3.11 or newer is needed, and {sys.executable} is {found}; install one and put it on the PATH")


def require_program(name: str, remedy: str) -> None:
    if next(programs(name), None) is None:
        stop(f"{name} is missing; {remedy} and run this again")


def programs(name: str) -> "Iterator[str]":
    """Yield the executable files called `name` on the PATH, in its order."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name + SUFFIX)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield path


def fingerprint() -> bytes:
    """Return what an installation depends on: path and Python on the first line, then a digest of the files."""
    digest = hashlib.sha256()
    for path in ("pyproject.toml", os.path.join("tools", "bootstrap.py")):
        with open(os.path.join(ROOT, path), "rb") as file:
            digest.update(file.read())
    place = f"{ROOT!a} {sys.version!a}"
    return f"{place}\n{digest.hexdigest()}\n".encode("ascii")


def is_ready() -> bool:
    """Whether the last set-up succeeded for exactly this state, and the interpreter of `.venv` still exists."""
    try:
        with open(STAMP, "rb") as file:
            stamp = file.read()
    except OSError:
        return False
    return stamp == fingerprint() and os.path.exists(JUST) and os.path.exists(PYTHON)


def set_up() -> None:
    import bootstrap

    try:
        bootstrap.set_up(ROOT, STAMP, fingerprint(), is_ready)
    except bootstrap.CannotSetUp as fault:
        stop(str(fault))


def run_just(arguments: "list[str]") -> None:
    environment = dict(os.environ, VIRTUAL_ENV=VENV)
    environment["PATH"] = BIN + os.pathsep + os.environ.get("PATH", os.defpath)
    environment.pop("PYTHONHOME", None)
    command = [JUST, "--justfile", os.path.join(ROOT, "justfile"), *arguments]
    if os.name == "nt":
        import subprocess

        sys.exit(subprocess.call(command, env=environment))
    os.execve(JUST, command, environment)


def stop(message: str) -> None:
    sys.stderr.write(f"just.py: {message}\n")
    sys.exit(ENVIRONMENT_FAULT)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as fault:
        stop(f"{fault.filename or ROOT}: {fault.strerror or fault}")
    except KeyboardInterrupt:
        sys.stderr.write("just.py: interrupted; the next call starts the set-up again\n")
        sys.exit(INTERRUPTED)
