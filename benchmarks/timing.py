"""The clock of all benchmarks."""

from statistics import median
from time import perf_counter


def milliseconds(function, *, repeats=30):
    """Median time of a call after one call for warm-up; the call must wait for its result."""
    function()
    times = []
    for _ in range(repeats):
        started = perf_counter()
        function()
        times.append(perf_counter() - started)
    return 1e3 * median(times)
