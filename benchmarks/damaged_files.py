"""Model files that are damaged in every way: are all refused in one clear sentence, and is none of them run?

``python -m benchmarks.damaged_files --trials 10000`` changes random bytes, truncates, puts a pickle in place, and,
harder, changes random values of the header and computes the checksum again, as somebody with bad intentions would, each
in a quarter of the files. A forged file may be a valid model by chance; it must not end in any other error than that of
a file that is no model.
"""

import argparse
import json
import os
import pickle
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import multicause
from benchmarks.side_by_side import add_options, run_side_by_side
from multicause import EnergyComponents, HelmholtzMachine, MaximalCauses, PrincipalComponents
from multicause.datasets import make_bars
from multicause.persistence import ModelFileError, container

KINDS = ("bytes changed", "truncated", "pickle", "forged")
# Files that are damaged one after the other, with one seed.
FILES_OF_A_TASK = 800
WORDS = [None, True, -1, 10**30, 1e308, "os:system", "multicause.__main__:main", "multicause.app.cli:main", [], {}]


class Bomb:
    """Unpickled, it would leave a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


def places(value: Any) -> list[tuple[Any, Any]]:
    """All containers inside a JSON value, with the keys of what they hold."""
    found = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += places(inner)
    return found


def damaged(kind: str, path: Path, random: np.random.RandomState, trace: Path) -> None:
    """Damage a file in one way."""
    content = path.read_bytes()
    if kind == "bytes changed":
        changed = bytearray(content)
        for place in random.choice(len(content), random.randint(1, 20), replace=False):
            changed[place] ^= random.randint(1, 256)
        path.write_bytes(changed)
    elif kind == "truncated":
        path.write_bytes(content[: random.randint(len(content))])
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb(trace), protocol=random.randint(0, 6)))
    else:
        header, arrays = container.read(path)
        everywhere = places(header)
        for _ in range(random.randint(1, 4)):
            holder, key = everywhere[random.randint(len(everywhere))]
            holder[key] = json.loads(json.dumps(WORDS[random.randint(len(WORDS))]))
        if random.randint(2):
            name = sorted(arrays)[random.randint(len(arrays))]
            arrays[name] = random.normal(size=tuple(random.randint(0, 5, size=random.randint(0, 4))))
        container.write(path, header, arrays)


def damage_some(task: tuple[int, int]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return how often files of each kind were refused, and what went wrong."""
    warnings.simplefilter("ignore")
    seed, n_files = task
    random, outcomes, wrong = np.random.RandomState(seed), Counter[tuple[str, str]](), []
    models = fitted_models()
    with tempfile.TemporaryDirectory() as folder:
        path, trace = Path(folder) / "model", Path(folder) / "trace"
        for number in range(n_files):
            kind = KINDS[number % len(KINDS)]
            models[number // len(KINDS) % len(models)].save(path)
            damaged(kind, path, random, trace)
            try:
                multicause.load(path)
                outcomes[kind, "a model"] += 1
                if kind != "forged":
                    wrong.append(f"{kind}: was loaded")
            except ModelFileError as error:
                outcomes[kind, "refused"] += 1
                if "\n" in str(error):
                    wrong.append(f"{kind}: more than one line: {error}")
            except BaseException as error:  # what must not happen
                wrong.append(f"{kind}: {type(error).__name__}: {error}")
            if trace.exists():
                wrong.append(f"{kind}: code was run")
                trace.rmdir()
    return outcomes, [f"seed {seed}, {text}" for text in wrong]


def fitted_models() -> list[Any]:
    """Return small models of all kinds."""
    images = make_bars(40, size=3, noise="poisson", random_state=0).data
    return [
        MaximalCauses(3, noise="poisson", max_iter=5, random_state=0).fit(images),
        PrincipalComponents(2, random_state=0).fit(images),
        HelmholtzMachine(3, max_iter=2, random_state=0).fit((images > 0).astype(float)),
        EnergyComponents(3, max_iter=10, whiten=None, random_state=0).fit(images),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=800, help="number of files")
    add_options(parser)
    arguments = parser.parse_args()
    sizes = [min(FILES_OF_A_TASK, arguments.trials - done) for done in range(0, arguments.trials, FILES_OF_A_TASK)]
    tasks = [(arguments.seed + number, size) for number, size in enumerate(sizes)]
    outcomes, wrong = Counter[tuple[str, str]](), []
    for _, (some, bad) in run_side_by_side(damage_some, tasks, arguments.jobs, arguments.seconds):
        outcomes += some
        wrong += bad
    for (kind, outcome), number in sorted(outcomes.items()):
        print(f"{kind:15s} {outcome:8s} {number:5d}")
    print(*wrong[:20], f"all well: {not wrong}", sep="\n")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
