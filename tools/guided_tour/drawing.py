"""Draws what was seen as an SVG: a terminal of fixed size that shows one command after the other, over and over.

The same tour always gives the same bytes: values that differ between two tours (times, digests, keys, folders) are
replaced by samples of the same shape. With reduced motion, the picture shows only the last screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from guided_tour.stage import Line

COLUMNS, ROWS = 112, 22
ADVANCE, LEADING, MARGIN, TOP = 8.0, 19, 16, 40
SECONDS = 7
COLOURS = {"title": "#f0f6fc", "say": "#f0f6fc", "command": "#79c0ff", "output": "#d1d7de", "change": "#8b949e"}
TITLE = "The life of a work packet, then what is refused, played by just tour"
SAMPLES = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "2026-03-01T12:00:00Z"),
    (re.compile(r"SHA256:[A-Za-z0-9+/]{43}"), "SHA256:" + "Sample" * 7 + "x"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "0123456789abcdef" * 4),
    (re.compile(r"\b[0-9a-f]{8}\.\.\."), "01234567..."),
    (re.compile(r"\b[0-9a-f]{40}\b"), "0123456789abcdef" * 2 + "01234567"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "0123456789abcdef" * 2),
    (re.compile(r"\b[0-9a-f]{16}\b"), "0123456789abcdef"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "0123456789ab"),
    (re.compile(r"^(signing program: ).*$"), r"\1/usr/bin/ssh-keygen"),
    (re.compile(r"^(in words +).*$"), r"\1lomij hazin ripan dilab malif zirud"),
    (re.compile(r"\(\d+ bytes\)"), "(1349 bytes)"),
)


def drawn(pictures: Sequence[Sequence[Line]], scratch: Path) -> str:
    width, height = round(2 * MARGIN + COLUMNS * ADVANCE), TOP + ROWS * LEADING + MARGIN
    frames = list(_frames(pictures, scratch))
    return "".join(
        f"{line}\n"
        for line in (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t d">',
            f'<title id="t">{TITLE}</title>',
            f'<desc id="d">{escape(_commands(pictures))}</desc>',
            f"<style>{_style(len(frames))}</style>",
            f'<rect width="{width}" height="{height}" rx="10" fill="#0d1117"/>',
            *(f'<circle cx="{22 + 20 * place}" cy="18" r="6" fill="#30363d"/>' for place in range(3)),
            *_groups(frames),
            "</svg>",
        )
    )


def _commands(pictures: Iterable[Sequence[Line]]) -> str:
    return "The commands: " + "; ".join(
        line.text.removeprefix("$ ") for picture in pictures for line in picture if line.text.startswith("$ ")
    )


def _style(frames: int) -> str:
    """The style sheet; it shows each screen for the same time."""
    share = 100 / frames
    return (
        "text{font:13.2px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
        + "".join(f".{look}{{fill:{colour}}}" for look, colour in COLOURS.items())
        + ".command,.title{font-weight:bold}"
        + f"@keyframes seen{{0%{{opacity:1}}{share:.3f}%{{opacity:0}}100%{{opacity:0}}}}"
        + f".f{{opacity:0;animation:seen {frames * SECONDS}s step-end infinite}}"
        + ".f:last-of-type{{opacity:1}}"
        + "@media (prefers-reduced-motion:reduce){.f{animation:none}}"
    )


def _groups(frames: Iterable[list[Line]]) -> Iterator[str]:
    for place, rows in enumerate(frames):
        yield f'<g class="f" style="animation-delay:{place * SECONDS}s">'
        for row, line in enumerate(rows):
            if not line.text:
                continue
            yield (
                f'<text class="{line.look}" x="{MARGIN}" y="{TOP + (row + 1) * LEADING}" '
                f'textLength="{len(line.text) * ADVANCE:g}">{escape(line.text, quote=False)}</text>'
            )
        yield "</g>"


def _frames(pictures: Iterable[Sequence[Line]], scratch: Path) -> Iterator[list[Line]]:
    """The screens, each with as many pictures as fit on it."""
    frame: list[Line] = []
    for picture in pictures:
        rows = list(_rows(picture, scratch))
        if len(frame) + 1 + len(rows) > ROWS:
            yield frame
            frame = []
        frame += [Line("output", ""), *rows] if frame else rows
    yield frame


def _rows(picture: Sequence[Line], scratch: Path) -> Iterator[Line]:
    """The rows of a picture: long lines are folded, and of too many rows the middle is left out."""
    folded = [row for line in picture for row in _folded(Line(line.look, _sampled(line.text, scratch)))]
    if len(folded) > ROWS:
        kept = ROWS - 4
        folded = [*folded[:3], Line("change", "   ..."), *folded[-kept:]]
    yield from folded


def _folded(line: Line) -> Iterator[Line]:
    text = line.text
    while len(text) > COLUMNS:
        cut = text.rfind(" ", 60, COLUMNS)
        cut = COLUMNS if cut < 0 else cut
        yield Line(line.look, text[:cut])
        text = "    " + text[cut:].lstrip()
    yield Line(line.look, text)


def _sampled(text: str, scratch: Path) -> str:
    text = text.replace(str(scratch), "/tmp/tour")
    for pattern, sample in SAMPLES:
        text = pattern.sub(sample, text)
    return text
