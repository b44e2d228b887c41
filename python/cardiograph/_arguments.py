"""Arguments: checked values, and sentences that name the argument."""

import os

from .cardiograph_native import CardiographError


def path_of(name, value):
    """Returns a path as a text."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise CardiographError(f"{name} is {value!r:.40}; use a path") from None


def settings_of(function, config, arguments, defaults):
    """Merges a dict and keyword arguments; unknown keys are errors."""
    try:
        settings = {**(config or {}), **arguments}
    except TypeError:
        raise CardiographError(f"config is {config!r:.40}; use a dict of settings") from None
    for key in settings:
        if key not in defaults:
            known = ", ".join(defaults)
            raise CardiographError(f"{function} has no setting `{key}`; use {known}")
    return {**defaults, **settings}
