"""Support vector machines.

Reading order: `svc` (the problem), `dual/` (its dual and how it is solved), `linear/` (linear machines on many rows).

>>> from summula.svm import SVC
>>> SVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0]).predict([[1.5], [3.5]])
array([1, 0])
"""

from summula.svm.gradient_ascent import dual_ascent
from summula.svm.linear_svc import LinearSVC
from summula.svm.linear_svr import LinearSVR
from summula.svm.margin_geometry import Margins, margins
from summula.svm.one_class_svm import OneClassSVM
from summula.svm.pegasos_svc import PegasosSVC
from summula.svm.svc import SVC
from summula.svm.svr import SVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "Margins", "OneClassSVM", "PegasosSVC", "dual_ascent", "margins"]
