"""Commands ``multicause denoise`` and ``inpaint``: remove noise from images and recordings, fill in missing pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from multicause.app.cli.options import Device, Force, Json, MemoryBudget, Seed, Verbose
from multicause.app.cli.output import Output, command
from multicause.runtime.file_kinds import (
    CSV,
    NPY,
    PAGES,
    PARQUET,
    SOUNDS,
    TEXTS,
    WRITTEN_IMAGES,
    WRITTEN_TABLES,
    suffix_of,
)

if TYPE_CHECKING:
    import numpy as np

    from multicause.restoration.files import StoredPicture

Damaged = Annotated[Path, typer.Argument(help="Image (png, jpg, tif, ..., npy) to restore.", show_default=False)]
OutFile = Annotated[Path, typer.Option(help="File to write; its suffix selects the format.", show_default=False)]
Report = Annotated[Path | None, typer.Option(help="Also write a page that compares before and after.")]
PatchSize = Annotated[
    int | None,
    typer.Option(
        help="Height and width of patches; by default 8 to 12, one size or two, for images, and 8 for sounds.", min=2
    ),
]
Components = Annotated[int | None, typer.Option(help="Number of components to learn.", min=1)]
Iterations = Annotated[int | None, typer.Option(help="Iterations of learning.", min=1)]


def denoise(
    data: Annotated[
        Path, typer.Argument(help="Image (png, jpg, tif, ..., npy) or recording (wav).", show_default=False)
    ],
    out: OutFile,
    noise: Annotated[str, typer.Option(help="gaussian, or poisson for photon counts.")] = "gaussian",
    report: Report = None,
    patch_size: PatchSize = None,
    components: Components = None,
    iterations: Iterations = None,
    memory: MemoryBudget = "1GiB",
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Remove the noise from an image or a recording. Neither other data nor the strength of the noise are needed.

    Examples:
      multicause denoise noisy.png --out clean.png --report clean.html

      multicause denoise recording.wav --out clean.wav
    """
    with command(json, verbose) as output:
        sound = suffix_of(data) in SOUNDS
        _check_paths(data, out, report, force, sound)
        if sound and (report is not None or noise != "gaussian"):
            raise ValueError("Recordings have no --report and no --noise; these options are for images.")

        from multicause.runtime.devices import use_device

        use_device(device)
        given = _given(patch_size=patch_size, n_components=components, max_iter=iterations)
        if sound:
            _denoise_sound(output, data, out, seed, memory_budget=memory, **given)
            return
        from multicause.restoration.files import read_picture

        stored = read_picture(data)
        _restore(output, data, out, report, stored, None, seed, noise=noise, memory_budget=memory, **given)


