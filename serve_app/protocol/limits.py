"""How much a request may hold."""

from __future__ import annotations

from dataclasses import dataclass

from serve_app.spec import Spec


@dataclass(frozen=True)
class Limits:
    """Sizes are bytes.

    `listed` bounds what is taken apart into single values: JSON, and the part of a gRPC message that is not raw
    tensors. It takes up to twenty times its size while it is read, and holds up everything else meanwhile.
    """

    body: int = 32 * 2**20
    listed: int = 4 * 2**20
    tensors: int = 256
    parameters: int = 32
    name: int = 128
    text: int = 1024
    strings: int = 100_000
    in_flight: int = 32

    @classmethod
    def of(cls, spec: Spec) -> Limits:
        return cls(body=spec.service.request_limit, listed=min(cls.listed, spec.service.request_limit))
