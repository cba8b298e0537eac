"""What stops `tandem up`, `down` or `status`."""

from __future__ import annotations


class ClusterError(Exception):
    """Says in one sentence what is wrong with this machine or the running service, and what to do."""
