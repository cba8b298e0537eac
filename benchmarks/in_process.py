"""What a verification costs by itself: the application's own stages, over its networks in this process.

`python in_process.py PROJECT SELFIE DOCUMENT [COUNT]` prints, of COUNT verifications one after the other, the CPU time
of one (`cpu_ms`: the networks', OpenCV's and Pillow's, of all threads together) and how long one takes where nothing
but the cores limits it (`wall_ms`: the critical path). No HTTP, no Ray, no Triton.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
from ort import load

from serve_app.concurrency import together
from serve_app.context import RequestContext, serving
from serve_app.model import Model
from serve_app.pipeline.graph import run
from serve_app.pipeline.stage import build_stage
from serve_app.project import Project
from serve_app.spec import Spec
from serve_app.spec.resolved import Resolved


class InProcess:
    """A model as stages call it: as many runs at a time as it has instances, of as many items as a batch has."""

    def __init__(self, project: Project, spec: Spec, name: str):
        entry, found = spec.models[name], Resolved(spec, name, "embedded")
        file = project.repository / name / "1" / "model.onnx"
        self._session = load(str(file), found.threads)
        self._instances = asyncio.Semaphore(found.instance_count)
        self._batch = max(1, found.max_batch)
        self._inputs, self._outputs = list(entry.inputs), list(entry.outputs)
        labels = [project.repository / name / output.labels for output in entry.outputs.values() if output.labels]
        self.labels = labels[0].read_text(encoding="utf-8").removesuffix("\n").split("\n") if labels else ()

    async def __call__(self, *inputs: np.ndarray) -> Any:
        starts = range(0, len(inputs[0]), self._batch)
        parts = await together(*(self._run([array[at : at + self._batch] for array in inputs]) for at in starts))
        outputs = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        return outputs[0] if len(outputs) == 1 else outputs

    async def _run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        feed = dict(zip(self._inputs, inputs, strict=True))
        async with self._instances:
            outputs: list[np.ndarray] = await asyncio.to_thread(self._session.run, self._outputs, feed)
        return outputs


def stages_of(project: Project, spec: Spec) -> dict[str, Any]:
    """The stages; those whose models are not ONNX files have nothing to do without camera frames."""
    onnx = {name: InProcess(project, spec, name) for name, model in spec.models.items() if model.weights is not None}
    return {
        name: build_stage(stage, {model: cast(Model, onnx.get(model)) for model in stage.models})
        for name, stage in spec.stages.items()
    }


async def measure(project: Project, selfie: bytes, document: bytes, count: int) -> dict[str, float]:
    spec = project.spec()
    stages = stages_of(project, spec)

    async def call(stage: str, method: str, arguments: dict[str, Any], _: RequestContext) -> Any:
        return await getattr(stages[stage], method)(**arguments)

    inputs = {"selfie": selfie, "document": document, "frames": []}
    walls, spent = [], []
    for index in range(count + 2):
        context = RequestContext(str(index), 1, time.time() + 60)
        with serving(context):
            wall, cpu = time.perf_counter(), time.process_time()
            await run(spec.pipelines["verify"], inputs, context, call)
            walls.append(time.perf_counter() - wall)
            spent.append(time.process_time() - cpu)
    return {"cpu_ms": statistics.mean(spent[2:]) * 1e3, "wall_ms": statistics.median(walls[2:]) * 1e3}


def main(arguments: Sequence[str]) -> None:
    cv2.setNumThreads(1)
    project, selfie, document = map(Path, arguments[:3])
    count = int(arguments[3]) if len(arguments) > 3 else 20
    found = asyncio.run(measure(Project(project.resolve()), selfie.read_bytes(), document.read_bytes(), count))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
