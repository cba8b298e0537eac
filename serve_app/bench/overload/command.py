"""The command `tandem bench overload`."""

from __future__ import annotations

from pathlib import Path

import click

from serve_app.progress import timed_progress
from serve_app.project import find_project
from serve_app.signals import end_on_signals


@click.command(short_help="More than can be answered, to Tandem and to the same Triton alone.")
@click.option(
    "--batch-time",
    type=click.FloatRange(5, 60),
    default=14.0,
    show_default=True,
    help="Milliseconds of a full batch of 8. More of them are fewer requests to offer.",
)
@click.option(
    "--clients", type=click.IntRange(1, 16), default=4, show_default=True, help="Processes that send the requests."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.pass_obj
def overload(given: Path | None, batch_time: float, clients: int, as_json: bool) -> None:
    """Offer more than can be answered, in bursts and steadily, to Tandem and to the same Triton by itself.

    A deployment of its own is brought up on free ports: a model that only sleeps, as long as an accelerator would work,
    behind two ingresses. Beside it the same model runs in a Triton with priorities and bounded queues, as guides to
    Triton have it. Both get the same requests over gRPC, each at its moment, whatever the answers. Takes two minutes.

    Client processes and service share the machine. What was really offered, and what it took of the cores, is shown;
    where the machine cannot offer 4 times what the model can answer, a longer --batch-time asks for less.

    Exits with 1 where Tandem misses what has to be.
    """
    from serve_app.bench.overload.report import as_json as rendered
    from serve_app.bench.overload.report import table
    from serve_app.bench.overload.run import compare

    end_on_signals()
    found = compare(find_project(given), batch_time / 1e3, clients, timed_progress(to_stderr=True))
    click.echo(rendered(found) if as_json else table(found), nl=not as_json)
    if not all(goal.met for outcome in found.sides["Tandem"].values() for goal in outcome.goals):
        raise click.exceptions.Exit(1)
