"""Arguments: checked values, and sentences that name the argument."""

import os
from collections.abc import Mapping

from .cardiograph_native import CardiographError


def path_of(name, value):
    """Returns a path as a text."""
    try:
        path = os.fsdecode(value)
        os.fsencode(path)
    except TypeError:
        raise CardiographError(f"{name} is {value!r:.40}; use a path") from None
    except UnicodeEncodeError:
        raise CardiographError(f"{name} is {value!a:.40}; use characters that UTF-8 can encode") from None
    return path


def axes_of(axes):
    """Returns matplotlib axes, new ones for None."""
    import matplotlib.axes
    import matplotlib.pyplot

    if axes is None:
        return matplotlib.pyplot.subplots()[1]
    if not isinstance(axes, matplotlib.axes.Axes):
        raise CardiographError(f"axes is {axes!r:.40}; use the axes of a matplotlib figure, or None")
    return axes


def settings_of(function, config, arguments, defaults):
    """Merges a dict and keyword arguments; unknown keys are errors."""
    if config is not None and not isinstance(config, Mapping):
        raise CardiographError(f"config is {config!r:.40}; use a dict of settings")
    settings = {**(config or {}), **arguments}
    for key in settings:
        if key not in defaults:
            known = ", ".join(defaults)
            raise CardiographError(f"{function} has no setting `{key}`; use {known}")
    return {**defaults, **settings}
