"""`tandem up`, `tandem down` and `tandem status`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx

from serve_app.artefacts import prepare_all
from serve_app.cluster.deploy import dashboard_answers, deploy, details, is_ready, undeploy
from serve_app.cluster.error import ClusterError
from serve_app.cluster.head import (
    STOP_GRACE_S,
    Head,
    ended_on_failure,
    find_head,
    forget_head,
    logs,
    only_one,
    processes,
    start_head,
    stop_head,
)
from serve_app.cluster.preflight import check_machine
from serve_app.cluster.sample import fetch_photos, verify_sample, why_no_sample
from serve_app.project import Project, write_files
from serve_app.spec import ProfileName, Spec, SpecError, examine_file
from serve_app.triton.guard import remove_orphans
from serve_app.weights.errors import Progress

RAY_START_S = 60.0


def up(project: Project, profile: ProfileName, progress: Progress, *, sample: bool) -> None:
    """Bring the service up and, with `sample`, verify a sample identity where the spec has the pipeline for it.

    ClusterError where it cannot be.
    """
    with only_one(project):
        _end_remains(project, progress)
        report = examine_file(project.spec_file)
        spec = report.usable()
        if report.warnings:
            progress(f"the spec has {len(report.warnings)} warnings; `tandem validate` shows them")
        if profile not in spec.profiles:
            raise ClusterError(
                f"the spec has no profile {profile}, the one that `tandem up` runs; add it, or deploy the other "
                "one as the README says under Deploying without `tandem up`"
            )
        check_machine(spec, profile)
        prepare_all(project, spec, profile, progress)
        photos = None
        if sample and (reason := why_no_sample(spec)) is not None:
            progress(f"no sample identity is verified: {reason}")
        elif sample:
            photos = fetch_photos(progress)
        for name in write_files(project, spec):
            progress(f"rendered {name}")
        progress("starting Ray")
        head = start_head(project, spec, dashboard_answers, RAY_START_S)
        with ended_on_failure(head):
            progress(f"deploying {spec.application}")
            deploy(project, head, spec.profiles[profile].triton.startup_timeout.total_seconds() + RAY_START_S, progress)
            if photos is not None:
                progress("ready; verifying a sample identity")
                for line in verify_sample(head.url, photos).splitlines():
                    progress(f"  {line}")
    progress("up and running; end it with `tandem down`")
    for line in addresses(project, spec, head):
        progress(f"  {line}")


def addresses(project: Project, spec: Spec, head: Head) -> Iterator[str]:
    """Where to find what runs, a line each: first the routes of the spec's pipelines, if it has any."""
    for index, pipeline in enumerate(spec.pipelines.values()):
        yield f"{'' if index else 'API':10} {head.url}{pipeline.route}"
    yield f"API docs   {head.url}/docs"
    yield f"protocol   {head.url}/v2, gRPC {spec.grpc_address}"
    yield f"dashboard  {head.dashboard}, token {head.token}"
    yield f"logs       {logs(project)}"


def _end_remains(project: Project, progress: Progress) -> None:
    """End what a head node that died has left. ClusterError where it lives."""
    head = find_head(project)
    if head is None:
        return
    if head.is_running():
        raise ClusterError(
            f"already up: the API is at {head.url}, Ray's dashboard at {head.dashboard}; see `tandem status`"
        )
    for name in stop_head(head):
        progress(f"ended {name}, left by a head node that died")


def down(project: Project, progress: Progress) -> None:
    """End everything that `up` started."""
    if find_head(project) is None:
        progress("nothing runs")
        return
    with only_one(project):
        head = find_head(project)
        if head is None or not processes(head):
            forget_head(project)
            progress("nothing runs")
            return
        if head.is_running():
            progress("letting requests in work finish")
            if not undeploy(head, _in_work_s(project, progress) + STOP_GRACE_S):
                progress("Ray Serve did not end the application in time; ending its processes")
        for name in stop_head(head):
            progress(f"had to kill {name}")
        remove_orphans()
        forget_head(project)
        progress("down")


def _in_work_s(project: Project, progress: Progress) -> float:
    """For how many seconds requests may be in work; a minute where the spec was changed and cannot be used any more."""
    try:
        return project.spec().service.sla.total_seconds()
    except SpecError:
        progress("the spec cannot be used as it is now, see `tandem validate`: they are given a minute")
        return 60.0


def status(project: Project, show: Callable[[str], object]) -> bool:
    """Show the state of the service; whether it can serve."""
    head = find_head(project)
    if head is None or not head.is_running():
        url = project.spec().url
        show(
            f"a service that `tandem up` did not start answers at {url}"
            if is_ready(url)
            else "down; start it with `tandem up`"
        )
        return False
    try:
        applications = details(head).raise_for_status().json()["applications"]
        ready = is_ready(head.url)
    except httpx.HTTPError as error:
        show(f"Ray's head node runs but does not answer ({error}); its logs are in {logs(project)}")
        return False
    for name, application in applications.items():
        show(f"{name}: {application['status'].lower()}")
        for deployment_name, deployment in application["deployments"].items():
            states = [replica["state"].lower() for replica in deployment["replicas"]]
            show(f"  {deployment_name:12} {deployment['status'].lower():10} {', '.join(states)}")
    show(f"API {head.url} ({'ready' if ready else 'not ready'}), dashboard {head.dashboard}, token {head.token}")
    return ready
