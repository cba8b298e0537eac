"""What a cluster says of what runs on it: Ray Serve's own account, and that of each Triton, both by the dashboard."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from ray.job_submission import JobStatus, JobSubmissionClient

from serve_app.cluster.error import ClusterError
from serve_app.cluster.head import find_head
from serve_app.drift.probe import MARK
from serve_app.project import Project
from serve_app.render.ray_serve import TRITON
from serve_app.spec import Spec

TOKEN_VARIABLE = "RAY_AUTH_TOKEN"
# A job takes about six seconds on an idle machine.
PROBE_S = 60.0
_POLL_S = 0.1
_SAID = 400


@dataclass(frozen=True)
class Dashboard:
    """Where a cluster's dashboard is, and what opens it; `ray_port` is the cluster's where `tandem up` started it."""

    url: str
    token: str | None
    ray_port: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


def find_dashboard(project: Project, spec: Spec, given: str | None) -> Dashboard:
    """The dashboard at `given`, else that of the head node of `tandem up`, else at the spec's port of this machine."""
    head = find_head(project)
    if head is not None and head.is_running() and given in (None, head.dashboard):
        return Dashboard(head.dashboard, head.token, head.port)
    url = given or f"http://127.0.0.1:{spec.ray.dashboard_port}"
    return Dashboard(url.rstrip("/"), _token())


def _token() -> str | None:
    """The token where Ray itself looks for it: $RAY_AUTH_TOKEN, the file $RAY_AUTH_TOKEN_PATH, ~/.ray/auth_token."""
    if TOKEN_VARIABLE in os.environ:
        return os.environ[TOKEN_VARIABLE]
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def serve_details(dashboard: Dashboard) -> dict[str, Any]:
    """What Ray Serve says of its applications. ClusterError where the dashboard does not say it."""
    try:
        answer = httpx.get(f"{dashboard.url}/api/serve/applications/", headers=dashboard.headers, timeout=10)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ClusterError(
            f"no Ray dashboard answers at {dashboard.url} ({error}); start the service, or give --dashboard"
        ) from None
    if answer.status_code in (401, 403):
        raise ClusterError(f"Ray's dashboard at {dashboard.url} wants a token; put the cluster's into {TOKEN_VARIABLE}")
    if answer.status_code != 200:
        raise ClusterError(
            f"what answers at {dashboard.url} is no Ray dashboard with Serve (status {answer.status_code})"
        )
    try:
        found: dict[str, Any] = answer.json()
    except ValueError:
        raise ClusterError(f"what answers at {dashboard.url} is no Ray dashboard; name it with --dashboard") from None
    return found


def ask_inside(
    dashboard: Dashboard, application: str, runtime_env: Mapping[str, Any], timeout: float = PROBE_S
) -> dict[str, Any]:
    """What `serve_app.drift.probe` prints. ClusterError where it cannot be run.

    A short job on the cluster asks them: it needs no more than the dashboard, wherever that is, and a `python` on the
    head node's PATH that has Tandem.
    """
    words = ["python", "-m", "serve_app.drift.probe", application, TRITON]
    try:
        client = JobSubmissionClient(dashboard.url, headers=dashboard.headers)
        job = client.submit_job(entrypoint=shlex.join(words), runtime_env=dict(runtime_env))
        try:
            return _answers(client, job, timeout)
        finally:
            if not client.get_job_status(job).is_terminal():
                client.stop_job(job)
            else:
                client.delete_job(job)
    except (OSError, RuntimeError) as error:  # requests' own errors are OSErrors
        raise ClusterError(f"no job can be run by {dashboard.url} to ask each Triton ({error})") from None


def _answers(client: JobSubmissionClient, job: str, timeout: float) -> dict[str, Any]:
    give_up = time.monotonic() + timeout
    while not (status := client.get_job_status(job)).is_terminal():
        if time.monotonic() > give_up:
            raise ClusterError(f"the job that asks each Triton was not done within {timeout:.0f} s, and was stopped")
        time.sleep(_POLL_S)
    lines = client.get_job_logs(job).splitlines()
    marked = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    if status is not JobStatus.SUCCEEDED or not marked:
        said = " ".join(lines[-3:])[-_SAID:]
        raise ClusterError(f"the job that asks each Triton failed: {said or client.get_job_info(job).message}")
    found: dict[str, Any] = json.loads(marked[-1])
    return found
