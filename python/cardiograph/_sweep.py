"""Sweeps: thousands of simulated recordings, on this computer or on a cluster."""

import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import CancelledError

from . import cardiograph_native as _native
from ._arguments import path_of as _path_of
from ._progress import callback as _callback
from .cardiograph_native import CardiographError

# Attempts of Dask after a worker has died, beyond the first.
_RETRIES = 5
# Beginning of messages about a specification without a file.
_NAME = "the specification"


class Answer:
    """Probability of loss of a sweep.

    Attributes:
        figures: dict as in ``cardiograph sweep --json``: ``cells`` has an element per combination of card, board,
            policy, rate and buffer.
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
        """Plots probability over buffer size in KiB, a line per card, board, policy and rate; returns the axes.

        Bars are exact 95 % intervals; without losses, a triangle marks the upper bound.
        """
        import matplotlib.pyplot

        axes = axes or matplotlib.pyplot.subplots()[1]
        series = {}
        for cell in self.figures["cells"]:
            key = (cell["card"], cell["board"], cell["policy"], cell["rate_hz"])
            series.setdefault(key, []).append(cell)
        for (card, board, policy, rate_hz), cells in series.items():
            colour = axes._get_lines.get_next_color()
            label = f"{card}@{board}, {policy}, {rate_hz} Hz"
            for cell in cells:
                low = min(member["low"] for member in cell["members"])
                high = max(member["high"] for member in cell["members"])
                x = cell["buffer_bytes"] / 1024
                value = cell["median"]
                if value is None and not any(member["losses"] for member in cell["members"]):
                    axes.plot(x, high, "v", color=colour, label=label)
                elif value is None:
                    # Only a bar: the median member loses nothing, which a logarithmic axis cannot show.
                    axes.errorbar(x, high, [[high], [0]], fmt="none", ecolor=colour, label=label)
                else:
                    axes.errorbar(x, value, [[value - low], [high - value]], fmt="o", color=colour, label=label)
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
    sweep, folder = _specified(spec, folder)
    opened = sweep.open(folder)
    try:
        watch = _callback(progress, "sweeping")
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
    """Parses a dict. A message of the parser has a line of the TOML text, which is replaced by its key and value."""
    try:
        return _native.Sweep(_NAME, _toml(spec), ".")
    except CardiographError as error:
        at = re.match(f"{_NAME}, line ([0-9]+): (.*)", str(error))
        if not at:
            raise
        if at[2].startswith(("missing field", "unknown field")):
            raise CardiographError(f"{_NAME}: {at[2]}; see docs/sweeps.md") from None
        key, value = list(spec.items())[int(at[1]) - 1]
        raise CardiographError(f"{_NAME}: `{key}` is {value!r:.80}: {at[2]}; see docs/sweeps.md") from None


def _toml(spec):
    """Formats a flat dict; JSON strings, numbers and arrays are TOML."""
    lines = []
    for key, value in spec.items():
        if not str(key).isidentifier():
            raise CardiographError(f"{_NAME}: unknown field `{key}`; see docs/sweeps.md for the keys")
        try:
            lines.append(f"{key} = {json.dumps(value, allow_nan=False, ensure_ascii=False)}")
        except (TypeError, ValueError):
            raise CardiographError(
                f"{_NAME}: `{key}` is {value!r:.80}; use finite numbers, texts and lists of them"
            ) from None
    return "\n".join(lines)


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
