"""Pictures of scikit-image, and House if it is there, damaged in several ways with fixed seeds."""

from typing import NamedTuple

import numpy as np
from skimage import data, io, transform

from multicause.datasets.files import stored

NAMES = ["house", "camera", "astronaut", "chelsea", "coffee", "coins", "rocket", "brick", "immunohistochemistry"]
SIDE, WHITE = 256, 255.0
GREY = (0.299, 0.587, 0.114)


class Damaged(NamedTuple):
    """A picture and what is left of it, in units in which white is 255."""

    task: str
    name: str
    level: float  # standard deviation of the noise, share of missing pixels, or expected count of white
    clean: np.ndarray
    image: np.ndarray
    lost: np.ndarray | None = None  # where pixels are missing


def damaged(task: str, name: str, level: float) -> Damaged | None:
    """Return a damaged picture; None where there is none of that name, or none with colours."""
    clean = picture(name, colour=task == "colour")
    if clean is None or (task == "colour" and clean.ndim != 3):
        return None
    random = np.random.default_rng(0)
    if task == "inpaint":
        lost = random.uniform(size=clean.shape) < level
        return Damaged(task, name, level, clean, np.where(lost, np.nan, clean), lost)
    if task == "counts":
        return Damaged(task, name, level, clean, random.poisson(clean * (level / WHITE)) * (WHITE / level))
    return Damaged(task, name, level, clean, clean + level * random.normal(size=clean.shape))


def picture(name: str, colour: bool = False) -> np.ndarray | None:
    """Return a picture between 0 and 255, grey unless asked for its colours; None where there is none of that name."""
    if name == "house":
        path = stored("house/house.png")
        return None if path is None else io.imread(path).astype(float)
    image = np.asarray(getattr(data, name)(), dtype=float)
    image = image if colour else grey(image)
    side = min(image.shape[:2])
    top, left = ((length - side) // 2 for length in image.shape[:2])
    square = image[top : top + side, left : left + side]
    small = transform.resize(square, (SIDE, SIDE), anti_aliasing=True, order=1, preserve_range=True)
    return np.clip(np.rint(small), 0, WHITE)


def grey(image: np.ndarray) -> np.ndarray:
    """Return the luminance of a coloured image, and a grey one as it is."""
    return image if image.ndim == 2 else image[..., :3] @ np.array(GREY)


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    return float(10 * np.log10(WHITE**2 / np.mean((image - clean) ** 2)))
