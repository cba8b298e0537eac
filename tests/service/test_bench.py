"""`tandem bench` against the running service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Service

QUICK = ("--warm-up", "0", "--window", "1", "--windows", "2", "--clients", "2", "--json")


def figures(service: Service, *arguments: str) -> dict[str, Any]:
    done = service.tandem("bench", *arguments, *QUICK)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["answered"] > 0
    assert found["codes"] == dict.fromkeys(found["codes"], found["answered"])
    assert 0 < found["p50_ms"] <= found["p99_ms"]
    return dict(found)


@pytest.mark.parametrize("protocol", [(), ("--grpc",)], ids=["http", "grpc"])
def test_a_model_is_measured_with_tensors_made_up_for_it(service: Service, protocol: tuple[str, ...]) -> None:
    found = figures(service, "face_detector", "--shape", "image=64,64,3", *protocol)
    (model,) = found["models"]
    assert model == "face_detector"
    assert found["models"][model]["average_batch"] >= 1
    assert found["models"][model]["compute_ms"] < found["p99_ms"]


def test_a_route_is_measured_with_files_and_shows_the_models_behind_it(
    service: Service, photos: dict[str, bytes], tmp_path: Path
) -> None:
    for name, photo in photos.items():
        (tmp_path / name).write_bytes(photo)
    selfie = str(tmp_path / next(iter(photos)))
    found = figures(service, "/v1/faces/embed", "--file", selfie, "--tier", "bulk")
    assert {"face_detector", "arcface"} <= found["models"].keys()
    figures(service, "/v1/faces/compare", "--file", f"a={selfie}", "--file", f"b={selfie}")


def test_a_model_whose_input_varies_needs_a_shape(service: Service) -> None:
    done = service.tandem("bench", "face_detector", *QUICK)
    assert done.returncode == 1
    assert "give it a size, such as --shape image=320,320,3" in done.stderr


def test_a_model_that_is_not_exposed_is_said_not_to_be(service: Service) -> None:
    done = service.tandem("bench", "antifraud", *QUICK)
    assert done.returncode == 1
    assert "antifraud is not exposed: write `exposed: true`" in done.stderr
