"""Saving and loading models: one safetensors file, no code in it.

The arrays of a model are safetensors tensors; everything else is one JSON text in the file's metadata
(`encoding.py` says how values become JSON, `model_file.py` how the file is written and checked).
Loading builds only the classes of the table `CLASSES`, from plain data: nothing is unpickled, evaluated, or
imported by a name the file chose. A SHA-256 digest over the text and every tensor finds a damaged or edited
file; it guards against accidents, it is not a signature. So the state of every class is checked against the schema
it declares (`core/model_files/schema.py`), when it is saved and when it is loaded. `docs/persistence.md` describes the
format.
"""

from __future__ import annotations

import os
from typing import Any

from summula._version import __version__
from summula.core.errors import ModelFileError
from summula.core.model_files.encoding import FAULTS, ForeignClassError, Reader, Tensor, Writer, refusal, short_name
from summula.core.model_files.model_file import FORMAT, canonical, digest, invalid, read_header, read_tensors, write
from summula.core.model_files.schema import Fault, check_state

__all__ = ["CLASSES", "load", "save"]

# The only classes a file can name: short name -> "module:name". Short names belong to the format: they stay.
CLASSES: dict[str, str] = {
    "linear_model.LinearRegression": "summula.linear_model:LinearRegression",
    "linear_model.Ridge": "summula.linear_model:Ridge",
    "linear_model.RidgeCV": "summula.linear_model:RidgeCV",
    "linear_model.PolynomialRegression": "summula.linear_model:PolynomialRegression",
    "linear_model.LogisticRegression": "summula.linear_model:LogisticRegression",
    "linear_model.LogisticRegressionCV": "summula.linear_model:LogisticRegressionCV",
    "linear_model.GeneralizedLinearRegressor": "summula.linear_model:GeneralizedLinearRegressor",
    "linear_model.PoissonRegressor": "summula.linear_model:PoissonRegressor",
    "linear_model.GammaRegressor": "summula.linear_model:GammaRegressor",
    "linear_model.TweedieRegressor": "summula.linear_model:TweedieRegressor",
    "linear_model.BayesianLogisticRegression": "summula.linear_model:BayesianLogisticRegression",
    "linear_model.ElasticNet": "summula.linear_model:ElasticNet",
    "linear_model.ElasticNetCV": "summula.linear_model:ElasticNetCV",
    "linear_model.Lasso": "summula.linear_model:Lasso",
    "linear_model.LassoCV": "summula.linear_model:LassoCV",
    "linear_model.SGDClassifier": "summula.linear_model:SGDClassifier",
    "linear_model.SGDRegressor": "summula.linear_model:SGDRegressor",
    "linear_model.Perceptron": "summula.linear_model:Perceptron",
    "linear_model.DescentCertificate": "summula.linear_model.sgd.certificate:DescentCertificate",
    "linear_model.DescentProblem": "summula.linear_model.sgd.certificate:DescentProblem",
    "linear_model.PerceptronCertificate": "summula.linear_model.perceptron:PerceptronCertificate",
    "linear_model.L1Certificate": "summula.linear_model.l1.problem:L1Certificate",
    "naive_bayes.GaussianNB": "summula.naive_bayes:GaussianNB",
    "naive_bayes.GaussianFit": "summula.naive_bayes.gaussian_nb:GaussianFit",
    "core.StatisticCertificate": "summula.core.estimator.certificates:StatisticCertificate",
    "core.Groups": "summula.core.numerics.sums:Groups",
    "preprocessing.StandardScaler": "summula.preprocessing:StandardScaler",
    "preprocessing.TableEncoder": "summula.preprocessing:TableEncoder",
    "preprocessing.TableModel": "summula.preprocessing:TableModel",
    "preprocessing.ColumnPlan": "summula.preprocessing:ColumnPlan",
    "cli.BaselineRegressor": "summula.cli.baseline:BaselineRegressor",
    "cli.BaselineClassifier": "summula.cli.baseline:BaselineClassifier",
    "ensemble.HistGradientBoostingClassifier": "summula.ensemble:HistGradientBoostingClassifier",
    "ensemble.HistGradientBoostingRegressor": "summula.ensemble:HistGradientBoostingRegressor",
    "tree.BinMap": "summula.tree.binning:BinMap",
    "tree.Nodes": "summula.tree.predictor:Nodes",
    "mixture.BernoulliMixture": "summula.mixture:BernoulliMixture",
    "mixture.BinomialMixture": "summula.mixture:BinomialMixture",
    "mixture.GaussianMixture": "summula.mixture:GaussianMixture",
    "features.PolynomialLift": "summula.features:PolynomialLift",
    "linear_model.Fit": "summula.linear_model.least_squares.problem:Fit",
    "linear_model.Given": "summula.linear_model.least_squares.model:Given",
    "linear_model.LeastSquaresCertificate": "summula.linear_model.least_squares.certificate:LeastSquaresCertificate",
    "linear_model.PolynomialCertificate": "summula.linear_model.polynomial_regression:PolynomialCertificate",
    "linear_model.GlmFit": "summula.linear_model.glm.solver:GlmFit",
    "linear_model.GlmCertificate": "summula.linear_model.glm.certificate:GlmCertificate",
    "linear_model.Quality": "summula.linear_model.glm.quality:Quality",
    "losses.BinaryCLogLog": "summula.losses:BinaryCLogLog",
    "losses.BinaryProbit": "summula.losses:BinaryProbit",
    "losses.FamilyLoss": "summula.losses:FamilyLoss",
    "losses.GammaLog": "summula.losses:GammaLog",
    "losses.Huber": "summula.losses:Huber",
    "losses.InverseGaussianLog": "summula.losses:InverseGaussianLog",
    "losses.Logistic": "summula.losses:Logistic",
    "losses.Multinomial": "summula.losses:Multinomial",
    "losses.NegativeBinomialLog": "summula.losses:NegativeBinomialLog",
    "losses.PoissonLog": "summula.losses:PoissonLog",
    "losses.Squared": "summula.losses:Squared",
    "losses.TweedieLog": "summula.losses:TweedieLog",
    "stats.families.Bernoulli": "summula.stats.families:Bernoulli",
    "stats.families.Binomial": "summula.stats.families:Binomial",
    "stats.families.Gamma": "summula.stats.families:Gamma",
    "stats.families.InverseGaussian": "summula.stats.families:InverseGaussian",
    "stats.families.Multinomial": "summula.stats.families:Multinomial",
    "stats.families.NegativeBinomial": "summula.stats.families:NegativeBinomial",
    "stats.families.Normal": "summula.stats.families:Normal",
    "stats.families.Poisson": "summula.stats.families:Poisson",
    "stats.families.Tweedie": "summula.stats.families:Tweedie",
    "stats.links.CLogLog": "summula.stats.links:CLogLog",
    "stats.links.Identity": "summula.stats.links:Identity",
    "stats.links.Inverse": "summula.stats.links:Inverse",
    "stats.links.InverseSquared": "summula.stats.links:InverseSquared",
    "stats.links.Log": "summula.stats.links:Log",
    "stats.links.Logit": "summula.stats.links:Logit",
    "stats.links.Probit": "summula.stats.links:Probit",
    "core.solution.Solution": "summula.core.numerics.solution:Solution",
    "core.statistics.Moments": "summula.core.numerics.statistics:Moments",
    "core.statistics.Gram": "summula.core.numerics.statistics:Gram",
    "core.statistics.TriangularFactor": "summula.core.numerics.statistics:TriangularFactor",
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to one safetensors file, whole or not at all.

    Parameters
    ----------
    model : estimator
        A Summula estimator, fitted or not. All it holds must be plain values, arrays or Summula objects.
    path : str or path
        Where to write. An existing file is replaced only once the new one is complete on disk.
    """
    cls = type(model)
    if not hasattr(cls, "get_params") or short_name(CLASSES, cls) is None:
        raise ModelFileError(refusal(cls.__name__, "", model))
    writer = Writer(cls.__name__, CLASSES)
    header: dict[str, Any] = {"format": FORMAT, "version": __version__, **writer.estimator(model, "", 0)}
    try:
        check_state(model)
    except Fault as fault:
        raise ModelFileError(
            f"{cls.__name__} cannot be saved, since it could not be loaded: {fault}; set that back, or fit again."
        ) from None
    header["digest"] = digest(header, writer.tensors)
    write(os.fsdecode(path), writer.tensors, canonical(header))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : estimator
        With the same class, parameters and fitted attributes, so the same predictions to the last bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is damaged, edited, foreign, a pickle, or written by a newer Summula.
    """
    name = os.fsdecode(path)
    header = read_header(name)
    tensors = read_tensors(name)
    try:
        intact = header.pop("digest", None) == digest(header, tensors)
    except FAULTS as error:
        raise invalid(name, error) from error
    if not intact:
        raise ModelFileError(
            f"'{name}' was edited or damaged after it was saved (its digest does not match): "
            "restore a copy or save the model again."
        )
    return _rebuild(name, header, tensors)


def _rebuild(path: str, header: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    reader = Reader(tensors, CLASSES)
    version = header.pop("version", None)
    try:
        model = reader.estimator({key: value for key, value in header.items() if key != "format"}, 0)
        if unused := tensors.keys() - reader.used:
            raise ValueError(f"nothing refers to the tensor {min(unused)!r}")
        check_state(model)
        return model
    except ForeignClassError as error:
        raise ModelFileError(
            f"'{path}' names the class {error.args[0]!r}, which Summula {__version__} does not load: "
            f"upgrade summula if a newer one wrote the file (it says {version!r}), else do not trust it."
        ) from None
    except FAULTS as error:
        raise invalid(path, error) from error
