"""The notebook, executed from the beginning to the end."""

import os

import nbclient
import nbformat


def test_the_notebook_reaches_a_decision(tmp_path, data):
    path = data.parents[1] / "docs/notebooks/decision.ipynb"
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=dict(os.environ, MPLBACKEND="module://matplotlib_inline.backend_inline"))
    last = notebook.cells[-1]
    (output,) = last.outputs
    assert output["text"].startswith("Use a buffer of "), output
    # The stored notebook has no results that could be outdated.
    stored = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in stored.cells)
