"""The list of open nodes, which may still be split, of exact trees and trees of forests."""

from __future__ import annotations

from typing import Any

from summula.core.compilation.compile import internal_kernel

__all__ = ["next_open"]


@internal_kernel
def next_open(nodes: Any, open_nodes: Any, parameters: Any) -> int:
    """Remove and return the node to split next: the last one, or that of the largest improvement."""
    at = parameters.n_open - 1
    if parameters.best_first:
        for k in range(parameters.n_open):
            ahead = nodes[open_nodes[k]].improvement - nodes[open_nodes[at]].improvement
            if ahead > 0.0 or (ahead == 0.0 and open_nodes[k] < open_nodes[at]):
                at = k
    number = open_nodes[at]
    parameters.n_open -= 1
    open_nodes[at] = open_nodes[parameters.n_open]
    return number  # type: ignore[no-any-return]
