"""Input of estimators: conversion of rows and targets in any container to a source.

Reading order: `given` (the arguments), `validation` (arrays, frames, sparse matrices, names of columns) with
`scan_columns` (columns of files) and `transformed_scan` (files after a transformer), `finiteness` (missing and infinite
values), `tracked_rows` (hashes of training rows), `argument_values` (values of parameters and arguments).
"""
