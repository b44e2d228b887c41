"""Traces: formats, tables, figures, errors; compared with the command, pandas, pyarrow, polars, DuckDB and pyulog."""

import math
import os
import signal
import threading
import time

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import cardiograph

COLUMNS = ["operation", "file", "offset", "length", "start_ns", "end_ns"]


@pytest.fixture(scope="module")
def trace():
    return cardiograph.simulate()


@pytest.fixture(scope="module")
def parquet(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "t.parquet"
    cardiograph.write_trace(trace, path)
    return path


def test_a_simulated_trace_is_that_of_the_command(trace, command, tmp_path):
    path = tmp_path / "command.parquet"
    code, _, err = command("bench", "--trace", path, "--quiet")
    assert code == 0, err
    expected = pyarrow.parquet.read_table(path)
    assert trace.to_arrow().to_pydict() == expected.to_pydict()
    assert (trace.kind, trace.target) == ("trace", "sim:team-8g@esp32")


def test_all_readers_see_the_same_table(trace, parquet):
    expected = pandas.read_parquet(parquet)
    assert list(expected.columns) == COLUMNS
    pandas.testing.assert_frame_equal(trace.to_pandas(), expected, check_dtype=False)
    frame = polars.DataFrame(trace)
    assert frame.equals(polars.read_parquet(parquet).cast(frame.schema))
    arrow_table = pyarrow.table(trace)
    total = duckdb.sql("select sum(end_ns - start_ns), count(*) from arrow_table").fetchall()
    assert total == [(int((expected.end_ns - expected.start_ns).sum()), len(trace))]


@pytest.mark.parametrize("rows", [1, 4095, 4096, 4097, 70_000])
def test_tables_have_the_rows_that_were_written(rows, tmp_path):
    seed = 18 + rows
    print(f"seed {seed}")
    random = numpy.random.default_rng(seed)
    # One file, then three in turn, then random places, then random blocks; some operations and pauses last longer than
    # 2^32 ns.
    part = numpy.arange(rows) * 4 // max(rows, 1)
    spans = random.integers(0, 10_000, 2 * rows)
    spans[random.integers(0, 2 * rows, rows // 500)] += 1 << 33
    times = numpy.cumsum(spans)
    sequence = numpy.arange(rows) // 3 * 512
    places, blocks = random.integers(0, 1 << 40, rows), 512 * random.integers(0, 1 << 32, rows)
    columns = {
        "operation": numpy.where(part == 2, random.integers(0, 2, rows), 0).astype("int32"),
        "file": numpy.where(part == 1, 5 + numpy.arange(rows) % 3, part).astype("uint32"),
        "offset": numpy.where(part == 2, places, numpy.where(part == 3, blocks, sequence)),
        "length": numpy.full(rows, 512),
        "start_ns": times[::2],
        "end_ns": times[1::2],
    }
    expected = pandas.DataFrame(columns)
    path = tmp_path / "t.parquet"
    cardiograph.write_trace(expected, path)
    trace = cardiograph.read(path)
    frame = trace.to_pandas()
    pandas.testing.assert_frame_equal(frame, expected)
    pandas.testing.assert_frame_equal(trace.to_arrow().to_pandas(), expected)
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), expected, check_dtype=False)
    # The frame is the caller's own.
    frame.loc[:, "file"] = 0
    pandas.testing.assert_frame_equal(trace.to_pandas(), expected)


def test_arrow_tables_share_memory(trace):
    first, second = pyarrow.table(trace), pyarrow.table(trace)
    address = lambda table: table["start_ns"].chunk(0).buffers()[1].address
    assert address(first) == address(second)
    # The tables outlive the trace.
    copy = pyarrow.table(cardiograph.simulate(seed=2))
    assert copy.num_rows == len(trace)


def test_every_format_gives_the_rows_that_the_command_converts(data, command, tmp_path):
    seen = 0
    for path in sorted((data / "traces").iterdir()):
        out = tmp_path / f"{path.name}.parquet"
        code, _, err = command("analyze", path, "--trace", out, "--quiet")
        if code != 0 or "interval" in err:
            with pytest.raises(cardiograph.CardiographError):
                if cardiograph.read(path).kind == "trace":
                    raise AssertionError(path)
                raise cardiograph.CardiographError
            continue
        trace = cardiograph.read(path)
        if trace.kind == "trace":
            assert trace.to_arrow().to_pydict() == pyarrow.parquet.read_table(out).to_pydict(), path
            seen += 1
    assert seen >= 5


@pytest.mark.parametrize("name", ["traces/fio_lat.log", "magod/f2_1.csv", "foreign/fio_plus.json"])
def test_analyze_gives_the_figures_of_the_command(data, figures, name):
    assert cardiograph.analyze(data / name) == figures("analyze", data / name)


def test_analyze_a_trace_in_memory(trace, parquet):
    in_memory, on_disk = cardiograph.analyze(trace), cardiograph.analyze(parquet)
    assert in_memory["latency_us"] == on_disk["latency_us"]
    assert in_memory["stalls"] == on_disk["stalls"]
    latencies_us = (trace.to_pandas().eval("end_ns - start_ns") / 1000).sort_values()
    median = latencies_us.iloc[math.ceil(len(latencies_us) / 2) - 1]
    assert in_memory["latency_us"]["median"] == pytest.approx(median, rel=0.008)
    higher = cardiograph.analyze(trace, stall_threshold_us=1e9)
    assert higher["stalls"]["count"] == 0 < in_memory["stalls"]["count"]


def test_a_recording_has_its_gaps(data):
    recording = cardiograph.read(data / "magod/f2_1.csv")
    cadence = cardiograph.analyze(data / "magod/f2_1.csv")["cadence"]
    assert recording.kind == "recording"
    assert recording.samples == cadence["samples"] == len(recording) + 1
    assert recording.gaps == cadence["gaps"]
    intervals_us = recording.to_pandas().eval("end_ns - start_ns") / 1000
    late = intervals_us > 1.5 * intervals_us.median()
    assert late.sum() == cadence["late_samples"]


def test_ulog_times_are_those_of_pyulog(data, command, tmp_path):
    from pyulog import ULog

    path = tmp_path / "r.ulg"
    code, _, err = command("export", data / "recordings/REC00002.BIN", "--ulog", path)
    assert code == 0, err
    recording = cardiograph.read(path)
    datasets = ULog(str(path)).data_list
    counts = [len(dataset.data["timestamp"]) for dataset in datasets]
    assert recording.samples in counts
    times = datasets[counts.index(recording.samples)].data["timestamp"].astype("int64")
    intervals_ns = recording.to_pandas().eval("end_ns - start_ns").to_numpy()
    assert (numpy.diff(times) * 1000 == intervals_ns).all()


def test_compare_and_plan_give_the_figures_of_the_command(parquet, figures, tmp_path):
    other = tmp_path / "other.parquet"
    cardiograph.write_trace(cardiograph.simulate(target="sim:kingston-8g@esp32"), other)
    assert cardiograph.compare(parquet, other) == figures("compare", parquet, other)
    logger = ("--rate", 8, "--sample-bytes", 81, "--for", "1h", "--buffer", "16KiB")
    expected = figures("plan", parquet, *logger)
    assert cardiograph.plan(parquet, rate_hz=8, sample_bytes=81, run_s=3600, buffer_bytes=16384) == expected


def test_plan_of_a_simulated_card_gives_the_figures_of_the_command(figures):
    card = "sim:class10-16g@esp32"
    expected = figures("plan", card, "--rate", 8, "--sample-bytes", 81)
    seen = []
    planned = cardiograph.plan(card, rate_hz=8, sample_bytes=81, progress=lambda *steps: seen.append(steps))
    assert planned == expected
    assert (seen[0], seen[-1]) == ((0, 1), (1, 1))


@pytest.mark.parametrize("policy", ["stream", "naive", "keep-open", "after-session"])
def test_record_gives_the_figures_of_the_command(figures, policy):
    # A card that loses samples with every policy.
    card = "sim:class10-16g@esp32"
    settings = {"target": card, "rate_hz": 3000, "run_s": 2, "buffer_bytes": 4096, "policy": policy, "seed": 3}
    mine = cardiograph.record(settings)
    expected = figures(
        "record", card, "--rate", 3000, "--for", "2s", "--buffer", "4KiB", "--policy", policy, "--seed", 3
    )
    assert mine == expected
    assert mine["samples_lost"] == sum(gap["samples"] for gap in mine["gaps"]) > 0


def test_bench_measures_a_directory_and_removes_its_files(tmp_path):
    trace = cardiograph.bench(tmp_path, workload="byte-single-write", io="buffered", stop_after_s=20)
    assert len(trace) > 0 and list(tmp_path.iterdir()) == []
    assert cardiograph.analyze(trace)["writes"] == len(trace)


def test_a_trace_of_pandas_or_polars_is_written_and_read_again(trace, tmp_path):
    frame = trace.to_pandas()
    for name, table in [("a.parquet", frame), ("b.parquet", polars.from_pandas(frame)), ("c.csv", frame)]:
        path = tmp_path / name
        cardiograph.write_trace(table, path, target="mine")
        again = cardiograph.read(path)
        pandas.testing.assert_frame_equal(again.to_pandas(), frame)
        assert again.target == "mine" or name.endswith("csv")
    with pytest.raises(cardiograph.CardiographError, match="already exists.* replace it with force=True$"):
        cardiograph.write_trace(frame, tmp_path / "a.parquet")
    cardiograph.write_trace(frame, tmp_path / "a.parquet", force=True)


def test_a_trace_is_written_with_the_given_target_and_workload(trace, tmp_path):
    for number, (given, expected) in enumerate(
        [
            ({}, (trace.target, trace.workload)),
            ({"target": "mine"}, ("mine", trace.workload)),
            ({"target": "mine", "workload": "own"}, ("mine", "own")),
        ]
    ):
        path = tmp_path / f"{number}.parquet"
        cardiograph.write_trace(trace, path, **given)
        again = cardiograph.read(path)
        assert (again.target, again.workload) == expected
        assert again.to_arrow() == trace.to_arrow()
    # The trace itself has not changed.
    assert cardiograph.simulate().target == trace.target


def test_a_recording_and_a_table_without_rows_are_not_written(trace, data, tmp_path):
    recording = cardiograph.read(data / "magod/f2_1.csv")
    rows = trace.to_arrow()
    consumed = pyarrow.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    consumed.read_all()
    for table, message in [
        (recording, "table is a recording, and a trace cannot hold its gaps"),
        (rows.slice(0, 0), "table has no rows"),
        (trace.to_pandas().iloc[:0], "table has no rows"),
        (consumed, "table "),
    ]:
        with pytest.raises(cardiograph.CardiographError, match=f"^{message}"):
            cardiograph.write_trace(table, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: pandas.concat([frame, frame.file], axis=1), "the table has two columns file|Duplicate column"),
        (lambda frame: pyarrow.table([frame.file] * 7, names=[*COLUMNS, "file"]), "the table has two columns file"),
        (lambda frame: frame.assign(end_ns=[2**70] * len(frame)), "table cannot be read"),
        (lambda frame: frame.drop(columns="file"), "the table has no column file"),
        (lambda frame: frame.assign(start_ns=frame.start_ns[::-1].to_numpy()), "sort the rows by start_ns"),
        (lambda frame: frame.assign(operation=7), "row 0: operation is 7; use 0 for a write and 1 for a read"),
        (lambda frame: frame.assign(offset=-5), "row 0: offset is -5"),
        (lambda frame: frame.assign(end_ns=numpy.uint64(2**64 - 1)), "row 0: end_ns is 18446744073709551615; use"),
        (lambda frame: frame.assign(file=0.5), "the column file must contain whole numbers"),
    ],
)
def test_tables_that_are_no_traces_are_refused(trace, tmp_path, change, message):
    with pytest.raises(cardiograph.CardiographError, match=message):
        cardiograph.write_trace(change(trace.to_pandas()), tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_errors_are_the_sentences_of_the_command(command, tmp_path, data):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "words.csv").write_text("hello\nworld\n")
    for path in [tmp_path / "none.csv", *sorted(tmp_path.iterdir()), tmp_path]:
        with pytest.raises(cardiograph.CardiographError) as raised:
            cardiograph.analyze(path)
        code, _, err = command("analyze", path)
        assert (code, err) == (2, f"error: {raised.value}\n"), path
    with pytest.raises(ValueError, match="use analyze, which returns its figures"):
        cardiograph.read(data / "foreign/fio_plus.json")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cardiograph.simulate(seed=-1), f"seed is -1; use a whole number from 0 to {2**64 - 1}"),
        (lambda: cardiograph.simulate(seed=2**64), f"seed is {2**64}; use a whole number from 0 to {2**64 - 1}"),
        (lambda: cardiograph.simulate(seed=1.5), "seed is 1.5; use a whole number"),
        (lambda: cardiograph.simulate(seed=True), "seed is True; use a whole number"),
        (lambda: cardiograph.simulate(seed=None), "seed is None; use a whole number"),
        (lambda: cardiograph.simulate(target=None), "target is None; use a text"),
        (lambda: cardiograph.simulate(7), "config is 7; use a dict of settings"),
        (lambda: cardiograph.simulate([]), "config is []; use a dict of settings"),
        (lambda: cardiograph.simulate(progress="x"), "progress is 'x'; use True, False or a callable"),
        (lambda: cardiograph.simulate(target="\ud800"), "target is '\\ud800'; use a text"),
        (lambda: cardiograph.read("\ud800"), "path is '\\ud800'; use characters that UTF-8 can encode"),
        (lambda: cardiograph.read("x.csv", time_column=0), "time_column is 0; use the name of a column, or its number:"),
        (lambda: cardiograph.read("x.csv", latency_column=0), "columns are counted from 1"),
        (lambda: cardiograph.write_trace(cardiograph.simulate(), "x.csv", target=5), "target is 5; use a text"),
        (lambda: cardiograph.write_trace(cardiograph.simulate(), "x.csv", workload=None), "workload is None; use a text"),
        (lambda: cardiograph.write_trace(cardiograph.simulate(), "x.csv", force="x"), "force is 'x'; use True or False"),
        (lambda: cardiograph.simulate().plot("x"), "axes is 'x'; use the axes of a matplotlib figure"),
        (lambda: cardiograph.record(run_s=math.nan), "run_s is nan; use a number from 0.001 to 320000000"),
        (lambda: cardiograph.record(run_s=1e300), "run_s is 1e300; use a number"),
        (lambda: cardiograph.record(run_s=10**5000), "run_s is a value of type int; use a number"),
        (lambda: cardiograph.record(rate_hz=-1), "rate_hz is -1; use a whole number from 1 to 1000000"),
        (lambda: cardiograph.record(rate_hz="1"), "rate_hz is '1'; use a whole number from 1 to 1000000"),
        (lambda: cardiograph.plan("x.csv", rate_hz="1", sample_bytes=1), "rate_hz is '1'; use a number"),
        (lambda: cardiograph.plan("x.csv", rate_hz=1, sample_bytes=-1), "sample_bytes is -1; use a whole number"),
        (lambda: cardiograph.plan("x.csv", rate_hz=1, sample_bytes=1, run_s=math.inf), "run_s is inf; use a number"),
        (lambda: cardiograph.read("x.csv", block_bytes=-1), "block_bytes is -1; use a whole number from 1 to"),
        (lambda: cardiograph.read(None), "path is None; use a path"),
        (lambda: cardiograph.read("x.csv", time_column=-1), "time_column is -1; use the name of a column"),
        (lambda: cardiograph.bench("/", stop_after_s=math.nan), "stop_after_s is nan; use a number"),
        (lambda: cardiograph.write_trace(None, "x.csv"), "table is None; use a Trace"),
        (lambda: cardiograph.write_trace(pandas.DataFrame({"file": [1, "a"]}), "x.csv"), "table cannot be read"),
        (lambda: cardiograph.simulate(target="sim:floppy"), 'there is no card named "floppy"; choose one of'),
        (lambda: cardiograph.simulate(target="/tmp"), "is no simulated card; name one as sim:CARD@BOARD"),
        (lambda: cardiograph.simulate(workload="none"), "no workload named none; choose one of"),
        (lambda: cardiograph.simulate(speed=3), "simulate has no setting `speed`; use target, workload, seed"),
        (lambda: cardiograph.record(rate_hz=0), "rate_hz is 0; use a whole number from 1 to 1000000"),
        (lambda: cardiograph.record(rate=860), "record has no setting `rate`; use target, rate_hz"),
        (lambda: cardiograph.record(rate_hz="fast"), "rate_hz is 'fast'; use a whole number"),
        (lambda: cardiograph.record(buffer_bytes=1), "buffer_bytes is 1; use a whole number from 1024 to"),
        (lambda: cardiograph.record(rate_hz=100_000), "reduce rate_hz or sample_bytes, or use a board with a faster"),
        (lambda: cardiograph.record(run_s=1e6), "fit on this card; reduce run_s, or use a larger card"),
        (lambda: cardiograph.record(policy="magic"), "policy is magic; use stream, naive"),
        (lambda: cardiograph.plan("sim:class10-16g@esp32", rate_hz=-1, sample_bytes=1), "rate_hz is -1"),
        (lambda: cardiograph.plan("sim:class10-16g@esp32-s3-sd4", rate_hz=1, sample_bytes=1), "needs SPI"),
        (lambda: cardiograph.bench("/no/such/place"), "/no/such/place: no such directory; create it"),
        (lambda: cardiograph.bench("/", io="fast"), "io: fast is unknown"),
        (lambda: cardiograph.compare("one.csv"), "compare needs at least two traces"),
        (lambda: cardiograph.read("x.csv", block_bytes=0), "block_bytes is 0; use a whole number from 1 to 1073741824"),
        (lambda: cardiograph.read("x.csv", time_unit="h"), "time_unit is h; use s, ms, us or ns"),
        (lambda: cardiograph.analyze("x.csv", stall_threshold_us=-1), "stall_threshold_us is -1"),
    ],
)
def test_bad_arguments_name_the_field_and_the_remedy(call, message):
    with pytest.raises(cardiograph.CardiographError) as raised:
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_threads_run_meanwhile():
    ticks = []
    is_over = threading.Event()

    def tick():
        while not is_over.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    cardiograph.record(run_s=600, progress=False)
    ended = time.monotonic()
    is_over.set()
    thread.join()
    # With the GIL held, no tick would fall into the call.
    assert sum(begun < at < ended for at in ticks) >= 3


