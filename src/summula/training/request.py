"""Options of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """The options of a training run; `summula.train` documents them."""

    target: str
    time: float = 60.0
    models: list[str] | None = None
    metric: str | None = None
    costs: Any = None
    delta: float = 0.05
    seed: int = 0
    task: str | None = None
    holdout: float = 0.2
    groups: str | None = None
    time_column: str | None = None
    class_weight: Any = None
    drop: tuple[str, ...] = ()
    stream: bool = False
    debug: bool = False
    command: str = ""

    @property
    def key_columns(self) -> set[str]:
        """Columns that say how rows are held out, and are no features."""
        return {name for name in (self.groups, self.time_column) if name is not None}
