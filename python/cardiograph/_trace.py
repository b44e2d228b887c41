"""Traces as tables and plots."""

import json

from . import cardiograph_native as _native
from .cardiograph_native import CardiographError

_COLUMNS = ("operation", "file", "offset", "length", "start_ns", "end_ns")
_TYPES = ("int32", "uint32", "int64", "int64", "int64", "int64")


class Trace:
    """Operations of a file or a run, as a table of shape (n, 6).

    Columns: ``operation`` (int32: 0 is a write, 1 a read), ``file`` (uint32), ``offset`` and ``length``
    (int64, bytes), ``start_ns`` and ``end_ns`` (int64). ``polars.DataFrame(trace)`` and ``pyarrow.table(trace)`` read it without
    copying; DuckDB reads the pyarrow table.

    Attributes:
        kind: ``"trace"``, or ``"recording"`` for the intervals between samples.
        target: Measured device.
        workload: Name of the workload.
        notes: Remarks about the run.
        warnings: Warnings about the validity of the run.
        gaps: For a recording, the late samples: list of dicts as in ``cadence.gaps`` of the JSON.
        samples: For a recording, the number of samples.
    """

    def __init__(self, native):
        details = json.loads(native._details)
        self._native = native
        self.kind = native.kind
        self.target = native.target
        self.workload = native.workload
        self.notes = native.notes
        self.warnings = details["warnings"]
        self.samples = details.get("samples")
        self.gaps = []

    def __len__(self):
        return len(self._native)

    def __repr__(self):
        return f"<cardiograph.Trace: {self.kind} of {self.target or 'unknown target'}, {len(self)} rows>"

    def __arrow_c_stream__(self, requested_schema=None):
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self):
        """Returns a ``pyarrow.Table`` of shape (n, 6), without copying."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self):
        """Returns a ``pandas.DataFrame`` of shape (n, 6)."""
        import numpy
        import pandas

        columns = {name: numpy.empty(len(self), kind) for name, kind in zip(_COLUMNS, _TYPES)}
        self._native._fill(list(columns.values()))
        return pandas.DataFrame(columns, copy=False)

    def to_polars(self):
        """Returns a ``polars.DataFrame`` of shape (n, 6)."""
        import polars

        return polars.DataFrame(self)

    def plot(self, axes=None):
        """Plots the latency of each operation in ms over the bytes before it in MB; returns the matplotlib axes."""
        import matplotlib.pyplot
        import numpy

        table = self.to_arrow()
        start, end, length = (table[name].to_numpy() for name in ("start_ns", "end_ns", "length"))
        axes = axes or matplotlib.pyplot.subplots()[1]
        axes.plot((numpy.cumsum(length) - length) / 1e6, (end - start) / 1e6, ".", markersize=2)
        axes.set_yscale("log")
        axes.set_xlabel("bytes before the operation in MB")
        axes.set_ylabel("latency in ms")
        axes.set_title(self.target)
        return axes


def native_of(table, target, workload):
    """Returns the native trace of a table."""
    if isinstance(table, Trace):
        return table._native
    import numpy
    import pyarrow

    if hasattr(table, "__arrow_c_stream__"):
        arrow = pyarrow.table(table)
    else:
        arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    missing = [name for name in _COLUMNS if name not in arrow.column_names]
    if missing:
        raise CardiographError(f"the table has no column {missing[0]}; it needs {', '.join(_COLUMNS)}")
    columns = []
    for name in _COLUMNS:
        column = arrow[name].combine_chunks()
        if column.null_count or not pyarrow.types.is_integer(column.type):
            raise CardiographError(f"the column {name} must contain whole numbers without nulls; it is {column.type}")
        columns.append(column.to_numpy(zero_copy_only=False).astype(numpy.dtype("<i8")).tobytes())
    return _native.trace_of_columns(columns, target, workload)
