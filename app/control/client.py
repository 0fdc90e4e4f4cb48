"""The client's end, for `ffrt ctl` and for a second ffrt. HTTP needs nothing beyond the base install; watching needs aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from app.control.guard import HOST
from app.control.guard import token as kept_token
from app.errors import ControlError, MissingError

ANSWER_S = 60.0
"""What a start may take: models are loaded and a camera is opened."""


class ControlClient:
    """Of the ffrt that listens on ``port``. One thread; raises ``ControlError`` with the server's own sentence."""

    def __init__(self, port: int, token: str | None = None) -> None:
        """``token``: the user's, from its file, otherwise."""
        self._port = port
        self._headers = {"Authorization": f"Bearer {token or kept_token()}"}

    def ask(self, what: str) -> Any:
        """``state``, ``presets``, ``faces`` or ``schema``, as JSON has it."""
        return self._call("GET", what).json()

    def tell(self, do: str, **facts: Any) -> dict[str, Any]:
        """Obeyed: the state after it."""
        state: dict[str, Any] = self._call("POST", do, {name: value for name, value in facts.items() if value is not None}).json()
        return state

    def metrics(self) -> str:
        return self._call("GET", "metrics").text

    def snapshot(self) -> bytes:
        """PNG."""
        return self._call("GET", "snapshot").content

    def watch(self, heard: Callable[[dict[str, Any]], bool]) -> None:
        """Calls ``heard`` with every event until it returns False, or the server ends."""
        try:
            import aiohttp
        except ImportError:
            raise MissingError("watching needs aiohttp; install it with `pip install 'ffrt[control]'`") from None

        async def listen() -> None:
            async with (
                aiohttp.ClientSession(headers=self._headers) as session,
                session.ws_connect(f"http://{HOST}:{self._port}/v1/events", heartbeat=20.0) as events,
            ):
                async for message in events:
                    if message.type is not aiohttp.WSMsgType.TEXT or not heard(message.json()):
                        return

        try:
            asyncio.run(listen())
        except aiohttp.WSServerHandshakeError as error:
            raise ControlError(f"the ffrt on port {self._port} refused to be watched ({error.status} {error.message})") from None
        except (aiohttp.ClientError, OSError):
            raise self._silence() from None

    def _call(self, method: str, what: str, facts: dict[str, Any] | None = None) -> httpx.Response:
        address = f"http://{HOST}:{self._port}/v1/{what}"
        try:
            with httpx.Client(headers=self._headers, timeout=ANSWER_S, trust_env=False) as client:  # never by a proxy
                answer = client.request(method, address, json=facts) if facts is not None else client.request(method, address)
        except httpx.TimeoutException:
            raise ControlError(f"the ffrt on port {self._port} did not answer in {ANSWER_S:g} s; see whether it still runs") from None
        except httpx.HTTPError:
            raise self._silence() from None
        if not answer.is_success:
            raise ControlError(_sentence(answer, self._port))
        return answer

    def _silence(self) -> ControlError:
        return ControlError(f"no ffrt answers on port {self._port}; start one with `ffrt --control`, or give its port with --port")


def _sentence(answer: httpx.Response, port: int) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"what answers on port {port} is no ffrt (status {answer.status_code}); give another with --port"
