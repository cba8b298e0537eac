"""Model repositories in the making, and what they are imported as."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.conversion import Imported, import_repository
from serve_app.render.triton import model_config
from serve_app.spec import Spec
from serve_app.spec.schema import ProfileName

TENSORS = (
    'input [{ name: "x" data_type: TYPE_FP32 dims: [4] }] output [{ name: "y" data_type: TYPE_FP32 dims: [4] }] '
    "max_batch_size: 8 "
)
PYTHON = f'backend: "python" instance_group [{{ kind: KIND_CPU }}] {TENSORS}'


@dataclass(frozen=True)
class Repository:
    """A model repository, and what it is imported as."""

    folder: Path

    def add(self, name: str, config: str | None, *files: str) -> None:
        """A model's folder with a config.pbtxt, unless it is None, and empty files."""
        (self.folder / name).mkdir(parents=True)
        if config is not None:
            (self.folder / name / "config.pbtxt").write_text(config, encoding="utf-8")
        for file in files:
            path = self.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def imported(self, profile: ProfileName | None = None) -> Imported:
        return import_repository(self.folder, profile)

    def spec(self) -> Spec:
        """The spec, from an import that lost nothing."""
        imported = self.imported()
        assert [*map(str, imported.not_carried), *imported.report.errors] == []
        assert imported.report.spec is not None
        return imported.report.spec

    def rendered(self, name: str) -> pb.ModelConfig:
        """What the spec renders to for one model."""
        spec = self.spec()
        return model_config(spec, name, spec.primary_profile)


def original(config: str, name: str) -> pb.ModelConfig:
    return text_format.Parse(f'{config} name: "{name}"', pb.ModelConfig())


def lost(imported: Imported) -> list[str]:
    return [str(loss) for loss in imported.not_carried]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "my models.v2").mkdir()
    return Repository(tmp_path / "my models.v2")
