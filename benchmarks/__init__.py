"""Benchmarks of Summula against the libraries a user would otherwise choose: `python -m benchmarks [NAME...]`.

command     the command line
threads     the same number of threads for all contenders
workload    definitions: contenders, and fits on shared data
registry    the families of workloads, one file each
runner      paired rounds, ratios, verdicts
memory      peak memory of one contender, in a separate process
machine     description of the machine
page        benchmarks/results.json and docs/benchmarks.md
"""
