"""Random command lines: ``python -m benchmarks.command_lines --trials 500 --jobs 2``.

Words are drawn from commands, files of all kinds, options and values that suit them, do not suit them, or are nonsense.
A line passes if it succeeds (0), or if it is refused (2) by one line that begins with "Error:"; no traceback, no
"unexpected", and with --json nothing but one JSON object on the standard output. Everything else is printed with the
seed that repeats it.
"""

import argparse
import json
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from benchmarks.side_by_side import add_options, run_side_by_side
from multicause.app.cli.commands import app
from multicause.app.cli.models import MODELS

# Command lines that are run one after the other.
LINES_OF_A_TASK = 25
NONSENSE = ("", "-1", "0", "nan", "1e999", "ü", "a,b", "../..", "[x]", "10x", "None", "true")
# Files that most models take.
GOOD = ("rows.npy", "binary.npy", "table.csv", "image.png")
# Options of fit, with values of which most are valid.
OPTIONS: dict[str, tuple[str, ...]] = {
    "--model": (*MODELS, "other"),
    "--components": ("1", "2", "3", "2,3"),
    "--noise": ("gaussian", "poisson", "bernoulli", "diagonal_gaussian", "pink"),
    "--posterior": ("exact", "truncated", "preselected", "beam"),
    "--iterations": ("1", "2"),
    "--starts": ("1", "2"),
    "--seed": ("0", "1"),
    "--set": ("tol=0", "tol=x", "annealing=null", "init=data", "posterior__max_active=1", "nothing", "x=1"),
    "--patches": ("2x2", "4x4", "99x99"),
    "--count": ("5", "20"),
    "--scale": ("1", "10"),
    "--image-shape": ("2x2", "5x5"),
    "--sound": ("spectrogram", "waveform", "smell"),
    "--frames": ("1", "2"),
    "--dtype": ("float32", "float64", "int"),
    "--memory": ("1GiB", "1", "64MiB"),
    "--drop": ("a", "zzz", "a,b"),
    "--index": ("a", "0", "none"),
    "--array": ("rows", "0"),
    "--sep": (",", ";"),
    "--n-jobs": ("1", "2"),
    "--devices": ("1", "9", "all"),
}


def make_files(folder: Path) -> list[Path]:
    """Write small files of all kinds, good and bad, and return their paths."""
    random = np.random.RandomState(0)
    rows = random.poisson(3.0, (12, 4)).astype(float)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "binary.npy", (rows > 3).astype(float))
    np.save(folder / "negative.npy", rows - 3)
    np.save(folder / "one_row.npy", rows[:1])
    np.save(folder / "text.npy", np.array([["a", "b"]]))
    np.save(folder / "nan.npy", np.where(rows > 5, np.nan, rows))
    np.savez(folder / "several.npz", rows=rows, other=rows[:, :2])
    text = "\n".join(",".join(f"{value:g}" for value in row) for row in rows)
    (folder / "table.csv").write_text("a,b,c,d\n" + text + "\n")
    (folder / "empty.csv").write_text("")
    (folder / "words.csv").write_text("a,b\nx,y\nz,w\n")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (folder / "noise.bin").write_bytes(random.bytes(100))
    from scipy.io import wavfile
    from skimage.io import imsave

    imsave(folder / "image.png", random.randint(0, 255, (8, 9)).astype(np.uint8), check_contrast=False)
    wavfile.write(folder / "sound.wav", 8000, random.randint(-999, 999, 2000).astype(np.int16))
    (folder / "folder").mkdir()
    run = CliRunner().invoke(
        app, ["fit", str(folder / "rows.npy"), "--model", "mixture", "--components", "2", "--out", str(folder / "run")]
    )
    if run.exit_code:
        raise RuntimeError(f"no run to draw from: {run.output}")
    return sorted(folder.iterdir())


def draw(random: np.random.RandomState, files: list[Path], out: Path) -> list[str]:
    """Return a random command line."""

    def one(words: tuple[str, ...]) -> str:
        return str(NONSENSE[random.randint(len(NONSENSE))] if random.uniform() < 0.04 else random.choice(words))

    good = [path for path in files if path.name in GOOD]
    names = (*map(str, files), *map(str, good * 4), str(out / "missing.npy"))
    run = str(next(path for path in files if path.name == "run"))
    command = one(("fit",) * 6 + ("transform", "reconstruct", "sample", "denoise", "inpaint", "report", "demos"))
    line = [command]
    if command in ("transform", "reconstruct", "sample", "report"):
        line.append(run if random.uniform() < 0.7 else one(names))
    if command in ("fit", "transform", "reconstruct", "denoise", "inpaint"):
        line += [one(names) for _ in range(1 + (random.uniform() < 0.1))]
    if random.uniform() < 0.9:
        ending = "" if command == "fit" else one((".npy", ".csv", ".png", ".xyz", ".wav"))
        line += ["--out", str(out / f"result{ending}")]
    if command == "fit":
        line += ["--iterations", "2", "--components", "2"]
        if random.uniform() < 0.7:
            line.append("--no-report")
    for option in random.choice(list(OPTIONS), random.randint(0, 4), replace=False):
        if command == "fit" or random.uniform() < 0.1:
            line += [str(option), one(OPTIONS[option])]
    if command in ("denoise", "inpaint"):
        line += ["--components", "2"] if random.uniform() < 0.3 else []
    return line + ["--json"] * (random.uniform() < 0.5)


def try_one(seed: int, files: list[Path]) -> str:
    """Return "succeeded", "refused", or what went wrong."""
    random = np.random.RandomState(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = draw(random, files, Path(folder))
        run = CliRunner().invoke(app, line)
    where = f"seed {seed}: multicause {' '.join(line)}\n  exit code {run.exit_code}"
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        return f"{where}: {type(run.exception).__name__}: {run.exception}"
    if run.exit_code not in (0, 2) or "Traceback" in run.output or "(unexpected;" in run.output:
        return f"{where}: {run.output[-500:]}"
    errors = [text for text in run.stderr.splitlines() if text.startswith("Error:")]
    if run.exit_code == 2 and len(errors) != 1:
        return f"{where} with {len(errors)} lines of errors: {run.output[-500:]}"
    if "--json" in line:
        try:
            json.loads(run.stdout)
        except ValueError:
            return f"{where}: standard output is not one JSON object: {run.stdout[-500:]}"
    return "succeeded" if run.exit_code == 0 else "refused"


def try_some(seeds: range) -> list[str]:
    """Return the results of several command lines, which share their files."""
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(Path(folder))
        return [try_one(seed, files) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=500)
    add_options(parser)
    arguments = parser.parse_args()
    last = arguments.seed + arguments.trials
    tasks = [range(first, min(first + LINES_OF_A_TASK, last)) for first in range(arguments.seed, last, LINES_OF_A_TASK)]
    tried = run_side_by_side(try_some, tasks, arguments.jobs, arguments.seconds)
    results = [result for _, some in tried for result in some]
    good = ("succeeded", "refused")
    print(*[result for result in results if result not in good], sep="\n")
    print(dict(Counter(result if result in good else "wrong" for result in results)))
    raise SystemExit(any(result not in good for result in results))


if __name__ == "__main__":
    main()
