"""What must hold between the parts of a spec. Each check yields places and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.findings import Place
from serve_app.spec.paths import budget, models_on, paths, queue_timeout
from serve_app.spec.schema import AS_IS, Pipeline, Spec
from serve_app.spec.units import show_duration

Check = Iterator[tuple[Place, str]]


def cross_checks(spec: Spec) -> list[tuple[Place, str]]:
    """Everything that is wrong between the parts of `spec`, as (place, what to do)."""
    references = [
        *_tiers(spec),
        *_profiles(spec),
        *_models(spec),
        *_stages(spec),
        *_service(spec),
        *_sla(spec),
        *_routes(spec),
        *_steps(spec),
    ]
    # Paths can only be followed where every name leads somewhere.
    # A queue timeout is what the budgets leave of the SLA.
    return references or list(_budgets(spec)) or list(_queues(spec))


def _tiers(spec: Spec) -> Check:
    defaults = [name for name, tier in spec.tiers.items() if tier.default]
    if len(defaults) != 1:
        yield ("tiers",), f"{len(defaults)} tiers have default: true; exactly one is what a request without X-Tier gets"
    priorities = sorted(tier.priority for tier in spec.tiers.values())
    if priorities != list(range(1, len(priorities) + 1)):
        yield ("tiers",), f"the priorities are {priorities}; number them 1, 2, … without gaps, 1 served first"


def _profiles(spec: Spec) -> Check:
    if "embedded" not in spec.profiles:
        yield ("profiles",), "serve_config.yaml is generated for the profile embedded; add it"
    for name, profile in spec.profiles.items():
        triton = profile.triton
        place: Place = ("profiles", name, "triton")
        if (triton.requirement is None) != (triton.sha256 is None):
            yield place, "requirement and sha256 pin the server's wheel together; give both or neither"
        if (profile.device == "gpu") != (triton.gpus > 0):
            yield (
                (*place, "gpus"),
                f"device is {profile.device} and gpus is {triton.gpus:g}; a gpu needs gpus, a cpu none",
            )
        if profile.onnx == "onnxruntime" and triton.requirement is not None:
            yield (*place, "requirement"), "the server in the wheel has no ONNX Runtime backend; use onnx: python"


def _models(spec: Spec) -> Check:
    for name, model in spec.models.items():
        place: Place = ("models", name)
        if both := sorted(set(model.inputs) & set(model.outputs)):
            yield (*place, "outputs", both[0]), "an input has this name too; name them apart"
        if model.backend == "onnx" and model.weights is None:
            yield place, "an ONNX model needs weights; add them, or write backend: python for a model.py of its own"
        for profile in spec.profiles:
            delay = spec.queue_delay(name, profile)
            if delay > model.latency_budget:
                yield (
                    place,
                    f"in profile {profile} the queue delay of {show_duration(delay)} is longer than the latency budget "
                    f"of {show_duration(model.latency_budget)}; make it shorter",
                )
            if model.queue_size < (batch := spec.max_batch(name, profile)):
                message = f"a queue of {model.queue_size} can never fill a batch of {batch}; make it larger"
                yield (*place, "queue_size"), message
        yield from _weights(spec, name)


def _weights(spec: Spec, name: str) -> Check:
    weights = spec.models[name].weights
    if weights is None:
        return
    place: Place = ("models", name, "weights")
    if weights.file is None and weights.prepare == AS_IS:
        yield place, "neither a file nor code that builds one; give file, or prepare"
    if weights.package is not None and weights.file is None:
        yield place, "a package without file: say which file in the package is the model"
    if weights.file is not None and weights.sha256 is None:
        pinned = "package" if weights.package else "file"
        yield place, f"sha256 is missing; pin the {pinned} by the one that sha256sum prints"


def _stages(spec: Spec) -> Check:
    used = {step.call.split(".")[0] for pipeline in spec.pipelines.values() for step in pipeline.steps.values()}
    for name, stage in spec.stages.items():
        place: Place = ("stages", name)
        for index, model in enumerate(stage.models):
            if model not in spec.models:
                yield (*place, "models", index), f"there is no model {model!r}; the spec has {', '.join(spec.models)}"
        if (stage.runs_in is None) == (stage.replicas is None):
            yield place, "write either replicas, for processes of its own, or runs_in: ingress"
        if name not in used:
            yield place, "no pipeline calls this stage; call it in a step, or remove it"
    for place, replicas in [
        (("ingress",), spec.ingress),
        *((("stages", name, "replicas"), stage.replicas) for name, stage in spec.stages.items()),
    ]:
        if replicas and replicas.autoscaling.min_replicas > replicas.autoscaling.max_replicas:
            yield (*place, "autoscaling", "max_replicas"), "this is less than min_replicas; make it at least that"
        if replicas and replicas.autoscaling.target_ongoing_requests > replicas.max_ongoing_requests:
            yield (
                (*place, "autoscaling", "target_ongoing_requests"),
                "a replica never has that many requests: it is more than max_ongoing_requests; make it smaller",
            )


def _service(spec: Spec) -> Check:
    ports = {
        "service.port": spec.service.port,
        "ray.port": spec.ray.port,
        "ray.dashboard_port": spec.ray.dashboard_port,
    }
    if len(set(ports.values())) < len(ports):
        shown = ", ".join(f"{key} {port}" for key, port in ports.items())
        yield ("service", "port"), f"two of these are the same: {shown}; give each a port of its own"
    if spec.service.upload_limit > spec.service.request_limit:
        yield ("service", "upload_limit"), "a request could never be that large; make it at most request_limit"


def _sla(spec: Spec) -> Check:
    for name in spec.pipelines:
        if spec.sla(name) >= spec.service.proxy_timeout:
            sla = show_duration(spec.sla(name))
            message = f"pipeline {name} may take {sla}, and Ray's proxy would give up first; lengthen it"
            yield ("service", "proxy_timeout"), message


RESERVED_ROUTES = ("/healthz", "/readyz", "/docs", "/openapi.json", "/v2")


def _routes(spec: Spec) -> Check:
    routes: dict[str, str] = {}
    for name, pipeline in spec.pipelines.items():
        place: Place = ("pipelines", name, "route")
        if pipeline.route in routes:
            yield place, f"pipeline {routes[pipeline.route]} has this route already; give one of them another"
        if any(pipeline.route == route or pipeline.route.startswith(f"{route}/") for route in RESERVED_ROUTES):
            yield place, f"the ingress keeps {', '.join(RESERVED_ROUTES)} for itself; use another route"
        routes.setdefault(pipeline.route, name)


def _steps(spec: Spec) -> Check:
    for name, pipeline in spec.pipelines.items():
        place: Place = ("pipelines", name, "steps")
        earlier: list[str] = []
        for step_name, step in pipeline.steps.items():
            if step_name in pipeline.inputs:
                yield (*place, step_name), "an input has this name too; name them apart"
            if (stage := step.call.split(".")[0]) not in spec.stages:
                yield (*place, step_name, "call"), f"there is no stage {stage!r}; the spec has {', '.join(spec.stages)}"
            for argument, source in step.takes.items():
                if source not in pipeline.inputs and source not in earlier:
                    known = ", ".join([*pipeline.inputs, *earlier])
                    yield (
                        (*place, step_name, "takes", argument),
                        f"{source!r} is neither an input nor an earlier step: {known}",
                    )
            earlier.append(step_name)
        yield from _unread_steps(place, pipeline)


def _unread_steps(place: Place, pipeline: Pipeline) -> Check:
    read = {source for step in pipeline.steps.values() for source in step.takes.values()}
    for step_name in list(pipeline.steps)[:-1]:
        if step_name not in read:
            yield (*place, step_name), "no later step takes this result; take it, or remove the step"


def _budgets(spec: Spec) -> Check:
    for name, pipeline in spec.pipelines.items():
        sla = spec.sla(name)
        for path in paths(pipeline):
            models = models_on(spec, pipeline, path)
            if (total := budget(spec, models)) > sla:
                parts = " + ".join(f"{model} {show_duration(spec.models[model].latency_budget)}" for model in models)
                yield (
                    ("pipelines", name),
                    f"the budgets along {' → '.join(path)} are {show_duration(total)} ({parts}), more than the SLA of "
                    f"{show_duration(sla)}; shorten a budget or lengthen the SLA",
                )


def _queues(spec: Spec) -> Check:
    for name in spec.models:
        timeout = queue_timeout(spec, name)
        for profile in spec.profiles:
            delay = spec.queue_delay(name, profile)
            if timeout <= delay:
                yield (
                    ("models", name),
                    f"in profile {profile} a lone request would always fail: the queue delay of {show_duration(delay)} "
                    f"is not shorter than the queue timeout of {show_duration(timeout)}",
                )
