"""Traces as tables and plots."""

import json

from . import cardiograph_native as _native
from ._arguments import axes_of as _axes_of
from .cardiograph_native import CardiographError

_COLUMNS = ("operation", "file", "offset", "length", "start_ns", "end_ns")
_INT64_MAX = 2**63 - 1
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
        """Plots the latency of each operation in ms over the bytes before it in MB; returns the matplotlib axes.

        For a recording, plots the interval before each sample in ms over the time of the sample in s.
        """
        import numpy

        axes = _axes_of(axes)
        table = self.to_arrow()
        start, end, length = (table[name].to_numpy() for name in ("start_ns", "end_ns", "length"))
        if self.kind == "recording":
            x, x_label, y_label = (end - start[:1]) / 1e9, "time of the sample in s", "interval in ms"
        else:
            x, x_label, y_label = (numpy.cumsum(length) - length) / 1e6, "bytes before the operation in MB", "latency in ms"
        axes.plot(x, (end - start) / 1e6, ".", markersize=2)
        axes.set_yscale("log")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(self.target)
        return axes


def native_of(table, target, workload):
    """Returns the native trace of a table."""
    if isinstance(table, Trace):
        return table._native._described(target, workload)
    import numpy
    import pyarrow

    arrow = _arrow_of(table)
    twice = [name for name in _COLUMNS if arrow.column_names.count(name) > 1]
    if twice:
        raise CardiographError(f"the table has two columns {twice[0]}; remove one")
    missing = [name for name in _COLUMNS if name not in arrow.column_names]
    if missing:
        raise CardiographError(f"the table has no column {missing[0]}; it needs {', '.join(_COLUMNS)}")
    columns = []
    for name in _COLUMNS:
        column = arrow[name].combine_chunks()
        if column.null_count or not pyarrow.types.is_integer(column.type):
            raise CardiographError(f"the column {name} must contain whole numbers without nulls; it is {column.type}")
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype == numpy.uint64 and len(values) and values.max() > _INT64_MAX:
            row = int(values.argmax())
            raise CardiographError(f"row {row}: {name} is {values[row]}; use whole numbers from 0 to {_INT64_MAX}")
        columns.append(values.astype(numpy.dtype("<i8")).tobytes())
    return _native.trace_of_columns(columns, target, workload)


def _arrow_of(table):
    """Returns a table, or a frame of pandas, as a ``pyarrow.Table``."""
    import pyarrow

    has_stream = hasattr(table, "__arrow_c_stream__")
    if not has_stream and not hasattr(table, "dtypes"):
        raise CardiographError(
            f"table is {table!r:.40}; use a Trace, a table with an Arrow stream, or a frame of pandas"
        )
    try:
        if has_stream:
            return pyarrow.table(table)
        return pyarrow.Table.from_pandas(table, preserve_index=False)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CardiographError(f"table cannot be read ({reason}); it needs {', '.join(_COLUMNS)}") from None
