"""How programs run: threads, the compilation cache, interruption, and names of files."""
