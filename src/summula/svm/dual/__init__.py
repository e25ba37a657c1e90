"""Kernel machines: one dual problem behind SVC, SVR and OneClassSVM.

Reading order: `solver` (the dual, and its solution by large working sets), `smo_kernels` (the steps), `kernel_matrix`
(blocks and cached rows of the kernel matrix), `direct` (an interior-point method for slow cases), `far_columns`
(linear kernels of columns far from 0), `definiteness` and `hard_margin` (whether a kernel is positive semidefinite,
and whether a hard margin exists), `certificate`, `machine_fit` (the solution of one machine), `kernel_machine` (the
base class of the estimators).
"""
