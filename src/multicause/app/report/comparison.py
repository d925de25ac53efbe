"""A page that shows an image before and after its restoration, in one file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import io
from importlib.resources import files
from pathlib import Path

import numpy as np

from multicause.persistence.container import write_whole
from multicause.restoration.restorer import Restoration
from multicause.runtime.optional import need
from multicause.version import __version__

# Components that are shown, those that are active most often; pixels of a side of each on the page.
N_COMPONENTS, TILE = 96, 4
# Differences are shown between ∓ so many times their standard deviation.
SPAN = 3
# Larger images are shown with fewer pixels.
MOST_PIXELS = 2_000_000


def write_comparison(
    path: Path, before: np.ndarray, after: np.ndarray, found: Restoration, *, title: str, white: float | None = None
) -> None:
    """Write the page: before and after with a slider, their difference, learned components and the estimated noise.

    Pixels of ``before`` that are NaN were missing, and are shown in magenta. Known ones may be the same in ``after``;
    the difference is that to ``found.image``, which has the posterior means of all pixels. Black is zero and white is
    ``white``, by default the range of the restored image.
    """
    low, high = (0.0, white) if white is not None else (float(after.min()), float(after.max()))
    factor = int(np.ceil(np.sqrt(after.shape[0] * after.shape[1] / MOST_PIXELS)))
    height, width = after.shape[:2]
    before, after, explained = (each[::factor, ::factor] for each in (before, after, found.image))
    difference = before - explained
    spread = SPAN * float(np.nanstd(difference)) or 1.0
    missing = np.isnan(before).reshape(*before.shape[:2], -1).any(axis=2)
    facts = [
        ("size", f"{height}×{width} pixels"),
        ("estimated noise, standard deviation", f"{found.noise_level:.4g}"),
    ]
    if missing.any():
        facts.append(("missing", f"{missing.mean():.1%} of all pixels"))
    if found.learned is not None:
        facts += [
            ("components", str(len(found.learned.components))),
            ("patches of the components shown", f"{found.patch_size}×{found.patch_size}"),
            ("active causes in a patch", f"{found.learned.activity.sum():.2f}"),
        ]
    if factor > 1:
        facts.append(("pictures", f"one pixel in {factor} of each row and column is shown"))
    style, script, template, shared = (
        files(package).joinpath(name).read_text(encoding="utf-8")
        for package, name in (
            ("multicause.app.report", "comparison.css"),
            ("multicause.app.report", "comparison.js"),
            ("multicause.app.report", "comparison.html.jinja"),
            ("multicause.app.report", "report.css"),
        )
    )
    jinja2 = need("jinja2", "reports", "app")
    page = jinja2.Environment(autoescape=True).from_string(template)
    text = page.render(
        title=title,
        facts=facts,
        before=_png((before - low) / (high - low or 1), missing),
        after=_png((after - low) / (high - low or 1)),
        difference=_png(0.5 + difference / (2 * spread), missing),
        spread=f"{spread:.3g}",
        missing=bool(missing.any()),
        components=None if found.learned is None else _png(_mosaic(found)),
        width=after.shape[1],
        height=after.shape[0],
        style=shared + style,
        script=script,
        checksum=base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii"),
        version=__version__,
    )
    write_whole(path, text.encode("utf-8"))


def _png(shares: np.ndarray, missing: np.ndarray | None = None) -> str:
    """Return an image with black at zero and white at one as a data URL; missing pixels are magenta."""
    from PIL import Image

    levels = np.rint(255 * np.clip(np.nan_to_num(shares), 0, 1)).astype(np.uint8)
    if missing is not None and missing.any():
        levels = np.repeat(levels[..., None], 3, axis=2) if levels.ndim == 2 else levels.copy()
        levels[missing] = (255, 0, 255)
    buffer = io.BytesIO()
    Image.fromarray(levels.squeeze()).save(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _mosaic(found: Restoration) -> np.ndarray:
    """Return the components that are active most often side by side, each with grey at zero."""
    assert found.learned is not None
    size = found.patch_size
    best = np.argsort(-found.learned.activity, kind="stable")[:N_COMPONENTS]
    tiles = found.learned.components[best].reshape(len(best), size, size, -1)
    tiles = 0.5 + tiles / (2 * np.abs(tiles).max(axis=(1, 2, 3), keepdims=True))
    n_columns = min(16, len(best))
    n_lines = -(-len(best) // n_columns)
    canvas = np.ones((n_lines * (size + 1), n_columns * (size + 1), tiles.shape[-1]))
    for number, tile in enumerate(tiles):
        top, left = (size + 1) * (number // n_columns), (size + 1) * (number % n_columns)
        canvas[top : top + size, left : left + size] = tile
    return np.repeat(np.repeat(canvas, TILE, axis=0), TILE, axis=1)
