"""What must hold between the parts of a spec.

A check is a generator of faults, registered for what it looks at. It ends where it meets something that cannot be
known (`Unknown`), because that has a fault of its own; the other checks go on.
"""

from __future__ import annotations

from serve_app.spec.checks import code as code
from serve_app.spec.checks import models as models
from serve_app.spec.checks import pipelines as pipelines
from serve_app.spec.checks import ray as ray
from serve_app.spec.checks import servers as servers
from serve_app.spec.checks import tensors as tensors
from serve_app.spec.checks import tiers as tiers
from serve_app.spec.checks.registry import run_checks

__all__ = ["run_checks"]
