"""What stops a measurement."""

from __future__ import annotations


class BenchError(Exception):
    """Says in one sentence why nothing can be measured, and what to do."""
