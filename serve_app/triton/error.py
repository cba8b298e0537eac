"""What is raised when a Triton server cannot be found, started or reached."""

from __future__ import annotations


class TritonError(Exception):
    """Says in one sentence what is wrong with Triton and what to do; further lines quote its log."""
