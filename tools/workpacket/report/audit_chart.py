"""The board as time went by, as an SVG of stacked areas. Its numbers stand in a table beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html_escape

from workpacket.audit.board_history import Point

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 200, 40, 24


def board_chart(points: Sequence[Point], order: Sequence[str]) -> str:
    """'' where there is nothing to show."""
    if not points:
        return ""
    highest = max(sum(point.counts) for point in points) or 1
    drawn = [index for index in range(len(order)) if any(point.counts[index] for point in points)]
    areas = [_area(points, drawn, position, highest, order) for position in range(len(drawn))]
    same_day = points[0].at[:10] == points[-1].at[:10]
    first, last = (point.at[:16].replace("T", " ") if same_day else point.at[:10] for point in (points[0], points[-1]))
    label = f"Packets by lane from {first} to {last}; the table below holds the numbers."
    return "".join(
        (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}" role="img" aria-label="{html_escape(label)}">',
            *areas,
            f'<line class="axis" x1="{LEFT}" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}"/>',
            f'<text x="{LEFT - 6}" y="12" text-anchor="end">{highest}</text>',
            f'<text x="{LEFT - 6}" y="{HEIGHT}" text-anchor="end">0</text>',
            f'<text x="{LEFT}" y="{HEIGHT + 17}">{first}</text>',
            f'<text x="{WIDTH}" y="{HEIGHT + 17}" text-anchor="end">{last}</text>',
            "</svg>",
        )
    )


def _area(points: Sequence[Point], drawn: Sequence[int], position: int, highest: int, order: Sequence[str]) -> str:
    """One lane, upon those drawn before it."""
    below = [sum(point.counts[index] for index in drawn[:position]) for point in points]
    lane = order[drawn[position]]
    upper = [low + point.counts[drawn[position]] for low, point in zip(below, points, strict=True)]
    outline = " ".join([*_steps(upper, highest), *reversed(_steps(below, highest))])
    return f'<polygon class="lane-{lane}" points="{outline}"><title>{lane}</title></polygon>'


def _steps(values: Sequence[int], highest: int) -> list[str]:
    """A packet is in one lane until it is in another, so the line goes in steps; each moment has a place of its own."""
    corners: list[str] = []
    for number, value in enumerate(values):
        if not number or value != values[number - 1]:
            corners.append(f"{_x(number, len(values))},{_y(value, highest)}")
        if number == len(values) - 1 or value != values[number + 1]:
            corners.append(f"{_x(number + 1, len(values))},{_y(value, highest)}")
    return corners


def _x(number: int, count: int) -> str:
    return f"{LEFT + (WIDTH - LEFT) * number / count:.1f}"


def _y(value: int, highest: int) -> str:
    return f"{HEIGHT - (HEIGHT - 4) * value / highest:.1f}"