def test_ctrl_c_ends_a_long_call():
    pid = os.getpid()
    timer = threading.Timer(0.5, lambda: os.kill(pid, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cardiograph.record(run_s=7_000_000, rate_hz=10, progress=False)
    timer.join()


def test_ctrl_c_ends_a_plan_of_an_ensemble():
    handled = []

    def interrupt(done, total):
        # The first report is that of no planned members.
        if not handled:
            handled.append((done, total))
            os.kill(os.getpid(), signal.SIGINT)
        # The handler has raised KeyboardInterrupt before a plan that goes on gets here.
        assert (done, total) != (total, total), "the plan was not stopped"

    with pytest.raises(KeyboardInterrupt):
        cardiograph.plan("sim:generic-16g-class10@esp32", rate_hz=860, sample_bytes=100, progress=interrupt)
    ((done, total),) = handled
    assert done == 0 < 1 < total


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A trace whose figures take seconds."""
    rows = 3_000_000
    random = numpy.random.default_rng(18)
    ends = numpy.cumsum(random.integers(1_000, 2_000_000, rows))
    frame = pandas.DataFrame(dict.fromkeys(COLUMNS, 0), index=range(rows))
    frame["offset"], frame["length"] = numpy.arange(rows) * 512, 512
    frame["start_ns"], frame["end_ns"] = numpy.append(0, ends[:-1]), ends
    path = tmp_path_factory.mktemp("large") / "t.parquet"
    cardiograph.write_trace(frame, path)
    return path


@pytest.mark.parametrize(
    "call",
    [
        lambda path, f: cardiograph.analyze(path, progress=f),
        lambda path, f: cardiograph.compare(path, path, progress=f),
        lambda path, f: cardiograph.plan(path, rate_hz=8, sample_bytes=81, progress=f),
    ],
    ids=["analyze", "compare", "plan"],
)
def test_ctrl_c_ends_the_computation_after_a_large_file_was_read(large, call):
    reports = []

    def interrupt(done, total):
        reports.append((done, total))
        # A computation that cannot be stopped reports its end only, and once.
        if reports.count((total, total)) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        call(large, interrupt)
    assert reports == sorted(reports)


@pytest.mark.parametrize("name", ["w.parquet", "w.csv"])
def test_ctrl_c_ends_write_trace_and_leaves_no_file(large, tmp_path, name):
    trace = cardiograph.read(large)
    pid = os.getpid()
    timer = threading.Timer(0.2, lambda: os.kill(pid, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cardiograph.write_trace(trace, tmp_path / name)
    timer.join()
    assert list(tmp_path.iterdir()) == []


def short_calls(parquet):
    spec = {
        "mode": "card",
        "cards": ["kingston-8g"],
        "rates_hz": [860],
        "sample_bytes": 100,
        "buffers_bytes": [4096],
        "run_s": 60,
        "seeds": 1,
    }
    return {
        "read": lambda folder, f: cardiograph.read(parquet, progress=f),
        "analyze": lambda folder, f: cardiograph.analyze(parquet, progress=f),
        "compare": lambda folder, f: cardiograph.compare(parquet, parquet, progress=f),
        "plan": lambda folder, f: cardiograph.plan(parquet, rate_hz=8, sample_bytes=81, progress=f),
        "simulate": lambda folder, f: cardiograph.simulate(progress=f),
        "record": lambda folder, f: cardiograph.record(run_s=1, progress=f),
        "policy": lambda folder, f: cardiograph.record(run_s=1, policy="keep-open", progress=f),
        "bench": lambda folder, f: cardiograph.bench(folder, workload="byte-single-write", io="buffered", progress=f),
        "sweep": lambda folder, f: cardiograph.sweep(spec, folder / "sweep", progress=f),
    }


CALLS = ["read", "analyze", "compare", "plan", "simulate", "record", "policy", "bench", "sweep"]


@pytest.mark.parametrize("name", CALLS)
def test_progress_ends_at_its_total(name, parquet, tmp_path):
    seen = []
    short_calls(parquet)[name](tmp_path, lambda done, total: seen.append((done, total)))
    assert all(0 <= done <= total for done, total in seen)
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize("name", CALLS)
def test_exceptions_of_progress_end_the_call(name, parquet, tmp_path):
    seen = []

    def stop(done, total):
        seen.append(done)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        short_calls(parquet)[name](tmp_path, stop)
    # The first exception ends it.
    assert len(seen) == 1


def test_progress_is_reported_in_order():
    seen = []
    cardiograph.record(run_s=600, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 2 and all(0 <= done <= total for done, total in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        cardiograph.record(run_s=7_000_000, rate_hz=10, progress=stop)


def test_plots_have_a_point_per_operation(trace):
    import matplotlib

    matplotlib.use("Agg")
    axes = trace.plot()
    assert len(axes.lines[0].get_xdata()) == len(trace)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("bytes before the operation in MB", "latency in ms")
    assert trace.plot(axes) is axes


def test_a_plot_of_a_recording_shows_intervals_over_time(data):
    import matplotlib

    matplotlib.use("Agg")
    recording = cardiograph.read(data / "magod/f2_1.csv")
    axes = recording.plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time of the sample in s", "interval in ms")
    frame = recording.to_pandas()
    times_s = frame.eval("end_ns - start_ns").cumsum() / 1e9
    assert axes.lines[0].get_xdata()[-1] == pytest.approx(times_s.iloc[-1])
