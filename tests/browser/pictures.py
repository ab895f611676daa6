"""Compares screenshots with those that somebody has looked at: block by block, so that smoothed edges do not count. The
browser reads the pictures.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from browser.chromium import Page

# Blocks of 8 by 8 pixels; one differs if its mean does by more than 20 of 255.
_COMPARED = """(async (sources) => {
  const blocks = [];
  for (const source of sources) {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), drawn = canvas.getContext("2d");
    drawn.drawImage(image, 0, 0);
    const { data, width, height } = drawn.getImageData(0, 0, image.width, image.height), columns = width >> 3;
    const means = new Float64Array(columns * (height >> 3));
    for (let y = 0; y < (height >> 3) * 8; y++) for (let x = 0; x < columns * 8; x++) {
      const at = (y * width + x) * 4;
      means[(y >> 3) * columns + (x >> 3)] += (data[at] + data[at + 1] + data[at + 2]) / 192;
    }
    blocks.push(means);
  }
  const [one, two] = blocks;
  if (one.length !== two.length) return 1;
  return one.filter((mean, at) => Math.abs(mean - two[at]) > 20).length / one.length;
})(%s)"""


def picture(page: Page, path: Path, width: int, height: int) -> Path:
    """The window, at half of its size."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 0.5}
    path.write_bytes(base64.b64decode(page.call("Page.captureScreenshot", format="png", clip=clip)["data"]))
    return path


def difference(page: Page, *pictures: Path) -> float:
    """The share of blocks that differ. The page is left."""
    page.open("about:blank")
    sources = [f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}" for path in pictures]
    share: float = page.ask(_COMPARED % json.dumps(sources))
    return share
