"""What Ray and Ray Serve are told: the cluster, the ingress, and how many processes run each stage."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from serve_app.spec.part import Part, Port, Positive
from serve_app.spec.units import Duration, Size


class Service(Part):
    sla: Duration = Field(description="within this every request is answered, where its pipeline gives no other")
    host: str = Field(description="the address the HTTP ingress listens on; 0.0.0.0 for every interface")
    port: Port
    upload_limit: Size = Field(description="the largest file a request may carry")
    request_limit: Size = Field(description="the largest request, all its files together")
    proxy_timeout: Duration = Field(
        description="Ray's proxy answers 408 then; longer than any SLA, for a stuck ingress"
    )
    retry_after: Duration = Field(description="what a client is told to wait when the service is full")


class Ray(Part):
    port: Port = Field(description="the head node's port, for `tandem up`")
    dashboard_port: Port
    object_store: Size = Field(description="shared memory that Ray may use to pass requests between processes")


class Autoscaling(Part):
    min_replicas: Positive
    max_replicas: Positive
    target_ongoing_requests: float = Field(gt=0)
    upscale_delay: Duration = timedelta(seconds=5)
    downscale_delay: Duration = timedelta(minutes=5)


class Replicas(Part):
    """How many processes run a part, and what each may use."""

    cpus: float = Field(ge=0)
    memory: Size
    max_ongoing_requests: Positive = Field(description="requests that one replica works on at a time")
    max_queued_requests: Positive = Field(
        description="requests that may wait for a replica, for each process that sends them; more get 429"
    )
    autoscaling: Autoscaling

    @property
    def most(self) -> int:
        """How many processes there are at the most."""
        return self.autoscaling.max_replicas
