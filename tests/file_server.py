"""A real HTTP server on this machine that can misbehave in the ways that downloads meet."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """One file, and how it is given."""

    data: bytes
    etag: str | None = '"1"'
    ranges: bool = True
    """Whether Range is honoured."""
    head: bool = True
    breaks: list[int] = field(default_factory=list)
    """For each request in turn, after how many bytes the connection is cut; then none is."""
    statuses: list[int] = field(default_factory=list)
    """For each request in turn, a status to answer instead."""
    redirect: str | None = None
    length: bool = True
    """Whether Content-Length is said."""
    claimed: int | None = None
    """Content-Length that is not the truth."""
    encoding: str | None = None
    """Content-Encoding that is said; nothing is encoded."""
    hold_after: int | None = None
    """After so many bytes the server says no more until ``Site.release`` is set."""


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


class Site:
    """What is served and what was asked."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[Request] = []
        self.release = threading.Event()
        self.port = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, path: str, data: bytes, **how: object) -> Served:
        self.files[path] = Served(data, **how)  # type: ignore[arg-type]
        return self.files[path]

    def asked(self, path: str, method: str = "GET") -> list[Request]:
        return [request for request in self.requests if request.path == path and request.method == method]


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer("HEAD")

        def do_GET(self) -> None:
            self._answer("GET")

        def _answer(self, method: str) -> None:
            site.requests.append(Request(method, self.path, {key.lower(): value for key, value in self.headers.items()}))
            served = site.files.get(self.path)
            if served is None or (method == "HEAD" and not served.head):
                self.send_error(404 if served is None else 405)
            elif served.redirect:
                self.send_response(302)
                self.send_header("Location", served.redirect)
                self.end_headers()
            elif method == "GET" and served.statuses:
                self.send_error(served.statuses.pop(0))
            else:
                self._give(served, method)

        def _give(self, served: Served, method: str) -> None:
            start = self._start(served)
            if start and start >= len(served.data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(served.data)}")
                self.end_headers()
                return
            body = served.data[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(served.data) - 1}/{len(served.data)}")
            if served.length:
                self.send_header("Content-Length", str(len(body) if served.claimed is None else served.claimed))
            if served.etag:
                self.send_header("ETag", served.etag)
            if served.encoding:
                self.send_header("Content-Encoding", served.encoding)
            self.end_headers()
            if method == "GET":
                self._send(served, body)

        def _start(self, served: Served) -> int:
            match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            condition = self.headers.get("If-Range")
            if match is None or not served.ranges or (condition is not None and condition != served.etag):
                return 0
            return int(match.group(1))

        def _send(self, served: Served, body: bytes) -> None:
            try:
                if served.hold_after is not None:
                    self.wfile.write(body[: served.hold_after])
                    self.wfile.flush()
                    site.release.wait(60)
                    body = body[served.hold_after :]
                self.wfile.write(body[: served.breaks.pop(0)] if served.breaks else body)
            except (BrokenPipeError, ConnectionResetError):  # the client left, as some tests want
                pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="file server")
    thread.start()
    try:
        yield site
    finally:
        site.release.set()
        server.shutdown()
        server.server_close()  # waits for the threads of all connections
        thread.join()
