"""How long an iteration takes on a Dask cluster, from measured costs of one machine.

``python -m benchmarks.cluster_costs`` prints the table of docs/how_to/cluster.md:

    seconds = rows / (workers · rows per second) + round trip + bytes of statistics · log₂(workers) / bandwidth

The round trip grows with the number of workers, because the scheduler handles one task for each.
"""

from math import log2

# A worker with one core, LinearCauses(100) with H'=5 and γ=3 on 100 features in single precision, on a machine with two
# cores that other processes used, too: python -m benchmarks.engines dask
ROWS_PER_SECOND = 338_000
# Seconds of one round trip with one worker, and for each further worker: python -m benchmarks.engines scheduler
# (21 ms for one, 33 ms for 10, 114 ms for 100 and 999 ms for 1000 workers).
ROUND_TRIP, ROUND_TRIP_PER_WORKER = 0.021, 0.00098
# Sums that one worker sends for this model: 2·H·D numbers in double precision and a few more.
BYTES_OF_STATISTICS = 160_848
# Assumed, not measured: a network of 10 Gbit/s, in bytes per second.
BANDWIDTH = 1.25e9
BYTES_PER_ROW = 400
ROWS = (10**8, 10**9, 10**10)
WORKERS = (10, 100, 1000)


def seconds_of_iteration(n_rows: float, n_workers: int) -> tuple[float, float, float]:
    """Return the seconds of computing, of the round trip and of sending statistics."""
    computing = n_rows / (n_workers * ROWS_PER_SECOND)
    round_trip = ROUND_TRIP + (n_workers - 1) * ROUND_TRIP_PER_WORKER
    return computing, round_trip, BYTES_OF_STATISTICS * log2(n_workers) / BANDWIDTH


def table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| rows | workers | computing | round trip | statistics | an iteration | efficiency | rows of a worker |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for n_rows in ROWS:
        for n_workers in WORKERS:
            parts = seconds_of_iteration(n_rows, n_workers)
            computing, round_trip, sending = parts
            lines.append(
                f"| {n_rows:,} | {n_workers} | {computing:.2f} s | {round_trip:.2f} s | {1000 * sending:.1f} ms "
                f"| {sum(parts):.2f} s | {computing / sum(parts):.0%} "
                f"| {n_rows / n_workers * BYTES_PER_ROW / 2**30:.2f} GiB |"
            )
    return "\n".join(lines)


def main() -> None:
    print(table())


if __name__ == "__main__":
    main()
