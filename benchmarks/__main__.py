"""The command `python -m benchmarks`."""

from benchmarks.threads import pin_threads

pin_threads()  # before anything imports NumPy

from benchmarks.command import main  # noqa: E402

main()
