"""Sweeps on this computer and on Dask: equal files, interruptions, errors, probabilities."""

import hashlib
import math
import os
import pathlib
import signal
import threading

import duckdb
import numpy
import pytest

import cardiograph

SPEC = {
    "mode": "card",
    "cards": ["class10-16g", "kingston-8g"],
    "rates_hz": [860, 3000],
    "sample_bytes": 100,
    "buffers_bytes": [4096, 65536],
    "run_s": 600,
    "seeds": 6,
    "seeds_per_task": 2,
}


def hashes(folder):
    paths = sorted(pathlib.Path(folder).glob("results/*/*.parquet"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def toml(spec):
    import json

    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in spec.items())


def test_the_answer_is_that_of_the_command_bit_for_bit(tmp_path, figures):
    (tmp_path / "s.toml").write_text(toml(SPEC))
    expected = figures("sweep", tmp_path / "s.toml", "-o", tmp_path / "command", "--quiet")
    mine = cardiograph.sweep(SPEC, tmp_path / "mine")
    assert mine.figures == expected
    assert hashes(tmp_path / "mine") == hashes(tmp_path / "command")
    files = f"{tmp_path}/mine/results/*/*.parquet"
    rows = duckdb.sql(f"select count(*), count(distinct card) from read_parquet('{files}')").fetchall()
    assert rows == [(2 * 2 * 2 * 6, 2)]


@pytest.mark.parametrize("kind", [numpy.int64, numpy.int32, numpy.uint16, numpy.uint64])
def test_whole_numbers_of_numpy_are_those_of_python(tmp_path, kind):
    def of_numpy(value):
        if isinstance(value, list):
            return [of_numpy(one) for one in value]
        return kind(value) if isinstance(value, int) else value

    small = {**SPEC, "buffers_bytes": [4096, 32768], "run_s": 10}
    expected = cardiograph.sweep(small, tmp_path / "python").figures
    given = {key: of_numpy(value) for key, value in small.items()}
    assert cardiograph.sweep(given, tmp_path / "numpy").figures == expected


def test_intervals_are_those_of_an_independent_computation(tmp_path):
    frame = cardiograph.sweep(SPEC, tmp_path / "r").to_pandas()
    assert len(frame) == 2 * 2 * 2

    def at_most(k, n, p):
        from math import comb

        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

    for row in frame.itertuples():
        if row.losses < row.runs:
            assert at_most(row.losses, row.runs, row.high) == pytest.approx(0.025)
        if row.losses > 0:
            assert 1 - at_most(row.losses - 1, row.runs, row.low) == pytest.approx(0.025)
        assert row.low == 0 or row.likely == row.losses / row.runs


def test_ctrl_c_keeps_what_is_done_and_the_next_call_continues(tmp_path):
    spec = {**SPEC, "run_s": 864_000, "seeds": 200, "seeds_per_task": 1}
    pid = os.getpid()
    timer = threading.Timer(1.0, lambda: os.kill(pid, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cardiograph.sweep(spec, tmp_path / "r")
    timer.join()
    short = {**SPEC, "seeds": 50, "seeds_per_task": 1}
    counted = []

    def stop(done, total):
        counted.append(done)
        if done >= 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError):
        cardiograph.sweep(short, tmp_path / "short", threads=1, progress=stop)
    kept = hashes(tmp_path / "short")
    cardiograph.sweep(short, tmp_path / "short")
    whole = hashes(tmp_path / "short")
    assert kept.items() <= whole.items()
    cardiograph.sweep(short, tmp_path / "again")
    assert whole == hashes(tmp_path / "again")


def test_an_error_that_is_kept_does_not_lock_the_folder(tmp_path):
    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError) as raised:
        cardiograph.sweep(SPEC, tmp_path / "r", threads=1, progress=stop)
    cardiograph.sweep(SPEC, tmp_path / "r")
    # Only now may the error and its frames go.
    assert raised.value.args == ("enough",)


def test_errors_are_those_of_the_command(tmp_path, command):
    for change in [
        {"speed": 3},
        {"seeds": 0},
        {"cards": ["floppy"]},
        {"mode": "quick"},
        {"policies": ["naive"]},
        {"seeds": 1_000_000, "seeds_per_task": 1},
        {"rates_hz": [400_000]},
    ]:
        path = tmp_path / "s.toml"
        path.write_text(toml({**SPEC, **change}))
        with pytest.raises(cardiograph.CardiographError) as raised:
            cardiograph.sweep(path, tmp_path / "r")
        code, _, err = command("sweep", path, "-o", tmp_path / "r")
        assert (code, err) == (2, f"error: {raised.value}\n")
        assert not (tmp_path / "r").exists()
    with pytest.raises(cardiograph.CardiographError, match="needs `folder`"):
        cardiograph.sweep(SPEC)
    with pytest.raises(cardiograph.CardiographError, match="no such file"):
        cardiograph.sweep(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates_hz": [math.nan]}, "the specification: `rates_hz` is [nan]; use finite numbers"),
        ({"rates_hz": [-1]}, "the specification: `rates_hz` contains -1; it must be 1 to 1000000"),
        ({"rates_hz": 860}, "the specification: `rates_hz` is 860; use a list between [ and ]"),
        ({"sample_bytes": None}, "the specification: `sample_bytes` is None; give it a value, or omit the key"),
        ({"cards": ["class10-16g", None]}, "`cards` is ['class10-16g', None]; give it a value, or omit"),
        ({"seeds": 2**70}, "the specification: `seeds` is 1180591620717411303424; use a whole number of at most 64 bits"),
        ({"seeds": 10**5000}, "the specification: `seeds` is a value of type int; use a whole number of at most 64"),
        ({"seeds": numpy.uint64(2**63)}, "`seeds` is np.uint64(9223372036854775808); use a whole number of at most 64 bits"),
        ({"seeds": numpy.int64(0)}, "the specification: `seeds` is 0; it must be 1 to"),
        ({"seeds": numpy.bool_(True)}, "the specification: `seeds` is np.True_; use finite numbers"),
        ({"seeds": True}, "the specification: `seeds` is true; use a whole number from 1 to 1000000000"),
        ({"seeds": 1.5}, "the specification: `seeds` is 1.5; use a whole number from 1 to 1000000000"),
        ({"mode": "quick"}, 'the specification: `mode` is "quick"; use "card" or "recorder"'),
        ({"speed": 3}, "the specification: unknown field `speed`, expected one of"),
        ({1: 3}, "the specification: unknown field 1; see docs/sweeps.md for the keys"),
        ({"cards": {"a": 1}}, "the specification: `cards` is {'a': 1}; use finite numbers"),
        ({"about": "\ud800"}, "the specification: `about` is '\\ud800'; use characters that UTF-8 can encode"),
        ({"seeds": 0}, "the specification: `seeds` is 0; it must be 1 to"),
    ],
)
def test_errors_of_a_dict_name_the_key_and_no_line(tmp_path, change, message):
    with pytest.raises(cardiograph.CardiographError) as raised:
        cardiograph.sweep({**SPEC, **change}, tmp_path / "r")
    assert message in str(raised.value)
    assert ", line " not in str(raised.value)


