"""Tandem beside what it could be replaced by, in one run on one machine; prints a table in Markdown.

    python benchmarks/compare.py [tiny] [embed] [verify] [growth]

Needs the packages of benchmarks/requirements.txt beside Tandem. A copy of the project is brought up on ports of its
own, with one model more (`batch_add_model`); everything listens on the loopback interface. `tandem bench`, a process of
its own, measures all of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import psutil

from serve_app.artefacts import find_triton
from serve_app.bench import scratch
from serve_app.bench.scratch import AddedModel
from serve_app.cluster.head import find_head, processes
from serve_app.kyc.alignment import align
from serve_app.project import Project
from serve_app.spec.resolved import Resolved
from serve_app.triton import launch

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
TINY = {
    "backend": "python",
    "inputs": {"INPUT_A": "float32[1]", "INPUT_B": "float32[1]"},
    "outputs": {"OUTPUT_SUM": "float32[1]"},
    "max_batch": 4,
    "latency_budget": "10ms",
    "exposed": True,
    "profiles": {"embedded": {"queue_delay": "0s"}},
}
# What a user of Triton would write for it.
BARE = """
name: "batch_add_model" backend: "python" max_batch_size: 4
input [{name: "INPUT_A" data_type: TYPE_FP32 dims: [1]}, {name: "INPUT_B" data_type: TYPE_FP32 dims: [1]}]
output [{name: "OUTPUT_SUM" data_type: TYPE_FP32 dims: [1]}]
instance_group [{kind: KIND_CPU count: 1}] dynamic_batching {}
"""
READY_WITHIN_S = 120.0


@dataclass(frozen=True)
class Place:
    """The folder of a run."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"


