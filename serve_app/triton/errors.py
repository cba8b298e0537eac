"""What Triton's refusals mean: one status code there can be several things here."""

from __future__ import annotations

from tritonclient.utils import InferenceServerException

from serve_app.context import deadline_exceeded
from serve_app.problem import Problem


def is_lost(error: InferenceServerException) -> bool:
    """Whether the server or the model's process went away, so that the request is worth one more try."""
    message = str(error.message())
    if error.status() == "StatusCode.UNAVAILABLE":
        return "Exceeds maximum queue size" not in message and "Request timeout expired" not in message
    return error.status() == "StatusCode.INTERNAL" and "Stub process" in message


def problem_of(error: InferenceServerException, model: str) -> Problem:
    """The problem that a client is told about when Triton refused or failed a request to `model`."""
    status, message = error.status(), str(error.message())
    if "Exceeds maximum queue size" in message:
        return Problem(429, "queue_full", f"too many requests wait for {model}; retry in a second", retry_after=1)
    if status == "StatusCode.DEADLINE_EXCEEDED" or "Request timeout expired" in message:
        return deadline_exceeded()
    if status == "StatusCode.INVALID_ARGUMENT":
        # Arrays were checked against the spec before they were sent: the spec and the loaded model disagree.
        return Problem(
            500, "model_mismatch", f"{model} does not take what the spec says; run `tandem render` and redeploy"
        )
    if is_lost(error) or status == "StatusCode.NOT_FOUND":
        return model_unavailable(model)
    return Problem(
        503, "model_failed", f"{model} failed on this request; see Triton's log on the server", retry_after=2
    )


def model_unavailable(model: str) -> Problem:
    return Problem(
        503, "model_unavailable", f"{model} is not available just now; retry in a few seconds", retry_after=2
    )
