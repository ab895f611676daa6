"""The recipe that draws the README's pictures draws each of them, and the README shows each."""

from __future__ import annotations

import re
from pathlib import Path

from architecture.source_tree import ROOT
from browser.chromium import Page
from browser.readme_pictures import FOLDER, HEIGHT, PICTURES, WIDTH, draw

LARGEST = 150_000


def size_of(picture: bytes) -> tuple[int, int]:
    """Of a WebP file with one picture: 14 bits each, behind the start code of the frame."""
    at = picture.index(b"\x9d\x01\x2a") + 3
    return tuple(int.from_bytes(picture[at + part : at + part + 2], "little") & 0x3FFF for part in (0, 2))  # type: ignore[return-value]


def test_the_pictures_are_drawn_from_this_repository(page: Page, tmp_path: Path) -> None:
    drawn = draw(page, ROOT, tmp_path)
    assert [path.stem for path in drawn] == [*PICTURES]
    for path in drawn:
        picture = path.read_bytes()
        assert picture[:4] + picture[8:12] == b"RIFFWEBP"
        assert size_of(picture) == (WIDTH, HEIGHT)
        assert 5000 < len(picture) < LARGEST


def test_the_readme_shows_each_picture_with_its_description() -> None:
    shown = dict(re.findall(r"!\[([^]]+)\]\(docs/pictures/([^)]+)\)", (ROOT / "README.md").read_text("utf-8")))
    assert sorted(shown.values()) == sorted(f"{name}.webp" for name in PICTURES)
    assert all(len(words) > 20 for words in shown), "people who do not see the picture read this"
    for name in shown.values():
        assert size_of((FOLDER / name).read_bytes()) == (WIDTH, HEIGHT)
        assert (FOLDER / name).stat().st_size < LARGEST
