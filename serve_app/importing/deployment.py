"""The spec around imported models: a profile that fits them, and the least of everything else that a deployment needs.

What a repository cannot tell is written as a modest value with a comment that asks for it.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.equivalence import Device
from serve_app.importing.tiers import MOST_TIERS, Tiers
from serve_app.importing.yaml_text import Block, scalar, visible, yaml_lines
from serve_app.render.triton import fields
from serve_app.spec.model import PYTHON
from serve_app.spec.schema import ProfileName
from serve_app.spec.versions import PYTRITON, SAFE_TRITON, TRITON_FIELDS, older

# The wheel that brings a Triton for CPUs, with the python backend only.
_WHEEL_VERSION = "0.7.0"
_WHEEL_SHA256 = "21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df"
DEVICES: Mapping[ProfileName, Device] = {"embedded": "cpu", "gpu": "gpu"}


def fitting_profile(configs: Iterable[pb.ModelConfig]) -> ProfileName:
    """`embedded` where every model runs in the python backend and none asks for a GPU, else `gpu`."""
    for config in configs:
        if not config.HasField("ensemble_scheduling") and config.backend != PYTHON:
            return "gpu"
        if any(group.kind == pb.ModelInstanceGroup.KIND_GPU or group.gpus for group in config.instance_group):
            return "gpu"
    return "embedded"


@dataclass(frozen=True)
class Entry:
    """A model or an ensemble in the spec's words. One with a reason is not carried: it stays as a comment.

    `comments` are those of its configuration.
    """

    name: str
    value: Mapping[str, Any]
    comments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Deployment:
    """What the text of a spec is made of.

    `source` is the repository, as its user calls it; `tiers` are those that its configurations were rendered with, if
    they were; `schema` says whether the JSON Schema will be beside the spec.
    """

    application: str
    source: str
    profile: ProfileName
    tiers: Tiers | None = None
    configs: Mapping[str, pb.ModelConfig] = field(default_factory=dict)
    models: list[Entry] = field(default_factory=list)
    ensembles: list[Entry] = field(default_factory=list)
    schema: bool = False

    def text(self) -> str:
        """The spec."""
        lines = [
            *([_SCHEMA_LINE] if self.schema else []),
            *_OPENING.format(source=visible(self.source), application=scalar(self.application)).splitlines(),
            *self._tiers(),
            "",
            "profiles:",
            *self._profile(),
            *_INGRESS.splitlines(),
            *_section("models", self.models),
            *(_section("ensembles", self.ensembles) if self.ensembles else []),
        ]
        return "\n".join(lines).rstrip() + "\n"

    @property
    def _server(self) -> str:
        """The oldest Triton that has no known hole and knows every field that the models use."""
        return max({SAFE_TRITON, *self._since}, key=lambda version: tuple(map(int, version.split("."))))

    @property
    def _since(self) -> set[str]:
        """The versions with which fields came that the models use."""
        used = {name for config in self.configs.values() for name in fields(config)}
        return {TRITON_FIELDS[name] for name in used if name in TRITON_FIELDS}

    def _tiers(self) -> Iterator[str]:
        """The tiers of before; else one for each priority level of a model, by its number, as `queues` call it."""
        if self.tiers is not None:
            yield from _TIERS_OF_BEFORE.splitlines()
            yield from _tier_lines(self.tiers.names, self.tiers.default)
            return
        batchings = {name: config.dynamic_batching for name, config in self.configs.items()}
        batchings = {name: each for name, each in batchings.items() if each.priority_levels}
        levels = max([each.priority_levels for each in batchings.values()], default=0)
        if not 0 < levels <= MOST_TIERS:
            yield from _ONE_TIER.splitlines()
            if levels:
                yield f"  # yours: a model has {levels} priority levels; add a tier for each that requests use"
            return
        yield from _TIERS_OF_LEVELS.splitlines()
        defaults = {name: each.default_priority_level for name, each in batchings.items()}
        ((default, _),) = Counter(min(each or levels, levels) for each in defaults.values()).most_common(1)
        if len(set(defaults.values())) > 1:
            shown = ", ".join(f"{name} {level}" for name, level in defaults.items())
            yield from _comment(f"Yours: the default, which the models do not agree on: {shown}.")
        yield from _tier_lines({level: str(level) for level in range(1, levels + 1)}, default)

    def _profile(self) -> Iterator[str]:
        groups = [group for config in self.configs.values() for group in config.instance_group]
        backends = sorted({config.backend for config in self.configs.values() if config.backend})
        if self.profile == "embedded":
            yield from _EMBEDDED.format(onnx="onnxruntime" if "onnxruntime" in backends else "python").splitlines()
            wheel = PYTRITON[_WHEEL_VERSION]
            if set(backends) <= {PYTHON} and not any(older(wheel, version) for version in self._since):
                yield f"      version: {wheel}"
                yield f"      requirement: nvidia-pytriton=={_WHEEL_VERSION}   # where no tritonserver is on PATH"
                yield f"      sha256: {_WHEEL_SHA256}"
            else:
                yield f"      version: {self._server}                # of the tritonserver on PATH"
                yield f"      backends: [{', '.join(map(scalar, backends))}]"
            yield from _EMBEDDED_SIZES.splitlines()
        else:
            devices = max([gpu for group in groups for gpu in group.gpus], default=0) + 1
            yield from _GPU.format(
                version=self._server, backends=", ".join(map(scalar, backends)), devices=devices
            ).splitlines()
        if any(config.response_cache.enable for config in self.configs.values()):
            yield "      response_cache: 64MiB           # as your --cache-config=local,size=…"
        if any(group.HasField("rate_limiter") for group in groups):
            yield "      # rate_limit: true              # if your server has --rate-limit=execution_count"
        yield ""


def _tier_lines(names: Mapping[int, str], default: int) -> Iterator[str]:
    for priority, name in names.items():
        tier = {"priority": priority, **({"default": True} if priority == default else {})}
        yield from yaml_lines({name: tier}, 1)


def _section(name: str, entries: list[Entry]) -> Iterator[str]:
    carried = [entry for entry in entries if entry.reason is None]
    yield f"{name}:" if carried else f"{name}: {{}}"
    for entry in carried:
        yield from _remarks(entry)
        yield from yaml_lines({entry.name: Block(entry.value)}, 1)
        yield ""
    for entry in entries:
        if entry.reason is not None:
            yield from _remarks(entry)
            yield from _comment(f"{entry.name} is not carried: {entry.reason}")
            if entry.value:
                yield from (f"  # {line[2:]}" for line in yaml_lines({entry.name: Block(entry.value)}, 1))
            yield ""


def _remarks(entry: Entry) -> Iterator[str]:
    """What is above the entry: its configuration's own comments as they are, then what there is to know."""
    yield from (f"  {visible(comment.expandtabs())}" for comment in entry.comments)
    yield from (line for note in entry.notes for line in _comment(note))


