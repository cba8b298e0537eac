"""A file with forty mistakes shows forty findings: none hides another, and none causes another."""

from __future__ import annotations

import re

import pytest

from serve_app.spec.load import examine

# What stands in the shipped spec (once, or first after what is before the ellipsis) → the mistake, its code and place.
MISTAKES = [
    # the file
    ("application: kyc", "application: kyc\napplication: kyc", "Y005", "application"),
    ("retry_after: 1s", "retry_after: !!str 1s", "Y017", "service.retry_after"),
    ("bulk: {priority: 3, floor: 5%}", "bulk: &tier {priority: 3, floor: 5%}\n  slow: *tier", "Y004", "tiers.slow"),
    # keys
    ("  host: 127.0.0.1", "  hots: 127.0.0.1", "Y010", "service.hots"),
    ("object_store: 512MiB", "object_store: 512MiB\n  colour: red", "Y010", "ray.colour"),
    ("models:…    max_batch: 8", "    max_batch_size: 8", "Y010", "models.face_detector.max_batch_size"),
    (
        "arcface:…embedded: {instances: 2, max_batch: 2, queue_delay: 0s}",
        "embedded: {cache: true}",
        "Y010",
        "models.arcface.profiles.embedded.cache",
    ),
    ("liveness:…    max_batch: 16\n", "", "Y011", "models.liveness.max_batch"),
    ("embed:…    route: /v1/faces/embed\n", "", "Y011", "pipelines.embed.route"),
    # values
    ("sla: 8s", "sla: 8", "Y020", "service.sla"),
    ("grpc: {port: 9000}", "grpc: {port: 9000, reflection: true}", "Y010", "service.grpc.reflection"),
    ("upload_limit: 10MiB", "upload_limit: 10MB", "Y021", "service.upload_limit"),
    ("dashboard_port: 8265", "dashboard_port: 80", "Y013", "ray.dashboard_port"),
    ("standard: {priority: 2,", "standard: {priority: two,", "Y012", "tiers.standard.priority"),
    ("device: gpu", "device: cuda", "Y014", "profiles.gpu.device"),
    ("gpu:…ray_version: 2.60.0", "ray_version: 2.6", "Y012", "profiles.gpu.ray_version"),
    ("embedded:…sha256: 21f063ff", "sha256: X1f063ff", "Y015", "profiles.embedded.triton.sha256"),
    ("embedded:…startup_timeout: 60s", "startup_timeout: 1m", "Y020", "profiles.embedded.triton.startup_timeout"),
    ("ingress:…max_ongoing_requests: 64", "max_ongoing_requests: 0x20", "Y012", "ingress.max_ongoing_requests"),
    ("ingress:…memory: 768MiB", "memory: 512", "Y021", "ingress.memory"),
    ('{image: "uint8[-1, -1, 3]"}', '{image: "TYPE_UINT8[-1, -1, 3]"}', "Y022", "models.face_detector.inputs.image"),
    ("float32[128]", "float32[]", "Y022", "models.arcface.outputs.embedding"),
    ("sface:prepare", "sface.prepare", "Y015", "models.arcface.weights.prepare"),
    (
        "paddleocr_det:…latency_budget: 600ms",
        "latency_budget: 600 ms ago",
        "Y020",
        "models.paddleocr_det.latency_budget",
    ),
    (
        "{max_batch: 1, queue_delay: 0s, threads: 2}",
        "{max_batch: 1, queue_delay: 0s, threads: 0}",
        "Y013",
        "models.paddleocr_det.profiles.embedded.threads",
    ),
    (
        '{tensor: "int32[-1]", labels: labels.txt}',
        '{tensor: "int32[-1]", labels: 5}',
        "Y012",
        "models.paddleocr_rec.outputs.indices.labels",
    ),
    (
        "models: [face_detector, arcface]\n    runs_in",
        "models: [face_detector, face_detector]\n    runs_in",
        "Y024",
        "stages.faces.models",
    ),
    ("  liveness:\n    code:…cpus: 0.1", "cpus: many", "Y012", "stages.liveness.replicas.cpus"),
    (
        "documents:…max_queued_requests: 64",
        "max_queued_requests: 0",
        "Y013",
        "stages.documents.replicas.max_queued_requests",
    ),
    ("decision:…runs_in: ingress", "runs_in: ingres", "Y014", "stages.decision.runs_in"),
    ('frames: "image[0..8]"', 'frames: "images[0..8]"', "Y023", "pipelines.verify.inputs.frames"),
    ("takes: {a: a, b: b}", "takes: [a, b]", "Y012", "pipelines.compare.steps.face.takes"),
    ("call: faces.embed,", "call: faces,", "Y015", "pipelines.embed.steps.face.call"),
    # what does not fit together
    ("{priority: 1}", "{priority: 1, default: true}", "P001", "tiers"),
    ("match_threshold: 0.363   #", "match_treshold: 0.363   #", "C003", "stages.faces.settings.match_treshold"),
    (
        "documents:…target_ongoing_requests: 4}",
        "target_ongoing_requests: 40}",
        "R011",
        "stages.documents.replicas.autoscaling.target_ongoing_requests",
    ),
    (
        "models: [face_detector, arcface, liveness]",
        "models: [face_detector, arcface, livenes]",
        "P101",
        "stages.liveness.models",
    ),
    ("{image: document}}\n", "{image: documnt}}\n", "P105", "pipelines.verify.steps.document_text.takes.image"),
    ("route: /v1/documents/read", "route: /v1/faces/compare", "P108", "pipelines.read.route"),
    (
        "call: liveness.assess, takes: {frames: frames}}",
        "call: liveness.asess, takes: {frames: frames}}",
        "C005",
        "pipelines.liveness.steps.liveness.call",
    ),
]
# The same for what is no YAML; the words are those of the finding in the line.
BREAKS = [
    ("  port: 8000", "  port:8000", "no space behind the colon of 'port:8000'"),
    ("request_limit: 32MiB", "request_limit: @32MiB", "a text cannot start with '@'"),
    ("embedded:…      exit_timeout: 10s", "\texit_timeout: 10s", "a tab stands where only spaces may"),
    ("gpu:…exit_timeout: 20s", "exit_timeout: 20s: 1", "a second `: ` in one line"),
    ("models:…liveness:…    latency_budget: 30ms", '    latency_budget: "30ms', "a quote is opened and never closed"),
    ('contributions: "float32[17]"}', 'contributions: "float32[17]"', "a bracket is opened and never closed"),
    ("documents:…cpus: 0.1", "cpus: `0.1`", "a text cannot start with '`'"),
    ("decision:…risk_review: 0.2", "risk_review 0.2", "a line without a key and its colon"),
    ("pipelines:…read:…    sla: 4s", "   sla: 4s", "the line does not belong to the mapping"),
    ("pipelines:…liveness:…    sla: 4s", "      sla: 4s", "the line is indented deeper than its mapping"),
]
# The same within brackets that hold more, some of it wrong.
IN_BRACKETS = [
    ("gpu: {instances: 2, max_batch: 32}", "gpu: {instances: 2 max_batch: 32}", "a comma is missing"),
    ("paddleocr_rec:…gpu: {instances: 2,", "gpu: {instances: @2,", "a text cannot start with '@'"),
    ("{paddleocr_det: 1, paddleocr_rec: 16}", "{paddleocr_det: 1, paddleocr_rec: 16]", "a comma is missing"),
    ('{factors: "float32[17]"}', "{factors: float32[17]}", "float32[17] is not in quotes"),
    ('{score: "float32[1]", measures', '{score: "float32[1]" measures', "a comma is missing"),
    ("paddleocr_det:…gpu: {max_batch: 16}", "gpu: {max_batch: 16}}", "a } that closes nothing"),
    ("aligned: flag}", 'aligned: "flag}', "a quote is opened and never closed"),
    ("decision.decide, takes", "decision.decide takes", "a comma is missing"),
    ('landmarks: "float32[-1, 5, 2]"', "landmarks: `float32`", "a text cannot start with '`'"),
    ("L007, at: models.liveness, because", "L007, at: models.liveness because", "a comma is missing"),
]


