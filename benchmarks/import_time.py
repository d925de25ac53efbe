"""What ``import multicause`` adds to ``import sklearn``."""

import subprocess
import sys
from statistics import median


def seconds(code):
    """Median time of a statement in fresh interpreters that have imported scikit-learn."""
    script = f"import sklearn, time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    return median(float(run.stdout) for run in runs)


def main():
    print("after import sklearn:")
    print(f"  import multicause                     {seconds('import multicause'):6.3f} s (target: below 0.5)")
    print(f"  from multicause import MaximalCauses  {seconds('from multicause import MaximalCauses'):6.3f} s")
    print(f"  of which import jax                   {seconds('import jax'):6.3f} s\n")
