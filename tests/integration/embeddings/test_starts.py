"""Whole brokers with embeddings: starts, ends, and starts that must not be."""

import subprocess
import sys
from pathlib import Path

from tests.fixtures.broker import Stand
from tests.fixtures.embedding_server import EmbeddingServer
from tests.fixtures.own_broker import (
    END_SECONDS,
    SERVING,
    Ended,
    Settings,
    health,
    own_broker,
    settings_for,
    write_settings,
)
from tests.fixtures.postgres import Database
from tests.integration.embeddings.conftest import KEY, TENANT

WITHOUT_THE_EXTRA = """
import sys
sys.modules["onnxruntime"] = None
from broker.__main__ import main
main()
"""


def local(settings: Settings) -> None:
    """Embed in the broker itself."""
    settings["embeddings"] = {"provider": "local"}


async def test_a_broker_with_the_local_model_serves_and_ends(
    stand: Stand, postgres_database: Database, tmp_path: Path
) -> None:
    """001-40: the model is loaded before anybody is served."""
    with own_broker(stand, tmp_path, postgres_database, local) as own:
        assert await health(own.channel()) == SERVING
        assert own.broker.stop() == 0
    assert "Traceback" not in own.broker.log()


def test_without_the_extra_the_start_says_what_to_install(stand: Stand, tmp_path: Path) -> None:
    settings = settings_for(stand, stand.database)
    local(settings)
    file = write_settings(tmp_path, settings)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA, "serve", "--config", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=END_SECONDS,
    )
    refused = Ended(done.returncode, done.stdout)
    refused.refused_with("embeddings", "onnxruntime", 'pip install "knowledge-broker[embeddings]"')


async def test_a_broker_asks_its_endpoint_at_the_start(
    stand: Stand, postgres_database: Database, tmp_path: Path
) -> None:
    """000-41: with the key that stands in a file; a start waits for nothing of it."""
    key = tmp_path / "key"
    key.write_text(KEY)
    async with EmbeddingServer(tmp_path).running() as server:

        def remote(settings: Settings) -> None:
            settings["embeddings"] = {
                "provider": "http",
                "endpoint": server.url,
                "model": "model-1",
                "dimension": 3,
                "key_file": str(key),
                "ca_file": str(server.ca_file),
                "tenants": [TENANT],
                "allow_loopback": True,
                "timeout_seconds": 10,
            }

        with own_broker(stand, tmp_path, postgres_database, remote) as own:
            await server.until(1)
            assert server.asked[0].document == {"model": "model-1", "input": ["probe"]}
            assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
            assert own.broker.stop() == 0
        assert KEY not in own.broker.log()
