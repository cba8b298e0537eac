"""`tandem drift` against the running service: what differs, and what a redeploy would do about it."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.job_submission import JobSubmissionClient

from serve_app.cluster.head import find_head
from serve_app.drift.cluster import find_dashboard, serve_details
from serve_app.drift.of_ray import ray_drift
from serve_app.project import Project
from serve_app.render.ray_serve import serve_config
from tests.service.conftest import Service


@pytest.fixture
def spec_file(service: Service) -> Iterator[Path]:
    """The spec of the running service; what a test writes into it is gone after it."""
    path = service.project.spec_file
    before = path.read_text()
    yield path
    path.write_text(before)


def change(spec_file: Path, old: str, new: str) -> None:
    text = spec_file.read_text()
    assert text.count(old) == 1, old
    spec_file.write_text(text.replace(old, new))


def lines(service: Service) -> list[str]:
    """What the command says, without the names of replicas and the dashboard."""
    drift = service.tandem("drift")
    assert drift.returncode == 1, drift.stdout + drift.stderr
    head, replica = find_head(service.project), _triton_replica(service)
    assert head is not None
    return drift.stdout.replace(f"Triton {replica}", "Triton R").replace(head.dashboard, "D").splitlines()


def _triton_replica(service: Service) -> str:
    (replica,) = _details(service)["applications"]["kyc"]["deployments"]["Triton"]["replicas"]
    return str(replica["replica_id"])


def _details(service: Service) -> dict[str, Any]:
    return serve_details(find_dashboard(service.project, service.project.spec(), None))


def test_what_was_just_deployed_does_not_differ_and_nothing_is_left_of_the_question(service: Service) -> None:
    drift = service.tandem("drift")
    head = find_head(service.project)
    assert head is not None
    assert drift.returncode == 0, drift.stdout + drift.stderr
    assert drift.stdout == f"what runs at {head.dashboard} is what the spec says\n"
    jobs = JobSubmissionClient(head.dashboard, headers={"Authorization": f"Bearer {head.token}"}).list_jobs()
    assert [job for job in jobs if "serve_app.drift" in job.entrypoint] == []


def test_each_change_is_told_with_what_a_redeploy_would_do(service: Service, spec_file: Path) -> None:
    port = service.project.spec().service.grpc.port
    change(spec_file, f"grpc: {{port: {port}}}", "grpc: {port: 9001}")
    change(spec_file, "max_queued_requests: 64\n  autoscaling", "max_queued_requests: 63\n  autoscaling")
    change(spec_file, "queue_delay: 0s}\n      gpu: {instances: 2, max_batch: 64}\n\n  paddleocr_det",
           "queue_delay: 3ms}\n      gpu: {instances: 2, max_batch: 64}\n\n  paddleocr_det")  # fmt: skip
    change(spec_file, "detection_side: 736", "detection_side: 800")
    change(spec_file, "target_ongoing_requests: 64}", "target_ongoing_requests: 63}")
    assert lines(service) == [
        "Ingress: user_config.max_queued_requests: 64 → 63 (in place)",
        "Ingress: autoscaling_config.target_ongoing_requests: 64 → 63 (in place)",
        "Triton R arcface: dynamic_batching.max_queue_delay_microseconds: 0 → 3000 (restarts the application)",
        f"spec: service.grpc.port: {port} → 9001 (restarts the application)",
        "spec: stages.documents.settings.detection_side: 736 → 800 (restarts the application)",
        "5 differences at D; a redeploy would change 2 in place, change 3 by restarting the application",
    ]


def test_a_change_of_the_processes_options_restarts_their_deployment(service: Service, spec_file: Path) -> None:
    change(spec_file, "  cpus: 0.2\n  memory: 768MiB", "  cpus: 0.3\n  memory: 768MiB")
    assert lines(service)[0] == "Ingress: ray_actor_options.num_cpus: 0.2 → 0.3 (restarts the deployment)"


def test_what_the_cluster_is_told_beside_the_application_is_compared(service: Service, spec_file: Path) -> None:
    """And what Ray does not tell is said not to be."""
    more = "object_store: 1GiB\n  logging: {level: warning}\n  tracing: {}\n  controller_environment: {A: b}"
    change(spec_file, "object_store: 512MiB", more)
    assert lines(service) == [
        "node 127.0.0.1: object store: 512MiB → 1GiB or more (no redeploy changes it: start the node anew)",
        "Ray Serve: tracing_config.enabled: False → True (needs a new start of Serve)",
        "kyc: logging_config: nothing → given (in place)",
        "3 differences at D; a redeploy would change 1 in place, not change 1, which Ray Serve reads when it starts, "
        "not change 1, each for its own reason",
        "not compared, since Ray does not tell it: ray.controller_environment",
    ]


def test_a_port_that_the_head_node_does_not_have_is_told(service: Service, spec_file: Path) -> None:
    ray = service.project.spec().ray
    change(spec_file, f"  port: {ray.port}\n", "  port: 7001\n")
    change(spec_file, f"dashboard_port: {ray.dashboard_port}", "dashboard_port: 7002")
    anew = "no redeploy changes it: `tandem down`, then `tandem up`"
    assert lines(service) == [
        f"head node: ray.port: {ray.port} → 7001 ({anew})",
        f"head node: ray.dashboard_port: {ray.dashboard_port} → 7002 ({anew})",
        "2 differences at D; a redeploy would not change 2, each for its own reason",
    ]


def test_a_model_that_is_new_in_the_spec_is_told(service: Service, spec_file: Path) -> None:
    text = spec_file.read_text()
    model = "models:\n  another:\n    backend: python\n    inputs: {x: 'float32[4]'}\n    outputs: {y: 'float32[4]'}\n"
    spec_file.write_text(text.replace("\nmodels:\n", f"\n{model}    max_batch: 8\n    latency_budget: 50ms\n", 1))
    assert "Triton R another: model: not there → ready (restarts the application)" in lines(service)


def test_json_says_the_same_to_scripts(service: Service, spec_file: Path) -> None:
    change(spec_file, "target_ongoing_requests: 64}", "target_ongoing_requests: 63}")
    drift = service.tandem("drift", "--format", "json")
    assert drift.returncode == 1
    assert json.loads(drift.stdout)["drift"] == [
        {
            "part": "Ingress",
            "what": "autoscaling_config.target_ongoing_requests",
            "running": "64",
            "wanted": "63",
            "effect": "in place",
            "remedy": "",
        }
    ]


def test_a_cluster_that_tandem_did_not_start_is_asked_by_its_dashboard_and_token(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Service(Project(tmp_path / "kyc"), "")
    shutil.copytree(service.project.root, other.project.root)
    head = find_head(service.project)
    assert head is not None
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    closed = other.tandem("drift", "--dashboard", head.dashboard)
    assert (closed.returncode, "wants a token; put the cluster's into RAY_AUTH_TOKEN" in closed.stderr) == (1, True)
    monkeypatch.setenv("RAY_AUTH_TOKEN", head.token)
    opened = other.tandem("drift", "--dashboard", head.dashboard)
    assert opened.returncode == 0, opened.stdout + opened.stderr
    assert "not compared, since Ray does not tell it: ray.port, ray.dashboard_port\n" in opened.stdout


def test_replicas_that_do_not_run_are_told(service: Service) -> None:
    details = _details(service)
    config = serve_config(service.project.spec())
    assert list(ray_drift(config, details)) == []
    broken = copy.deepcopy(details)
    documents = broken["applications"]["kyc"]["deployments"]["documents"]
    documents["replicas"][0]["state"] = "STARTING"
    documents.update(status="UNHEALTHY", message="no\n  memory")
    (drift,) = ray_drift(config, broken)
    assert (drift.part, drift.what, drift.running, drift.wanted) == ("documents", "replicas that run", "0", "1")
    assert (drift.effect, drift.remedy) == (None, "Ray says: no memory")


def test_what_cannot_be_reached_is_said(project: Project) -> None:
    drift = Service(project, "").tandem("drift")
    port = project.spec().ray.dashboard_port
    assert drift.returncode == 1
    assert f"no Ray dashboard answers at http://127.0.0.1:{port}" in drift.stderr


def test_what_is_no_dashboard_is_said(service: Service) -> None:
    drift = service.tandem("drift", "--dashboard", service.url)
    assert (drift.returncode, "is no Ray dashboard" in drift.stderr) == (1, True)
