"""Numerical helpers: precision, compilation, starts, indexing, rows, random numbers and memory sizes."""

from multicause.arrays.hardware import fastest_block, on_cpu, on_host, one_by_one
from multicause.arrays.indexing import add_by_index, indices_of_largest, rows_at, sum_by_index, sum_rows_at
from multicause.arrays.inverses import inverse_and_log_det
from multicause.arrays.kernels import largest_eigenvalue, largest_with_share, stored, sum_over_features
from multicause.arrays.memory_sizes import bytes_from, check_room
from multicause.arrays.precision import Array, double_precision, matmul, namespace, sum_in_double
from multicause.arrays.programs import Compiled, compiled, jit_by_parts
from multicause.arrays.random_numbers import generator, key_from
from multicause.arrays.rows import observed_data, relative
from multicause.arrays.starts import over_active, over_starts, select, starts_at_once

__all__ = [
    "Array",
    "Compiled",
    "add_by_index",
    "bytes_from",
    "check_room",
    "compiled",
    "double_precision",
    "fastest_block",
    "generator",
    "indices_of_largest",
    "inverse_and_log_det",
    "jit_by_parts",
    "key_from",
    "largest_eigenvalue",
    "largest_with_share",
    "matmul",
    "namespace",
    "observed_data",
    "on_cpu",
    "on_host",
    "one_by_one",
    "over_active",
    "over_starts",
    "relative",
    "rows_at",
    "select",
    "starts_at_once",
    "stored",
    "sum_by_index",
    "sum_in_double",
    "sum_over_features",
    "sum_rows_at",
]
