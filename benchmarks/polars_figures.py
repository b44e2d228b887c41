"""The figures that polars can compute of a trace `index,start_us,end_us` with 512 B a write."""

import sys

import polars as pl

THRESHOLD_US = 50_000
BLOCK_BYTES = 512
BIN_BYTES = 25_000

trace = pl.read_csv(sys.argv[1])
time_us = trace["end_us"] - trace["start_us"]
percentiles = [time_us.quantile(q) for q in (0.5, 0.9, 0.99, 0.999, 0.9999)]
print("writes", len(time_us), "mean", time_us.mean(), "min", time_us.min(), "max", time_us.max())
print("percentiles", percentiles)
print("average B/s", len(time_us) * BLOCK_BYTES * 1e6 / time_us.sum())

slow = pl.DataFrame({"index": trace["index"], "time_us": time_us}).with_columns(
    peak=pl.col("time_us") > THRESHOLD_US
)
starts = slow.filter(pl.col("peak") & ~pl.col("peak").shift(1).fill_null(False))
spacing_bytes = (starts["index"].diff() * BLOCK_BYTES).drop_nulls()
mode = (spacing_bytes // BIN_BYTES).mode()[0] * BIN_BYTES + BIN_BYTES // 2
print("peaks", len(starts), "median spacing", spacing_bytes.median(), "mode", mode)
print("median height", starts["time_us"].median())
