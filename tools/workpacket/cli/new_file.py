"""Writing a file that somebody named; never over one that is there."""

from __future__ import annotations

from workpacket.errors import WorkpacketError


def write_new(target: str, data: bytes) -> None:
    try:
        with open(target, "xb") as file:
            file.write(data)
    except FileExistsError:
        raise WorkpacketError("file_unwritable", f"{target} exists; nothing is written over it", path=target,
                              hint="name another file, or remove the old one") from None  # fmt: skip
