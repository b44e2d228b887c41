"""Times the query of docs/scale.md on a million synthetic results in 1,000 files.

usage: python3 sweep_query.py FOLDER
"""

import pathlib
import random
import sys
import time

import duckdb
import pyarrow
import pyarrow.parquet

CARDS, FILES_PER_CARD, ROWS_PER_FILE = 10, 100, 1000
RUNS = 5

QUERY = """
select card, board, policy, rate_hz, buffer_bytes, count(*) as runs, count_if(lost) as losses,
       max(peak_backlog_bytes) as peak_backlog_bytes
from read_parquet('{folder}/results/*/*.parquet', hive_partitioning = true,
                  hive_types = {{'card': varchar}})
group by all
order by all
"""


def write(folder):
    random.seed(18)
    for card in range(CARDS):
        partition = folder / f"results/card=synthetic-{card}"
        partition.mkdir(parents=True)
        for part in range(FILES_PER_CARD):
            rows = ROWS_PER_FILE
            peaks = [random.randrange(1000, 200_000) for _ in range(rows)]
            buffers = [1 << random.randrange(12, 18) for _ in range(rows)]
            first = (card * FILES_PER_CARD + part) * rows
            integers = lambda value, kind: pyarrow.array([value] * rows, kind)
            table = pyarrow.table(
                {
                    "mode": ["card"] * rows,
                    "member": integers(0, pyarrow.int32()),
                    "board": ["esp32"] * rows,
                    "policy": ["stream"] * rows,
                    "rate_hz": pyarrow.array([860 << part % 3] * rows, pyarrow.int32()),
                    "sample_bytes": integers(100, pyarrow.int32()),
                    "buffer_bytes": buffers,
                    "run_s": integers(86_400, pyarrow.int64()),
                    "seed": list(range(first, first + rows)),
                    "task": list(range(first, first + rows)),
                    "lost": [peak > buffer for peak, buffer in zip(peaks, buffers)],
                    "lost_samples": pyarrow.nulls(rows, pyarrow.int64()),
                    "peak_backlog_bytes": peaks,
                }
            )
            number = card * FILES_PER_CARD + part
            pyarrow.parquet.write_table(table, partition / f"part-{number:05}.parquet", compression="none")


def main():
    folder = pathlib.Path(sys.argv[1])
    write(folder)
    for _ in range(RUNS):
        begun_s = time.perf_counter()
        rows = duckdb.connect().sql(QUERY.format(folder=folder)).fetchall()
        elapsed_s = time.perf_counter() - begun_s
        total = sum(row[4] for row in rows)
        assert total == CARDS * FILES_PER_CARD * ROWS_PER_FILE
        print(f"{total} results, {len(rows)} groups: {elapsed_s:.3f} s")


main()
