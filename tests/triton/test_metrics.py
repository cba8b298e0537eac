from __future__ import annotations

from serve_app.triton.metrics import work
from serve_app.triton.stall import Work

# As Triton 2.51 writes them; metric tags come among the labels.
TEXT = """\
# HELP nv_inference_exec_count Number of model executions performed (does not include cached requests)
# TYPE nv_inference_exec_count counter
nv_inference_exec_count{model="m",version="1"} 5
nv_inference_exec_count{cost="a,b",model="m",version="2"} 3
nv_inference_exec_count{model="other",version="1"} 1e+06
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="m",reason="REJECTED",version="1"} 55
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="m",version="1"} 2
nv_inference_pending_request_count{cost="a,b",model="m",version="2"} 0
nv_inference_pending_request_count{model="other",version="1"} 0
"""


def test_the_work_of_a_model_is_that_of_all_its_versions() -> None:
    assert work(TEXT) == {"m": Work(2, 8), "other": Work(0, 1_000_000)}


def test_a_server_that_tells_nothing_of_models_has_none() -> None:
    assert work("# HELP nothing\n") == {}
