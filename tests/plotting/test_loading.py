"""matplotlib is loaded by the first plot and not before; if it is missing, the error gives advice."""

from __future__ import annotations

from tests.processes import run


def test_the_module_does_not_load_matplotlib() -> None:
    assert run("""
    import json, sys
    import summula
    functions = [summula.plotting.decision_regions, summula.plotting.convergence, summula.plotting.fitted_mean]
    print(json.dumps(len(functions) == 3 and not {"matplotlib", "pandas", "polars", "numba"} & set(sys.modules)))
    """)


def test_without_matplotlib_one_sentence_gives_advice() -> None:
    output = run("""
    import json, sys
    sys.modules["matplotlib"] = None
    from summula.linear_model import LogisticRegression
    from summula.plotting import convergence, decision_regions, fitted_mean
    X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]], [0, 1, 0, 1]
    model = LogisticRegression().fit(X, y)
    messages = []
    for draw in (lambda: decision_regions(model, X, y), lambda: convergence(model), lambda: fitted_mean(model, X, y)):
        try:
            draw()
        except ImportError as error:
            messages.append(str(error))
    print(json.dumps(messages))
    """)
    assert output == ["Plots need matplotlib, which is not installed: pip install matplotlib."] * 3