def test_figures_follow_the_schema(tmp_path, data):
    import json

    import jsonschema

    schema = json.loads((data.parents[1] / "docs/schemas/sweep.json").read_text())
    figures = cardiograph.sweep(SPEC, tmp_path / "r").figures
    jsonschema.validate(figures, schema["properties"]["results"]["items"])
    assert (figures["check"], figures["plan_differences"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("client", "x", "client is 'x'; use a distributed.Client, or None for this computer"),
        ("progress", "x", "progress is 'x'; use True, False or a callable"),
        ("progress", 1, "progress is 1; use True, False or a callable"),
        ("folder", "\ud800", "folder is '\\ud800'; use characters that UTF-8 can encode"),
    ],
)
def test_wrong_arguments_are_named_before_a_folder_exists(tmp_path, name, value, message):
    with pytest.raises(cardiograph.CardiographError) as raised:
        cardiograph.sweep(SPEC, **{"folder": tmp_path / "r", name: value})
    assert str(raised.value) == message
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_cannot_be_done_is_refused_before_the_sweep(tmp_path, command):
    path = tmp_path / "s.toml"
    for change, runs, message in [
        ({"mode": "recorder"}, 1, "the sweep has mode = \"recorder\" already"),
        ({}, 49, "the sweep has 48 recordings and buffer sizes; check at most as many"),
    ]:
        path.write_text(toml({**SPEC, **change}))
        code, _, err = command("sweep", path, "-o", tmp_path / "r", "--check", runs)
        assert code == 2 and f"error: --check {runs}: {message}" in err
        assert not (tmp_path / "r").exists()


def test_the_documented_query_has_cards_as_texts_whatever_their_names(tmp_path, data):
    names = ["007", "12", "2026-11-26", "1e5"]
    text = (data.parents[1] / "sim/card/profiles/generic-16g-class10.toml").read_text()
    for name in names:
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "s.toml").write_text(toml({**SPEC, "cards": [f"{name}.toml" for name in names], "run_s": 1}))
    cardiograph.sweep(tmp_path / "s.toml", tmp_path / "r")
    documented = (data.parents[1] / "docs/scale.md").read_text()
    (query,) = [part for part in documented.split("```") if part.startswith("sql\n")]
    # Each card alone, too: DuckDB guesses types from all names together.
    for cards in [names, *([name] for name in names)]:
        pattern = "*" if cards == names else f"card={cards[0]}"
        here = query.removeprefix("sql\n").replace("sweep-results/results/*/", f"{tmp_path}/r/results/{pattern}/")
        assert sorted({row[0] for row in duckdb.sql(here).fetchall()}) == sorted(cards)


