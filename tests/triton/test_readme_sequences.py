"""The README's model that keeps sequences does so on a real Triton."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton

from serve_app.spec.document import read_document
from tests.rules.case import GONE

SECTION = (
    (Path(__file__).parents[2] / "README.md")
    .read_text(encoding="utf-8")
    .partition("\n## What Triton can schedule\n")[2]
    .partition("\n## ")[0]
)
(CODE,) = re.findall(r"^```python\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
(VOCABULARY,) = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)


def test_each_sequence_is_summed_on_its_own(load) -> None:
    data = read_document(VOCABULARY).data
    assert data is not None
    client = load({"models": {"m": GONE, "running_sum": data["models"]["running_sum"]}}, CODE, name="running_sum")

    def send(value: float, sequence: int, *, start: bool = False) -> float:
        tensor = triton.InferInput("value", [1, 1], "FP32").set_data_from_numpy(np.full((1, 1), value, np.float32))
        answer = client.infer(
            "running_sum", [tensor], sequence_id=sequence, sequence_start=start, client_timeout=20
        ).as_numpy("total")
        return float(answer[0, 0])

    assert [send(1, 5, start=True), send(10, 6, start=True), send(2, 5), send(20, 6)] == [1, 10, 3, 30]
    assert send(4, 5, start=True) == 4
