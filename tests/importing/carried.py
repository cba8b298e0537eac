"""Configurations that a spec can say in full, by what is special about them."""

from __future__ import annotations

from tests.importing.conftest import PYTHON, TENSORS

NATIVE = f'backend: "onnxruntime" {TENSORS}'
CARRIED = {
    "no scheduler": PYTHON,
    "versions": f"{PYTHON} version_policy {{ specific {{ versions: [1, 3] }} }}",
    "all versions": f"{PYTHON} version_policy {{ all {{}} }}",
    "dynamic batching": f"""{PYTHON}
        dynamic_batching {{ preferred_batch_size: [4, 8] max_queue_delay_microseconds: 2000 }}
    """,
    "bare dynamic batching": f"{PYTHON} dynamic_batching {{}}",
    "preserved order": f"{PYTHON} dynamic_batching {{ preserve_ordering: true }}",
    "priorities and queue policies": f"""{PYTHON} dynamic_batching {{
        priority_levels: 3 default_priority_level: 2
        default_queue_policy {{ default_timeout_microseconds: 5000000 allow_timeout_override: true max_queue_size: 64 }}
        priority_queue_policy {{ key: 1 value {{ default_timeout_microseconds: 5000000 timeout_action: DELAY }} }}
        priority_queue_policy {{ key: 3 value {{}} }}
    }}""",
    "direct sequences": f"""{PYTHON} sequence_batching {{
        max_sequence_idle_microseconds: 5000000
        direct {{ max_queue_delay_microseconds: 700 minimum_slot_utilization: 0.3 }}
        control_input [
          {{ name: "START" control [{{ kind: CONTROL_SEQUENCE_START fp32_false_true: [0.1, 1] }}] }},
          {{ name: "END" control [{{ kind: CONTROL_SEQUENCE_END bool_false_true: [false, true] }}] }},
          {{ name: "CORRID" control [{{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }}] }}
        ]
    }}""",
    "oldest sequences with state": f"""{PYTHON} sequence_batching {{
        oldest {{ max_candidate_sequences: 4 preferred_batch_size: [2, 4] max_queue_delay_microseconds: 100 }}
        control_input [{{ name: "READY" control [{{ kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] }}] }}]
        state [{{
          input_name: "s_in" output_name: "s_out" data_type: TYPE_FP32 dims: [2]
          initial_state [{{ name: "zero" data_type: TYPE_FP32 dims: [2] zero_data: true }}]
        }}]
        iterative_sequence: true
    }}""",
    "instance groups": f"""{NATIVE} instance_group [
        {{ count: 2 kind: KIND_GPU gpus: [0, 1] name: "first" }},
        {{ kind: KIND_CPU count: 3 host_policy: "near"
           rate_limiter {{ resources [{{ name: "R1" count: 4 }}, {{ name: "R2" count: 1 global: true }}] priority: 2 }}
        }},
        {{ kind: KIND_GPU passive: true }}
    ]""",
    "no instance group": NATIVE,
    "warm-up": f"""{PYTHON} model_warmup [
        {{ name: "zeros" batch_size: 8
           inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: [4] zero_data: true }} }} }},
        {{ name: "file" batch_size: 1 count: 3
           inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: [4] input_data_file: "x.bin" }} }} }}
    ]""",
    "optimization": f"""{NATIVE} instance_group [{{ kind: KIND_GPU }}] optimization {{
        graph {{ level: -1 }} priority: PRIORITY_MAX cuda {{ graphs: true }}
        execution_accelerators {{ gpu_execution_accelerator [{{
          name: "tensorrt" parameters {{ key: "precision_mode" value: "FP16" }}
        }}] }}
        input_pinned_memory {{ enable: false }} output_pinned_memory {{ enable: true }}
        gather_kernel_buffer_threshold: 3 eager_batching: true
    }}""",
    "cuda graphs": f"""backend: "tensorrt" {TENSORS} instance_group [{{ kind: KIND_GPU profile: "1" }}] optimization {{
        cuda {{ graphs: true busy_wait_events: true output_copy_stream: true graph_spec [{{
          batch_size: 4 input {{ key: "x" value {{ dim: [4] }} }}
          graph_lower_bound {{ batch_size: 2 input {{ key: "x" value {{ dim: [4] }} }} }}
        }}] }}
    }}""",
    "parameters and tags": f"""{PYTHON}
        parameters {{ key: "no" value {{ string_value: "yes: \\"1\\"\\n" }} }}
        parameters {{ key: "ключ" value {{ string_value: "" }} }}
        metric_tags {{ key: "a" value: "b" }}
    """,
    "a histogram": f"""{PYTHON} model_transaction_policy {{ decoupled: true }} model_metrics {{ metric_control [{{
        metric_identifier {{ family: "nv_inference_first_response_histogram_ms" }}
        histogram_options {{ buckets: [0, 0.1, 0.25, 5, 1000.001] }}
    }}] }}""",
    "the cache": f"{PYTHON} response_cache {{ enable: true }}",
    "decoupled answers": f"{PYTHON} model_transaction_policy {{ decoupled: true }}",
    "tensors": """backend: "onnxruntime" max_batch_size: 4
        input [
          { name: "image" data_type: TYPE_UINT8 dims: [3, 224, 224] format: FORMAT_NCHW },
          { name: "size" data_type: TYPE_INT64 dims: [1] reshape { shape: [] } optional: true },
          { name: "text" data_type: TYPE_STRING dims: [-1] allow_ragged_batch: true }
        ]
        output [{
          name: "308" data_type: TYPE_BF16 dims: [10] reshape { shape: [10, 1, 1] } label_filename: "names.txt"
        }]
        batch_input [{
          kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "index" data_type: TYPE_FP32 source_input: "text"
        }]
        batch_output [{ kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "308" source_input: "text" }]
    """,
    "another file": f'backend: "onnxruntime" default_model_filename: "best.onnx" {TENSORS}',
    "a platform": f'platform: "tensorrt_plan" {TENSORS}',
    "a platform that its backend does not imply": f'backend: "pytorch" platform: "torch_aoti" {TENSORS}',
    "tensorflow": f'platform: "tensorflow_savedmodel" {TENSORS}',
    "tensorflow's other file": f'platform: "tensorflow_graphdef" default_model_filename: "frozen.pb" {TENSORS}',
    "a backend of one's own": f'backend: "my-backend" {TENSORS}',
    "the rare rest": f"""{NATIVE} runtime: "libtriton_onnxruntime.so"
        cc_model_filenames {{ key: "8.0" value: "ampere.onnx" }}
        model_operations {{ op_library_filename: ["ops.so"] }}
        model_repository_agents {{
          agents [{{ name: "checksum" parameters {{ key: "1/model.onnx" value: "MD5:0" }} }}]
        }}
    """,
}
ENSEMBLE = """platform: "ensemble" max_batch_size: 8
    input [{ name: "in" data_type: TYPE_FP32 dims: [4] }] output [{ name: "out" data_type: TYPE_FP32 dims: [4] }]
    ensemble_scheduling { step [
      { model_name: "a" model_version: -1 input_map { key: "x" value: "in" } output_map { key: "y" value: "mid" } },
      { model_name: "b" model_version: 1 input_map { key: "x" value: "mid" } output_map { key: "y" value: "out" } }
    ] }
"""
