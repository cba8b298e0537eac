"""The faults, one small object each, in the order in which they come.

Those that cost a restart of Triton stand apart from each other: five within two minutes are as many as its owner tries.
"""

from __future__ import annotations

from serve_app.bench.chaos.faults.clients import AbortedUploads, IdleConnections, SlowUploads
from serve_app.bench.chaos.faults.deployments import Down, Redeploy, RollingUpdate
from serve_app.bench.chaos.faults.fault import Fault
from serve_app.bench.chaos.faults.models import GrowingModel, HangingModel, RaisingModel, WrongShape
from serve_app.bench.chaos.faults.places import FullLog, FullSharedMemory, TakenPort
from serve_app.bench.chaos.faults.processes import Killed, KilledWhileLoading, Stopped
from serve_app.bench.chaos.traces import CONTROLLER, MODEL, TRITON

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Killed("triton-killed", TRITON, "tritonserver"),
        SlowUploads(),
        RaisingModel(),
        Stopped(),
        AbortedUploads(),
        WrongShape(),
        Killed("model-process-killed", MODEL, "a process of a model"),
        Killed("stage-killed", "", "a replica of a stage", limit=60.0),
        IdleConnections(),
        KilledWhileLoading(),
        Redeploy(),
        Killed("controller-killed", CONTROLLER, "Ray Serve's controller", limit=60.0),
        HangingModel(),
        RollingUpdate(),
        FullLog(),
        Killed("ingress-killed", "Ingress", "the ingress, which itself listens,", limit=60.0, resets=True),
        GrowingModel(),
        TakenPort(),
        FullSharedMemory(),
        Down(),
    )
}
