"""What an operator does to a service that is under load."""

from __future__ import annotations

import asyncio

from serve_app.bench.chaos.faults.fault import Fault, Scene
from serve_app.cluster.deploy import deploy
from serve_app.cluster.up import down
from serve_app.importing.yaml_text import yaml_lines
from serve_app.project import write_files
from serve_app.spec.document import read_document

_MORE_CPUS = 0.01


class Redeploy(Fault):
    """The same is deployed again, which changes nothing."""

    name = "redeploy"

    async def inject(self, scene: Scene) -> None:
        await asyncio.to_thread(deploy, scene.project, scene.head, self.limit, lambda _: None)


class RollingUpdate(Fault):
    """The ingress and the stages with processes of their own get another reservation: all of them are replaced."""

    name = "rolling-update"
    limit = 90.0
    resets = True

    async def inject(self, scene: Scene) -> None:
        file = scene.project.spec_file
        spec = dict(read_document(file.read_text(encoding="utf-8")).data or {})
        stages = [stage["replicas"] for stage in spec.get("stages", {}).values() if "replicas" in stage]
        for part in (spec["ingress"], *stages):
            part["cpus"] = round(part["cpus"] + _MORE_CPUS, 2)
        file.write_text("\n".join(yaml_lines(spec)) + "\n", encoding="utf-8")
        write_files(scene.project, scene.project.spec())
        await asyncio.to_thread(deploy, scene.project, scene.head, self.limit, lambda _: None)


class Down(Fault):
    """`tandem down`: what is in work is answered, then nothing is left."""

    name = "down"
    limit = 60.0
    resets = True
    ends = True

    async def inject(self, scene: Scene) -> None:
        await asyncio.to_thread(down, scene.project, lambda _: None)