def test_errors_name_missing_keys_and_threads(tmp_path):
    missing = {key: value for key, value in SPEC.items() if key != "seeds"}
    with pytest.raises(cardiograph.CardiographError, match="^the specification: missing field `seeds`"):
        cardiograph.sweep(missing, tmp_path / "r")
    for threads in [0, 1.5, "2"]:
        with pytest.raises(cardiograph.CardiographError, match="^threads is .*; use a whole number from 1 to 1024"):
            cardiograph.sweep(SPEC, tmp_path / "r", threads=threads)


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("sweep.json", '"run_s": 600,', '"run_s": 61,', "holds results of another sweep: `run_s` is 61 there, and 600"),
        ("sweep.json", '"version": "', '"version": "0.0.', "holds results of another sweep: version "),
        ("sweep.json", "spread_percent = ", "spread_percent = 1", "a card or board has changed"),
        ("results/card=kingston-8g/part-00006.parquet", None, "PAR1", "part-00006.parquet: damaged"),
    ],
)
def test_folders_with_other_results_are_refused_as_by_the_command(tmp_path, command, file, before, after, message):
    (tmp_path / "s.toml").write_text(toml(SPEC))
    cardiograph.sweep(SPEC, tmp_path / "r")
    path = tmp_path / "r" / file
    text = after if before is None else path.read_text().replace(before, after, 1)
    assert before is None or text != path.read_text()
    path.write_text(text)
    kept = hashes(tmp_path / "r")
    with pytest.raises(cardiograph.CardiographError) as raised:
        cardiograph.sweep(SPEC, tmp_path / "r")
    assert message in str(raised.value)
    code, _, err = command("sweep", tmp_path / "s.toml", "-o", tmp_path / "r", "--quiet")
    assert (code, err) == (2, f"error: {raised.value}\n")
    assert hashes(tmp_path / "r") == kept


def test_a_part_of_another_version_is_refused():
    from cardiograph import cardiograph_native as native

    sweep = native.Sweep("the specification", toml(SPEC), ".").to_json()
    other = sweep.replace('"version": "', '"version": "0.0.', 1)
    with pytest.raises(cardiograph.CardiographError, match="install the same version everywhere"):
        native.run_part(other, 0)
    with pytest.raises(cardiograph.CardiographError, match="part is 1000; it must be below"):
        native.run_part(sweep, 1000)


def test_a_sweep_of_too_many_tasks_is_refused_with_its_cost(tmp_path):
    many = {**SPEC, "seeds": 1_000_000, "seeds_per_task": 1}
    with pytest.raises(cardiograph.CardiographError) as raised:
        cardiograph.sweep(many, tmp_path / "r")
    for part in ["4,000,000 tasks are more than the maximum of 1,000,000", "of one core", "set max_tasks = 4000000"]:
        assert part in str(raised.value)
    with pytest.raises(cardiograph.CardiographError, match="12 tasks are more than the maximum of 5"):
        cardiograph.sweep({**SPEC, "max_tasks": 5}, tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    ) as cluster:
        with Client(cluster) as client:
            yield cluster, client


def test_a_cluster_gives_the_same_files(tmp_path, cluster):
    _, client = cluster
    local = cardiograph.sweep(SPEC, tmp_path / "local")
    remote = cardiograph.sweep(SPEC, tmp_path / "remote", client=client)
    assert remote.figures == local.figures
    assert hashes(tmp_path / "remote") == hashes(tmp_path / "local")
    # Nothing is left to do.
    assert cardiograph.sweep(SPEC, tmp_path / "remote", client=client).figures == local.figures


def test_a_killed_worker_costs_time_but_no_results(tmp_path, cluster):
    _, client = cluster
    spec = {**SPEC, "run_s": 43_200, "seeds": 8, "seeds_per_task": 1}
    killed = []

    def kill(done, total):
        if not killed:
            # The workers' own processes, not their nannies.
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    cardiograph.sweep(spec, tmp_path / "killed", client=client, progress=kill)
    assert killed
    cardiograph.sweep(spec, tmp_path / "whole")
    assert hashes(tmp_path / "killed") == hashes(tmp_path / "whole")


def test_plot_and_page(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    answer = cardiograph.sweep(SPEC, tmp_path / "r")
    axes = answer.plot()
    assert axes.get_ylabel().startswith("probability of loss")
    assert answer.html().count("<section>") == 2
    with pytest.raises(cardiograph.CardiographError, match="^axes is 'x'; use the axes of a matplotlib figure"):
        answer.plot("x")
    rates = list(range(860, 872))
    many = cardiograph.sweep({**SPEC, "cards": ["class10-16g"], "run_s": 1, "rates_hz": rates}, tmp_path / "many")
    marks = {(line.get_color(), line.get_fillstyle()) for line in many.plot().lines if line.get_marker() == "v"}
    assert len(marks) == len(rates)
