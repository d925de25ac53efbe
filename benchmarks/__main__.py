"""Run all benchmarks on one core and print their tables."""

import os

# One core for everything, decided before any library starts its threads.
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

from benchmarks import exact_iteration, import_time  # noqa: E402

if __name__ == "__main__":
    import_time.main()
    exact_iteration.main()
