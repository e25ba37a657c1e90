"""Kernel machines: one dual problem behind SVC, SVR and OneClassSVM.

Reading order: `solver` (the dual, and its solution by large working sets), `smo_kernels` (the steps), `kernel_matrix`
(blocks and cached rows of the kernel matrix), `direct` (an interior-point method for slow cases), `far_columns` (linear
kernels of columns far from 0), `hard_margin` (whether a hard margin exists), `certificate`,
`kernel_machine` (the base class of the estimators).
"""
