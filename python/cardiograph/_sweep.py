"""Sweeps: thousands of simulated recordings, on this computer or on a cluster."""

import json
import operator
import os
import re
from collections.abc import Mapping
from concurrent.futures import CancelledError
from numbers import Integral

from . import cardiograph_native as _native
from ._arguments import axes_of as _axes_of
from ._arguments import path_of as _path_of
from ._progress import callback as _callback
from .cardiograph_native import CardiographError

# Attempts of Dask after a worker has died, beyond the first.
_RETRIES = 5
# Beginning of messages about a specification without a file.
_NAME = "the specification"
# Whole numbers of TOML.
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
# Marks of a plot: each fill has the ten colours of matplotlib.
_COLOURS = 10
_FILLS = ("full", "none", "left", "right", "top", "bottom")
_DASHES = ("-", "--", ":", "-.")


class Answer:
    """Probability of loss of a sweep.

    Attributes:
        figures: dict as in ``cardiograph sweep --json`` without ``--check`` and ``--plan``: ``cells`` has an element per
            combination of card, board, policy, rate and buffer; ``check`` and ``plan_differences`` are None.
        folder: Folder of the results: Parquet files in ``results/card=NAME``.
    """

    def __init__(self, sweep, folder):
        self._html = sweep.html(folder)
        self.figures = json.loads(sweep.answer(folder))
        self.folder = str(folder.path)

    def __repr__(self):
        cells = len(self.figures["cells"])
        return f"<cardiograph.Answer: {cells} combinations, mode {self.figures['mode']}, in {self.folder}>"

    def html(self):
        """Returns the page of the answer, one HTML text that works offline."""
        return self._html

    def to_arrow(self):
        """Returns a ``pyarrow.Table`` with a row per combination and member.

        ``likely`` is null without losses; ``low`` and ``high`` are the exact 95 % interval.
        """
        import pyarrow

        rows = []
        for cell in self.figures["cells"]:
            key = {name: cell[name] for name in ("card", "board", "policy", "rate_hz", "buffer_bytes")}
            rows += [{**key, **member} for member in cell["members"]]
        return pyarrow.Table.from_pylist(rows)

    def to_pandas(self):
        """Returns a ``pandas.DataFrame`` with a row per combination and member."""
        return self.to_arrow().to_pandas()

    def plot(self, axes=None):
        """Plots probability over buffer size in KiB, with marks for each card, board, policy and rate; returns the axes.

        Bars are exact 95 % intervals; without losses, a triangle marks the upper bound. After ten colours, the fill of
        the marks and the dashes of the bars change.
        """
        axes = _axes_of(axes)
        series = {}
        for cell in self.figures["cells"]:
            key = (cell["card"], cell["board"], cell["policy"], cell["rate_hz"])
            series.setdefault(key, []).append(cell)
        for number, ((card, board, policy, rate_hz), cells) in enumerate(series.items()):
            colour, turn = f"C{number % _COLOURS}", number // _COLOURS
            mark = {"color": colour, "fillstyle": _FILLS[turn % len(_FILLS)]}
            label = f"{card}@{board}, {policy}, {rate_hz} Hz"
            for cell in cells:
                low = min(member["low"] for member in cell["members"])
                high = max(member["high"] for member in cell["members"])
                x = cell["buffer_bytes"] / 1024
                value = cell["median"]
                if value is None and not any(member["losses"] for member in cell["members"]):
                    axes.plot(x, high, "v", label=label, **mark)
                else:
                    # The median member may lose nothing, which a logarithmic axis cannot show: then there is only a bar.
                    fmt, middle = ("none", high) if value is None else ("o", value)
                    reach = [[high if value is None else value - low], [high - middle]]
                    drawn = axes.errorbar(x, middle, reach, fmt=fmt, ecolor=colour, label=label, **mark)
                    for bar in drawn[2]:
                        bar.set_linestyle(_DASHES[turn % len(_DASHES)])
                label = None
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("buffer in KiB")
        axes.set_ylabel("probability of loss per recording")
        axes.legend(fontsize="small")
        return axes


