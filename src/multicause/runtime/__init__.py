"""How programs run: threads, the compilation cache and interruption."""