def tandem(place: Place, *arguments: str) -> str:
    command = [str(BIN / "tandem"), "--project", str(place.project), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def bench(place: Place, what: str, *arguments: str) -> list[dict[str, Any]]:
    """The figures of one `tandem bench`, one for each load."""
    found: list[dict[str, Any]] = json.loads(tandem(place, "bench", what, *arguments, "--json"))
    return found


@contextlib.contextmanager
def ended(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    """A process of a reference, its children too; the end of what it printed is shown where its measurement fails."""
    file = folder / "references.log"
    with file.open("w") as log:
        process = subprocess.Popen(command, env={**os.environ, **environment}, cwd=HERE, stdout=log, stderr=log)
        try:
            yield
        except BaseException:
            print(file.read_text(errors="replace")[-4000:], file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait(60)


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + READY_WITHIN_S
    while not is_so():
        if time.monotonic() > give_up:
            raise SystemExit(f"a server is not ready within {READY_WITHIN_S:g} s")
        time.sleep(0.2)


def answers(url: str, body: bytes | None = None) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            answer = httpx.get(url) if body is None else httpx.post(url, content=body)
        except httpx.TransportError:
            return False
        return answer.status_code == 200

    return ask


# -- what is measured


def copy_project(place: Place) -> None:
    """The checkout's project, with `batch_add_model`, on free ports."""
    tiny_model = AddedModel(TINY, HERE / "batch_add_model" / "model.py")
    scratch.copy_project(Project(HERE.parent), place.project, {"batch_add_model": tiny_model})


@contextlib.contextmanager
def bare_triton(place: Place) -> Iterator[dict[str, str]]:
    """A Triton of its own with `batch_add_model`: its URLs, by protocol."""
    repository = place.folder / "bare" / "batch_add_model"
    (repository / "1").mkdir(parents=True)
    shutil.copy(HERE / "batch_add_model" / "model.py", repository / "1")
    (repository / "config.pbtxt").write_text(BARE)
    spec = Project(place.project).spec()
    installation = find_triton(spec.profiles["embedded"].triton, lambda _: None)
    http, grpc = launch.free_port(), launch.free_port()
    command = launch.command(
        installation,
        installation.make_backend_directory(place.folder),
        repository.parent,
        models=["batch_add_model"],
        config_name=None,
        port=grpc,
        metrics_port=None,
        exit_timeout=5,
        features=launch.Features(),
    )
    command = [part.format(prefix="bare") for part in command if part != "--allow-http=false"]
    command += ["--allow-http=true", "--http-address=127.0.0.1", f"--http-port={http}"]
    with ended(command, launch.environment(installation, {}), place.folder):
        until(answers(f"http://127.0.0.1:{http}/v2/health/ready"))
        yield {"HTTP": f"http://127.0.0.1:{http}", "gRPC": f"grpc://127.0.0.1:{grpc}"}


def tiny(place: Place) -> Iterator[str]:
    spec = Project(place.project).spec()
    ours = {"HTTP": spec.url, "gRPC": f"grpc://{spec.grpc_address}"}
    loads = ("--clients", "1", "--clients", "32")
    yield "| tiny model | p50, 1 client | requests/s, 32 clients |\n| --- | --- | --- |"
    with bare_triton(place) as bare:
        for protocol, url in bare.items():
            reference = bench(place, "batch_add_model", "--url", url, *loads)
            found = bench(place, "batch_add_model", "--url", ours[protocol], *loads)
            yield f"| bare Triton, {protocol} | {reference[0]['p50_ms']:.2f} ms | {reference[1]['rate']:.0f} |"
            more = found[0]["p50_ms"] - reference[0]["p50_ms"]
            share = found[1]["rate"] / reference[1]["rate"]
            yield (
                f"| Tandem, {protocol} | {found[0]['p50_ms']:.2f} ms ({more:+.2f}) | "
                f"{found[1]['rate']:.0f} ({share:.2f}) |"
            )


def embed(place: Place) -> Iterator[str]:
    model = Resolved(Project(place.project).spec(), "arcface", "embedded")
    onnx = str(place.project / "model_repository" / "arcface" / "1" / "model.onnx")
    crop = place.folder / "crop.jpg"
    crop.write_bytes(aligned_crop(place))
    loads = ("--file", str(crop), "--clients", "16", "--clients", "64")
    same = {"MODEL": onnx, "INSTANCES": str(model.instance_count), "THREADS": str(model.threads)}
    yield "| embedding of an aligned crop | 16 clients | p99 | 64 clients | p99 |\n| --- | --- | --- | --- | --- |"
    port = launch.free_port()
    url = f"http://127.0.0.1:{port}"
    mosec = [sys.executable, "mosec_sface.py", "--address", "127.0.0.1", "--port", str(port)]
    with ended(mosec, same, place.folder):
        until(answers(f"{url}/inference", crop.read_bytes()))
        yield row("mosec", bench(place, "/inference", "--url", url, *loads))
    yield row("Tandem", bench(place, "/v1/faces/embed?aligned=true", *loads))
    with ray_batch(place, same) as url:
        until(answers(url, crop.read_bytes()))
        yield row("Ray Serve, @serve.batch", bench(place, "/", "--url", url, *loads))


def row(name: str, found: Sequence[Mapping[str, Any]]) -> str:
    cells = [cell for each in found for cell in (f"{each['rate']:.1f}/s", f"{each['p99_ms']:.0f} ms")]
    return f"| {name} | {' | '.join(cells)} |"


@contextlib.contextmanager
def ray_batch(place: Place, environment: Mapping[str, str]) -> Iterator[str]:
    """Ray Serve's own batching, on a cluster of its own."""
    port = launch.free_port()
    serve = [sys.executable, "ray_batch_sface.py", str(port)]
    with ended(serve, environment, place.folder):
        yield f"http://127.0.0.1:{port}"


def aligned_crop(place: Place) -> bytes:
    """The sample selfie's face, as a JPEG of 112 by 112 pixels."""
    selfie = sample(place)[0]
    spec = Project(place.project).spec()
    answer = httpx.post(f"{spec.url}/v1/faces/embed", files={"image": selfie.read_bytes()}, timeout=30)
    landmarks = np.array(answer.raise_for_status().json()["face"]["landmarks"])
    picture = np.asarray(cv2.imread(str(selfie)), np.uint8)
    return bytes(cv2.imencode(".jpg", align(picture, landmarks))[1])


def sample(place: Place) -> list[Path]:
    """A selfie and a document."""
    folder = place.folder / "sample"
    if not folder.exists():
        tandem(place, "sample", str(folder))
    return [next(folder.glob("selfie*")), next(folder.glob("document*"))]


def verify(place: Place) -> Iterator[str]:
    selfie, document = map(str, sample(place))
    command = [sys.executable, "in_process.py", str(place.project), selfie, document]
    cost = json.loads(subprocess.run(command, check=True, cwd=HERE, stdout=subprocess.PIPE, text=True).stdout)
    most = psutil.cpu_count() / cost["cpu_ms"] * 1e3
    files = ("--file", f"selfie={selfie}", "--file", f"document={document}")
    loads = ("--window", "6", "--clients", "1", "--clients", "8", "--clients", "16")
    found = bench(place, "/v1/verify", *files, *loads)
    yield "| verification | verifications/s | p50 | p99 |\n| --- | --- | --- | --- |"
    yield f"| the stages and networks alone | {most:.2f} (all cores) | {cost['wall_ms']:.0f} ms (one by one) | |"
    for each in found:
        share, longer = each["rate"] / most, each["p50_ms"] / cost["wall_ms"]
        yield (
            f"| Tandem, {each['load']['clients']} clients | {each['rate']:.2f} ({share:.2f}) | "
            f"{each['p50_ms']:.0f} ms ({longer:.2f}) | {each['p99_ms']:.0f} ms |"
        )


def growth(place: Place) -> Iterator[str]:
    head = find_head(Project(place.project))
    if head is None:
        raise SystemExit("the service is gone")
    yield "| tiny model over HTTP | requests/s | p99 | memory after |\n| --- | --- | --- | --- |"
    for clients in (1, 2, 4, 8, 16, 32, 64):
        (found,) = bench(place, "batch_add_model", "--clients", str(clients))
        yield f"| {clients} clients | {found['rate']:.0f} | {found['p99_ms']:.1f} ms | {memory(head)} |"
    answered = 0
    while answered < 100_000:
        (found,) = bench(place, "batch_add_model", "--clients", "32", "--window", "5", "--windows", "6")
        answered += int(sum(found["window_rates"]) * 5)
        so_far = f"32 clients, {answered} requests later"
        yield f"| {so_far} | {found['rate']:.0f} | {found['p99_ms']:.1f} ms | {memory(head)} |"


def memory(head: Any) -> str:
    """Of all the service's processes, pages that they share counted once (Pss)."""
    total = sum(process.memory_full_info().pss for process in processes(head))
    return f"{total / 2**20:.0f} MiB"


SECTIONS = {"tiny": tiny, "embed": embed, "verify": verify, "growth": growth}


def main(wanted: Sequence[str]) -> None:
    if unknown := set(wanted) - SECTIONS.keys():
        raise SystemExit(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    with tempfile.TemporaryDirectory(prefix="tandem-compare-") as folder:
        place = Place(Path(folder))
        copy_project(place)
        tandem(place, "up", "--no-sample")
        try:
            print(f"{psutil.cpu_count()} cores, Python {platform.python_version()}\n")
            for name in wanted or SECTIONS:
                for line in SECTIONS[name](place):
                    print(line, flush=True)
                print()
        finally:
            tandem(place, "down")


if __name__ == "__main__":
    main(sys.argv[1:])
