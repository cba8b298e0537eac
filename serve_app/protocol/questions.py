"""What can be asked about the server and its models, over HTTP and gRPC alike; only exposed models exist here."""

from __future__ import annotations

from tritonclient.grpc import service_pb2 as pb

from serve_app.protocol.backend import Backend
from serve_app.protocol.refusals import cleaned, invalid, shown
from serve_app.protocol.signatures import Signatures, version_number

# What Triton says it can do, less what is not let through.
EXTENSIONS = (
    "classification",
    "sequence",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
)


class Questions:
    """Each answers the protocol's own message. Refusal for models that there are not; `timeout` is in seconds."""

    def __init__(self, signatures: Signatures, backend: Backend):
        self._signatures = signatures
        self._backend = backend

    async def server_ready(self, timeout: float) -> bool:
        answer = await self._backend.ask("ServerReady", pb.ServerReadyRequest(), timeout)
        return bool(answer.ready)

    async def server_metadata(self, timeout: float) -> pb.ServerMetadataResponse:
        """Triton's version; its name is that of its shared memory, and stays here."""
        answer = await self._backend.ask("ServerMetadata", pb.ServerMetadataRequest(), timeout)
        extensions = [name for name in answer.extensions if name in EXTENSIONS]
        return pb.ServerMetadataResponse(
            name=self._signatures.server_name, version=answer.version, extensions=extensions
        )

    async def model_ready(self, name: str, version: str, timeout: float) -> bool:
        if name not in self._signatures:
            return False
        request = pb.ModelReadyRequest(name=name, version=version and str(version_number(version)))
        answer = await self._backend.ask("ModelReady", request, timeout)
        return bool(answer.ready)

    async def model_metadata(self, name: str, version: str, timeout: float) -> pb.ModelMetadataResponse:
        version = self._signatures.find(name).version(version)
        request = pb.ModelMetadataRequest(name=name, version=version)
        answer: pb.ModelMetadataResponse = await self._backend.ask("ModelMetadata", request, timeout)
        return answer

    async def model_config(self, name: str, version: str, timeout: float) -> pb.ModelConfigResponse:
        version = self._signatures.find(name).version(version)
        request = pb.ModelConfigRequest(name=name, version=version)
        answer: pb.ModelConfigResponse = await self._backend.ask("ModelConfig", request, timeout)
        return answer

    async def statistics(self, name: str, version: str, timeout: float) -> pb.ModelStatisticsResponse:
        """Of one model, or of all where `name` is empty."""
        if name and name not in self._signatures:
            raise invalid(f"requested model '{shown(name)}' is not available")
        version = self._signatures[name].version(version) if name else ""
        request = pb.ModelStatisticsRequest(name=name, version=version)
        answer = await self._backend.ask("ModelStatistics", request, timeout)
        return pb.ModelStatisticsResponse(
            model_stats=[model for model in answer.model_stats if model.name in self._signatures]
        )

    async def index(self, *, ready: bool, timeout: float) -> pb.RepositoryIndexResponse:
        answer = await self._backend.ask("RepositoryIndex", pb.RepositoryIndexRequest(ready=ready), timeout)
        models = [model for model in answer.models if model.name in self._signatures]
        for model in models:
            model.reason = cleaned(model.reason)
        return pb.RepositoryIndexResponse(models=models)
