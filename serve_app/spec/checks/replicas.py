"""Every part's processes: what Ray Serve refuses late, waits for in silence, or takes although it makes no sense."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pydantic import ValidationError

from serve_app.spec.checks.registry import of_all_replicas, of_each_profile, of_each_stage
from serve_app.spec.code import (
    BadCode,
    checked_user_config,
    coroutine_of,
    load_code,
    parameters_of,
    why_no_class,
)
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.part import UNKNOWN
from serve_app.spec.pipeline import Stage
from serve_app.spec.profile import Profile
from serve_app.spec.replicas import Node, Replicas
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean
from serve_app.spec.units import show_duration
from serve_app.spec.value_words import describe

GPU_SHARE = error(
    "R030", "More than one GPU, and not whole ones", "Ray refuses to start the replica",
    "write a share of one GPU, as 0.5, or whole ones",
)  # fmt: skip
STAGE_GPUS = warning(
    "R031", "A GPU for code that is no model", "it is taken from Triton, and inference is what needs it",
    "let Triton run what needs the GPU, or leave gpus out",
)  # fmt: skip
RESERVED_RESOURCE = error(
    "R032", "A resource with a name that Ray keeps for itself", "Ray refuses to start the replica",
    "write cpus, gpus or memory, or name the resource otherwise",
)  # fmt: skip
UNKNOWN_ACCELERATOR = warning(
    "R033", "An accelerator type that Ray does not detect", "Ray waits in silence for a node that has it",
    "write Ray's name for it, as T4, A10G, L4 or A100, unless the nodes are started with this one",
)  # fmt: skip
EMPTY_BUNDLE = error(
    "R034", "A bundle of nothing", "Ray refuses the deployment", "write what is reserved, as cpus: 1, or remove it"
)
PLACED_AND_COUNTED = error(
    "R035", "A limit per node together with placement or a gang", "Ray Serve refuses the deployment",
    "leave max_per_node out; strategy: spread keeps processes apart too",
)  # fmt: skip
GANGS = error(
    "R036", "A number of replicas that is not made of whole gangs", "Ray Serve refuses the deployment",
    "write a multiple of the gang's size",
)  # fmt: skip
TWO_STRATEGIES = error(
    "R037", "A strategy for the placement of a gang's replicas", "Ray Serve refuses the deployment",
    "write it in gang, as strategy: spread",
)  # fmt: skip
RESTART_REPLICA = error(
    "R071", "A gang whose replicas are to end one by one", "Ray Serve up to 2.60 has the word for it and refuses it",
    "leave failure_policy out, or write restart_gang",
)  # fmt: skip
CUT_OFF = warning(
    "R040", "A shutdown timeout shorter than the longest SLA",
    "requests in work are killed whenever a replica ends, also after a change", "make it at least the SLA",
)  # fmt: skip
NEVER_IDLE = warning(
    "R041", "A drain wait that is not shorter than the shutdown timeout",
    "every replica that ends is killed, idle or not", "make it shorter than shutdown_timeout",
)  # fmt: skip
ALL_AT_ONCE = warning(
    "R042", "All replicas replaced at once", "there is none to answer while a change goes on",
    "write a smaller share, or a surge",
)  # fmt: skip
HASTY_HEALTH = warning(
    "R043", "A health check that a busy replica fails", "Ray replaces replicas that only work, under load of all times",
    "allow 1s or more",
)  # fmt: skip
NO_RECONFIGURE = error(
    "R060", "A user_config that nothing takes", "Ray Serve fails to deploy the stage",
    "give the class `async def reconfigure(self, user_config)`, or write settings instead",
)  # fmt: skip
USER_CONFIG = error(
    "R061", "A user_config that the stage's class refuses", "Ray Serve fails to deploy the stage",
    "write what the class takes",
)  # fmt: skip

_RESERVED = ("CPU", "GPU", "memory", "object_store_memory", "bundle")
_HASTE = timedelta(seconds=1)
# ray.util.accelerators of 2.60.
ACCELERATORS = {
    "V100", "P100", "T4", "P4", "K80", "A10G", "L4", "L40S", "A100", "A100-40G", "A100-80G", "H100", "H200", "H20",
    "B200", "B300", "GB200", "GB300", "RTX-PRO-6000", "Intel-GPU-Max-1550", "Intel-GPU-Max-1100", "Intel-GAUDI",
    "AMD-Instinct-MI100", "AMD-Instinct-MI210", "AMD-Instinct-MI250X", "AMD-Instinct-MI250X-MI250",
    "AMD-Instinct-MI300A", "AMD-Instinct-MI300X-OAM", "AMD-Instinct-MI300X-HF", "AMD-Instinct-MI308X",
    "AMD-Instinct-MI325X-OAM", "AMD-Instinct-MI350X-OAM", "AMD-Instinct-MI355X-OAM", "AMD-Radeon-R9-200-HD-7900",
    "AMD-Radeon-HD-7900", "aws-neuron-core", "TPU-V2", "TPU-V3", "TPU-V4", "TPU-V5P", "TPU-V5LITEPOD", "TPU-V6E",
    "TPU-V7X", "Ascend910B", "Ascend910B4", "MXC500", "MXC550", "FURIOSA_RNGD", "MOBILINT_ARIES", "MOBILINT_REGULUS",
    "M1", "M1-Pro", "M1-Max", "M1-Ultra", "M2", "M2-Pro", "M2-Max", "M2-Ultra", "M3", "M3-Pro", "M3-Max",
    "Apple-Silicon",
}  # fmt: skip


@of_all_replicas
def gpu_share(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    yield from _whole_gpus((*place, "gpus"), replicas.gpus)


@of_each_profile
def tritons_gpu_share(spec: Spec, name: str, profile: Profile) -> Faults:
    yield from _whole_gpus(("profiles", name, "triton", "gpus"), profile.triton.gpus)


def _whole_gpus(place: Place, gpus: float) -> Faults:
    if gpus > 1 and not gpus.is_integer():
        yield GPU_SHARE.at(place, f"{gpus:g} GPUs are neither a share of one nor whole ones")


@of_all_replicas
def stage_gpus(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.gpus > 0:
        yield STAGE_GPUS.at((*place, "gpus"), f"each of these processes holds {replicas.gpus:g} of a GPU")


@of_all_replicas
def node(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    yield from _node((*place, "node"), replicas.node)


@of_each_profile
def tritons_node(spec: Spec, name: str, profile: Profile) -> Faults:
    yield from _node(("profiles", name, "triton", "node"), profile.triton.node)


def _node(place: Place, node: Node) -> Faults:
    yield from _resources((*place, "resources"), node.resources)
    if node.accelerator_type is not None and node.accelerator_type not in ACCELERATORS:
        remedy = did_you_mean(node.accelerator_type, sorted(ACCELERATORS))
        yield UNKNOWN_ACCELERATOR.at((*place, "accelerator_type"), f"{node.accelerator_type!r} is none", remedy=remedy)


def _resources(place: Place, resources: dict[str, float]) -> Faults:
    for name in resources:
        if name in _RESERVED:
            yield RESERVED_RESOURCE.at((*place, name), f"{name} is a name of Ray's own")


@of_all_replicas
def bundles(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    for index, bundle in enumerate(replicas.placement.beside if replicas.placement is not None else []):
        there = (*place, "placement", "beside", index)
        yield from _resources((*there, "resources"), bundle.resources)
        if not (bundle.cpus or bundle.gpus or bundle.memory or bundle.resources):
            yield EMPTY_BUNDLE.at(there, "it reserves nothing")


@of_all_replicas
def placed_and_counted(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.max_per_node is None:
        return
    for name, value in (("placement", replicas.placement), ("gang", replicas.gang)):
        if value is not None:
            yield PLACED_AND_COUNTED.at((*place, "max_per_node"), f"there is {name} too")


@of_all_replicas
def gangs(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.gang is None:
        return
    for where, count in _counts(replicas):
        if count is not None and count is not UNKNOWN and count % replicas.gang.size:
            yield GANGS.at((*place, *where), f"{count} is not a multiple of {replicas.gang.size}")


def _counts(replicas: Replicas) -> Iterator[tuple[Place, int | None]]:
    yield ("count",), replicas.count
    if replicas.autoscaling is not None and replicas.autoscaling is not UNKNOWN:
        for name in ("min_replicas", "max_replicas", "initial_replicas"):
            yield ("autoscaling", name), getattr(replicas.autoscaling, name)


@of_all_replicas
def restart_replica(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.gang is not None and replicas.gang.failure_policy == "restart_replica":
        yield RESTART_REPLICA.at((*place, "gang", "failure_policy"), "it is restart_replica")


@of_all_replicas
def two_strategies(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.gang is not None and replicas.placement is not None and replicas.placement.strategy is not None:
        yield TWO_STRATEGIES.at((*place, "placement", "strategy"), "the replicas are placed by gangs")


@of_all_replicas
def cut_off(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    timeout = replicas.shutdown_timeout
    if timeout is not None and timeout < spec.longest_sla:
        yield CUT_OFF.at(
            (*place, "shutdown_timeout"),
            f"it is {show_duration(timeout)}, and a request may take {show_duration(spec.longest_sla)}",
        )


@of_all_replicas
def never_idle(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    wait = replicas.drain_wait
    if place == ("ingress",) and replicas.shutdown_timeout is None:
        return  # its own is longer by the wait
    timeout = spec.longest_sla if replicas.shutdown_timeout is None else replicas.shutdown_timeout
    if wait is not None and wait >= timeout:
        yield NEVER_IDLE.at(
            (*place, "drain_wait"), f"it is {show_duration(wait)}, and after {show_duration(timeout)} it is killed"
        )


@of_all_replicas
def all_at_once(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    update = replicas.rolling_update
    if update.at_once == 100 and not update.surge:
        yield ALL_AT_ONCE.at((*place, "rolling_update", "at_once"), "100% of the replicas end together, with no surge")


@of_all_replicas
def hasty_health(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    timeout = replicas.health_check_timeout
    if timeout is not None and timeout < _HASTE:
        yield HASTY_HEALTH.at((*place, "health_check_timeout"), f"it is {show_duration(timeout)}")


@of_each_stage
def user_config(spec: Spec, name: str, stage: Stage) -> Faults:
    given = stage.replicas.user_config if stage.replicas is not None else None
    if given is None or why_no_class(stage.code):
        return
    place: Place = ("stages", name, "replicas", "user_config")
    code = load_code(stage.code)
    function = coroutine_of(code, "reconfigure")
    taken = None if function is None else parameters_of(function, but="self")
    if function is None or (taken is not None and "user_config" not in taken.names):
        yield NO_RECONFIGURE.at(place, f"{stage.code} has no `async def reconfigure(self, user_config)`")
        return
    try:
        checked_user_config(code, given)
    except BadCode as bad:
        yield NO_RECONFIGURE.at(place, f"{stage.code}.reconfigure: {bad}", remedy="correct its annotation")
    except ValidationError as refused:
        for each in refused.errors(include_url=False):
            where = (*place, *each["loc"])
            words = describe(each, where[-1])
            yield USER_CONFIG.at(where, words.what, remedy=words.remedy)
