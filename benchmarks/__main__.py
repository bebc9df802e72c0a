"""Runs every benchmark and writes its tables to `benchmarks/results`, as JSON and Markdown."""

from . import speed, step_time

for benchmark in (step_time, speed):
    for table in benchmark.tables():
        table.show()
        table.write()
