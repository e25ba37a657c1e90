"""The proximal step of the elastic net in compiled loops."""

from __future__ import annotations

from summula.core.compilation.compile import internal_kernel

__all__ = ["proximal_step"]


@internal_kernel
def proximal_step(z: float, l1: float, curvature: float, positive: bool) -> float:
    """Return S(z, l1) / curvature, equation (2) of `penalty.py`; the curvature includes the L2 penalty."""
    if z > l1:
        return (z - l1) / curvature
    if z < -l1 and not positive:
        return (z + l1) / curvature
    return 0.0
