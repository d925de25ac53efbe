"""Draws the pictures of tutorials and gallery: runs their examples in this folder, where they save what they draw."""

import os
import re
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent


def main() -> None:
    """Run all pages, each with names of its own."""
    matplotlib.use("Agg")
    os.chdir(HERE)
    for page in sorted([*HERE.parent.glob("tutorials/*.md"), *HERE.parent.glob("gallery/*.md")]):
        names: dict[str, object] = {}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            exec(compile(block, str(page), "exec"), names)


if __name__ == "__main__":
    main()
