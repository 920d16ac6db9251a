"""The TLS proxy, as its owner sees it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from broker.devstack.processes.log import open_log
from broker.devstack.processes.ports import HOST
from broker.devstack.redis import tls_proxy
from broker.devstack.redis.home import BACKLOG, SOCKET, Home


class TlsProxy:
    """A process that listens on one port and takes what comes to the server of a directory.

    Attributes:
        pid: Its process id.
        port: Where it listens.
    """

    def __init__(self, home: Home, port: int = 0) -> None:
        """Starts it; connections wait for it from now on.

        Args:
            home: The prepared directory.
            port: Where to listen on the loopback interface; 0 takes a free one.

        Raises:
            OSError: The port is taken.
        """
        chain, key = home.certificate
        with socket.create_server((HOST, port), backlog=BACKLOG) as listener:
            self.port: int = listener.getsockname()[1]
            order = {
                "listener": listener.fileno(),
                "server": str(home.sockets.link / SOCKET),
                "certificate": str(chain),
                "key": str(key),
                "owner": os.getpid(),
            }
            log = open_log(home.proxy_log)
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", tls_proxy.__file__, json.dumps(order)],
                    cwd="/",
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=(listener.fileno(),),
                    start_new_session=True,
                )
            finally:
                os.close(log)
        self.pid = self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends it at once, and the connections through it with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
