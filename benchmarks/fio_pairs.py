#!/usr/bin/env python3
"""Compares `cardiograph bench` with fio: interleaved pairs in the same directory of a loop device.

    sudo python3 benchmarks/fio_pairs.py target/release/cardiograph [PAIRS [RESULTS]]

Needs fio, mkfs.ext4, and a file system with O_DIRECT below TMPDIR (/var/tmp). Both write 4 KiB with O_DIRECT at random offsets of a file of 64 MiB that was written before.
fio uses the engine psync and writes a latency log. Figures are computed from every latency of both, in the same way.
Each command runs in a session of its own: the scheduler shares the processors between sessions, and fio always begins a
new one. With RESULTS, each pair is a line of JSON in this file, and an interrupted comparison continues there.
Prints Markdown. The processor time is that of the whole command, with preparation; Cardiograph's includes reading the
file back, the analysis and the trace.
"""

import csv
import glob
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile

WRITES = 20_000
FILE_BYTES = 64 << 20
IMAGE_BYTES = 512 << 20
RANKS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}

WORKLOAD = f"""
name = "fio pairs"
[[phase]]
calls_per_file = {WRITES}
bytes_per_call = 4096
jump_within_bytes = {FILE_BYTES}
fill = "letter"
"""


def timed(command, **options):
    """Runs a command; returns its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, start_new_session=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_cardiograph(binary, medium, scratch):
    table = os.path.join(scratch, "own.csv")
    parquet = os.path.join(scratch, "own.parquet")
    workload = os.path.join(scratch, "pairs.toml")
    with open(workload, "w") as file:
        file.write(WORKLOAD)
    command = [binary, "bench", medium, "--workload", workload, "--io", "direct", "--for", "10min"]
    cpu_s = timed(command + ["--trace", parquet], stderr=subprocess.DEVNULL)
    subprocess.run([binary, "analyze", parquet, "--csv", table], check=True, stdout=subprocess.DEVNULL)
    with open(table) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        latencies_ns = [int(row["end_ns"]) - int(row["start_ns"]) for row in rows]
    os.remove(table)
    os.remove(parquet)
    return latencies_ns, cpu_s


def run_fio(medium, scratch):
    log = os.path.join(scratch, "fio")
    command = ["fio", "--name=pairs", f"--filename={medium}/fio.bin", "--rw=randwrite", "--norandommap", "--bs=4k"]
    command += ["--ioengine=psync", "--direct=1", "--overwrite=1", f"--size={FILE_BYTES}"]
    command += [f"--io_size={WRITES * 4096}", f"--write_lat_log={log}", "--randrepeat=1"]
    cpu_s = timed(command, cwd=scratch)
    os.remove(f"{medium}/fio.bin")
    (name,) = glob.glob(f"{log}_clat.*.log")
    with open(name) as file:
        latencies_ns = [int(line.split(",")[1]) for line in file]
    for name in glob.glob(f"{log}_*"):
        os.remove(name)
    return latencies_ns, cpu_s


def figures(latencies_ns, cpu_s):
    ordered = sorted(latencies_ns)
    assert len(ordered) == WRITES, len(ordered)
    at = {name: ordered[max(0, -(-len(ordered) * round(rank * 1000) // 1000) - 1)] / 1e3 for name, rank in RANKS.items()}
    return {"mean": statistics.fmean(ordered) / 1e3, **at, "processor time per write": cpu_s / WRITES * 1e6}


def measure(binary, pairs, wanted, scratch, results):
    """Adds pairs to the list until there are enough, and writes each of them to a file."""
    medium = os.path.join(scratch, "medium")
    image = os.path.join(scratch, "image")
    os.mkdir(medium)
    with open(image, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    # Without O_DIRECT below, the image's page cache would be written back during the run of whoever comes next.
    attach = ["losetup", "--find", "--show", "--direct-io=on", image]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        subprocess.run(["mount", device, medium], check=True)
    except subprocess.CalledProcessError:
        subprocess.run(["losetup", "--detach", device], check=True)
        raise
    try:
        for number in range(len(pairs), wanted):
            order = ["cardiograph", "fio"] if number % 2 == 0 else ["fio", "cardiograph"]
            pair = {"load": load()}
            for tool in order:
                run = run_fio(medium, scratch) if tool == "fio" else run_cardiograph(binary, medium, scratch)
                pair[tool] = figures(*run)
            pairs.append(pair)
            print(json.dumps(pair), file=results, flush=True)
    finally:
        subprocess.run(["umount", medium], check=True)
        subprocess.run(["losetup", "--detach", device], check=True)


def load():
    with open("/proc/loadavg") as file:
        return float(file.read().split()[0])


def spread(values):
    """Returns the median difference between consecutive runs."""
    return statistics.median(abs(a - b) for a, b in zip(values, values[1:]))


def main():
    # The disk is unmounted and detached on SIGTERM as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    binary = os.path.abspath(sys.argv[1])
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    pairs = []
    if len(sys.argv) > 3:
        results = open(sys.argv[3], "a+")
        results.seek(0)
        pairs = [json.loads(line) for line in results]
    else:
        results = sys.stderr
    if len(pairs) < wanted:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as scratch:
            measure(binary, pairs, wanted, scratch, results)
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    loads = [pair["load"] for pair in pairs]
    print(
        f"{len(pairs)} pairs of {WRITES} writes, {version}, load {min(loads)} to {max(loads)} (median "
        f"{statistics.median(loads):.2f}); times in us\n"
    )
    print("| figure | Cardiograph, median | fio, median | median difference within a pair | fio from run to run |")
    print("|---|---|---|---|---|")
    for name in pairs[0]["fio"]:
        own, other = ([pair[tool][name] for pair in pairs] for tool in ("cardiograph", "fio"))
        difference = statistics.median(a - b for a, b in zip(own, other))
        row = [statistics.median(own), statistics.median(other), difference, spread(other)]
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in row) + " |")


if __name__ == "__main__":
    main()
