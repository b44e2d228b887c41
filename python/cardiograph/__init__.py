"""Measures and explains the write stalls of SD cards and flash media.

Figures are the dicts of the command's JSON: keys end with their unit, such as ``_us`` or ``_bytes``. Tables follow the
Arrow PyCapsule protocol, so that polars, pyarrow and DuckDB read them without copying. All cards whose names begin with
``sim:`` are simulated.

Long calls release the GIL, show progress (``progress=False`` hides it) and end with ``KeyboardInterrupt`` at Ctrl-C.
``progress`` may be a callable that gets the number of steps done and their total; after a call that succeeded, both are
equal. An exception that it raises ends the call. Inputs that cannot be used raise `CardiographError`, a ``ValueError``
that names the argument, or has the sentence that the command prints.
"""

import json as _json

from . import cardiograph_native as _native
from ._arguments import path_of as _path_of
from ._arguments import settings_of as _settings_of
from ._progress import callback as _callback
from ._sweep import Answer, sweep
from ._trace import Trace
from .cardiograph_native import CardiographError, __version__

__all__ = [
    "Answer",
    "CardiographError",
    "Trace",
    "__version__",
    "analyze",
    "bench",
    "compare",
    "plan",
    "read",
    "record",
    "simulate",
    "sweep",
    "write_trace",
]


def read(path, *, block_bytes=512, time_unit=None, time_column=None, latency_column=None, progress=True):
    """Reads a trace or recording in any format that the command ``analyze`` reads.

    Args:
        path: File.
        block_bytes: Payload of each write in bytes, for formats that do not state it.
        time_unit: Unit of times that the file does not name: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        time_column: Name or number (from 1) of the column of times.
        latency_column: Name or number (from 1) of the column of latencies.
        progress: False, True, or a callable that gets the bytes read and their total.

    Returns:
        `Trace`: one row per operation, of shape (n, 6). For a recording, one row per interval between two samples, and
        ``gaps`` lists the samples that are late or missing.
    """
    path = _path_of("path", path)
    watch = _callback(progress, "reading")
    native = _native.read(path, block_bytes, time_unit, time_column, latency_column, watch)
    trace = Trace(native)
    if trace.kind == "recording":
        figures = analyze(
            path,
            block_bytes=block_bytes,
            time_unit=time_unit,
            time_column=time_column,
            latency_column=latency_column,
            progress=progress,
        )
        trace.gaps = figures["cadence"]["gaps"]
    return trace


def analyze(
    source,
    *,
    stall_threshold_us=None,
    block_bytes=512,
    time_unit=None,
    time_column=None,
    latency_column=None,
    progress=True,
):
    """Computes latencies, stalls and sustained rates of a trace, or the sample timing of a recording.

    Args:
        source: File, or a `Trace` of writes or reads.
        stall_threshold_us: Latencies above this threshold in us belong to a stall; None derives it from the trace.

    The other arguments are those of `read`.

    Returns:
        dict: the figures of ``cardiograph analyze --json``.
    """
    if isinstance(source, Trace):
        return _json.loads(source._native._figures(stall_threshold_us))
    path = _path_of("source", source)
    watch = _callback(progress, "reading")
    text = _native.analyze(
        path, stall_threshold_us, block_bytes, time_unit, time_column, latency_column, watch
    )
    return _json.loads(text)


def compare(*paths, block_bytes=512, progress=True):
    """Tells whether one card is faster than another, from traces of both.

    Args:
        paths: Two or more files; the first is the reference.
        block_bytes: Payload of each write in bytes, for formats that do not state it.

    Returns:
        dict: the comparison of ``cardiograph compare --json``.
    """
    watch = _callback(progress, "reading")
    return _json.loads(_native.compare([_path_of("paths", path) for path in paths], block_bytes, watch))


