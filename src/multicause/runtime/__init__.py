"""Execution of programs: threads, compilation cache, interruption and paths."""
