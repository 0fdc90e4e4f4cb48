"""A real RTMP server for tests: nginx with its rtmp module, on a free port of this machine, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# publish_notify: players get an end of file when the publisher stops. wait_key: a player starts at a key frame.
CONFIGURATION = """
load_module {modules}/ngx_rtmp_module.so;
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log info;
events {{ worker_connections 64; }}
rtmp {{
  access_log off;
  server {{
    listen 127.0.0.1:{port};
    chunk_size 4096;
    application live {{
      live on; record off; wait_key on; publish_notify on; play_restart off; sync 10ms; interleave on;
    }}
  }}
}}
"""

PATIENCE_S = 10.0


class RtmpServer:
    """Starts at once; ``stop`` and ``start`` keep the port."""

    def __init__(self, folder: Path) -> None:
        """Skips the test where nginx or its module is missing."""
        self._program = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin")
        if self._program is None:
            pytest.skip("nginx is not installed (nginx-light)")
        built = subprocess.run([self._program, "-V"], check=False, capture_output=True, text=True).stderr
        modules = re.search(r"--modules-path=(\S+)", built)
        if modules is None or not Path(modules[1], "ngx_rtmp_module.so").exists():
            pytest.skip("nginx has no rtmp module (libnginx-mod-rtmp)")
        self.port = free_port()
        self.url = f"rtmp://127.0.0.1:{self.port}/live/test-key"
        self._folder = folder
        self._configuration = folder / "nginx.conf"
        self._configuration.write_text(CONFIGURATION.format(modules=modules[1], folder=folder, port=self.port))
        self.start()

    def start(self) -> None:
        errors = self._folder / "error.log"
        self._process = subprocess.Popen([self._program, "-p", self._folder, "-e", errors, "-c", self._configuration])
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nginx did not start: {errors.read_text()}")

    def stop(self) -> None:
        """Master and worker end at once, as when the machine fails."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE_S)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Takes nothing meanwhile, as a server behind a dead link."""
        workers = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for worker in workers:
            os.kill(int(worker), signal.SIGSTOP)
        try:
            yield
        finally:
            for worker in workers:
                os.kill(int(worker), signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.1).close()
        except OSError:
            return False
        return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
