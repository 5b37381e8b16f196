"""The command line. Each command's module is imported when it is called, so that help is quick."""

from __future__ import annotations

import importlib
import sys
from errno import EIO, ENOSPC

import click

COMMANDS = {
    "adopt": "Turn a from-scratch network into one of handgrad's, and compare the two.",
    "bench": "Time a network on this machine, engine by engine.",
    "check": "Check a hand-written gradient, and name the mistake when it is wrong.",
    "evaluate": "Score a trained network on rows with known targets.",
    "explain": "Show every gradient's shape, reason, chain rule and Jacobian, and what went dead.",
    "export": "Write a trained network for PyTorch or as ONNX.",
    "generate": "Let a network trained on a text write more of it.",
    "lab": "Write a page with a small network whose numbers are yours to change.",
    "predict": "Let a trained network answer for new rows.",
    "show": "Print a network as a program, with shapes and reasons.",
    "sweep": "Train a network for each combination of settings, and compare them.",
    "train": "Train a network, and save it in a run folder.",
    "write": "Write a network out as a script that needs NumPy only.",
}


MODULES = {"evaluate": "trained", "export": "trained", "predict": "trained", "write": "show"}
"""The module of a command, where that has another name."""


class LazyGroup(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: D102 - as in click
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: D102 - as in click
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"handgrad.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and name the nearest when there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from handgrad.errors import nearest

            hint = nearest(args[0], COMMANDS)
            raise click.UsageError(f"{error.message} {hint[0].upper()}{hint[1:]}", ctx) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="handgrad")
def group() -> None:
    """Neural networks whose every gradient is written out by hand.

    \b
    handgrad train                      digits, in seconds; no download
    handgrad show --hidden 32           the same network as a page of mathematics
    handgrad train data.csv --target y  a table of your own
    """


def main() -> None:
    """Run the command line; an error of handgrad's is one message and exit code 1, never a traceback."""
    from handgrad.cli.console import notices_as_lines, prepare_streams, printable, repeat_lost_interrupts
    from handgrad.errors import HandgradError

    prepare_streams()
    repeat_lost_interrupts()
    problem, code = "", 1
    notes: list[str] = []  # what can be done after it
    try:
        with notices_as_lines():
            done = group.main(standalone_mode=False)
        sys.exit(done if isinstance(done, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        problem, code, notes = "Stopped.", 130, _notes(error.__cause__ or error)
    except HandgradError as error:
        problem, notes = f"Error: {error}", _notes(error)
    except BrokenPipeError:  # the reader of a pipe has left, as `head` does
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # without a name: standard output on a full disk
        place = error.filename or ("standard output" if error.errno in (ENOSPC, EIO) else "")
        problem = f"Error: {place}: {error.strerror or error}" if place else f"Error: {error}"
        notes = _notes(error)
    except MemoryError as error:  # NumPy's message has the size and the shape that were wanted
        fix = "smaller layers or batches, or fewer rows"
        problem = f"Error: {HandgradError('not enough memory', given=str(error), fix=fix)}"
        notes = _notes(error)
    click.echo(printable("\n".join([problem, *notes])), err=True)
    sys.exit(code)


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])
