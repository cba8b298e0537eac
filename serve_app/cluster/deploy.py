"""Hand the application to Ray Serve and follow it until it can serve."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from serve_app.cluster.error import ClusterError
from serve_app.cluster.head import Head
from serve_app.project import Project
from serve_app.weights.errors import Progress

if TYPE_CHECKING:
    from ray.dashboard.modules.serve.sdk import ServeSubmissionClient

_POLL_S = 0.25


def dashboard_answers(head: Head) -> bool:
    """Whether Ray's dashboard can take a deployment."""
    try:
        return details(head).status_code == 200
    except httpx.TransportError:
        return False


def details(head: Head) -> httpx.Response:
    """What Ray Serve says of its applications."""
    return httpx.get(f"{head.dashboard}/api/serve/applications/", headers=_headers(head), timeout=10)


def _headers(head: Head) -> dict[str, str]:
    return {"Authorization": f"Bearer {head.token}"}


def _client(head: Head) -> ServeSubmissionClient:
    from ray.dashboard.modules.serve.sdk import ServeSubmissionClient  # loads Ray, which `tandem status` does without

    return ServeSubmissionClient(head.dashboard, headers=_headers(head))


def deploy(project: Project, head: Head, timeout: float, progress: Progress) -> None:
    """Deploy serve_config.yaml and wait until requests are answered.

    ClusterError with Ray's reason where a part fails or time runs out.
    """
    config = yaml.safe_load(project.serve_config.read_text(encoding="utf-8"))
    with _dashboard_errors(head):
        client = _client(head)
        client.deploy_applications(config)
    application = config["applications"][0]["name"]
    give_up = time.monotonic() + timeout
    said: dict[str, str] = {}
    while True:
        with _dashboard_errors(head):
            found = client.get_serve_details()["applications"].get(application, {})
        _report(found.get("deployments", {}), said, progress)
        if found.get("status") == "DEPLOY_FAILED":
            raise ClusterError(f"Ray Serve could not deploy {application}: {_reason(found)}")
        if found.get("status") == "RUNNING" and is_ready(head.url):
            return
        if time.monotonic() > give_up:
            raise ClusterError(f"{application} is not ready after {timeout:.0f} s: {_reason(found)}")
        time.sleep(_POLL_S)


@contextmanager
def _dashboard_errors(head: Head) -> Iterator[None]:
    """What Ray's client raises where the dashboard does not do as it is asked, as a ClusterError."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # requests' own errors are OSErrors
        raise ClusterError(f"Ray's dashboard at {head.dashboard} failed: {error}; see its logs") from None


def _report(deployments: Mapping[str, Any], said: dict[str, str], progress: Progress) -> None:
    for name, deployment in deployments.items():
        running = sum(replica["state"] == "RUNNING" for replica in deployment["replicas"])
        state = f"{name}: {deployment['status'].lower()}, {running} of {deployment['target_num_replicas']} replicas run"
        if said.get(name) != state:
            said[name] = state
            progress(state)


def _reason(application: Mapping[str, Any]) -> str:
    messages = [application.get("message", ""), *(d["message"] for d in application.get("deployments", {}).values())]
    reasons = dict.fromkeys(_without_traceback(message) for message in messages if message)
    return "\n".join(reasons) or "Ray gives no reason; see its dashboard and logs"


_RAISED = re.compile(r"^(?:\w+\.)+(\w+(?:Error|Exception): )", re.MULTILINE)


def _without_traceback(message: str) -> str:
    """What was raised last, where the message is a traceback."""
    raised = list(_RAISED.finditer(message)) if "Traceback" in message else []
    return message[raised[-1].start(1) :].strip() if raised else message.strip()


def is_ready(url: str) -> bool:
    """Whether the service at `url` can serve."""
    try:
        # A certificate names the host that clients use, not the address that this machine uses. Nothing secret is sent.
        return httpx.get(f"{url}/readyz", timeout=5, verify=False).status_code == 200
    except httpx.TransportError:
        return False


def undeploy(head: Head, timeout: float) -> bool:
    """Let the application finish its requests and end it; whether that worked in time."""
    give_up = time.monotonic() + timeout
    try:
        client = _client(head)
        client.delete_applications()  # type: ignore[no-untyped-call]
        while client.get_serve_details()["applications"]:
            if time.monotonic() > give_up:
                return False
            time.sleep(_POLL_S)
    except (OSError, RuntimeError):
        return False
    return True