def sweep(spec, folder=None, *, client=None, threads=None, progress=True):
    """Simulates a recording for every combination of a specification and every seed.

    A folder with results of the same specification is continued. Results do not depend on threads, workers or
    interruptions, bit for bit.

    Args:
        spec: TOML file, or a dict with the keys of docs/sweeps.md.
        folder: Folder of the results; default: the name of the file with ``-results``. A dict needs a folder.
        client: A ``distributed.Client``: its workers, which need the same version of this package, run the sweep, and
            this process writes the results. None uses the cores of this computer.
        threads: Number of threads without a client; None for all cores.
        progress: False, True, or a callable that gets the tasks done and their total.

    Returns:
        `Answer`.
    """
    if client is not None and not all(hasattr(client, name) for name in ("cancel", "map", "scatter")):
        raise CardiographError(f"client is {client!r:.40}; use a distributed.Client, or None for this computer")
    watch = _callback(progress, "sweeping")
    sweep, folder = _specified(spec, folder)
    opened = sweep.open(folder)
    try:
        if client is not None:
            _run_on(client, sweep, opened, watch)
        else:
            sweep.run(opened, threads, watch)
        return Answer(sweep, opened)
    finally:
        # A notebook keeps the frames of its last error, and with them the folder.
        opened.unlock()


def _specified(spec, folder):
    folder = None if folder is None else _path_of("folder", folder)
    if isinstance(spec, Mapping):
        if folder is None:
            raise CardiographError("a specification without a file needs `folder`; name the folder of the results")
        return _sweep_of(spec), folder
    path = _path_of("spec", spec)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise CardiographError(f"{path}: no such file; check the name") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CardiographError(f"{path}: {error}; use a readable TOML file") from None
    stem = os.path.splitext(os.path.basename(path))[0]
    sweep = _native.Sweep(path, text, os.path.dirname(path) or ".")
    return sweep, folder if folder is not None else f"{stem}-results"


def _sweep_of(spec):
    """Parses a dict. A message of the parser may have a line of the TOML text, which is removed."""
    try:
        return _native.Sweep(_NAME, _toml(spec), ".")
    except CardiographError as error:
        at = re.match(f"{_NAME}, line [0-9]+: (.*)", str(error))
        raise CardiographError(f"{_NAME}: {at[1]}; see docs/sweeps.md" if at else str(error)) from None


def _toml(spec):
    """Formats a flat dict; JSON strings, numbers and arrays are TOML."""
    lines = []
    for key, value in spec.items():
        if not (isinstance(key, str) and key.isidentifier() and key.isascii()):
            raise CardiographError(f"{_NAME}: unknown field {key!a:.40}; see docs/sweeps.md for the keys")
        lines.append(f"{key} = {_toml_value(key, value)}")
    return "\n".join(lines)


def _toml_value(key, value):
    remedy = _unfit(value)
    if remedy is None:
        try:
            # Whole numbers of NumPy are not of the type int, but convert to it.
            return json.dumps(value, allow_nan=False, ensure_ascii=False, default=operator.index)
        except (TypeError, ValueError):
            remedy = "use finite numbers, texts and lists of them"
    raise CardiographError(f"{_NAME}: `{key}` is {_shown(value)}; {remedy}")


def _unfit(value):
    """Returns the remedy for a value that JSON can express, but TOML cannot; None for other values."""
    if value is None:
        return "give it a value, or omit the key for its default"
    if isinstance(value, Integral) and not _INT64_MIN <= int(value) <= _INT64_MAX:
        return "use a whole number of at most 64 bits"
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "use characters that UTF-8 can encode"
    if isinstance(value, Mapping):
        return "use finite numbers, texts and lists of them"
    if isinstance(value, list | tuple):
        return next((remedy for remedy in map(_unfit, value) if remedy), None)
    return None


def _shown(value):
    """Formats a value on one line; Python refuses to format whole numbers of more than 4300 digits."""
    try:
        return f"{value!a:.80}" if isinstance(value, str) and not value.isprintable() else f"{value!r:.80}"
    except ValueError:
        return f"a value of type {type(value).__name__}"


def _run_on(client, sweep, folder, watch):
    """Runs the missing parts on the workers of a Dask client, and writes them as they arrive."""
    from distributed import as_completed

    missing = folder.missing(sweep)
    if not missing:
        if watch:
            watch(sweep.tasks, sweep.tasks)
        return
    done = sweep.tasks - sum(sweep.tasks_of_part(part) for part in missing)
    # Workers get the specification once, not with every part.
    text = client.scatter(sweep.to_json(), broadcast=True, hash=False)
    # Parts are pure, so any worker may repeat one.
    futures = client.map(_native.run_part, [text] * len(missing), missing, pure=False, retries=_RETRIES)
    parts = dict(zip((future.key for future in futures), missing))
    try:
        for future, file in as_completed(futures, with_results=True):
            part = parts[future.key]
            folder.write(sweep, part, file)
            done += sweep.tasks_of_part(part)
            # The cluster need not keep what is on disk.
            future.release()
            if watch:
                watch(done, sweep.tasks)
    except CancelledError as error:
        raise CardiographError(f"the cluster gave up ({error}); call sweep again to continue") from None
    finally:
        client.cancel([future for future in futures if not future.done()])
