"""What must hold between the parts of a spec.

A check is a generator of faults, registered for what it looks at. It ends where it meets something that cannot be
known (`Unknown`), because that has a fault of its own; the other checks go on.
"""

from __future__ import annotations

from serve_app.spec.checks import acceptances as acceptances
from serve_app.spec.checks import admission as admission
from serve_app.spec.checks import amounts as amounts
from serve_app.spec.checks import arguments as arguments
from serve_app.spec.checks import batching as batching
from serve_app.spec.checks import calls as calls
from serve_app.spec.checks import code as code
from serve_app.spec.checks import deadlines as deadlines
from serve_app.spec.checks import ensemble_limits as ensemble_limits
from serve_app.spec.checks import ensemble_tensors as ensemble_tensors
from serve_app.spec.checks import ensembles as ensembles
from serve_app.spec.checks import features as features
from serve_app.spec.checks import gpus as gpus
from serve_app.spec.checks import handed_on as handed_on
from serve_app.spec.checks import instances as instances
from serve_app.spec.checks import memory as memory
from serve_app.spec.checks import models as models
from serve_app.spec.checks import names as names
from serve_app.spec.checks import optimization as optimization
from serve_app.spec.checks import optional as optional
from serve_app.spec.checks import pipelines as pipelines
from serve_app.spec.checks import priorities as priorities
from serve_app.spec.checks import queues as queues
from serve_app.spec.checks import rare_fields as rare_fields
from serve_app.spec.checks import rate_limits as rate_limits
from serve_app.spec.checks import ray as ray
from serve_app.spec.checks import ray_versions as ray_versions
from serve_app.spec.checks import replicas as replicas
from serve_app.spec.checks import request_sizes as request_sizes
from serve_app.spec.checks import same_batch as same_batch
from serve_app.spec.checks import scaling as scaling
from serve_app.spec.checks import sequence_tensors as sequence_tensors
from serve_app.spec.checks import sequences as sequences
from serve_app.spec.checks import servers as servers
from serve_app.spec.checks import slack as slack
from serve_app.spec.checks import startup as startup
from serve_app.spec.checks import telemetry as telemetry
from serve_app.spec.checks import tensors as tensors
from serve_app.spec.checks import tiers as tiers
from serve_app.spec.checks import traffic as traffic
from serve_app.spec.checks import versions as versions
from serve_app.spec.checks import warmup as warmup
from serve_app.spec.checks import watchdog as watchdog
from serve_app.spec.checks.registry import run_checks

__all__ = ["run_checks"]
