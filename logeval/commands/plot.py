"""The group ``logeval plot``; the stages add their figures to it."""

import typer

plot_app = typer.Typer(help="Figures from tables.", no_args_is_help=True)
