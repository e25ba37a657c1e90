"""Measure Summula against the libraries a user would pick instead: `python -m benchmarks [NAME...]`.

command     the command line
threads     the same two threads for everybody
workload    what is measured: a contender, a fit on shared data
registry    the families of workloads, one file each
runner      paired rounds, ratios, verdicts
memory      peak memory of one contender, in a process of its own
machine     what the numbers were measured on
page        benchmarks/results.json and docs/benchmarks.md
"""
