"""The server's end: HTTP and WebSocket on the loopback address, on a thread of its own. It never waits for the line."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiohttp import WSCloseCode, WSMsgType, web

from app.control import openapi, prometheus
from app.control.guard import HOST, RateLimit, has_token, refusal
from app.control.messages import (
    BODY_BYTES_MAX,
    Answer,
    Command,
    Face,
    Failure,
    NumbersEvent,
    State,
    StateEvent,
    id_of,
    read_command,
)
from app.control.service import ControlService
from app.control.visitors import Visitors
from app.errors import AppError, ControlError, NotLiveError, StoreError, UsageError
from engines.errors import EngineError
from rt.clock import MonotonicClock
from rt.errors import RtError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BACKLOG = 32
"""Connections that wait to be taken."""

BODY_S = 5.0
"""A message that is not whole after so long is given up."""

LOOK_S = 0.2
"""From one look at the state to the next: a change made elsewhere is told after so long."""

NUMBERS_EVERY = 5
"""Looks between two events with numbers: a second."""

CLIENTS_MAX = 16
"""WebSockets at a time."""

CHANGES_MAX = 4
"""Commands under way at a time, beside a stop; each holds a thread."""

SNAPSHOTS_MAX = 2

ANSWERS_MAX = 8
"""Messages of one client that are being answered at a time."""

SEND_S = 5.0
"""A client that takes nothing for so long is let go."""

PER_S, BURST = 50.0, 100
"""Requests a second over time, and at once: more than a person or a sampler makes, less than the line would notice."""

STRANGERS_PER_S, STRANGERS_BURST = 5.0, 20
"""The same for requests without the right token."""

SLOW = ("start", "preset", "identity", "person", "others", "alike")


class ControlServer:
    """Made, started and closed by one thread."""

    def __init__(self, service: ControlService, token: str, port: int) -> None:
        """``port`` 0 takes any that is free. Costs nothing yet."""
        self._service, self._token, self._asked_port = service, token, port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)
        self._pool = ThreadPoolExecutor(CHANGES_MAX + SNAPSHOTS_MAX + 2, thread_name_prefix="control")
        self._socket: socket.socket | None = None
        self._up: asyncio.Event = asyncio.Event()
        self._end: asyncio.Event = asyncio.Event()
        self.port = port
        """The one that is listened on, once started."""
        clock = MonotonicClock()
        self._friends = RateLimit(PER_S, BURST, clock.now_ns)  # the loop's thread, as is all below
        self._strangers = RateLimit(STRANGERS_PER_S, STRANGERS_BURST, clock.now_ns)
        self._changes = self._snapshots = 0
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closing = False
        self._clients: dict[web.WebSocketResponse, web.Request] = {}
        self._news = _News()
        self._visitors: Visitors

    def start(self) -> None:
        """Returns once it listens. Raises ``ControlError`` for a port that cannot be had."""
        self._socket = _listen(self._asked_port)
        self.port = self._socket.getsockname()[1]
        self._thread.start()

    def close(self) -> None:
        """Refuses what comes, says goodbye to the clients, and waits for commands under way. May be called again."""
        if self._socket is None:
            self._loop.close()
            return
        with contextlib.suppress(RuntimeError):  # the loop broke, and is closed
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._pool.shutdown()

    # --- the loop's thread ---

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            log.exception("the control interface broke unexpectedly; ffrt goes on without it")
        finally:
            if self._socket is not None:
                self._socket.close()  # else clients would wait for answers that nobody gives
            self._loop.close()

    async def _serve(self) -> None:
        application = web.Application(middlewares=[self._guard], client_max_size=BODY_BYTES_MAX)
        answers = {
            "state": self._get_state,
            "metrics": self._get_metrics,
            "snapshot": self._get_snapshot,
            "presets": self._get_presets,
            "faces": self._get_faces,
            "schema": self._get_schema,
            "events": self._get_events,
        }
        for name in openapi.QUESTIONS:
            application.router.add_get(f"/v1/{name}", answers[name])
        for name in openapi.commands():
            application.router.add_post(f"/v1/{name}", self._post)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0, lingering_time=1.0)
        await runner.setup()
        assert self._socket is not None
        assert runner.server is not None
        self._visitors = Visitors(runner.server)
        tasks = [asyncio.create_task(work) for work in (self._visitors.take(self._socket), self._watch(), self._end.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # raises what broke it
        finally:
            self._closing = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*map(self._dismiss, tuple(self._clients)), return_exceptions=True)
            await runner.cleanup()
            await asyncio.gather(*tasks, *self._under_way, return_exceptions=True)

    async def _dismiss(self, client: web.WebSocketResponse) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):
            await asyncio.wait_for(client.close(code=WSCloseCode.GOING_AWAY, message=b"ffrt ends"), 1.0)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Who may not, or asks for too much, is told in one sentence; so is what went wrong."""
        foreign = refusal(request.headers, self.port)
        known = foreign is None and has_token(request.headers, self._token)
        is_stop = known and request.path == "/v1/stop"  # never refused for being one too many
        if not (self._friends if known else self._strangers).take() and not is_stop:
            answer = _failure(429, "too many requests; ask less often", {"Retry-After": "1"})
            return answer if known else _goodbye(answer)
        if foreign is not None:
            return _goodbye(_failure(403, foreign))
        if not known:
            return _goodbye(
                _failure(
                    401,
                    "the token is missing or wrong; `ffrt ctl token` says where it lies; send it as `Authorization: Bearer TOKEN`",
                    {"WWW-Authenticate": "Bearer"},
                )
            )
        if self._closing:
            return _failure(503, "ffrt ends")
        with self._visitors.attending(request.transport):
            return await self._handled(request, handler)

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            return _failure(413, f"a message may have {BODY_BYTES_MAX} bytes")
        except web.HTTPException as answer:
            return _failure(answer.status, f"{answer.reason}: {request.method} {request.path[:80]}; see `ffrt ctl schema`")
        except (AppError, RtError, EngineError) as error:
            return _failure(_status(error), str(error))
        except Exception as error:
            log.exception("a request broke unexpectedly")
            return _failure(500, f"unexpected {type(error).__name__}; the log has the details")

    async def _get_state(self, request: web.Request) -> web.Response:
        return _json(self._service.state())

    async def _get_metrics(self, request: web.Request) -> web.Response:
        body = await self._in_pool(lambda: prometheus.as_text(self._service.state(), self._service.studio.metrics()))
        return web.Response(body=body, headers={"Content-Type": prometheus.CONTENT_TYPE})

    async def _get_snapshot(self, request: web.Request) -> web.Response:
        if self._snapshots >= SNAPSHOTS_MAX:
            raise _BusyError(f"{SNAPSHOTS_MAX} snapshots are being made already; ask again")
        body = await self._to_its_end(self._picture())
        return web.Response(body=body, content_type="image/png", headers={"Cache-Control": "no-store"})

    async def _get_presets(self, request: web.Request) -> web.Response:
        return web.json_response(await self._in_pool(self._service.presets.names))

    async def _get_faces(self, request: web.Request) -> web.Response:
        identities = await self._in_pool(self._service.gallery.identities)
        return web.json_response([Face(id=one.id, name=one.name, favourite=one.favourite).model_dump() for one in identities])

    async def _get_schema(self, request: web.Request) -> web.Response:
        return web.json_response(openapi.document())

    async def _post(self, request: web.Request) -> web.Response:
        try:
            body = await asyncio.wait_for(request.read(), BODY_S)
        except TimeoutError:
            return _goodbye(_failure(408, f"the message was not whole after {BODY_S:g} s; send it at once"))
        return _json(await self._obey(read_command(body, request.path.rpartition("/")[2])))

    async def _obey(self, command: Command) -> State:
        """A stop always finds a place: it is what ends a start that waits."""
        if command.do in SLOW and self._changes >= CHANGES_MAX:
            raise _BusyError(f"{CHANGES_MAX} changes are under way already; ask again")
        return await self._to_its_end(self._change(command))

    async def _change(self, command: Command) -> State:
        slow = command.do in SLOW
        self._changes += slow
        try:
            state = await self._in_pool(lambda: self._service.obey(command))
        finally:
            self._changes -= slow
        self._news.state = state
        self._news.tell()
        return state

    async def _picture(self) -> bytes:
        self._snapshots += 1
        try:
            return await self._in_pool(self._service.snapshot)
        finally:
            self._snapshots -= 1

    async def _to_its_end(self, work: Coroutine[Any, Any, Result]) -> Result:
        """A client that goes away does not end what it has begun, nor free its place."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _in_pool(self, work: Callable[[], Result]) -> Result:
        return await self._loop.run_in_executor(self._pool, work)

    # --- WebSockets ---

    async def _get_events(self, request: web.Request) -> web.StreamResponse:
        if len(self._clients) >= CLIENTS_MAX:
            raise _BusyError(f"{CLIENTS_MAX} clients listen already; close one")
        client = web.WebSocketResponse(heartbeat=20.0, max_msg_size=BODY_BYTES_MAX, compress=False)
        await client.prepare(request)
        self._clients[client] = request
        tasks = {asyncio.create_task(self._tell(client))}
        try:
            async for message in client:
                if message.type is not WSMsgType.TEXT:
                    await client.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"messages are JSON as text")
                    continue
                tasks = {task for task in tasks if not task.done()}
                command = await self._heard(client, message.data, is_busy=len(tasks) > ANSWERS_MAX)
                if command is not None:
                    tasks.add(asyncio.create_task(self._answer(client, command)))
        finally:
            self._clients.pop(client, None)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return client

    async def _heard(self, client: web.WebSocketResponse, text: str, *, is_busy: bool) -> Command | None:
        """What a message asks for; None where it was answered already: no command, or one too many. A stop never is."""
        in_time = self._friends.take() and not is_busy
        try:
            command = read_command(text)
        except UsageError as error:
            await self._send(client, Answer(id=id_of(text), error=str(error)))
            return None
        if in_time or command.do == "stop":
            return command
        await self._send(client, Answer(id=command.id, error="too many messages; send less often"))
        return None

    async def _answer(self, client: web.WebSocketResponse, command: Command) -> None:
        """Obeys, and answers when it is done; others are heard meanwhile."""
        try:
            answer = Answer(id=command.id, state=await self._obey(command))
        except (AppError, RtError, EngineError) as error:
            answer = Answer(id=command.id, error=str(error))
        except Exception as error:
            log.exception("a message broke unexpectedly")
            answer = Answer(id=command.id, error=f"unexpected {type(error).__name__}; the log has the details")
        await self._send(client, answer)

    async def _tell(self, client: web.WebSocketResponse) -> None:
        """The newest of each, never a queue: what came meanwhile is passed over."""
        state, numbers_seen = None, self._news.numbered
        while True:
            following = self._news.following
            news = self._news.state or self._service.state()
            if news != state:
                state = news
                if not await self._send(client, StateEvent(state=news)):
                    return
            if self._news.numbers is not None and self._news.numbered != numbers_seen:
                numbers_seen = self._news.numbered
                if not await self._send(client, self._news.numbers):
                    return
            await following.wait()

    async def _send(self, client: web.WebSocketResponse, message: StateEvent | NumbersEvent | Answer) -> bool:
        """False where the client is gone, or takes nothing."""
        try:
            await asyncio.wait_for(client.send_str(message.model_dump_json()), SEND_S)
        except (TimeoutError, ConnectionError, RuntimeError):
            request = self._clients.pop(client, None)
            if request is not None and request.transport is not None:
                request.transport.abort()
            return False
        return True

    async def _watch(self) -> None:
        """Looks at the Studio, for changes that were made elsewhere. Only while somebody listens."""
        looks, before = 0, None
        while True:
            await asyncio.sleep(LOOK_S)
            self._visitors.dismiss_silent()
            if not self._clients:
                self._news.state, before = None, None
                continue
            looks += 1
            state = self._service.state()
            told = state.model_copy(update={"outputs": tuple(output.model_copy(update={"frames": 0}) for output in state.outputs)})
            if self._news.state is None or told != before:
                before = told
                self._news.state = state
                self._news.tell()
            if looks % NUMBERS_EVERY == 0:
                await self._look_at_numbers()

    async def _look_at_numbers(self) -> None:
        numbers = await self._in_pool(self._service.numbers)
        if numbers is None:
            self._news.numbers = None
            return
        now_s, last = self._loop.time(), self._news.counted
        self._news.counted = (now_s, numbers.frames_out)
        if last is not None and numbers.frames_out >= last[1]:
            numbers = numbers.model_copy(update={"fps": round((numbers.frames_out - last[1]) / (now_s - last[0]), 2)})
        self._news.numbers = NumbersEvent(numbers=numbers)
        self._news.numbered += 1
        self._news.tell()


class _News:
    """The newest of what clients are told. The loop's thread."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.numbers: NumbersEvent | None = None
        self.numbered = 0
        self.counted: tuple[float, int] | None = None
        self.following = asyncio.Event()
        """Set when something newer is there."""

    def tell(self) -> None:
        """Wakes all who wait; who is busy sending looks when it is done."""
        event, self.following = self.following, asyncio.Event()
        event.set()


class _BusyError(AppError):
    """More is under way than the interface allows."""


def _status(error: Exception) -> int:
    kinds: tuple[tuple[type[Exception], int], ...] = ((UsageError, 400), (_BusyError, 429), (NotLiveError, 409), (StoreError, 404))
    return next((status for kind, status in kinds if isinstance(error, kind)), 422)


def _listen(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows: nobody else may take the port over
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:  # a port that was closed a moment ago is free
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen(BACKLOG)
        made.setblocking(False)
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or error
        raise ControlError(
            f"port {port} for the control interface cannot be had ({reason}); give another with --control PORT, or 0 for any that is free"
        ) from None
    return made


def _json(message: State) -> web.Response:
    return web.json_response(text=message.model_dump_json())


def _goodbye(answer: web.Response) -> web.Response:
    """…after which the connection is closed."""
    answer.force_close()
    return answer


def _failure(status: int, error: str, headers: dict[str, str] | None = None) -> web.Response:
    body: Any = Failure(error=error).model_dump_json()
    return web.json_response(text=body, status=status, headers=headers)
