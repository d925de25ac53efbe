"""Run all benchmarks on one core and print their tables."""

import benchmarks.one_core  # noqa: F401
from benchmarks import classical_family, energy_update, exact_iteration, import_time, truncated_iteration

if __name__ == "__main__":
    import_time.main()
    exact_iteration.main()
    truncated_iteration.main()
    energy_update.main()
    classical_family.main()
