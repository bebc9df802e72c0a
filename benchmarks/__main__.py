"""Runs every benchmark and writes its tables to `benchmarks/results`, as JSON and Markdown."""

from . import heat, spatial_unet, speed, step_time, windows

for benchmark in (step_time, windows, heat, spatial_unet, speed):
    for table in benchmark.tables():
        table.show()
        table.write()
