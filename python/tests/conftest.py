import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def data():
    return ROOT / "tests/data"


@pytest.fixture(scope="session")
def command():
    """Runs the command; returns its exit code, standard output and standard error."""
    program = os.environ.get("CARDIOGRAPH", str(ROOT / "target/debug/cardiograph"))

    def run(*args):
        done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(scope="session")
def figures(command):
    """Runs the command with `--json -`; returns the only result."""
    import json

    def run(*args):
        code, out, err = command(*args, "--json", "-")
        assert code in (0, 3, 4), err
        (result,) = json.loads(out)["results"]
        return result

    return run
