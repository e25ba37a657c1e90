"""The program `summula`; if packages of the command line are missing, it prints what to install."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

_NEEDED = ("typer", "rich", "jinja2")


def main() -> None:
    """Run the command line."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(f"Error: the command line needs {', '.join(missing)}: pip install {' '.join(missing)}\n")
        sys.exit(2)
    try:
        from summula.cli.app import main as run

        run()
    except KeyboardInterrupt:  # during imports, before a command starts
        sys.stderr.write("Error: Stopped by Ctrl-C before anything was finished; nothing was written.\n")
        sys.exit(130)
