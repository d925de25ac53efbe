"""Images and recordings as a whole: reconstructed by a model of their pieces, or as maps of its causes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from multicause.app.cli.file_names import check_ending
from multicause.app.cli.message_translation import errors_in_options
from multicause.app.cli.output import Output
from multicause.app.cli.results import component_names, sortable, write_image, write_table
from multicause.app.cli.runs import Run
from multicause.app.noisy_patches import NoisyPatches
from multicause.app.writing import new_folder
from multicause.datasets.files import full_scale, middle_of
from multicause.datasets.overlap import AT_ONCE, patches_at, reconstruct_image
from multicause.datasets.pictures import read_grey
from multicause.datasets.reading import files_of
from multicause.datasets.sound_overlap import reconstruct_sound
from multicause.restoration import estimate_noise_level
from multicause.restoration.files import read_recording, write_recording
from multicause.runtime.file_kinds import ARRAYS, IMAGES, SOUNDS, WRITTEN_IMAGES, WRITTEN_TABLES, suffix_of

# Settings of --noise-level beside a number.
AUTO, NONE = "auto", "none"


def are_pictures(paths: Sequence[Path]) -> bool:
    """Return whether all paths are folders or image files."""
    return all(path.is_dir() or suffix_of(path) in IMAGES for path in paths)


def reconstruct_images(
    output: Output, fitted: Run, paths: Sequence[Path], out: Path, step: int, noise_level: str, force: bool
) -> None:
    """Reconstruct one image into a file, or several into a folder."""
    noise = _noise_setting(fitted, noise_level)
    files, _ = files_of(paths)
    if len(paths) == 1 and paths[0].is_file():
        check_ending(out, WRITTEN_IMAGES)
        image, level = reconstructed_image(fitted, files[0], read_grey(files[0])[0], step, noise)
        levels = [level]
        write_image(out, image)
    else:
        names, levels = [f"{number:05d}-{file.stem}.png" for number, file in enumerate(files)], []
        with new_folder(out, force=force, files=names) as folder:
            for name, file in zip(names, files, strict=True):
                image, level = reconstructed_image(fitted, file, read_grey(file)[0], step, noise)
                levels.append(level)
                write_image(folder / name, image)
    if any(level is not None for level in levels):
        known = [level for level in levels if level is not None]
        shown = f"{min(known):.3g}" if len(known) == 1 else f"{min(known):.3g} to {max(known):.3g}"
        origin = "given" if isinstance(noise, float) else "estimated"
        output.say(
            f"Noise with a standard deviation of {shown} ({origin}; white is 1) was removed. --noise-level none "
            "reconstructs from the causes alone.",
            style="dim",
        )
    output.say(f"{len(files)} image{'s' if len(files) > 1 else ''}: {out}")
    output.result(out=str(out), images=len(files), noise_levels=levels)


def _noise_setting(fitted: Run, text: str) -> float | str:
    """Return a noise level, "auto", or "none" where a model cannot use one."""
    usable = fitted.data["kind"] == "patches" and fitted.model.adds_strengths
    if text == NONE or (text == AUTO and not usable):
        return NONE
    if text == AUTO:
        return AUTO
    try:
        level = float(text)
    except ValueError:
        level = -1.0
    if not 0 <= level < np.inf:
        raise ValueError(f"--noise-level must be 'auto', 'none' or a number from 0, of which 1 is white; got {text!r}.")
    if not usable:
        raise ValueError(
            "--noise-level is for models of patches whose causes have a strength (ica, pca, factors, sparse, slabs); "
            f"{fitted.settings['estimator']} of {fitted.data['kind']} has its own noise. Use --noise-level none."
        )
    return level or NONE


def reconstructed_image(
    fitted: Run, file: Path, image: np.ndarray, step: int, noise: float | str
) -> tuple[np.ndarray, float | None]:
    """Return the reconstruction of an image, as one row or by overlapping patches, and the noise level it used."""
    reading = fitted.reading
    if fitted.data["kind"] == "patches":
        shape, level = _patch_shape(fitted), None
        try:
            model = fitted.model
            if noise != NONE:
                noise_level = estimate_noise_level(image) if isinstance(noise, str) else noise
                if noise_level > 0:
                    rows = patches_at(image, shape, scale=reading.scale, step=min(shape))[0]
                    in_rows = reading.scale * noise_level / (image.max() - image.min())
                    model = NoisyPatches(model, in_rows, rows.reshape(-1, shape[0] * shape[1]))
                    level = float(noise_level)
            again = reconstruct_image(model, image, shape, scale=reading.scale, step=step, dtype=reading.dtype)
            return again, level
        except ValueError as error:
            raise ValueError(f"{str(file)!r}: {error}") from error
    assert fitted.image_shape is not None
    if image.shape != fitted.image_shape:
        height, width = fitted.image_shape
        raise ValueError(
            f"{str(file)!r} has {image.shape[0]}×{image.shape[1]} pixels; the model needs images of {height}×{width}."
        )
    row = (reading.scale * image).reshape(1, -1).astype(reading.dtype)
    return np.asarray(fitted.model.reconstruct(row)).reshape(image.shape) / reading.scale, None


def reconstruct_recordings(
    output: Output, fitted: Run, paths: Sequence[Path], out: Path, channel: int | None, noise_level: str, force: bool
) -> None:
    """Reconstruct one recording into a wav file, or several into a folder, at their own sample rates."""
    remove_noise = fitted.reading.sound == "spectrogram" and noise_level == AUTO
    if noise_level not in (AUTO, NONE):
        raise ValueError(
            f"For recordings --noise-level must be 'auto' (noise is estimated at each frequency) or 'none'; "
            f"got {noise_level!r}."
        )
    files, _ = files_of(paths)
    if len(paths) == 1 and paths[0].is_file():
        check_ending(out, SOUNDS)
        _reconstruct_recording(fitted, files[0], out, channel, remove_noise)
    else:
        names = [f"{number:05d}-{file.stem}.wav" for number, file in enumerate(files)]
        with new_folder(out, force=force, files=names) as folder:
            for name, file in zip(names, files, strict=True):
                _reconstruct_recording(fitted, file, folder / name, channel, remove_noise)
    if remove_noise:
        output.say(
            "Steady noise, estimated from the quietest tenth of the time at each frequency, was removed. --noise-level "
            "none reconstructs from the causes alone.",
            style="dim",
        )
    output.say(f"{len(files)} recording{'s' if len(files) > 1 else ''}: {out}")
    output.result(out=str(out), recordings=len(files), noise_removed=remove_noise)


def _reconstruct_recording(fitted: Run, file: Path, out: Path, channel: int | None, remove_noise: bool) -> None:
    rate, samples = read_recording(file)
    if channel is not None and samples.ndim > 1:
        if channel >= samples.shape[1]:
            raise ValueError(f"{str(file)!r} has {samples.shape[1]} channels, counted from 0; there is no {channel}.")
        samples = samples[:, channel]
    middle, scale = middle_of(samples.dtype), full_scale(samples.dtype)
    waves = (samples.reshape(len(samples), -1) - float(middle)) / scale
    try:
        again = [
            reconstruct_sound(fitted.model, wave, rate, fitted.reading, remove_noise=remove_noise) for wave in waves.T
        ]
    except ValueError as error:
        raise ValueError(f"{str(file)!r}: {error}") from error
    write_recording(out, rate, np.stack(again, axis=1).reshape(samples.shape) * scale + middle, samples.dtype)


def write_cause_maps(
    output: Output, fitted: Run, paths: Sequence[Path], out: Path, step: int | None, force: bool
) -> None:
    """Write the causes of patches on a grid of each image: a table with positions, an array, or maps as PNG files.

    A csv or parquet table has the columns file, row and column, of the upper left pixel of each patch. A npy or npz
    file has one map per cause: (rows, columns, components), which needs a single image. A folder gets a grey PNG file
    for each image and component, from black (the smallest value in any image) to white.
    """
    files, _ = files_of(paths)
    maps, places = [], []
    for file in files:
        causes, tops, lefts = _causes_on_grid(fitted, file, step)
        maps.append(causes)
        places.append((tops, lefts))
    names, n_patches = component_names(fitted.model), sum(causes.shape[0] * causes.shape[1] for causes in maps)
    if not out.suffix:
        low, high = min(causes.min() for causes in maps), max(causes.max() for causes in maps)
        file_names = [f"{n:05d}-{file.stem}-{name}.png" for n, file in enumerate(files) for name in sortable(names)]
        with new_folder(out, force=force, files=file_names) as folder:
            images = (causes[:, :, h] for causes in maps for h in range(len(names)))
            for name, values in zip(file_names, images, strict=True):
                write_image(folder / name, (values - low) / ((high - low) or 1))
        output.say(f"{len(file_names)} maps of causes, from {low:.4g} (black) to {high:.4g} (white): {out}")
        output.result(out=str(out), maps=len(file_names), black=float(low), white=float(high))
        return
    check_ending(out, WRITTEN_TABLES)
    if suffix_of(out) in ARRAYS:
        if len(maps) > 1:
            raise ValueError(
                f"A {out.suffix} file holds the maps of one image, and there are {len(maps)}. Write a csv or parquet "
                "file, or leave the suffix out for a folder of PNG files."
            )
        write_table(out, maps[0])
    else:
        rows = np.concatenate([causes.reshape(-1, causes.shape[2]) for causes in maps])
        sizes = [causes.shape[0] * causes.shape[1] for causes in maps]
        grids = [np.stack(np.meshgrid(tops, lefts, indexing="ij"), -1) for tops, lefts in places]
        corners = np.concatenate([grid.reshape(-1, 2) for grid in grids])
        others = {
            "file": np.repeat([str(file) for file in files], sizes),
            "row": corners[:, 0],
            "column": corners[:, 1],
        }
        write_table(out, rows, names, others)
    output.say(f"Causes of {n_patches} patches: {out}")
    output.result(out=str(out), shape=list(maps[0].shape) if len(maps) == 1 else [n_patches, len(names)])


def _causes_on_grid(fitted: Run, file: Path, step: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the causes (rows, columns, H) of patches on a grid, and the pixels of its rows and columns."""
    shape, reading = _patch_shape(fitted), fitted.reading
    try:
        patches, tops, lefts = patches_at(
            read_grey(file)[0], shape, scale=reading.scale, step=min(shape) if step is None else step
        )
    except ValueError as error:
        raise ValueError(f"{str(file)!r}: {error}") from error
    rows = patches.reshape(len(tops) * len(lefts), -1)
    parts = [rows[start : start + AT_ONCE].astype(reading.dtype) for start in range(0, len(rows), AT_ONCE)]
    with errors_in_options(fitted.model):
        causes = np.concatenate([np.asarray(fitted.model.transform(part)) for part in parts])
    return causes.reshape(len(tops), len(lefts), -1), tops, lefts


def _patch_shape(fitted: Run) -> tuple[int, int]:
    shape = fitted.reading.patches
    assert shape is not None
    return shape
