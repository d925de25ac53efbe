"""Model files that are damaged in every way: are all refused in one clear sentence, and is none of them run?

``python -m benchmarks.damaged_files [files] [seed]`` changes random bytes, truncates, puts a pickle in place, and,
harder, changes random values of the header and computes the checksum anew, as somebody with bad intentions would. Such
a file may be a valid model by chance; it must not end in any other error than that of a file that is no model.
"""

import json
import os
import pickle
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import multicause
from multicause import EnergyComponents, HelmholtzMachine, MaximalCauses, PrincipalComponents
from multicause.datasets import make_bars
from multicause.persistence import ModelFileError, container

FILES = 200
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


def main(files: int, seed: int) -> bool:
    """Print what became of the files; says whether all went well."""
    random, outcomes, bad = np.random.RandomState(seed), Counter(), []
    images = make_bars(40, size=3, noise="poisson", random_state=0).data
    models = [
        MaximalCauses(3, noise="poisson", max_iter=5, random_state=0).fit(images),
        PrincipalComponents(2, random_state=0).fit(images),
        HelmholtzMachine(3, max_iter=2, random_state=0).fit((images > 0).astype(float)),
        EnergyComponents(3, max_iter=10, whiten=None, random_state=0).fit(images),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path, trace = Path(folder) / "model", Path(folder) / "trace"
        for kind in ("bytes changed", "truncated", "pickle", "forged"):
            for number in range(files):
                models[number % len(models)].save(path)
                damaged(kind, path, random, trace)
                try:
                    multicause.load(path)
                    outcomes[kind, "a model"] += 1
                    if kind != "forged":
                        bad.append(f"{kind}: was loaded")
                except ModelFileError as error:
                    outcomes[kind, "refused"] += 1
                    if "\n" in str(error):
                        bad.append(f"{kind}: more than one line: {error}")
                except BaseException as error:  # what must not happen
                    bad.append(f"{kind}: {type(error).__name__}: {error}")
                if trace.exists():
                    bad.append(f"{kind}: code was run")
                    trace.rmdir()
    for (kind, outcome), number in outcomes.items():
        print(f"{kind:15s} {outcome:8s} {number:5d}")
    print(*bad[:20], f"all well: {not bad}", sep="\n")
    return not bad


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(not main(*numbers, *[FILES, 0][len(numbers) :]))
