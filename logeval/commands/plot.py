"""The ``plot`` commands; each stage adds its own."""

import typer

plot_app = typer.Typer(help="Figures from tables.")
