"""Makes wheels of a few lines, so that tests can install without an index. Also the build backend of the scratch
repositories, which is why it imports nothing but the standard library."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(folder: str | Path, name: str, files: Mapping[str, str], version: str = "1.0") -> str:
    """Write the wheel of distribution `name` into `folder`; returns its file name."""
    information = f"{name}-{version}.dist-info"
    contents = {
        **files,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*contents, f"{information}/RECORD"))
    file_name = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder, file_name), "w") as wheel:
        for path, text in {**contents, f"{information}/RECORD": record}.items():
            wheel.writestr(path, text)
    return file_name


def write_program(folder: str | Path, name: str, program: str, code: str) -> None:
    """A wheel that brings one program, which is the function `main` of `code`."""
    entry_points = f"[console_scripts]\n{program} = {name}:main\n"
    write_wheel(folder, name, {f"{name}.py": code, f"{name}-1.0.dist-info/entry_points.txt": entry_points})


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """The hook of PEP 660: the package stays where it is, and a path file points there."""
    return write_wheel(wheel_directory, "workpacket", {"workpacket.pth": f"{Path.cwd() / 'tools'}\n"})
