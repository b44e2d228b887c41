from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal

from ._sweep import Answer as Answer
from ._sweep import sweep as sweep
from ._trace import Trace as Trace

__version__: str

class CardiographError(ValueError): ...

_Path = str | PathLike[str]
_Progress = bool | Callable[[int, int], object]
_Unit = Literal["s", "ms", "us", "ns"]

def read(
    path: _Path,
    *,
    block_bytes: int = 512,
    time_unit: _Unit | None = None,
    time_column: str | int | None = None,
    latency_column: str | int | None = None,
    progress: _Progress = True,
) -> Trace: ...
def analyze(
    source: _Path | Trace,
    *,
    stall_threshold_us: float | None = None,
    block_bytes: int = 512,
    time_unit: _Unit | None = None,
    time_column: str | int | None = None,
    latency_column: str | int | None = None,
    progress: _Progress = True,
) -> dict[str, Any]: ...
def compare(*paths: _Path, block_bytes: int = 512, progress: _Progress = True) -> dict[str, Any]: ...
def plan(
    source: _Path,
    *,
    rate_hz: float,
    sample_bytes: int,
    run_s: float = 86_400.0,
    buffer_bytes: int = 65_536,
    block_bytes: int = 512,
    progress: _Progress = True,
) -> dict[str, Any]: ...
def simulate(
    config: Mapping[str, Any] | None = None,
    *,
    progress: _Progress = True,
    target: str = ...,
    workload: str = ...,
    seed: int = ...,
) -> Trace: ...
def record(
    config: Mapping[str, Any] | None = None,
    *,
    progress: _Progress = True,
    target: str = ...,
    rate_hz: int = ...,
    sample_bytes: int = ...,
    run_s: float = ...,
    buffer_bytes: int = ...,
    durability_window_ms: int = ...,
    policy: Literal["stream", "naive", "keep-open", "after-session"] = ...,
    session_s: float = ...,
    seed: int = ...,
) -> dict[str, Any]: ...
def bench(
    path: _Path,
    *,
    workload: str = "blinky-stream-512",
    io: Literal["dsync", "direct", "fsync-write", "fsync-file", "buffered"] = "dsync",
    stop_after_s: float = 60.0,
    progress: _Progress = True,
) -> Trace: ...
def write_trace(
    table: Any,
    path: _Path,
    *,
    target: str = "",
    workload: str = "",
    force: bool = False,
) -> None: ...
