"""The command `tandem bench chaos`."""

from __future__ import annotations

from pathlib import Path

import click

from serve_app.bench.chaos import room
from serve_app.progress import timed_progress
from serve_app.project import find_project
from serve_app.signals import end_on_signals


@click.command(short_help="Faults in a copy of the project, under load, and what its clients see of them.")
@click.option("--fault", "names", multiple=True, metavar="NAME", help="Only this one; repeat for more.  [default: all]")
@click.option("--list", "listed", is_flag=True, help="Show the faults with what each does, and do nothing.")
@click.option("--soak", type=click.FloatRange(10, 86_400), metavar="SECONDS", help="No faults: 80 % load, so long.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.pass_obj
def chaos(given: Path | None, names: tuple[str, ...], listed: bool, soak: float | None, as_json: bool) -> None:
    """Do to a copy of the project what can go wrong, and see what comes of it.

    The copy, of the embedded profile and with two models more, comes up on free ports and is ended after that, whatever
    happens; nothing is done to a service that runs. It is under a small, steady load of both protocols and of all
    routes that can judge the sample's pictures.

    The table has what the requests met from the fault until the service was healthy again, with three seconds in which
    everything was answered: answers, refusals by status and code, and what is no documented answer; the seconds to the
    last request that was not answered (of a fault that lasts, from its end); and processes, ports, descriptors and
    shared memory that were there then and not before. Where a fault ends an ingress, connections that are reset or
    refused are documented. All faults take about six minutes; an interrupted run shows those that it has done.

    --soak measures how many requests the model of this bench can be answered at the most, and what the small load takes
    of the cores; sends as many as make four fifths of the cores' load with it, a minute and then for so long; and
    compares descriptors and memory at the end with those after the minute.

    Exit status 1: something was undocumented, left behind, or not healthy again in its time.
    """
    from serve_app.bench.chaos.faults import FAULTS
    from serve_app.bench.chaos.report import as_json as rendered
    from serve_app.bench.chaos.report import table
    from serve_app.bench.chaos.run import Result
    from serve_app.bench.chaos.run import chaos as run
    from serve_app.bench.chaos.soak import soak as run_soak
    from serve_app.bench.chaos.soak import soak_as_json, soak_table

    if listed:
        for name, fault in FAULTS.items():
            click.echo(f"{name:28} {' '.join((fault.__doc__ or '').split())}")
        return
    if soak is not None and names:
        raise click.UsageError("--soak is without faults: leave out --fault")
    if unknown := [name for name in names if name not in FAULTS]:
        raise click.BadParameter(f"there is no {unknown[0]!r}; there are {', '.join(FAULTS)}", param_hint="--fault")
    project = find_project(given)
    end_on_signals()
    room.enter()
    progress = timed_progress(to_stderr=True)
    if soak is not None:
        found = run_soak(project, soak, progress)
        click.echo(soak_as_json(found) if as_json else soak_table(found))
        raise click.exceptions.Exit(0 if found.is_well else 1)
    results: list[Result] = []
    try:
        run(project, [FAULTS[name] for name in dict.fromkeys(names or FAULTS)], results.append, progress)
    finally:
        click.echo(rendered(results) if as_json else table(results))
    if not all(result.is_well for result in results):
        raise click.exceptions.Exit(1)
