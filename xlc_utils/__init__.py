"""Helpers of the seven notebooks. ``open_run`` is where every notebook begins."""

from __future__ import annotations

__version__ = "0.1.0"


def open_run(namespace: dict, notebook: str):
    """Opens the run folder that a notebook's parameters describe; see `xlc_utils.running.run.open_run`."""
    from xlc_utils.running.run import open_run as opened

    return opened(namespace, notebook)
