"""One core for everything: to be imported before any library starts its threads."""

import os

os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