def inpaint(
    data: Damaged,
    out: OutFile,
    mask: Annotated[
        Path | None, typer.Option(help="Image of the same size, not black where pixels are missing.")
    ] = None,
    missing_color: Annotated[
        str | None, typer.Option(help="Pixels of this colour are missing: #ff00ff, or a grey value such as 0.")
    ] = None,
    report: Report = None,
    patch_size: PatchSize = None,
    components: Components = None,
    iterations: Iterations = None,
    memory: MemoryBudget = "1GiB",
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fill in missing pixels of an image; all others stay as they are.

    Pixels are missing where the mask is not black, where they have the --missing-color, where they are transparent, and
    where they are NaN in a npy file.

    Examples:
      multicause inpaint damaged.png --mask mask.png --out whole.png

      multicause inpaint scratched.png --missing-color "#ff00ff" --out whole.png
    """
    with command(json, verbose) as output:
        if suffix_of(data) in SOUNDS:
            raise ValueError(
                f"{str(data)!r} is a recording; only images can be filled in. To remove its noise there is "
                "'multicause denoise'."
            )
        _check_paths(data, out, report, force, False)
        if mask is not None:
            from multicause.app.cli.file_names import check_data

            check_data([mask])

        from multicause.restoration.files import filled_in, read_picture
        from multicause.runtime.devices import use_device

        use_device(device)
        stored = read_picture(data)
        missing = missing_values(stored, mask, missing_color)
        if not missing.any():
            raise ValueError(
                f"No pixel of {str(data)!r} is missing. Name a mask (--mask), a colour (--missing-color), or use "
                "transparent pixels or NaN in a npy file; use 'multicause denoise' to remove noise."
            )
        given = _given(patch_size=patch_size, n_components=components, max_iter=iterations)
        whole = filled_in(stored)
        output.say(f"{_share_of_pixels(missing):.1%} of all pixels are missing.")
        _restore(output, data, out, report, whole, missing, seed, memory_budget=memory, **given)


def _check_paths(data: Path, out: Path, report: Path | None, force: bool, sound: bool) -> None:
    from multicause.app.cli.file_names import check_data, check_ending
    from multicause.app.writing import check_file

    if suffix_of(data) in (*TEXTS, PARQUET):
        raise ValueError(
            f"{str(data)!r} is a table; expected an image. Noise and missing values of tables are for models: "
            f"'multicause fit {data.name} --components 5 --out run', then 'multicause reconstruct run {data.name} "
            f"--impute --out whole{suffix_of(data) if suffix_of(data) in WRITTEN_TABLES else CSV}'."
        )
    check_ending(out, SOUNDS if sound else (*WRITTEN_IMAGES, NPY))
    check_file(out, force)
    if report is not None:
        check_ending(report, PAGES)
        check_file(report, force)
    check_data([data])
    if data.is_dir():
        raise ValueError(f"{str(data)!r} is a folder; expected one file.")


def _given(**values: Any) -> dict[str, Any]:
    """Return the options that were given, so that others keep the defaults of the functions."""
    return {name: value for name, value in values.items() if value is not None}


def missing_values(stored: StoredPicture, mask: Path | None, color: str | None) -> np.ndarray:
    """Return which values are missing, by mask, colour, transparency or NaN: of the shape of the pixels."""
    import numpy as np

    from multicause.restoration.files import read_picture

    pixels = stored.pixels
    missing = np.zeros(pixels.shape[:2], bool)
    if stored.alpha is not None:
        missing |= stored.alpha == 0
    if mask is not None:
        mask_pixels, mask_alpha = read_picture(mask)
        if mask_pixels.shape[:2] != pixels.shape[:2]:
            raise ValueError(
                f"The mask must have the size of the image, {pixels.shape[0]}×{pixels.shape[1]} pixels; {str(mask)!r} "
                f"has {mask_pixels.shape[0]}×{mask_pixels.shape[1]}."
            )
        if mask_pixels.dtype.kind not in "bui" and not np.isfinite(mask_pixels).all():
            raise ValueError(f"The mask {str(mask)!r} has values that are NaN or infinite; expected finite numbers.")
        drawn = (mask_pixels.reshape(*mask_pixels.shape[:2], -1) != 0).any(axis=2)
        missing |= drawn if mask_alpha is None else drawn & (mask_alpha != 0)
    if color is not None:
        colours = pixels.reshape(*pixels.shape[:2], -1)
        # Whole numbers are equal or not; floats may have been rounded.
        largest = np.abs(pixels[np.isfinite(pixels)]).max(initial=1)
        tolerance = 1e-6 * float(largest) if pixels.dtype.kind == "f" else 0
        missing |= np.isclose(colours, _color(color, pixels), rtol=0, atol=tolerance).all(axis=2)
    lost = np.broadcast_to(missing.reshape(*missing.shape, *[1] * (pixels.ndim - 2)), pixels.shape)
    # Of a coloured pixel, single channels may be NaN; the others are known.
    return lost | np.isnan(pixels) if pixels.dtype.kind == "f" else lost


def _share_of_pixels(missing: np.ndarray) -> float:
    """Return the share of pixels of which a value is missing."""
    return float(missing.reshape(*missing.shape[:2], -1).any(axis=2).mean())


def _color(text: str, pixels: np.ndarray) -> np.ndarray:
    """Return the values of a colour such as #ff00ff, or of one grey value, in the units of the pixels."""
    import numpy as np

    from multicause.restoration.files import white_of

    digits = text.removeprefix("#")
    try:
        if text.startswith("#") and len(digits) == 6:
            values = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)], float)
            if pixels.ndim == 3:
                return values * (white_of(pixels) / 255)
            raise ValueError
        return np.array(float(text))
    except ValueError:
        raise ValueError(
            f"--missing-color must be a colour such as #ff00ff for a coloured image, or a value such as 0; "
            f"got {text!r}."
        ) from None


def _restore(
    output: Output,
    data: Path,
    out: Path,
    report: Path | None,
    stored: StoredPicture,
    missing: np.ndarray | None,
    seed: int,
    **given: Any,
) -> None:
    import numpy as np

    from multicause.app.report.comparison import write_comparison
    from multicause.restoration.files import check_can_be_written, write_picture
    from multicause.restoration.images import restore_image

    check_can_be_written(out, stored, missing)
    with _progress_bar(output) as progress:
        restored = restore_image(stored.pixels, missing, random_state=seed, progress=progress, **given)
    before, after = stored.pixels.astype(float), restored.image
    if missing is not None:
        after = np.where(missing, after, before)
        before = np.where(missing, np.nan, before)
    write_picture(out, after, stored)
    output.say(f"Estimated noise, standard deviation: {restored.noise_level:.4g}")
    output.say(f"Restored image: {out}")
    if report is not None:
        what = "denoised" if missing is None else "inpainted"
        white = float(np.iinfo(stored.pixels.dtype).max) if stored.pixels.dtype in (np.uint8, np.uint16) else None
        write_comparison(report, before, after, restored, title=f"{data.name}, {what}", white=white)
        output.say(f"Report: {report}")
    output.result(
        out=str(out),
        report=None if report is None else str(report),
        shape=list(after.shape),
        noise_level=restored.noise_level,
        patch_size=restored.patch_size,
        missing=0.0 if missing is None else _share_of_pixels(missing),
    )


def _denoise_sound(output: Output, data: Path, out: Path, seed: int, **given: Any) -> None:
    import numpy as np

    from multicause.restoration import denoise_sound
    from multicause.restoration.files import read_recording, write_recording

    rate, samples = read_recording(data)
    with _progress_bar(output) as progress:
        clean = denoise_sound(samples, random_state=seed, progress=progress, **given)
    write_recording(out, rate, clean, samples.dtype)
    removed = float(np.sqrt(np.mean((clean - samples) ** 2)))
    output.say(f"Restored recording of {len(samples) / rate:.1f} s: {out}")
    output.result(out=str(out), sample_rate=rate, shape=list(samples.shape), removed=removed)


@contextmanager
def _progress_bar(output: Output) -> Iterator[Callable[[float, str], None]]:
    """Show a progress bar of the restoration."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output.console, transient=True) as bars:
        task = bars.add_task("reading", total=1.0)
        yield lambda part, text: bars.update(task, completed=part, description=text)