def _comment(text: str) -> list[str]:
    return textwrap.wrap(visible(text), 118, initial_indent="  # ", subsequent_indent="  # ", break_on_hyphens=False)


_SCHEMA_LINE = "# yaml-language-server: $schema=spec.schema.json"
_OPENING = """\
# Triton's models in {source}, as `tandem import` found them. What to do next:
#   1. bring the models' files to model_repository/, as `tandem import` printed it
#   2. `tandem validate`: what is wrong or risky, also where Triton takes it without a word
#   3. `tandem render`: each config.pbtxt anew, equivalent to what it was
#   4. look at what a repository cannot tell, marked "yours" below
#   5. add stages (your code before and after inference) and pipelines (the routes that clients call)

application: {application}

service:
  sla: 30s                           # yours: within this every request is answered
  host: 127.0.0.1                    # 0.0.0.0 for every interface: put a gateway with authentication in front first
  port: 8000
  grpc: {{port: 9000}}
  upload_limit: 10MiB
  request_limit: 32MiB
  retry_after: 1s

ray:                                 # for `tandem up`, which starts a head node on this machine
  port: 6379
  dashboard_port: 8265
  object_store: 512MiB

"""
_ONE_TIER = """\
tiers:                               # the X-Tier header names one; add more to serve some requests before others
  standard: {priority: 1, default: true}
"""
_TIERS_OF_BEFORE = """\
tiers:                               # the X-Tier header names one; yours: their names, which no configuration has
"""
_TIERS_OF_LEVELS = """\
tiers:                               # the X-Tier header names one
  # One for each priority level, so that a model may say `priorities: tiers` instead of its own levels. Where you
  # rename one, do so in the models' `queues` too.
"""

_EMBEDDED = """\
  embedded:                          # the CPUs of this machine
    device: cpu
    onnx: {onnx}
    ray_version: 2.60.0
    triton:
"""
_EMBEDDED_SIZES = """\
      cpus: 1                        # yours: what Ray reserves for the server
      memory: 2GiB                   # yours
      startup_timeout: 2min
      exit_timeout: 30s              # not shorter than an sla
      health_check_period: 2s
      health_check_timeout: 10s
"""
_GPU = """\
  gpu:                               # a container's Triton
    device: gpu
    onnx: onnxruntime
    ray_version: 2.60.0
    triton:
      version: {version}                # the oldest that is safe and knows all fields; yours, where it is newer
      backends: [{backends}]
      cpus: 2                        # yours: what Ray reserves for the server
      gpus: {devices}
      memory: 16GiB                  # yours
      startup_timeout: 10min
      exit_timeout: 30s              # not shorter than an sla
      health_check_period: 2s
      health_check_timeout: 10s
"""

_INGRESS = """\
ingress:
  cpus: 0.1
  memory: 512MiB
  max_ongoing_requests: 32
  max_queued_requests: 64
  autoscaling: {min_replicas: 1, max_replicas: 2, target_ongoing_requests: 16}

# Each queue and its delay are as they were. With a latency_budget and without `priorities: none`, a model's requests
# are served by tier, and refused where they could not be answered within the sla.
# Without `versions`, version 1 is served; `versions: {latest: 1}` takes up newer ones too.
"""
