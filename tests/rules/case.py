"""The smallest spec that shows a rule broken, and what a real Triton makes of it unchecked."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from serve_app.spec.load import Report, examine

MINIMAL: dict[str, Any] = yaml.safe_load("""
application: small
service:
  {sla: 8s, host: 127.0.0.1, port: 8000, upload_limit: 1MiB, request_limit: 2MiB, retry_after: 1s}
ray: {port: 6379, dashboard_port: 8265, object_store: 128MiB}
tiers: {first: {priority: 1, default: true}, second: {priority: 2}}
profiles:
  embedded:
    device: cpu
    onnx: python
    ray_version: 2.60.0
    triton:
      version: 2.51.0
      cpus: 1
      memory: 1GiB
      startup_timeout: 60s
      exit_timeout: 10s
      health_check_period: 2s
      health_check_timeout: 10s
ingress:
  cpus: 0.1
  memory: 512MiB
  max_ongoing_requests: 8
  max_queued_requests: 8
  autoscaling: {min_replicas: 1, max_replicas: 2, target_ongoing_requests: 4}
models:
  m:
    backend: python
    inputs: {x: "float32[4]"}
    outputs: {y: "float32[4]"}
    max_batch: 8
    latency_budget: 100ms
    batching: {queue_delay: 1ms}
""")
GONE = object()


@dataclass(frozen=True)
class Case:
    """`patch` breaks the rule `code` in MINIMAL, at `place`.

    `refused`: what a real Triton says when it is given the unchecked configuration of `model`. `loads`: it takes it
    without a word, which is why there is a rule. `config` is what Triton is given where the spec cannot even be
    rendered; by default it is what the spec renders to.
    """

    code: str
    patch: Mapping[str, Any]
    place: str
    says: str = ""
    refused: str | None = None
    loads: bool = False
    model: str = "m"
    config: str | None = None


def merged(base: Any, patch: Any) -> Any:
    """`base` with the values of `patch` in their places; GONE removes one."""
    if not isinstance(patch, Mapping) or not isinstance(base, Mapping):
        return patch
    whole = dict(base)
    for key, value in patch.items():
        if value is GONE:
            del whole[key]
        else:
            whole[key] = merged(whole.get(key), value)
    return whole


def patched(patch: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = merged(copy.deepcopy(MINIMAL), patch)
    return data


class _WithoutAliases(yaml.SafeDumper):
    """Writes a value out in each place where a patch has it."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def report(patch: Mapping[str, Any]) -> Report:
    """What the validator says about MINIMAL with the patch, written and read as YAML."""
    text = yaml.dump(patched(patch), Dumper=_WithoutAliases, sort_keys=False, allow_unicode=True)
    return examine(text, "spec.yaml")
