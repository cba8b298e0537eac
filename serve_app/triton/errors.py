"""What Triton's refusals mean: one status code there can be several things here."""

from __future__ import annotations

import logging

import grpc

from serve_app.context import deadline_exceeded
from serve_app.problem import Problem

logger = logging.getLogger("ray.serve")


def is_lost(error: grpc.RpcError) -> bool:
    """Whether the server or the model's process went away, so that the request is worth one more try."""
    message = error.details() or ""
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return "Exceeds maximum queue size" not in message and "Request timeout expired" not in message
    return error.code() is grpc.StatusCode.INTERNAL and "Stub process" in message


def is_of_the_model(error: grpc.RpcError) -> bool:
    """Whether the model itself worked on the request and failed, as opposed to Triton, the way there or the time."""
    return error.code() is grpc.StatusCode.INTERNAL and not is_lost(error)


def problem_of(error: grpc.RpcError, model: str) -> Problem:
    """The problem that a client is told about when Triton refused or failed a request to `model`."""
    status, message = error.code(), error.details() or ""
    if "Exceeds maximum queue size" in message:
        return Problem(429, "queue_full", f"too many requests wait for {model}; retry in a second", retry_after=1)
    if status is grpc.StatusCode.DEADLINE_EXCEEDED or "Request timeout expired" in message:
        return deadline_exceeded()
    # Triton does not log what fails a single request. Its words name tensors and shapes, never what is in them.
    logger.warning("%s failed a request: %s: %s", model, status.name, message)
    if status is grpc.StatusCode.INVALID_ARGUMENT:
        # Arrays are checked against the spec before they are sent, so it is what is in them.
        return Problem(422, "input_refused", f"{model} cannot judge this input; send another picture")
    if is_lost(error) or status is grpc.StatusCode.NOT_FOUND:
        return model_unavailable(model)
    return model_failed(model)


def model_failed(model: str) -> Problem:
    return Problem(503, "model_failed", f"{model} failed on this request; its log has the cause", retry_after=2)


def model_unavailable(model: str) -> Problem:
    return Problem(
        503, "model_unavailable", f"{model} is not available just now; retry in a few seconds", retry_after=2
    )
