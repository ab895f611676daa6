"""The arrows between the layers hold, and the build fails on a wrong one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from architecture.purity import PURE_LAYERS
from architecture.source_tree import PACKAGE, ROOT

# importer, imported: each wrong by the overview in docs/architecture.md.
WRONG_ARROWS = (
    ("problem", "model"),
    ("value", "model"),
    ("lazy_pattern", "model"),
    ("digests", "model"),
    ("model", "text"),
    ("model", "git"),
    ("text", "documents"),
    ("documents", "ledger"),
    ("ledger", "approvals"),
    ("approvals", "lifecycle"),
    ("lifecycle", "rules"),
    ("rules", "runtime"),
    ("audit", "shell"),
    ("audit", "report"),
    ("audit", "git"),
    ("report", "shell"),
    ("report", "git"),
    ("shell", "report"),
    ("shell", "bridges"),
    ("bridges", "cli"),
    ("git", "model"),
    ("git", "shell"),
    ("runtime", "text"),
    ("runtime", "shell"),
    ("runtime", "report"),
    ("starter", "cli"),
)


def layers() -> set[str]:
    """The names that the contract knows."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    column = next(contract["layers"] for contract in contracts if contract["id"] == "column")
    return {name.strip("() ") for line in column for name in line.split("|")}


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the linter as `just lint` does, on the package below `root`."""
    command = (Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo")
    environment = {**os.environ, "PYTHONPATH": str(root / "tools"), "COLUMNS": "200"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """This package and its contracts, with an empty package for each layer that does not exist yet."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "tools" / "workpacket"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for layer in layers() - {"__main__", "problem"}:
        (package / layer).mkdir(exist_ok=True)
        (package / layer / "__init__.py").touch()
    return tmp_path


def plant(root: Path, module: str, code: str) -> None:
    path = root.joinpath("tools", "workpacket", *module.split(".")).with_suffix(".py")
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{code}\n")


def test_the_package_keeps_its_contracts() -> None:
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


def test_a_copy_of_the_package_with_every_layer_keeps_them_too(copy: Path) -> None:
    assert lint_imports(copy).returncode == 0


def test_every_wrong_arrow_breaks_the_build(copy: Path) -> None:
    for importer, imported in WRONG_ARROWS:
        if importer == "problem":
            plant(copy, "problem", f"import workpacket.{imported}")
        else:
            plant(copy, f"{importer}.to_{imported}", f"import workpacket.{imported}")

    result = lint_imports(copy)

    missed = [
        f"{importer} -> {imported}"
        for importer, imported in WRONG_ARROWS
        if f"workpacket.{importer} is not allowed to import workpacket.{imported}" not in result.stdout
    ]
    assert result.returncode == 1
    assert missed == []


def test_a_detour_through_the_root_of_the_package_is_found(copy: Path) -> None:
    plant(copy, "text.detour", "import workpacket")
    plant(copy, "__init__", "import workpacket.ledger")

    result = lint_imports(copy)

    assert result.returncode == 1
    assert "workpacket.text is not allowed to import workpacket.ledger" in result.stdout


def test_a_package_that_is_no_layer_breaks_the_build(copy: Path) -> None:
    (copy / "tools" / "workpacket" / "extras.py").touch()

    result = lint_imports(copy)

    assert result.returncode == 1
    assert "extras" in result.stdout


def test_every_pure_layer_is_a_layer_of_the_contract() -> None:
    assert set(PURE_LAYERS) < layers()
