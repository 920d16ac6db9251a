"""``broker export`` and ``broker import``: bundles as files, moved over gRPC."""

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from broker.cli.transfer_client import Account

Target = Annotated[str, typer.Option(help="The broker, as host:port. TLS unless --plaintext.")]
TokenFile = Annotated[
    Path, typer.Option(help="A file that holds the bearer token.", dir_okay=False)
]
Project = Annotated[str, typer.Option(help="The project.")]
Run = Annotated[str, typer.Option(help="The run that gives access; of an import, its source run.")]
Agent = Annotated[str, typer.Option(help="The agent whose records they are.")]
Tenant = Annotated[str | None, typer.Option(help="The tenant, sent as x-tenant.")]
CaFile = Annotated[
    Path | None, typer.Option(help="PEM of the authorities to trust.", dir_okay=False)
]
CertificateFile = Annotated[
    Path | None, typer.Option(help="PEM of a client certificate.", dir_okay=False)
]
KeyFile = Annotated[Path | None, typer.Option(help="PEM of its key.", dir_okay=False)]
Plaintext = Annotated[
    bool, typer.Option("--plaintext", help="Without TLS; for loopback addresses only.")
]
RecordIds = Annotated[
    list[str] | None,
    typer.Option("--record-id", help="A record to export; may be given 25 times. None: all."),
]
STANDARD: Final = Path("-")


def export(  # noqa: PLR0913 - one for each option
    *,
    target: Target,
    token_file: TokenFile,
    project: Project,
    run: Run,
    agent: Agent,
    record_id: RecordIds = None,
    output: Annotated[
        Path, typer.Option(help="The file to write, with mode 0600; - is standard output.")
    ] = STANDARD,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    client_certificate_file: CertificateFile = None,
    client_key_file: KeyFile = None,
    plaintext: Plaintext = False,
) -> None:
    """Write an agent's memories and decisions, with all their revisions, to a file."""
    tls = (ca_file, client_certificate_file, client_key_file)

    async def work() -> None:
        from broker.cli import transfer_client

        account = _account(target, tls, plaintext, token_file, tenant, (project, run, agent))
        await transfer_client.export(account, record_id or (), output)

    _run(work)


def import_(  # noqa: PLR0913 - one for each option
    *,
    target: Target,
    token_file: TokenFile,
    project: Project,
    run: Run,
    agent: Agent,
    source: Annotated[Path, typer.Option("--input", help="The file; - is standard input.")],
    idempotency_key: Annotated[
        str, typer.Option(help="Your name for this import: with the same one it is done once.")
    ],
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Check everything and write nothing.")
    ] = False,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    client_certificate_file: CertificateFile = None,
    client_key_file: KeyFile = None,
    plaintext: Plaintext = False,
) -> None:
    """Write every record of such a file, or none. Never merges."""
    tls = (ca_file, client_certificate_file, client_key_file)

    async def work() -> None:
        from broker.cli import transfer_client

        account = _account(target, tls, plaintext, token_file, tenant, (project, run, agent))
        await transfer_client.import_(account, source, idempotency_key, validate_only=validate_only)

    _run(work)


def _account(
    target: str,
    tls: tuple[Path | None, Path | None, Path | None],
    plaintext: bool,
    token_file: Path,
    tenant: str | None,
    scope: tuple[str, str, str],
) -> "Account":
    """Gather the options that both commands have.

    Raises:
        ValueError: they do not fit together.
    """
    from broker.cli.transfer_client import TIMEOUT_S, Account
    from broker.outbound import PeerSettings

    ca_file, certificate_file, key_file = tls
    peer = PeerSettings(
        address=target,
        timeout_s=TIMEOUT_S,
        root_ca_file=ca_file,
        client_certificate_file=certificate_file,
        client_key_file=key_file,
        plaintext_loopback=plaintext,
    )
    project, run, agent = scope
    return Account(
        peer=peer, token_file=token_file, tenant=tenant, project=project, run=run, agent=agent
    )


def _run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; what can be mended ends the process with readable lines."""
    # gRPC's core would write lines of its own about an address it cannot reach.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import asyncio

    from broker.cli.refusals import readable
    from broker.cli.transfer_client import TransferError

    try:
        asyncio.run(work())
    except (TransferError, OSError, ValueError) as error:
        told = str(error) if isinstance(error, TransferError) else readable(error)
        sys.stderr.write(f"broker: {told}\n")
        raise typer.Exit(1) from error
