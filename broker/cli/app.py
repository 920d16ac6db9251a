"""``broker``: serve, migrate, init-resource, dev."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import uvloop
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from broker.cli import operations
from providers.registry import NATIVE

app = typer.Typer(
    name="broker",
    help="The knowledge broker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

MIGRATION_DSN = "BROKER_MIGRATION_DSN"


@app.command()
def serve(
    config: Annotated[Path, typer.Option(help="Settings, as TOML.", dir_okay=False)],
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. Never migrates."""
    _run(operations.serve(config))


@app.command()
def migrate(
    runtime_role: Annotated[str, typer.Option(help="The role that serves; it gets its grants.")],
    schema: Annotated[
        operations.Schema, typer.Option(help="Which schema of the database.")
    ] = operations.Schema.ALL,
) -> None:
    """Bring the database in BROKER_MIGRATION_DSN to the newest revision. Safe to repeat."""
    _run(operations.migrate(_migration_dsn(), runtime_role, schema))


@app.command()
def init_resource(
    resource_id: Annotated[str, typer.Option(help="The name of the resource.")],
    generation: Annotated[int, typer.Option(min=1, help="Its life; 1 for a new one.")],
    adapter: Annotated[str, typer.Option(help="The adapter of the resource.")] = NATIVE,
) -> None:
    """Write the marker into the resource in BROKER_MIGRATION_DSN. Refuses where there is one."""
    _run(operations.init_resource(_migration_dsn(), adapter, resource_id, generation))


@app.command()
def dev(
    data: Annotated[Path, typer.Option(help="Where everything is kept between starts.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 7401,
) -> None:
    """Start a whole broker on this machine: PostgreSQL, reference owners, dev tokens."""
    _run(operations.dev(data, port))


def _migration_dsn() -> str:
    dsn = os.environ.get(MIGRATION_DSN, "")
    if not dsn:
        _end(f"set {MIGRATION_DSN} to the address of the database, with the role that owns it")
    return dsn


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; what an operator can mend ends the process with one readable line."""
    try:
        uvloop.run(work)
    except operations.REFUSALS as error:
        _end(_readable(error))
    except asyncio.CancelledError:
        _end("stopped")


def _readable(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        # The values stay out: a setting may be a secret.
        problems = [
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
        return "; ".join(problems)
    if isinstance(error, DBAPIError) and error.orig is not None:
        # What the driver said; the statement stays out.
        error = error.orig if error.orig.__cause__ is None else error.orig.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def _end(message: str) -> NoReturn:
    sys.stderr.write(f"broker: {message}\n")
    raise typer.Exit(1)