def plan(
    source,
    *,
    rate_hz,
    sample_bytes,
    run_s=86_400.0,
    buffer_bytes=65_536,
    block_bytes=512,
    progress=True,
):
    """Calculates the buffer size that a logger needs, and the risk that it loses samples.

    Args:
        source: File with a trace of writes, or a simulated card as ``sim:CARD@BOARD``.
        rate_hz: Samples per second.
        sample_bytes: Bytes per sample.
        run_s: Length of a recording in s.
        buffer_bytes: Buffer size in bytes for which the risk is calculated.
        block_bytes: Payload of each write in bytes, for formats that do not state it.
        progress: False, True, or a callable that gets the bytes read, or the planned members of a simulated card's
            ensemble, and their total.

    Returns:
        dict: the result of ``cardiograph plan --json`` for one card.
    """
    watch = _callback(progress, "planning")
    text = _native.plan(
        _path_of("source", source), rate_hz, sample_bytes, run_s, buffer_bytes, block_bytes, watch
    )
    return _json.loads(text)


def simulate(config=None, *, progress=True, **settings):
    """Runs a workload on a new simulated card, in virtual time.

    Args:
        config: dict of settings, which keyword arguments replace:
            ``target`` (default ``"sim:team-8g@esp32"``),
            ``workload`` (name or TOML file, default ``"blinky-stream-512"``),
            ``seed`` (default 1).

    Returns:
        `Trace`: one row per operation, of shape (n, 6); times in ns of the card's clock.
    """
    defaults = {"target": "sim:team-8g@esp32", "workload": "blinky-stream-512", "seed": 1}
    chosen = _settings_of("simulate", config, settings, defaults)
    watch = _callback(progress, "simulating")
    return Trace(_native.simulate(chosen["target"], chosen["workload"], chosen["seed"], watch))


def record(config=None, *, progress=True, **settings):
    """Records samples on a new simulated card with the recorder or a policy of the studies, and verifies every sample.

    Args:
        config: dict of settings, which keyword arguments replace:
            ``target`` (default ``"sim:team-8g@esp32"``),
            ``rate_hz`` (samples per second, default 860), ``sample_bytes`` (default 100),
            ``run_s`` (length in s, default 60), ``buffer_bytes`` (default 65536),
            ``durability_window_ms`` (default 1000), ``policy`` (``"stream"``, ``"naive"``, ``"keep-open"`` or
            ``"after-session"``), ``session_s`` (default 10), ``seed`` (default 1).

    Returns:
        dict: the result of ``cardiograph record --json``.
    """
    defaults = {
        "target": "sim:team-8g@esp32",
        "rate_hz": 860,
        "sample_bytes": 100,
        "run_s": 60,
        "buffer_bytes": 65_536,
        "durability_window_ms": 1000,
        "policy": "stream",
        "session_s": 10,
        "seed": 1,
    }
    chosen = _settings_of("record", config, settings, defaults)
    return _json.loads(_native.record(chosen, _callback(progress, "recording")))


def bench(path, *, workload="blinky-stream-512", io="dsync", stop_after_s=60.0, progress=True):
    """Measures the writes of a workload to a directory. New files are created, verified and removed.

    Args:
        path: Directory on the storage device, such as the mount point of a card.
        workload: Name, or TOML file.
        io: ``"dsync"``, ``"direct"``, ``"fsync-write"``, ``"fsync-file"`` or ``"buffered"``.
        stop_after_s: Time limit in s.

    Returns:
        `Trace`: one row per operation, of shape (n, 6); times in ns of this computer's clock.
    """
    watch = _callback(progress, "measuring")
    return Trace(_native.bench(_path_of("path", path), workload, io, stop_after_s, watch))


def write_trace(table, path, *, target="", workload="", force=False):
    """Writes a trace as Parquet, or as CSV if the name ends with ``.csv``.

    Args:
        table: `Trace`, or any table with an Arrow stream or a pandas frame with the columns ``operation`` (0 is a write,
            1 a read), ``file``, ``offset``, ``length``, ``start_ns`` and ``end_ns``; needs pyarrow.
        path: New file.
        target: Measured device, for the metadata; an empty text keeps that of a `Trace`.
        workload: Name of the workload, likewise.
        force: True replaces an existing file.

    A recording is refused, because a trace cannot hold its gaps, and so is a table without rows. Ctrl-C leaves no
    partial file.
    """
    from ._trace import native_of

    path = _path_of("path", path)
    native_of(table, target, workload)._write(path, force)
