"""The command `tandem`. Exit status: 0 fine, 1 the check or the request failed, 2 wrong usage."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any, Literal

import click

from serve_app.cluster.error import ClusterError
from serve_app.project import ProjectError, find_project, stale_files, write_files
from serve_app.spec import SpecError, load_spec
from serve_app.triton.error import TritonError
from serve_app.weights.errors import Progress, WeightsError

FAILURES = (ClusterError, ProjectError, SpecError, TritonError, WeightsError)


class _Commands(click.Group):
    """Prints what stopped a command as it is, and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FAILURES as failure:
            raise click.ClickException(str(failure)) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--project",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder with cluster/spec.yaml; by default $TANDEM_PROJECT, or the current folder.",
)
@click.version_option(package_name="tandem-serve")
@click.pass_context
def main(context: click.Context, project: Path | None) -> None:
    """Serve models with Ray Serve in front and an embedded Triton behind, both configured from one spec."""
    context.obj = project


def _progress() -> Progress:
    start = time.monotonic()
    return lambda text: click.echo(f"[{time.monotonic() - start:5.1f} s] {text}")


@main.command()
@click.option("--check", is_flag=True, help="Change nothing; show what is stale and exit with 1.")
@click.pass_obj
def render(given: Path | None, check: bool) -> None:
    """Write every file that is generated from the spec."""
    project = find_project(given)
    spec = project.spec()
    if not check:
        for name in write_files(project, spec):
            click.echo(f"wrote {name}")
        return
    stale = stale_files(project, spec)
    for diff in stale.values():
        click.echo(diff, nl=False)
    if stale:
        raise click.ClickException(f"not what the spec says: {', '.join(stale)}; run `tandem render`")
    click.echo("every generated file is what the spec says")


@main.command()
@click.argument("spec", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def validate(given: Path | None, spec: Path | None) -> None:
    """Check a spec, by default the project's, and show everything that is wrong with it."""
    path = spec or find_project(given).spec_file
    load_spec(path)
    click.echo(f"{path}: fine")


@main.group()
def models() -> None:
    """The models' weights."""


@models.command()
@click.pass_obj
def pull(given: Path | None) -> None:
    """Fetch, check and prepare the weights of every model, and the embedded Triton."""
    from serve_app.artefacts import prepare_all

    project = find_project(given)
    prepare_all(project, project.spec(), "embedded", _progress())


@main.command()
@click.option("--profile", type=click.Choice(["embedded"]), default="embedded", show_default=True)
@click.option("--sample/--no-sample", default=True, show_default=True, help="Verify a sample identity at the end.")
@click.pass_obj
def up(given: Path | None, profile: Literal["embedded"], sample: bool) -> None:
    """Prepare the weights, render, start Ray, deploy, and wait until requests are answered."""
    from serve_app.cluster.up import up as bring_up

    # An interrupted start ends what it has started; a supervisor's SIGTERM and a lost terminal interrupt like Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, frame: sys.exit(128 + received))
    bring_up(find_project(given), profile, _progress(), sample=sample)


@main.command()
@click.pass_obj
def down(given: Path | None) -> None:
    """End what `tandem up` started, after the requests that it is working on."""
    from serve_app.cluster.up import down as bring_down

    bring_down(find_project(given), _progress())


@main.command()
@click.pass_obj
def status(given: Path | None) -> None:
    """Show whether the service runs; exit with 1 where it cannot serve."""
    from serve_app.cluster.up import status as show_status

    if not show_status(find_project(given), click.echo):
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("sample"))
def sample(folder: Path) -> None:
    """Write a selfie and a specimen document to try `tandem verify` with."""
    from serve_app.cluster.sample import fetch_photos, write_sample

    for path in write_sample(folder, fetch_photos(click.echo)):
        click.echo(f"wrote {path}")


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@main.command()
@click.option("--selfie", required=True, type=_FILE)
@click.option("--document", required=True, type=_FILE)
@click.option("--frames", multiple=True, type=_FILE, help="A camera frame, in order; repeat for more.")
@click.option("--url", help="Where the service is; by default as the project's spec says.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer.")
@click.pass_obj
def verify(
    given: Path | None, selfie: Path, document: Path, frames: tuple[Path, ...], url: str | None, as_json: bool
) -> None:
    """Verify an identity against the running service."""
    from serve_app.cluster.verify import request_verification, show_verification

    if url is None:
        url = find_project(given).spec().url
    answer = request_verification(
        url, selfie.read_bytes(), document.read_bytes(), [frame.read_bytes() for frame in frames]
    )
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False) if as_json else show_verification(answer))
