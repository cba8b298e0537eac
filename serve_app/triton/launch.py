"""What a Triton server is started with: its port, its arguments, its environment."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import serve_app
from serve_app.spec.model import Resource
from serve_app.spec.profile import Triton
from serve_app.triton.find import Installation

# Ports that Triton, Ray Serve and Ray's workers use by default, and the proxies of Ray Serve.
_AVOIDED_PORTS = (range(8000, 8003), range(9000, 9001), range(9101, 9102), range(30000, 31001), range(40000, 41001))
# Pools of threads that the models' libraries would make, one thread for every core of the machine.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Features:
    """What a server does only where it is told to at its start. `response_cache` and `memory_limit` are bytes."""

    response_cache: int | None = None
    rate_limit: bool = False
    resources: Mapping[str, Resource] = field(default_factory=dict)
    metrics: bool = False
    memory_limit: int | None = None

    @classmethod
    def of(cls, triton: Triton) -> Features:
        """What a profile asks for."""
        return cls(
            triton.response_cache, triton.rate_limit, triton.resources, triton.watchdog.enabled, triton.memory_limit
        )


def free_port() -> int:
    """A port of the loopback interface that nothing listens on now and that nothing else here is known to want."""
    held = []
    try:
        while True:
            held.append(socket.socket())
            held[-1].bind(("127.0.0.1", 0))
            port: int = held[-1].getsockname()[1]
            if not any(port in avoided for avoided in _AVOIDED_PORTS):
                return port
    finally:
        for each in held:
            each.close()


def command(
    installation: Installation,
    backends: Path,
    repository: Path,
    *,
    models: Sequence[str],
    config_name: str | None,
    port: int,
    metrics_port: int | None,
    exit_timeout: float,
    features: Features,
) -> list[str]:
    """The server's command line; the guard puts its own prefix of names where `{prefix}` stands."""
    return [
        str(installation.binary),
        "--id={prefix}",
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        "--backend-config=python,shm-region-prefix-name={prefix}",
        "--model-control-mode=explicit",
        *(f"--load-model={model}" for model in models),
        *([] if config_name is None else [f"--model-config-name={config_name}"]),
        "--disable-auto-complete-config",
        "--strict-readiness=true",
        f"--exit-timeout-secs={math.ceil(exit_timeout)}",
        "--allow-http=false",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={port}",
        *(["--allow-metrics=false"] if metrics_port is None else _metrics(metrics_port)),
        *_cache(installation, features),
        *_rate_limit(features),
    ]


def _metrics(port: int) -> list[str]:
    # Without an address of their own they would be told on every interface.
    return [
        "--metrics-address=127.0.0.1",
        f"--metrics-port={port}",
        "--allow-gpu-metrics=false",
        "--allow-cpu-metrics=false",
    ]


def _cache(installation: Installation, features: Features) -> list[str]:
    if features.response_cache is None:
        return []
    return [f"--cache-directory={installation.caches}", f"--cache-config=local,size={features.response_cache}"]


def _rate_limit(features: Features) -> list[str]:
    if not features.rate_limit:
        return []
    # Without a device, a stock is one for all where the models ask for it so, and one for each device otherwise.
    stocks = [f"--rate-limit-resource={name}:{resource.count}" for name, resource in features.resources.items()]
    return ["--rate-limit=execution_count", *stocks]


def environment(installation: Installation, added: Mapping[str, str]) -> dict[str, str]:
    """The models' processes run the first python3 on PATH, and have to find this very package."""
    here = dict(os.environ)
    first = {
        "PATH": [Path(sys.executable).parent],
        "LD_LIBRARY_PATH": installation.library_path,
        "PYTHONPATH": [Path(serve_app.__file__).parent.parent],
    }
    for name, folders in first.items():
        here[name] = os.pathsep.join([*map(str, folders), *([here[name]] if here.get(name) else [])])
    # The models' interpreter takes paths for ASCII where the locale is C, as it is for many services.
    utf8 = {"PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"}
    # ONNX Runtime 1.32 would keep a device id and records of its use in the user's cache, to send them to its makers.
    return {**here, **dict.fromkeys(_ONE_THREAD, "1"), "ORT_DISABLE_TELEMETRY": "1", **utf8, **added}
