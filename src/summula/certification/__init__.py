"""Bounds on the true risk of models, from held-out data.

Reading order: `holdout` (certify, certify_best, compare), `rows` (the loss of every row), `records` (certificates as
objects and text), `fingerprints` (hashes of models and rows), `monitor` (risk over time), `thresholds` (Neyman-Pearson
thresholds).
"""

from summula.certification.holdout import certify, certify_best, compare
from summula.certification.monitor import RiskMonitor
from summula.certification.records import Comparison, RiskCertificate, RiskVerification
from summula.certification.thresholds import NPThreshold, np_threshold

__all__ = [
    "Comparison",
    "NPThreshold",
    "RiskCertificate",
    "RiskMonitor",
    "RiskVerification",
    "certify",
    "certify_best",
    "compare",
    "np_threshold",
]
