"""A model's config.pbtxt: what Triton needs to know, complete, so that it completes nothing by itself."""

from __future__ import annotations

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.paths import queue_timeout
from serve_app.spec.schema import ProfileName, Spec
from serve_app.spec.units import microseconds

ONNX_FILE = "model.onnx"
THREADS_PARAMETER = "intra_op_threads"


def model_config(spec: Spec, name: str, profile: ProfileName) -> pb.ModelConfig:
    """The configuration of one model in one profile, as Triton's own message."""
    model = spec.models[name]
    device = spec.profiles[profile]
    override = spec.override(name, profile)
    native = model.backend == "onnx" and device.onnx == "onnxruntime"
    config = pb.ModelConfig(
        name=name,
        backend="onnxruntime" if native else "python",
        default_model_filename=ONNX_FILE if native else "model.py",
        max_batch_size=spec.max_batch(name, profile),
        version_policy=pb.ModelVersionPolicy(specific=pb.ModelVersionPolicy.Specific(versions=[1])),
        input=[
            pb.ModelInput(name=key, data_type=_data_type(tensor.wire), dims=tensor.dims)
            for key, tensor in model.inputs.items()
        ],
        output=[
            pb.ModelOutput(
                name=key, data_type=_data_type(out.tensor.wire), dims=out.tensor.dims, label_filename=out.labels or ""
            )
            for key, out in model.outputs.items()
        ],
        instance_group=[
            pb.ModelInstanceGroup(
                # Code in the python backend works on the CPU; it is the native models that a GPU speeds up.
                kind=pb.ModelInstanceGroup.KIND_GPU
                if native and device.device == "gpu"
                else pb.ModelInstanceGroup.KIND_CPU,
                count=override.instances,
            )
        ],
        dynamic_batching=_dynamic_batching(spec, name, profile),
    )
    if not native:
        config.parameters[THREADS_PARAMETER].string_value = str(override.threads)
    return config


def _data_type(wire: str) -> pb.DataType:
    return pb.DataType.Value(f"TYPE_{wire}")


def _dynamic_batching(spec: Spec, name: str, profile: ProfileName) -> pb.ModelDynamicBatching:
    """Batching, the tiers' priorities, and queues that refuse what they cannot serve in time.

    The level below all tiers is for wake-up requests: they are accepted, expire at once and are never executed.
    """
    reject = pb.ModelQueuePolicy.REJECT
    return pb.ModelDynamicBatching(
        max_queue_delay_microseconds=microseconds(spec.queue_delay(name, profile)),
        priority_levels=spec.wake_up_level,
        default_priority_level=spec.tiers[spec.default_tier].priority,
        default_queue_policy=pb.ModelQueuePolicy(
            timeout_action=reject,
            default_timeout_microseconds=microseconds(queue_timeout(spec, name)),
            # A request's own deadline may only shorten the timeout; Triton ignores a longer one.
            allow_timeout_override=True,
            max_queue_size=spec.models[name].queue_size,
        ),
        priority_queue_policy={
            spec.wake_up_level: pb.ModelQueuePolicy(
                timeout_action=reject, default_timeout_microseconds=1, allow_timeout_override=True
            )
        },
    )


def render_model_config(spec: Spec, name: str, profile: ProfileName, header: str) -> str:
    """The text of config.pbtxt."""
    return header + str(text_format.MessageToString(model_config(spec, name, profile)))


def render_onnx_code(header: str) -> str:
    """The model.py of an ONNX model in the python backend: the shared module does all the work."""
    return (
        header
        + 'from serve_app.triton.backend.onnx_model import TritonPythonModel\n\n__all__ = ["TritonPythonModel"]\n'
    )