def changed(text: str, old: str, new: str) -> str:
    """The text with the first `old` behind the keys that are named before ellipses, if any are, replaced."""
    *keys, found = old.split("…")
    at = 0
    for key in keys:
        begin = re.compile(rf"^ *{re.escape(key)}", re.MULTILINE).search(text, at)
        assert begin is not None
        at = begin.start()
    at = text.index(found, at)
    return text[:at] + new + text[at + len(found) :]


def test_a_file_with_forty_mistakes_shows_forty_findings(example_text: str) -> None:
    text = example_text
    for old, new, _, _ in MISTAKES:
        text = changed(text, old, new)
    expected = [(code, place) for _, _, code, place in MISTAKES]
    assert len(expected) == len(set(expected)) == 40
    assert sorted((finding.code, finding.place) for finding in examine(text).findings) == sorted(expected)


def test_each_of_the_forty_alone_is_one_finding(example_text: str) -> None:
    for old, new, code, place in MISTAKES:
        findings = examine(changed(example_text, old, new)).findings
        assert [(finding.code, finding.place) for finding in findings] == [(code, place)], new


@pytest.mark.parametrize("breaks", [BREAKS, IN_BRACKETS, BREAKS + IN_BRACKETS], ids=["lines", "in brackets", "both"])
def test_breaks_hide_none_of_the_forty_and_are_found_too(example_text: str, breaks: list[tuple[str, str, str]]) -> None:
    text = example_text
    for old, new, *_ in [*MISTAKES, *breaks]:
        text = changed(text, old, new)
    findings = examine(text).findings
    mistakes = [(finding.code, finding.place) for finding in findings if finding.code != "Y002"]
    assert sorted(mistakes) == sorted((code, place) for _, _, code, place in MISTAKES)
    lines = {finding.line: finding.message for finding in findings if finding.code == "Y002"}
    expected = {text[: text.index(new)].count("\n") + 1 + new.count("\n"): says for _, new, says in breaks}
    assert sorted(lines) == sorted(expected)
    assert all(says in lines[line] for line, says in expected.items())


def test_a_name_that_is_written_wrongly_is_one_mistake_wherever_it_is_used(example_text: str) -> None:
    text = example_text.replace("document_text", "Document-Text")
    findings = [(finding.code, finding.place) for finding in examine(text).findings]
    assert findings == [("Y015", "pipelines.verify.steps.Document-Text")]
