"""Progress on standard error."""

import sys
import time

from .cardiograph_native import CardiographError

_SHOWN_AFTER_S = 1.0
_WIDTH = 30


class _Bar:
    """A bar that appears after a second."""

    def __init__(self, verb):
        self._verb = verb
        self._begun_s = time.monotonic()
        self._is_shown = False

    def __call__(self, done, total):
        if time.monotonic() - self._begun_s < _SHOWN_AFTER_S:
            return
        share = min(done / total, 1.0) if total else 0.0
        filled = round(share * _WIDTH)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        sys.stderr.write(f"\r{self._verb} [{bar}] {share:4.0%}")
        sys.stderr.flush()
        self._is_shown = True

    def __del__(self):
        if self._is_shown:
            sys.stderr.write("\r\033[K")


def _is_visible():
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def callback(progress, verb):
    """Returns the callable for a `progress` argument, or None."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise CardiographError(f"progress is {progress!r:.40}; use True, False or a callable")
    return _Bar(verb) if progress and _is_visible() else None
