"""Exit codes of commands, and errors as one sentence each.

    0    done
    1    an unexpected error: a bug
    2    the command line is wrong (unknown option, missing argument)
    3    the data or an option cannot be used as they are
    4    the model file is missing, damaged, foreign or of another version
    5    the output cannot be written (no right, disk full)
    6    time ran out before there was a first model
    130  stopped by Ctrl-C (what was finished is written)

Tracebacks are shown with --debug only.
"""

from __future__ import annotations

__all__ = [
    "BUG",
    "DATA",
    "DONE",
    "INTERRUPTED",
    "MODEL",
    "OUTPUT",
    "TIME",
    "CommandError",
    "code_of",
    "sentence_of",
]

DONE, BUG, USAGE, DATA, MODEL, OUTPUT, TIME, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130


class CommandError(Exception):
    """An error of a command: one sentence and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def code_of(error: BaseException) -> int:
    """Return the exit code of an error."""
    from summula.core.errors import DataError, ModelFileError, ParameterError, TimeLimitError

    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, ModelFileError):
        return MODEL
    if isinstance(error, TimeLimitError):
        return TIME
    if isinstance(error, DataError | ParameterError):
        return DATA
    return OUTPUT if isinstance(error, OSError) else BUG


def sentence_of(error: BaseException) -> str:
    """Return one sentence about an error, with a remedy."""
    from summula.core.errors import OutputError

    code = code_of(error)
    if code == INTERRUPTED:
        return "Stopped by Ctrl-C before anything was finished; nothing was written."
    if code == OUTPUT and isinstance(error, OSError) and not isinstance(error, OutputError):
        why = error.strerror or str(error)
        return (
            f"Reading or writing failed ({why}); no partial files are left: free disk space, or choose another folder."
        )
    if code == BUG:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return f"Internal error ({what}); run it again with --debug and report what it prints."
    sentence = " ".join(str(error).split())
    if "invalid UTF8" in sentence:
        return f"{sentence.rstrip('.')}; save the file in the encoding UTF-8."
    return sentence
