"""What a real Triton makes of configurations that the validator refuses: that each rule is true, not believed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tritonclient.grpc as triton
from google.protobuf import text_format
from tritonclient.utils import InferenceServerException

from serve_app.render.triton import model_config
from serve_app.spec import Spec
from serve_app.triton.server import TritonServer
from tests.rules.case import Case, patched
from tests.rules.tables import CASES

CODE = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""
LOAD_S = 20


@pytest.fixture
def repository_folder(server: TritonServer, shared_folder: Path) -> Iterator[Path]:
    """The shared server's repository; what a test adds is gone after it."""
    folder = shared_folder / "models"
    before = set(folder.iterdir())
    yield folder
    with triton.InferenceServerClient(server.address) as client:
        for added in set(folder.iterdir()) - before:
            client.unload_model(added.name)  # an ensemble that failed to load would keep the server busy with its steps
            shutil.rmtree(added)


def add(case: Case, folder: Path) -> None:
    """Every model of the case, as the unchecked spec renders it."""
    data = patched(case.patch)
    spec = None if case.config is not None else Spec.model_validate(data)
    for name in [*data["models"], *data.get("ensembles", {})]:
        version = folder / name / "1"
        version.mkdir(parents=True)
        if name in data["models"]:
            (version / "model.py").write_text(CODE)
        text = case.config if spec is None else text_format.MessageToString(model_config(spec, name, "embedded"))
        (folder / name / "config.pbtxt").write_text(str(text))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in CASES.items() if case.refused is not None]
)
def test_triton_refuses_it_too(
    case: Case, server: TritonServer, repository_folder: Path, server_log: Path, eventually: Callable[..., None]
) -> None:
    add(case, repository_folder)
    before = server_log.stat().st_size
    with triton.InferenceServerClient(server.address) as client, pytest.raises(InferenceServerException) as refused:
        client.load_model(case.model, client_timeout=LOAD_S)
    # What is wrong with a configuration itself stands in the log only: the client is told "failed to poll".
    eventually(lambda: str(case.refused) in f"{refused.value}{server_log.read_text()[before:]}")


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items() if case.loads])
def test_triton_takes_it_without_a_word(case: Case, server: TritonServer, repository_folder: Path) -> None:
    add(case, repository_folder)
    with triton.InferenceServerClient(server.address) as client:
        client.load_model(case.model, client_timeout=LOAD_S)
        assert client.is_model_ready(case.model)
        client.unload_model(case.model, unload_dependents=True)
