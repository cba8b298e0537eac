"""The command `tandem`. Exit status: 0 fine, 1 the check or the request failed, 2 wrong usage."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Literal

import click

from serve_app.bench.command import bench
from serve_app.bench.error import BenchError
from serve_app.cluster.error import ClusterError
from serve_app.importing.error import RepositoryError
from serve_app.progress import timed_progress
from serve_app.project import (
    ProjectError,
    find_project,
    left_over,
    project_of,
    stale_files,
    write_files,
    write_generated,
)
from serve_app.render import SPEC_FILE
from serve_app.reports import FORMATS, render_text
from serve_app.signals import end_on_signals
from serve_app.spec import SpecError
from serve_app.spec.load import Report
from serve_app.triton.error import TritonError
from serve_app.weights.errors import WeightsError

FAILURES = (BenchError, ClusterError, ProjectError, RepositoryError, TritonError, WeightsError)


class _Commands(click.Group):
    """Prints what stopped a command as it is, and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SpecError as failure:
            _show(Report(str(_from_here(Path(failure.file))), None, failure.findings), err=True)
            raise click.exceptions.Exit(1) from None
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
    # A file's name need not be text, and a terminal need not show all text that there is.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    context.obj = project


def _show(report: Report, *, err: bool = False) -> None:
    """Print findings for people: as wide as the terminal, and as they are where the output goes elsewhere."""
    output = sys.stderr if err else sys.stdout
    width = shutil.get_terminal_size().columns if output.isatty() else None
    colours = False if "NO_COLOR" in os.environ else None
    click.echo(render_text(report, width), nl=False, err=err, color=colours)


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
        for line in left_over(project, spec):
            click.echo(f"left over: {line}")
        return
    stale = stale_files(project, spec)
    for diff in stale.values():
        click.echo(diff, nl=False)
    left = left_over(project, spec)
    for line in left:
        click.echo(f"left over: {line}")
    if stale:
        raise click.ClickException(f"not what the spec says: {', '.join(stale)}; run `tandem render`")
    if left:
        raise click.ClickException("files are left over from an earlier spec; remove them")
    click.echo("every generated file is what the spec says")


_LIVE = (
    "Also try it: every model in a real Triton, and Ray Serve's own schema. Weights that are missing in "
    "model_repository are prepared there."
)


@main.command()
@click.argument("spec", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *FORMATS]),
    default="text",
    show_default=True,
    help="text for people; json, github (annotations of GitHub Actions) and sarif for machines.",
)
@click.option("--strict", is_flag=True, help="Let warnings fail the check too.")
@click.option("--live", is_flag=True, help=_LIVE)
@click.pass_obj
def validate(given: Path | None, spec: Path | None, form: str, strict: bool, live: bool) -> None:
    """Check a spec, by default the project's, and show everything that is wrong with it.

    The files of the models are checked too where the spec is a project's own. Exits with 1 where there is an error.
    `tandem explain CODE` says what a finding means.
    """
    from serve_app.model_files import examine_with_files

    path = _from_here(spec or find_project(given).spec_file)
    report = examine_with_files(path)
    if live:
        report = _tried(report, path)
    if form != "text":
        click.echo(FORMATS[form](report), nl=False)
    elif not report.findings and project_of(path) is None:
        click.echo(f"{report.file}: fine; its models' files were not looked for")
    else:
        _show(report)
    if report.errors or (strict and report.warnings):
        raise click.exceptions.Exit(1)


def _tried(report: Report, path: Path) -> Report:
    """The report with what a live check adds to it."""
    from serve_app.live.check import live_faults
    from serve_app.live.findings import UNCHECKED

    project = project_of(path)
    if project is None:
        raise click.UsageError(f"--live needs the models' files: it tries a project's own {SPEC_FILE}, not {path}")
    if report.spec is None or report.errors:
        click.echo("not tried live: correct the errors first", err=True)
        return report
    end_on_signals()
    faults = live_faults(project, report.spec, timed_progress(to_stderr=True))
    report = report.adding(faults)
    return report if any(fault.rule is UNCHECKED for fault in faults) else report.settled("L")


def _from_here(path: Path) -> Path:
    """The path as seen from the current folder, where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@main.command()
@click.argument("code", required=False)
@click.option("--spec", "keys", is_flag=True, help="Show every key of the spec instead, as in docs/spec.md.")
def explain(code: str | None, keys: bool) -> None:
    """Say what a finding's CODE means; without one, every code, as in docs/findings.md."""
    from serve_app.reports.page import every_rule, render_page, render_rule
    from serve_app.reports.spec_page import render_spec_page

    if keys and code is not None:
        raise click.UsageError("give either CODE or --spec")
    if keys:
        click.echo(render_spec_page(), nl=False)
    elif code is None:
        click.echo(render_page(), nl=False)
    elif rule := every_rule().get(code.upper()):
        click.echo(render_rule(rule), nl=False)
    else:
        raise click.BadParameter(f"no finding has the code {code}; `tandem explain` shows them all", param_hint="CODE")


