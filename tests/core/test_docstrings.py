"""Docstrings that are completed from base classes, and copies of `__init__` with other defaults."""

import importlib
import inspect

import pytest
from sklearn.base import clone

from summula.core.docstrings import inherit_docs, with_defaults
from summula.ensemble import ExtraTreesClassifier, RandomForestClassifier

PACKAGES = [
    "cluster", "decomposition", "discriminant_analysis", "dummy", "ensemble", "kernel_approximation", "kernel_ridge",
    "linear_model", "mixture", "naive_bayes", "neighbors", "svm", "tree",
]  # fmt: skip


class Base:
    """Base.

    Parameters
    ----------
    b : int
        Of the base.
    a : int
        Of the base.

    Attributes
    ----------
    n_ : int
    """

    def __init__(self, a=1, *, b=2):
        self.a, self.b = a, b

    def fit(self, X):
        """Fit.

        Parameters
        ----------
        X : array

        Returns
        -------
        self
        """
        return self


@inherit_docs()
class Child(Base):
    """Child.

    Parameters
    ----------
    b : float
        Of the child.

    References
    ----------
    A book.
    """

    __init__ = with_defaults(Base.__init__, b=3)

    def fit(self, X):
        """Fit the child."""
        return super().fit(X)


def test_parameters_are_inherited_in_the_order_of_the_signature():
    assert Child.__doc__ == (
        "Child.\n\nParameters\n----------\na : int\n    Of the base.\nb : float\n    Of the child.\n\n"
        "Attributes\n----------\nn_ : int\n\nReferences\n----------\nA book.\n"
    )
    assert Child.fit.__doc__ == "Fit the child.\n\nParameters\n----------\nX : array\n\nReturns\n-------\nself\n"
    assert "Of the child" not in Base.__doc__


def test_defaults_differ_from_those_of_the_base():
    assert (Child().b, Base().b, Child(b=7).b) == (3, 2, 7)
    assert str(inspect.signature(Child)) == "(a=1, *, b=3)"
    assert ExtraTreesClassifier().get_params() == {**RandomForestClassifier().get_params(), "bootstrap": False}
    assert clone(ExtraTreesClassifier(bootstrap=True)).bootstrap


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_of_an_estimator_is_documented(package):
    module = importlib.import_module(f"summula.{package}")
    public = [getattr(module, name) for name in module.__all__]  # some are loaded on first use
    estimators = [one for one in public if inspect.isclass(one) and hasattr(one, "fit")]
    assert estimators
    for cls in estimators:
        section = inspect.getdoc(cls).split("\nAttributes\n")[0]
        listed = {n for line in section.split("\n") for n in line.partition(" :")[0].replace("*", "").split(", ")}
        missing = [name for name in inspect.signature(cls).parameters if name not in listed]
        assert not missing, (cls.__name__, missing)
