"""Measures the Python package: threads, overhead per call, tables, and sweeps on Dask.

usage: python3 python_package.py FOLDER [PART...]

FOLDER holds scratch files. The package must be installed from a release build. Parts: threads, overhead, tables, cluster,
scheduling; all of them by default.
"""

import hashlib
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy
import pyarrow
import pyarrow.parquet

import cardiograph

ROWS = 10_000_000
PAIRS = 5
EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "docs/examples/sweep.toml"


def seconds(function):
    begun_s = time.perf_counter()
    function()
    return time.perf_counter() - begun_s


def row(name, values, unit):
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"| {name} | {middle:.3g} {unit} | {low:.3g} to {high:.3g} |", flush=True)


def threads():
    def one():
        for seed in range(4):
            cardiograph.simulate(workload="magod2", seed=seed, progress=False)

    def two():
        both = [threading.Thread(target=one) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()

    one()
    row("two threads of simulate over one", [2 * seconds(one) / seconds(two) for _ in range(PAIRS)], "times")


def overhead():
    def call():
        try:
            cardiograph.record(rate_hz=0)
        except ValueError:
            pass

    row("call that is refused", [seconds(lambda: [call() for _ in range(1000)]) for _ in range(PAIRS)], "ms")


def tables(folder):
    path = folder / "rows.parquet"
    if not path.exists():
        latencies = numpy.random.default_rng(18).integers(500_000, 3_000_000, ROWS)
        ends = numpy.cumsum(latencies)
        table = pyarrow.table(
            {
                "operation": numpy.zeros(ROWS, "i8"),
                "file": numpy.zeros(ROWS, "u4"),
                "offset": numpy.arange(ROWS) * 512,
                "length": numpy.full(ROWS, 512),
                "start_ns": ends - latencies,
                "end_ns": ends,
            }
        )
        cardiograph.write_trace(table, path)
    pyarrow.set_cpu_count(1)
    ratios = []
    for _ in range(PAIRS):
        ours = seconds(lambda: cardiograph.read(path, progress=False).to_pandas())
        theirs = seconds(lambda: pyarrow.parquet.read_table(path, use_threads=False).to_pandas(use_threads=False))
        print(f"| pandas frame of {ROWS} rows | {ours:.2f} s, pyarrow {theirs:.2f} s | |", flush=True)
        ratios.append(ours / theirs)
    row("pandas frame over pyarrow's, one thread each", ratios, "times")


def digest(folder):
    """Returns a hash of all results."""
    paths = sorted(folder.glob("results/*/*.parquet"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def cluster(folder):
    """The example sweep with one and with two workers, in turn."""
    from distributed import Client, LocalCluster

    times_s, results = {}, set()
    for _ in range(3):
        for workers in (1, 2):
            options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
            with LocalCluster(n_workers=workers, **options) as local, Client(local) as client:
                out = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "results"
                run = lambda: cardiograph.sweep(EXAMPLE, out, client=client, progress=False)
                times_s.setdefault(workers, []).append(seconds(run))
                results.add(digest(out))
    assert len(results) == 1, "the results differ"
    ratios = [one / two for one, two in zip(times_s[1], times_s[2])]
    row("two workers over one", ratios, "times")
    row("sweep with two workers", times_s[2], "s")


def sleep(_):
    time.sleep(0.5)


def scheduling():
    """10,000 tasks of 0.5 s on four threads of two workers: the ideal time is 1,250 s."""
    from distributed import Client, LocalCluster

    count, threads_per_worker = 10_000, 2
    options = {"threads_per_worker": threads_per_worker, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=2, **options) as local, Client(local) as client:
        client.gather(client.map(sleep, range(2 * threads_per_worker), pure=False))
        elapsed_s = seconds(lambda: client.gather(client.map(sleep, range(count), pure=False)))
    ideal_s = count * 0.5 / (2 * threads_per_worker)
    share = 100 * (elapsed_s / ideal_s - 1)
    threads = 2 * threads_per_worker
    print(f"| {count} tasks of 0.5 s on {threads} threads | {elapsed_s:.1f} s, ideal {ideal_s:.1f} s: {share:.1f} % | |", flush=True)


if __name__ == "__main__":
    scratch = pathlib.Path(sys.argv[1])
    scratch.mkdir(parents=True, exist_ok=True)
    print("| quantity | median | range |\n|---|---|---|")
    parts = {
        "threads": threads,
        "overhead": overhead,
        "tables": lambda: tables(scratch),
        "cluster": lambda: cluster(scratch),
        "scheduling": scheduling,
    }
    for name in sys.argv[2:] or parts:
        parts[name]()
