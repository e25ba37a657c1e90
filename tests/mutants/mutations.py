"""Deliberate bugs, each with the tests that have to find it, most of them of the contract suite."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One edit of the library, and a selection of tests of which at least one has to fail."""

    name: str
    file: str  # under src/summula
    old: str  # occurs exactly once
    new: str
    tests: str  # a file of tests/contract, or the path of another one from tests/, with a slash in front
    select: str  # what pytest's -k gets


MUTATIONS = [
    Mutation(
        "merging other classes puts sums into the wrong places",
        "core/estimator/additive.py",
        "regrouped(theirs, places[1], len(classes))",
        "regrouped(theirs, np.arange(len(places[1])), len(classes))",
        "test_additivity.py",
        "different_classes_merge and GaussianNB",
    ),
    Mutation(
        "partial_fit ignores classes=",
        "core/estimator/additive.py",
        "with self._fitting(X, y, sample_weight, reset=first, classes=known) as run:",
        "with self._fitting(X, y, sample_weight, reset=first) as run:",
        "test_additivity.py",
        "named_before_their_rows_come and GaussianNB",
    ),
    Mutation(
        "priors are ignored",
        "core/estimator/classifier.py",
        "    if model.priors is None:\n",
        "    if True:\n",
        "test_parameters.py",
        "every_parameter and GaussianNB",
    ),
    Mutation(
        "sums by class are taken about 0",
        "core/estimator/additive.py",
        "pilot_origins(chunk, n_classes))",
        "0 * pilot_origins(chunk, n_classes))",
        "test_weights_and_rows.py",
        "far_from_zero and GaussianNB and small",
    ),
    Mutation(
        "weights of rows in groups are rooted",
        "core/numerics/grouped.py",
        "else weight.astype(np.float64)",
        "else np.sqrt(weight.astype(np.float64))",
        "test_weights_and_rows.py",
        "weight_equals_repetitions and GaussianNB and small",
    ),
    Mutation(
        "the last chunk of a part is dropped",
        "core/numerics/statistics.py",
        "    for chunks in part.by_step():\n",
        "    for chunks in list(part.by_step())[: max(1, -(-len(part) // part.step) - 1)]:\n",
        "test_streams.py",
        "every_grid and StandardScaler",
    ),
    Mutation(
        "a merged classifier keeps its old labels",
        "core/estimator/additive.py",
        "        self.classes_ = classes\n",
        "",
        "test_additivity.py",
        "different_classes_merge and GaussianNB",
    ),
    Mutation(
        "forgetting adds rows",
        "core/numerics/sums.py",
        "return self._combined(other, _subtracted)",
        "return self._combined(other, _added)",
        "test_additivity.py",
        "forgotten and StandardScaler and small",
    ),
    Mutation(
        "moments move to another origin in the wrong direction",
        "core/numerics/statistics.py",
        "total=self.total - shift * self.weight, square=square)",
        "total=self.total + shift * self.weight, square=square)",
        "test_additivity.py",
        "two_sets_of_rows and StandardScaler and small",
    ),
    Mutation(
        "the prior is left out of the joint density",
        "naive_bayes/gaussian_nb.py",
        "np.log(self.class_prior_[k]) + columns",
        "columns",
        "test_certificate.py",
        "states_the_objective and GaussianNB and small",
    ),
    Mutation(
        "variances are a hundredth too large",
        "naive_bayes/normal_columns.py",
        "np.where(unseen, spread, variance) + eps, eps)",
        "1.01 * np.where(unseen, spread, variance) + eps, eps)",
        "test_certificate.py",
        "states_the_objective and GaussianNB and small",
    ),
    Mutation(
        "a failed fit leaves attributes behind",
        "core/estimator/estimator.py",
        "        self._restore(before, fitted)\n",
        "",
        "test_whole_or_nothing.py",
        "failed_first_fit and GaussianNB",
    ),
    Mutation(
        "a certificate confirms anything",
        "core/estimator/certificates.py",
        "return bool(abs(value - self.primal) <= rounding and gap <= self.gap + rounding)",
        "return True",
        "test_certificate.py",
        "other_data_do_not and GaussianNB and small",
    ),
    Mutation(
        "a later part replaces the earlier ones",
        "core/estimator/additive.py",
        "self._use_sums(sums if before is None else before.merge(sums), run.source.weighted)",
        "self._use_sums(sums, run.source.weighted)",
        "test_additivity.py",
        "one_part_after_the_other and GaussianNB and small",
    ),
    Mutation(
        "sums that are not finite are accepted",
        "core/estimator/run.py",
        "if not self._rows_are_finite and not self._is_complete(total):",
        "if False:",
        "test_whole_or_nothing.py",
        "failed_first_fit and LinearRegression",
    ),
    Mutation(
        "one row is added to every class",
        "core/estimator/classifier.py",
        "return np.asarray(weights / weights.sum())",
        "return np.asarray((weights + 1) / (weights + 1).sum())",
        "test_certificate.py",
        "states_the_objective and GaussianNB and small",
    ),
    Mutation(
        "weights of files are passed over",
        "core/estimator/input/scan_columns.py",
        "        targets,\n        sample_weight,\n",
        "        targets,\n        None,\n",
        "test_streams.py",
        "every_grid and StandardScaler",
    ),
    Mutation(
        "curvature of a likelihood has the wrong sign",
        "losses/likelihoods.py",
        "(square + (mu - y) * bend) / V",
        "(square - (mu - y) * bend) / V",
        "/test_losses.py",
        "derivatives_of_the_value",
    ),
    Mutation(
        "curvature of the inverse Gaussian loss is halved",
        "losses/log_links.py",
        "v * (2.0 * y * v - 1.0)",
        "v * (y * v - 0.5)",
        "/test_losses.py",
        "derivatives_of_the_value",
    ),
    Mutation(
        "sample weights of likelihoods are dropped",
        "linear_model/glm/sums.py",
        "return chunk.positive, chunk.positive.weight",
        "return chunk.positive, None",
        "test_certificate.py",
        "states_the_objective and PoissonRegressor and small",
    ),
    Mutation(
        "leaves may have one row fewer than min_samples_leaf",
        "tree/exact/scan_kernels.py",
        "return max(start, min(end, first - least))",
        "return max(start, min(end, first - least + 1))",
        "/tree/test_decision_tree.py",
        "tree_is_that_of_scikit_learn and min_samples_leaf",
    ),
    Mutation(
        "intercepts of kernel machines have the wrong sign",
        "svm/dual/solver.py",
        "return -float(f[free].mean())",
        "return float(f[free].mean())",
        "/svm/test_dual.py",
        "support_of_libsvm",
    ),
    Mutation(
        "certificates of kernel machines confirm any objective",
        "svm/dual/certificate.py",
        "same = bool(found.feasible and abs(found.primal - self.primal) <= rounding)",
        "same = True",
        "test_certificate.py",
        "documented_one and SVR and not Linear",
    ),
    Mutation(
        "labels of k-means are those before the last step",
        "cluster/lloyd.py",
        "    sums = _pass(run, now, state, None)\n    trace.append(sums.inertia)\n    labels = _outside(now, state)\n",
        "    labels = _outside(now, state)\n    sums = _pass(run, now, state, None)\n    trace.append(sums.inertia)\n",
        "/cluster/test_k_means.py",
        "passes_are_those_of_lloyd",
    ),
]
