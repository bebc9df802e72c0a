"""The command `partita`: print a plan, the code it lowers to, or the definitions and rules.

    partita show mlp.py:chain f32[256,8] f32[8,16] f32[16,8] --mesh data=4,model=2 -t 'tile("x", 0, "data")'
    partita show mlp.py:plan                        a function without arguments that returns a plan
    partita show mlp.partita:zero3                  a plan in a program in index notation
    partita run mlp.partita:zero3
    partita show mlp.py:plan --html plan.html       the plan as one page for a browser
    partita lower mlp.py:plan --to spmd
    partita explain mlp.py:plan --value w1
    partita shell mlp.py:plan                       a session: tactics, questions, undo
    partita rules dot_general
    partita rules mlp.py                            the ops that a file defines
    partita demo

Only commands that trace import JAX.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import click

from ...dialects.ground.errors import Error
from ..inputs.files import write_text
from ..shell.lowered_forms import FORMS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..api.plan import Plan

F = TypeVar("F", bound=Callable[..., object])


class PlanOptions(TypedDict):
    """The parameters that `takes_a_plan` adds to a command."""

    target: str
    shapes: tuple[str, ...]
    mesh: str
    tactics: tuple[str, ...]
    file: str


class Commands(click.Group):
    """A group of commands that print an Error as text, without a traceback. Their context has the whole command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = [*args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except Error as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="partita")
def main() -> None:
    """Partition JAX programs by tactics, and inspect the result."""


def takes_a_plan(command: F) -> F:
    """Decorates a command with the arguments by which all commands name a plan."""
    for add in (
        click.option(
            "-t", "--tactic", "tactics", multiple=True, help="A tactic, as a plan's trace prints it; can be repeated."
        ),
        click.option("--plan", "file", default="", metavar="FILE", help="A plan file, whose tactics come first: plan.partita."),
        click.option("--mesh", default="", help="The mesh for SHAPES, or in place of the program's mesh: data=4,model=2."),
        click.argument("shapes", nargs=-1),
        click.argument("target", metavar="FILE:NAME"),
    ):
        command = add(command)
    return command


