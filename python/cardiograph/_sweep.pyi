from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

class Answer:
    figures: dict[str, Any]
    folder: str
    def html(self) -> str: ...
    def to_arrow(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def plot(self, axes: Any | None = None) -> Any: ...

def sweep(
    spec: str | PathLike[str] | Mapping[str, Any],
    folder: str | PathLike[str] | None = None,
    *,
    client: Any | None = None,
    threads: int | None = None,
    progress: bool | Callable[[int, int], object] = True,
) -> Answer: ...
