"""``broker``: serve, migrate, init-resource, reindex, dev, export, import.

A command imports what it needs when it runs: a supervisor must not load gRPC.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from broker.cli import transfer
from broker.cli.choices import Embeddings, Schema
from broker.cli.refusals import SETTINGS_REFUSALS, readable
from broker.config import WORKERS_MAX, read_secret

app = typer.Typer(
    name="broker",
    help="The knowledge broker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("export")(transfer.export)
app.command("import")(transfer.import_)

MIGRATION_DSN = "BROKER_MIGRATION_DSN"
DEV_POSTGRES_DSN = "BROKER_DEV_POSTGRES_DSN"
DEV_EVENTS_DSN = "BROKER_DEV_EVENTS_DSN"


@app.command()
def serve(
    config: Annotated[Path, typer.Option(help="Settings, as TOML.", dir_okay=False)],
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=WORKERS_MAX, help="Processes; wins over server.workers."),
    ] = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. Never migrates."""
    from broker.cli import processes

    try:
        with processes.reserved_start(config, workers) as start:
            if start.is_supervised:
                if not processes.supervise(start):
                    _end("not every worker ended in time")
            else:
                from broker.cli import operations

                _run(lambda: operations.serve(start.settings, start.listen))
    except (*SETTINGS_REFUSALS, processes.CannotServeError) as error:
        _end(readable(error))


@app.command()
def migrate(
    runtime_role: Annotated[str, typer.Option(help="The role that serves; it gets its grants.")],
    schema: Annotated[Schema, typer.Option(help="Which schema of the database.")] = Schema.ALL,
) -> None:
    """Bring the database in BROKER_MIGRATION_DSN to the newest revision. Safe to repeat.

    BROKER_MIGRATION_DSN_FILE may name a file that holds the address instead.
    """
    from broker.cli import operations

    _run(lambda: operations.migrate(_migration_dsn(), runtime_role, schema))


@app.command()
def init_resource(
    resource_id: Annotated[str, typer.Option(help="The name of the resource.")],
    generation: Annotated[int, typer.Option(min=1, help="Its life; 1 for a new one.")],
    adapter: Annotated[
        str | None, typer.Option(help="The adapter of the resource; the native one by default.")
    ] = None,
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Accept a marker that says the same already.")
    ] = False,
) -> None:
    """Write the marker into the resource in BROKER_MIGRATION_DSN. Refuses where there is one.

    BROKER_MIGRATION_DSN_FILE may name a file that holds the address instead.
    """
    from broker.cli import operations

    _run(
        lambda: operations.init_resource(
            _migration_dsn(), adapter, resource_id, generation, if_absent=if_absent
        )
    )


@app.command()
def reindex(
    config: Annotated[Path, typer.Option(help="Settings, as TOML.", dir_okay=False)],
    provider_id: Annotated[str, typer.Option(help="The provider, as the settings name it.")],
    tenant: Annotated[str, typer.Option(help="The tenant.")],
    project: Annotated[str, typer.Option(help="The project.")],
) -> None:
    """Make what recall finds memories by, for memories that lack it. Safe to repeat and to stop.

    Needed once for memories that are older than recall, and after the model of embeddings changed.
    """
    from broker.cli import operations
    from broker.config import load_settings
    from providers.model import ProjectKey

    scope = ProjectKey(tenant, project)
    _run(lambda: operations.reindex(load_settings(config), provider_id, scope))


@app.command()
def dev(
    data: Annotated[Path, typer.Option(help="Where everything is kept between starts.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 7401,
    provider: Annotated[
        str,
        typer.Option(
            help="Where memory is kept: postgres, redis, or cosmos, of which a stand-in is started."
        ),
    ] = "postgres",
    embeddings: Annotated[
        Embeddings,
        typer.Option(help=r"local: the model of the extra \[embeddings]; it takes some 200 MB."),
    ] = Embeddings.NONE,
) -> None:
    """Start a whole broker on this machine: PostgreSQL, reference owners, dev tokens.

    Where BROKER_DEV_POSTGRES_DSN holds the runtime role's address of a database that was migrated
    and has its marker, or BROKER_DEV_POSTGRES_DSN_FILE names a file that does, no PostgreSQL is
    started: that one is used. The Events service then needs BROKER_DEV_EVENTS_DSN (or its file):
    the address of a role that owns a schema `events`; without it there is none.
    """
    from broker.cli import operations

    given = _dsn(DEV_POSTGRES_DSN), _dsn(DEV_EVENTS_DSN)
    _run(lambda: operations.dev(data, port, provider, *given, embeddings=embeddings))


def _migration_dsn() -> str:
    dsn = _dsn(MIGRATION_DSN)
    if dsn is None:
        _end(f"set {MIGRATION_DSN} to the address of the database, with the role that owns it")
    return dsn


def _dsn(variable: str) -> str | None:
    """Return the address in a variable, or in the file that ``<variable>_FILE`` names."""
    dsn, file = os.environ.get(variable), os.environ.get(f"{variable}_FILE")
    if not file:
        return dsn or None
    if dsn:
        _end(f"set {variable} or {variable}_FILE, not both")
    try:
        return read_secret(Path(file))
    except (OSError, ValueError) as error:
        _end(f"{variable}_FILE: {readable(error)}")


def _run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; what an operator can mend ends the process with one readable line."""
    import uvloop

    from broker.cli import operations

    try:
        uvloop.run(work())
    except operations.REFUSALS as error:
        _end(readable(error))
    except asyncio.CancelledError:
        _end("stopped")


def _end(message: str) -> NoReturn:
    sys.stderr.write(f"broker: {message}\n")
    raise typer.Exit(1)
