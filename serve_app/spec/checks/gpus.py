"""GPUs that Ray keeps for a server, against those that its models' instances run on."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_profile
from serve_app.spec.checks.tensors import TENSORRT
from serve_app.spec.findings import Faults, warning
from serve_app.spec.model import PYTHON
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec

IDLE_GPUS = warning(
    "R062", "GPUs that no instance runs on", "they idle, and Ray keeps them from everything else",
    "ask for fewer, or let instances run on them: kind: gpu without gpus is an instance on each; write kind: model for "
    "a model that finds its GPUs itself",
)  # fmt: skip

# Those whose instances stay off the GPUs where their kind is cpu. Others may use one whatever Triton is told, as
# tensorrtllm does; code in the python backend can say so by its kind.
_KEEP_TO_THEIR_KIND = (PYTHON, TENSORRT, "onnxruntime", "openvino", "pytorch", "tensorflow")


@of_each_profile
def idle_gpus(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    asked = profile.triton.gpus
    if profile.device == "cpu" or not asked:
        return
    used: set[int] = set()
    for found in (Resolved(spec, model, name) for model in spec.models):
        for group in found.instances:
            if group.kind == "model" or (group.kind == "cpu" and found.backend not in _KEEP_TO_THEIR_KIND):
                return
            if group.kind == "cpu":
                continue
            if not group.gpus:  # an instance on every GPU that the server gets
                return
            used.update(gpu for gpu in group.gpus if gpu < asked)
    if len(used) < asked:
        on = f"instances run on GPU {' and '.join(map(str, sorted(used)))} alone" if used else "no instance runs on one"
        yield IDLE_GPUS.at(
            ("profiles", name, "triton", "gpus"),
            f"{asked:g} {'GPUs are' if asked > 1 else 'GPU is'} asked for, and {on}",
        )