def number_of(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of processes; 0 for `auto`, those that a launcher has started."""
    if value is None:
        return None
    if value == "auto":
        return 0
    if not value.isdecimal() or not int(value):
        raise click.BadParameter("it takes a number of processes, or `auto`")
    return int(value)


takes_devices = click.option(
    "--devices", type=int, default=8, show_default=True, help="The number of devices, on a host without accelerators."
)


def made(target: str, shapes: Sequence[str], mesh: str, tactics: Sequence[str], file: str) -> Plan:
    from .target import no_plan

    plan = made_or_ran(target, shapes, mesh, tactics, file)
    if plan is None:
        raise no_plan(target, plan)
    return plan


def made_or_ran(target: str, shapes: Sequence[str], mesh: str, tactics: Sequence[str], file: str) -> Plan | None:
    from .target import ran_or_planned

    return ran_or_planned(target, shapes, mesh, "\n".join(tactics), file)


def printed(report: RenderableType) -> None:
    """Prints a table without blanks at the ends of lines."""
    from rich.console import Console

    console = Console()
    with console.capture() as captured:
        console.print(report)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


@main.command()
@takes_a_plan
@click.option("--notation", is_flag=True, help="Print the program in index notation instead.")
@click.option("--all", "whole", is_flag=True, help="Print all rows of each table.")
@click.option("--html", "page", metavar="PATH", help="Write it as a page for a browser instead: plan.html.")
def show(notation: bool, whole: bool, page: str | None, **what: Unpack[PlanOptions]) -> None:
    """Print a plan: layouts, collectives, bytes, memory, conflicts, where propagation stopped, and what is replicated.

    NAME is a function of a Python file. It returns a plan, or it is partitioned by this command: then give the SHAPES of its
    arguments, like f32[256,8]. In a .partita file, NAME is a plan or a function, by default the last function.
    """
    from .tables import report

    if page is not None:
        made(**what).html(page)
        click.echo(f"wrote {page}")
    elif notation:
        click.echo(made(**what).notation(), nl=False)
    else:
        printed(report(made(**what), whole))


@main.command()
@takes_a_plan
@click.option("--to", "--emit", "form", type=click.Choice([*FORMS, "saved"]), default="spmd", show_default=True)
@click.option("-o", "--output", metavar="PATH", help="Write it to a file: step.partita-program.")
@click.option("--platform", "platforms", multiple=True, help="A platform on which `saved` runs, cpu or tpu; can be repeated.")
def lower(form: str, output: str | None, platforms: tuple[str, ...], **what: Unpack[PlanOptions]) -> None:
    """Print the lowered forms of a plan, or write them to a file.

    claims: the program with what tactics claim; decisions: with where ops run and how values move; unfused: as placed builders
    and slicers; ir: these fused; spmd: the program of each device; graph, json, dot: kernels and redistributions. partita-opt
    leads from each of the first four to the next. stablehlo: each kernel as JAX lowers it; saved: a file for
    `pt.load_compiled`, in processes that have none of the model's code.
    """
    if platforms and form != "saved":
        raise Error(f"--platform is for saved programs, and this prints `{form}`", helps=["write it with --emit saved"])
    if form == "saved":
        from ..graph.graph import lower

        if output is None:
            raise Error("a saved program is a file", helps=["name it: --output step.partita-program"])
        lower(made(**what), "whole").save(output, platforms or None)
    elif output is not None:
        write_text(output, str(FORMS[form](made(**what))) + "\n")
    else:
        click.echo(str(FORMS[form](made(**what))))
        return
    click.echo(f"wrote {output}")


@main.command()
@takes_a_plan
@click.option("--value", help="The name of a value: params/w1, result/0, or a tag.")
def explain(value: str | None, **what: Unpack[PlanOptions]) -> None:
    """Print why a value has its layout, step by step."""
    if value is None:
        said = next((each for each in what["shapes"] if "[" not in each), "")
        name = said or next(iter(made(**what).arguments()), "result")
        help = f"name one by an option, `--value {name}`; several by a pattern, `--value 'params/*'`"
        raise Error("`explain` needs the name of a value", helps=[help])
    click.echo(str(made(**what).explain(value)))


@main.command()
@takes_a_plan
@click.option(
    "--input", "files", multiple=True, help="An array, x=x.npy, or several by name, arrays.npz; the others are random."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the random arrays.")
@click.option("--tolerance", type=float, default=0.01, show_default=True, help="The largest |a-b|/(1e-3+|b|) that agrees.")
@takes_devices
@click.option(
    "--processes",
    callback=number_of,
    metavar="N",
    help="Run it in N processes on this host's CPU; `auto`: a launcher's.",
)
@click.option("--process", type=int, metavar="K", help="This is process K of N: each is started by hand.")
@click.option("--coordinator", metavar="HOST:PORT", help="Where process 0 is, and which port it opens.")
@click.option("--parent", hidden=True)
@click.pass_obj
def run(
    arguments: Sequence[str],
    files: Sequence[str],
    seed: int,
    tolerance: float,
    devices: int,
    processes: int | None,
    process: int | None,
    coordinator: str | None,
    parent: str | None,
    **what: Unpack[PlanOptions],
) -> None:
    """Run a plan on arrays, and compare it with the unpartitioned run; or call a function that is a program of its own.

    NAME and SHAPES are as for `show`: FILE.partita runs the last function with its annotations, FILE.partita:PLAN a plan. A
    function without arguments that returns nothing is only called.

    With --processes, each process has its part of the devices. If one is lost, the others end, and an error says which one, how
    it ended, and what each had issued last.
    """
    from .processes import joined, run_all

    if processes and process is None and coordinator is None:
        run_all(processes, devices, arguments)
        return
    with joined(processes, process, coordinator, parent, devices) as number:
        plan = made_or_ran(**what)
        if plan is not None:
            tried(plan, files, seed, tolerance, number == 0)
        elif processes is None:
            click.echo(f"`{what['target']}` has run; it returned no plan to compare", err=True)


def tried(plan: Plan, files: Sequence[str], seed: int, tolerance: float, tells: bool) -> None:
    """Compares a plan with the unpartitioned run, and tells the result."""
    from ..graph.graph import runner
    from ..run.trial_run import enough_devices, errors, input_leaves
    from .tables import compared

    enough_devices(plan)
    found = errors(plan, input_leaves(plan, files, seed), runner(plan))
    if tells:
        printed(compared(plan, found))
    worst, error = max(found.items(), key=itemgetter(1), default=("", 0.0))
    if error > tolerance:
        title = f"`{worst}` differs from the unpartitioned run by {error:.1e}"
        raise Error(title, helps=["narrow floats and long sums round: compare in f32, or give --tolerance"])


@main.command()
@takes_a_plan
@click.option("--record", metavar="FILE.svg", help="Write a picture of the session, too.")
@takes_devices
def shell(record: str | None, devices: int, **what: Unpack[PlanOptions]) -> None:
    """Partition a program step by step, in a session of tactics and questions.

    NAME and SHAPES are as for `show`. In a terminal, lines are completed and coloured; otherwise each line of the input is
    answered, up to the first that fails: `partita shell mlp.py:plan < tactics.txt`.
    """
    is_talk = record is None and sys.stdin.isatty()
    if is_talk:
        # JAX is loaded and the program traced before the first answer: some seconds.
        click.echo(f"tracing {what['target']} ...", err=True)
    from ..run.trial_run import host_devices
    from .shell import recorded, scripted, talked

    host_devices(devices)
    plan = made(**what)
    if record is not None:
        recorded(plan, record, what["target"])
    elif is_talk:
        talked(plan)
    else:
        scripted(plan)


@main.command()
@click.argument("names", nargs=-1)
def rules(names: Sequence[str]) -> None:
    """Print definitions of ops and rewrite rules: all, or those whose name matches one of NAMES (globs).

    If a NAME is a Python file, model.py, the file is run first, and the ops that it defines are printed too.
    """
    from .rule_listing import laws

    files = [name for name in names if name.endswith(".py")]
    if files:
        from .target import module_of

        for file in files:
            module_of(file)
    for heading, texts in laws([name for name in names if name not in files], defined=bool(files)).items():
        click.echo(click.style(heading, bold=True))
        click.echo("\n".join(texts) + "\n")


@main.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: Sequence[str]) -> None:
    """Train a small GPT on eight host devices, partitioned, and compare it with the unpartitioned run."""
    import runpy

    sys.argv = ["partita demo", *arguments]
    try:
        runpy.run_module(__name__.removesuffix("compiler.cli.main") + "examples.demo", run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name != "optax":
            raise
        raise Error("the demo trains with optax, which is not installed", helps=["pip install 'partita[demo]'"]) from None
