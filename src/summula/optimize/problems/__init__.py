"""Functions to minimise and solutions of constrained problems: `objective`, `quadratics`, `multipliers`."""
