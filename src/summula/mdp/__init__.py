"""Markov decision processes. Names are loaded on first use (PEP 562).

Reading order: `process` (the problem), `markov` (the public class), `solvers`, `simulation`, `counts`, `learning`; then
continuous states: `grids`, `discretization`, `linear_dynamics`, `fitted_value_iteration`.
"""

from summula.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "counts": "TransitionCounts",
        "discretization": "Discretization discretize",
        "fitted_value_iteration": "FittedValueIteration",
        "grids": "Grid",
        "learning": "Learned learn",
        "linear_dynamics": "LinearDynamics",
        "markov": "MDP",
        "results": "HorizonSolution MDPSolution",
        "simulation": "Trajectories discounted_return",
        "solvers.evaluation": "PolicyValue",
    },
)
