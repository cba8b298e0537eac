"""The commands of `tandem bench`."""

from __future__ import annotations

from pathlib import Path

import click

from serve_app.bench.chaos.command import chaos
from serve_app.bench.error import BenchError
from serve_app.bench.overload.command import overload
from serve_app.progress import timed_progress
from serve_app.project import find_project
from serve_app.spec import Spec

TARGET = "target"


def _part(value: str) -> tuple[str, Path]:
    """FIELD=PATH, or a path alone, which is the whole body."""
    name, separator, path = value.partition("=")
    return (name, Path(path)) if separator else ("", Path(value))


def _shape(value: str) -> tuple[str, list[int]]:
    name, _, sizes = value.partition("=")
    try:
        return name, [int(size) for size in sizes.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not such as image=320,320,3", param_hint="--shape") from None


def _require_exposed(spec: Spec, model: str) -> None:
    """BenchError where the spec has the model and keeps clients from it."""
    found = {**spec.models, **spec.ensembles}.get(model)
    if found is not None and not found.exposed:
        raise BenchError(f"{model} is not exposed: write `exposed: true` in its entry of the spec, and deploy that")


class _Bench(click.Group):
    """What names no command of the group is the TARGET of its first one, which may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = args[:1] and args[0] in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if known else [TARGET, *args])


@click.group(cls=_Bench, subcommand_metavar="TARGET | COMMAND [ARGS]...")
def bench() -> None:
    """Measure a service from outside.

    \b
      tandem bench arcface --clients 8     a service that runs: a model's name or a route, with the files to post

    That is `tandem bench target arcface`, without the word; `tandem bench target --help` has its options. The other
    commands bring up a deployment of their own on free ports, measure that, and end it.
    """


@bench.command(TARGET, short_help="A service that runs: how much it answers, how fast, and what it refuses.")
@click.argument("what", metavar="TARGET")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="[FIELD=]PATH",
    help="What to post to a route: the body, or a form's part; repeat for more parts.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="INPUT=SIZES",
    help="The sizes of a model's input that varies, such as image=320,320,3.",
)
@click.option(
    "--clients",
    multiple=True,
    type=click.IntRange(1, 1024),
    help="Closed loop of so many clients; repeat for more loads.  [default: 1]",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    type=click.FloatRange(0, 100_000, min_open=True),
    help="Open loop of so many requests a second; repeat for more loads.",
)
@click.option("--url", help="http://…, https://… or grpc://HOST:PORT; by default as the project's spec says.")
@click.option("--grpc", is_flag=True, help="Measure a model at the gRPC port of the project's spec.")
@click.option("--tier", help="The X-Tier of the requests.")
@click.option(
    "--warm-up", type=click.FloatRange(0, 600), default=2.0, show_default=True, help="Seconds before the first window."
)
@click.option(
    "--window", type=click.FloatRange(0.1, 600), default=3.0, show_default=True, help="Seconds of each window."
)
@click.option(
    "--windows", type=click.IntRange(1, 1000), default=10, show_default=True, help="The most windows of a load."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.pass_obj
def target(
    given: Path | None,
    what: str,
    files: tuple[str, ...],
    shapes: tuple[str, ...],
    clients: tuple[int, ...],
    rates: tuple[float, ...],
    url: str | None,
    grpc: bool,
    tier: str | None,
    warm_up: float,
    window: float,
    windows: int,
    as_json: bool,
) -> None:
    """Measure a running service: how much it answers, how fast, and what it refuses.

    TARGET is a route, such as /v1/faces/embed, with the files to post; or a model's name, whose inputs are then made
    up. The model has to be exposed, and not of sequences, whose requests do not stand alone. --url may name any server
    of HTTP or of the Open Inference Protocol, to compare with.

    \b
      tandem bench /v1/verify --file selfie=selfie.jpg --file document=document.jpg --clients 1 --clients 8
      tandem bench /v1/faces/embed --file selfie.jpg --rate 20
      tandem bench arcface --grpc --clients 32

    A closed loop's clients each send their next request when they have their answer: its rate is what the service can
    do with so many at a time. An open loop's requests come at random, whether or not others still wait: its latencies
    are what independent clients see, and they grow without end above what the service can do.

    After the warm-up, windows are measured until the rates of three in a row are within 5 % of their mean; the figures
    are of these three. Latencies run from sending to the whole answer, of answered requests only. Refused are 429, 503
    and their like, late 504. Where the service tells Triton's statistics, each model's own are shown: items in a batch,
    and how long a request waited in its queue and was computed. Clients and service share what machine they share:
    what the client itself takes of a core is shown too.
    """
    from serve_app.bench.loops import ClosedLoop, Load, OpenLoop
    from serve_app.bench.report import as_json as rendered
    from serve_app.bench.report import show
    from serve_app.bench.run import Target
    from serve_app.bench.run import bench as measure
    from serve_app.bench.windows import Plan

    if what.startswith("/") != bool(files):
        raise click.UsageError("a route, such as /v1/verify, needs --file; a model, such as arcface, has none")
    if grpc and (url is not None or files):
        raise click.UsageError("--grpc is for a model, without --url; name another server as --url grpc://HOST:PORT")
    if url is not None and not url.startswith(("http://", "https://", "grpc://")):
        raise click.BadParameter(f"{url!r} is no URL; write http://HOST:PORT, https:// or grpc://", param_hint="--url")
    if files and url is not None and url.startswith("grpc:"):
        raise click.UsageError("a route is measured over HTTP; --url grpc:// is for models")
    if url is None:
        spec = find_project(given).spec()
        _require_exposed(spec, what)
        url = f"grpc://{spec.grpc_address}" if grpc else spec.url
    asked = Target(
        what, url, [_part(each) for each in files], dict(map(_shape, shapes)), {} if tier is None else {"X-Tier": tier}
    )
    loads: list[Load] = [*map(ClosedLoop, clients or ([] if rates else [1])), *map(OpenLoop, rates)]
    results = measure(asked, loads, Plan(warm_up, window, windows), timed_progress(to_stderr=True))
    click.echo(rendered(results) if as_json else "\n".join(map(show, results)), nl=not as_json)
    if not all(result.measured.figures.answered for result in results):
        raise click.exceptions.Exit(1)


bench.add_command(overload)
bench.add_command(chaos)
