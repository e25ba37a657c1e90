"""Solvers of Markov decision processes.

Reading order: `backup_kernels` and `bounds` (Bellman's operator, and bounds on the optimal values), `value_iteration`,
`evaluation` (of a policy), `policy_iteration`, `episodic` (processes that end, without discount), `verification`.
"""