@main.group()
def models() -> None:
    """The models' weights."""


@models.command()
@click.pass_obj
def pull(given: Path | None) -> None:
    """Fetch, check and prepare the weights of every model, and the embedded Triton."""
    from serve_app.artefacts import prepare_all

    project = find_project(given)
    spec = project.spec()
    prepare_all(project, spec, spec.primary_profile, timed_progress())


@main.command()
@click.option("--profile", type=click.Choice(["embedded"]), default="embedded", show_default=True)
@click.option(
    "--sample/--no-sample",
    default=True,
    show_default=True,
    help="Verify a sample identity at the end, where the spec has a pipeline at /v1/verify.",
)
@click.pass_obj
def up(given: Path | None, profile: Literal["embedded"], sample: bool) -> None:
    """Prepare the weights, render, start Ray, deploy, and wait until requests are answered."""
    from serve_app.cluster.up import up as bring_up

    end_on_signals()
    bring_up(find_project(given), profile, timed_progress(), sample=sample)


@main.command()
@click.pass_obj
def down(given: Path | None) -> None:
    """End what `tandem up` started, after the requests that it is working on."""
    from serve_app.cluster.up import down as bring_down

    bring_down(find_project(given), timed_progress())


@main.command()
@click.pass_obj
def status(given: Path | None) -> None:
    """Show whether the service runs; exit with 1 where it cannot serve."""
    from serve_app.cluster.up import status as show_status

    if not show_status(find_project(given), click.echo):
        raise click.exceptions.Exit(1)


@main.command()
@click.option("--dashboard", help="Ray's dashboard; by default that of `tandem up`, or the spec's port here.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def drift(given: Path | None, dashboard: str | None, form: str) -> None:
    """Compare what runs with the spec, and say what a redeploy would do about each difference.

    The token of a cluster that `tandem up` did not start is looked for where Ray looks: in $RAY_AUTH_TOKEN first.
    Exits with 1 where anything differs. Ray does not tell the environment of Ray Serve's controller, nor its logging
    where the application has its own; tracing is compared as Ray Serve was told of it last, and Ray's own ports where
    `tandem up` has started it.
    """
    from serve_app.drift.cluster import find_dashboard
    from serve_app.drift.drift import find_drift
    from serve_app.drift.of_cluster import not_compared
    from serve_app.drift.report import render_json, render_text

    project = find_project(given)
    spec = project.spec()
    found = find_dashboard(project, spec, dashboard)
    untold = not_compared(spec, knows_ports=found.ray_port is not None)
    differences = find_drift(spec, found, timed_progress(to_stderr=True))
    rendered = (render_json if form == "json" else render_text)(found.url, differences, untold)
    click.echo(rendered, nl=False)
    if differences:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("sample"))
def sample(folder: Path) -> None:
    """Write a selfie and a specimen document to try `tandem verify` with."""
    from serve_app.cluster.sample import fetch_photos, write_sample

    for path in write_sample(folder, fetch_photos(click.echo)):
        click.echo(f"wrote {path}")


@main.command("import")
@click.argument("repository", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The spec to write; by default cluster/spec.yaml in the project's folder, - for standard output.",
)
@click.option(
    "--profile",
    type=click.Choice(["embedded", "gpu"]),
    help="By default embedded where every model runs in the python backend without a GPU, else gpu.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.pass_obj
def import_(
    given: Path | None,
    repository: Path,
    output: Path | None,
    profile: Literal["embedded", "gpu"] | None,
    force: bool,
) -> None:
    """Turn a Triton model repository into a spec that renders to equivalent configurations.

    Exits with 1 where not everything could be carried; the spec is written all the same.
    """
    from serve_app.importing.conversion import import_repository
    from serve_app.importing.summary import next_commands, summary

    usual = Path(os.environ.get("TANDEM_PROJECT", ""))
    path = output or (given or usual) / SPEC_FILE
    written = None if str(path) == "-" else path
    if written is not None and os.path.exists(written) and not force:
        raise click.UsageError(f"{path} exists; name another --output, or overwrite it with --force")
    own = project_of(written) if written is not None else None
    imported = import_repository(repository, profile, str(written or "<stdout>"), schema=own is not None)
    if written is None:
        click.echo(imported.text, nl=False)
    else:
        write_generated(Path(os.path.realpath(written)), imported.text)
    for line in summary(imported, repository):
        click.echo(line, err=True)
    if imported.report.findings:
        click.echo(err=True)
        _show(imported.report, err=True)
        click.echo(err=True)
    project = own.root if own is not None else given or usual
    steps = [*next_commands(imported, project, written, is_usual=project.resolve() == usual.resolve())]
    if steps:
        click.echo("\n  ".join(["next:", *steps]), err=True)
    if not imported.complete:
        raise click.exceptions.Exit(1)


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


main.add_command(bench)
