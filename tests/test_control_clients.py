"""Clients of the control interface that behave well and badly, over real sockets: none holds the server or changes what it must not."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("aiohttp")
pytest.importorskip("prometheus_client")

import aiohttp
from control_kit import PATIENCE_S, SMALL, TOKEN, serving

from app.control import server as server_module
from app.control import visitors
from app.control.guard import SECOND_NS, RateLimit
from app.control.messages import BODY_BYTES_MAX
from app.control.server import BURST, CLIENTS_MAX, STRANGERS_BURST, ControlServer
from app.control.visitors import VISITORS_MAX

Talk = Callable[[aiohttp.ClientWebSocketResponse], Awaitable[Any]]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlServer]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    with serving() as made:
        yield made


def talk(server: ControlServer, what: Talk, **headers: str) -> Any:
    async def run() -> Any:
        async with session(**headers) as one, one.ws_connect(events_of(server)) as client:
            return await asyncio.wait_for(what(client), PATIENCE_S)

    return asyncio.run(run())


def session(**headers: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}", **headers})


def events_of(server: ControlServer) -> str:
    return f"http://127.0.0.1:{server.port}/v1/events"


async def next_answer(client: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    """Events of another kind are passed over."""
    while True:
        message = await client.receive_json()
        if message["event"] == "answer":
            return dict(message)


async def until_well(client: aiohttp.ClientWebSocketResponse) -> None:
    """What the other one asked for counts as everybody's with the token: the first answers may be that it was too much."""
    for _ in range(1000):
        await client.send_json({"do": "state", "id": "well?"})
        answer = await next_answer(client)
        if answer["state"] is not None:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it stays too much")


async def is_well(client: aiohttp.ClientWebSocketResponse) -> bool:
    await client.send_json({"do": "state", "id": "well?"})
    answer = await next_answer(client)
    return answer["id"] == "well?" and answer["state"]["state"] == "stopped"


def raw_client(server: ControlServer) -> socket.socket:
    """Past the handshake, with as little room for what comes as the system gives."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    made.settimeout(PATIENCE_S)
    made.connect(("127.0.0.1", server.port))
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        "GET /v1/events HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"Authorization: Bearer {TOKEN}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
    )
    made.sendall("\r\n".join((*lines, "", "")).encode())
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += made.recv(1)
    assert heard.startswith(b"HTTP/1.1 101"), heard
    return made


def frame(payload: bytes, *, opcode: int = 1) -> bytes:
    """Masked with zeros, as RFC 6455 has it for clients; whole."""
    length = len(payload)
    size = bytes([0x80 | length]) if length < 126 else bytes([0x80 | 126]) + struct.pack("!H", length)
    return bytes([0x80 | opcode]) + size + bytes(4) + payload


def close_code(client: socket.socket) -> int:
    """Of the server's goodbye; what comes before is passed over."""
    heard = bytearray()
    while part := client.recv(4096):
        heard += part
    while heard:
        first, length = heard[0], heard[1]
        start = 2
        if length == 126:
            start, length = 4, int.from_bytes(heard[2:4])
        if first & 0xF == 8:
            return int.from_bytes(heard[start : start + 2])
        del heard[: start + length]
    raise AssertionError("no goodbye was said")


# --- what is said ---


def test_a_client_is_told_the_state_and_gets_its_answers_by_number(server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        first = await client.receive_json()
        assert (first["event"], first["state"]["state"]) == ("state", "stopped")
        await client.send_json({"do": "identity", "face": "hopper", "id": "a"})
        answer = await next_answer(client)
        assert (answer["id"], answer["error"], answer["state"]["face"]) == ("a", None, "Hopper")

    talk(server, what)


NO_COMMANDS = [
    "",
    "{",
    "[]",
    "null",
    "\x00",
    "{}",
    '{"do": "dance"}',
    '{"do": ["state"]}',
    '{"do": "preset"}',
    '{"do": "state", "unknown": 1}',
    '{"do": "identity", "face": "a", "nobody": true}',
    '{"do": "identity", "photos": []}',
    '{"do": "state", "id": 7}',
    "[" * (BODY_BYTES_MAX - 1),
    '{"do": "preset", "name": "' + "x" * 400 + '"}',
]


@pytest.mark.parametrize("text", NO_COMMANDS, ids=[text[:30] for text in NO_COMMANDS])
def test_what_is_no_command_is_answered_in_words_and_the_client_stays(text: str, server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        await client.send_str(text)
        answer = await next_answer(client)
        assert answer["error"]
        assert answer["state"] is None
        assert len(answer["error"]) < 500
        assert await is_well(client)

    talk(server, what)


def test_a_command_that_is_refused_keeps_its_number(server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        for wrong in ({"do": "dance"}, {"do": "preset", "name": "none of mine"}, {"do": "identity", "photos": ["/none.jpg"]}):
            await client.send_json({**wrong, "id": "n"})
            answer = await next_answer(client)
            assert (answer["id"], answer["state"]) == ("n", None)
        assert await is_well(client)

    talk(server, what)


def test_a_message_as_long_as_may_be_is_read(server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        await client.send_str('{"do": "state"}'.ljust(BODY_BYTES_MAX - 1))
        assert (await next_answer(client))["error"] is None

    talk(server, what)


@pytest.mark.parametrize(("is_binary", "length", "code"), [(True, 1, 1003), (True, 0, 1003), (False, BODY_BYTES_MAX + 1, 1009)])
def test_what_cannot_be_read_at_all_ends_the_conversation(is_binary: bool, length: int, code: int, server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> int | None:
        await (client.send_bytes(b"x" * length) if is_binary else client.send_str("x" * length))
        while (await client.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        return client.close_code

    assert talk(server, what) == code
    talk(server, is_well)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(b"\xff\xfe"), 1007),  # no UTF-8
        (frame(b"{}", opcode=3), 1002),  # a kind that does not exist
        (bytes([0xF1, 0x80]) + bytes(4), 1002),  # reserved bits
    ],
    ids=["utf8", "opcode", "reserved"],
)
def test_what_is_no_websocket_frame_ends_the_conversation(data: bytes, code: int, server: ControlServer) -> None:
    with raw_client(server) as client:
        client.sendall(data)
        assert close_code(client) == code
    talk(server, is_well)


# --- who comes and goes ---


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Origin": "https://example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Host": "rebound.example.org"}, 403),
    ],
    ids=str,
)
def test_a_stranger_hears_nothing(headers: dict[str, str], status: int, server: ControlServer) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        talk(server, is_well, **headers)
    assert refused.value.status == status


def test_many_hear_of_a_change_and_one_too_many_is_refused(server: ControlServer) -> None:
    async def run() -> None:
        async with session() as one:
            clients = [await one.ws_connect(events_of(server)) for _ in range(CLIENTS_MAX)]
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await one.ws_connect(events_of(server))
            assert refused.value.status == 429
            await clients[0].send_json({"do": "identity", "face": "hopper"})
            for client in clients:
                while (await client.receive_json())["state"]["face"] != "Hopper":
                    pass
            await clients[1].close()
            async with one.ws_connect(events_of(server)) as last:
                assert (await last.receive_json())["state"]["face"] == "Hopper"

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_clients_that_go_in_the_middle_of_a_message_leave_their_places(server: ControlServer) -> None:
    whole = frame(json.dumps({"do": "identity", "face": "hopper"}).encode())
    for cut in (1, 2, 5, len(whole) - 1):
        gone = [raw_client(server) for _ in range(CLIENTS_MAX)]
        for client in gone:
            client.sendall(whole[:cut])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, as of a program that crashed
            client.close()
        until_there_is_room(server)

    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        assert (await client.receive_json())["state"]["face"] is None

    talk(server, what)


def until_there_is_room(server: ControlServer) -> None:
    """That the others are gone is seen by the server a moment later."""
    for _ in range(1000):
        try:
            talk(server, is_well)
        except aiohttp.WSServerHandshakeError as error:
            assert error.status == 429  # noqa: PT017  the places are still taken
        else:
            return
    raise AssertionError("the places stay taken")


def test_one_that_reads_nothing_is_let_go_and_holds_nobody(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SEND_S", 0.2)
    question = frame(b'{"do": "dance"}')

    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        assert await is_well(client)
        with raw_client(server) as deaf, pytest.raises(ConnectionError):
            await asyncio.to_thread(send_for_ever, deaf, question)
        await until_well(client)

    talk(server, what)


def send_for_ever(client: socket.socket, data: bytes) -> None:
    while True:
        client.sendall(data * 100)


def test_whoever_listens_is_told_that_the_server_ends(server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> int | None:
        await client.receive_json()
        closing = asyncio.create_task(asyncio.to_thread(server.close))
        while (await client.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        await closing
        return client.close_code

    assert talk(server, what) == 1001
    with pytest.raises(httpx.ConnectError):
        httpx.get(events_of(server))


def test_where_the_server_breaks_nobody_waits_for_an_answer(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("of the test")

    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        await client.receive_json()
        monkeypatch.setattr(server._service, "state", broken)
        while (await client.receive()).type is aiohttp.WSMsgType.TEXT:
            pass

    talk(server, what)
    server._thread.join(PATIENCE_S)
    assert not server._thread.is_alive()
    with pytest.raises(httpx.ConnectError):
        httpx.get(events_of(server))


# --- too often ---


@given(st.lists(st.integers(0, 10 * SECOND_NS), max_size=300), st.integers(1, 50), st.integers(1, 20))
def test_no_more_than_the_burst_and_the_rate_pass(waits_ns: list[int], per_s: int, burst: int) -> None:
    now_ns = 0
    limit = RateLimit(per_s, burst, lambda: now_ns)
    passed = 0
    for wait_ns in waits_ns:
        now_ns += wait_ns
        passed += limit.take()
    assert passed <= burst + now_ns / SECOND_NS * per_s + 1e-6
    assert passed >= min(len(waits_ns), burst)


def test_too_many_questions_are_refused_and_a_stop_never_is(server: ControlServer) -> None:
    base = f"http://127.0.0.1:{server.port}/v1"
    with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        answers = [client.get(f"{base}/state") for _ in range(BURST + 1)]
        while answers[-1].status_code != 429:
            answers.append(client.get(f"{base}/state"))
        assert all(answer.status_code == 200 for answer in answers[:BURST])
        assert answers[-1].headers["Retry-After"]
        assert client.post(f"{base}/stop").status_code == 200
        assert client.post(f"{base}/stop").status_code == 200


def test_a_stranger_who_floods_does_not_shut_out_a_friend(server: ControlServer) -> None:
    state = f"http://127.0.0.1:{server.port}/v1/state"
    with httpx.Client(headers={"Authorization": "Bearer guess"}) as stranger:
        statuses = [stranger.get(state).status_code for _ in range(STRANGERS_BURST + 1)]
        while statuses[-1] != 429:
            statuses.append(stranger.get(state).status_code)
        assert set(statuses) == {401, 429}
    assert httpx.get(state, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_too_many_messages_are_answered_so_and_a_stop_is_obeyed(server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        for _ in range(2 * BURST):
            await client.send_json({"do": "state"})
        await client.send_json({"do": "stop", "id": "stop"})
        refused = 0
        while True:
            answer = await next_answer(client)
            if answer["id"] == "stop":
                break
            refused += "too many" in (answer["error"] or "")
        assert answer["error"] is None
        assert refused

    talk(server, what)


# --- connections that say nothing, or too slowly ---


def head(server: ControlServer, request: str = "GET /v1/state", token: str = TOKEN, length: int | None = None) -> bytes:
    lines = [f"{request} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, *([] if length is None else [f"Content-Length: {length}"]), "", ""]).encode()


def call(server: ControlServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)


def heard_to_the_end(client: socket.socket) -> bytes:
    """What came until the server closed the connection."""
    heard = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            heard += part
    return bytes(heard)


def is_served(server: ControlServer) -> bool:
    with call(server) as client:
        client.sendall(head(server))
        return client.recv(65536).startswith(b"HTTP/1.1 200")


@contextlib.contextmanager
def many(server: ControlServer, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(call(server)) for _ in range(count)]
        for client in clients:
            with contextlib.suppress(ConnectionError):  # one that had to make room already
                client.sendall(said)
        yield clients


@pytest.mark.parametrize("said", [b"", b"GET /v1/sta", b"\x16\x03\x01"], ids=["nothing", "half a line", "another protocol"])
def test_however_many_hold_a_connection_a_friend_is_served_and_who_listens_stays(said: bytes, server: ControlServer) -> None:
    async def what(client: aiohttp.ClientWebSocketResponse) -> None:
        await asyncio.to_thread(hold_many)
        assert await is_well(client)

    def hold_many() -> None:
        with many(server, 3 * VISITORS_MAX, said):
            assert is_served(server)
            assert len(server._visitors._visitors) <= VISITORS_MAX

    talk(server, what)


def test_a_request_under_way_is_not_put_out_for_others(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """…however long it takes: a start may wait for its camera."""
    begun, goes_on = threading.Event(), threading.Event()
    state = server._service.state

    def slow(command: Any) -> Any:
        begun.set()
        assert goes_on.wait(PATIENCE_S)
        return state()

    monkeypatch.setattr(visitors, "SILENT_S", 0.0)
    monkeypatch.setattr(server._service, "obey", slow)
    with call(server) as client:
        client.sendall(head(server, "POST /v1/stop", length=0))
        assert begun.wait(PATIENCE_S)
        with many(server, 2 * VISITORS_MAX) as others:
            assert [heard_to_the_end(other) for other in others] == [b""] * len(others), "who says nothing is let go meanwhile"
        goes_on.set()
        assert client.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("said", ["", "GET /v1/state HTTP/1.1\r\nHost: 127.0.0.1", "POST"], ids=["nothing", "half a head", "a word"])
def test_who_does_not_come_to_the_point_is_let_go(said: str, server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "SILENT_S", 0.2)
    with call(server) as client:
        client.sendall(said.encode())
        assert heard_to_the_end(client) == b""
    assert is_served(server)


def test_one_that_sends_a_letter_at_a_time_is_let_go(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "SILENT_S", 0.5)
    with call(server) as client, pytest.raises(ConnectionError):
        send_slowly(client, b"GET /v1/state HTTP/1.1\r\nX: ")


def send_slowly(client: socket.socket, text: bytes) -> None:
    """For ever. Raises ``ConnectionError`` once the server has closed the connection."""
    client.settimeout(0.01)
    for letter in itertools.cycle(text):
        client.sendall(bytes([letter]))
        with contextlib.suppress(TimeoutError):
            if not client.recv(1):
                raise ConnectionResetError


def test_a_body_that_comes_too_slowly_is_given_up(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "BODY_S", 0.2)
    with call(server) as client:
        client.sendall(head(server, "POST /v1/identity", length=50) + b'{"face": "hopper"')
        answer = heard_to_the_end(client)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"not whole after 0.2 s" in answer
    assert server._service.studio.settings == SMALL


def test_one_that_asks_and_takes_no_answer_is_let_go(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_served(server)  # its loop runs
    monkeypatch.setattr(visitors, "SILENT_S", 0.5)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        client.settimeout(PATIENCE_S)
        client.connect(("127.0.0.1", server.port))
        client.sendall(head(server, "GET /v1/schema") * (BURST - 10))
        for _ in range(1000):
            if not server._visitors._visitors:
                break
            time.sleep(0.05)
        assert not server._visitors._visitors
    assert is_served(server)


@pytest.mark.parametrize(
    "line", ["GET /" + "x" * 20_000, "GET /v1/state HTTP/1.1\r\n" + "X: y\r\n" * 2000], ids=["a long line", "many lines"]
)
def test_a_head_that_is_too_long_is_refused(line: str, server: ControlServer) -> None:
    with call(server) as client:
        client.sendall(line.encode() + b"\r\n\r\n")
        assert b" 400 " in heard_to_the_end(client).partition(b"\r\n")[0]
    assert is_served(server)


def test_with_a_wrong_token_the_connection_ends(server: ControlServer) -> None:
    with call(server) as client:
        client.sendall(head(server, token="guess"))
        assert heard_to_the_end(client).startswith(b"HTTP/1.1 401")


def test_a_body_that_is_never_finished_changes_nothing(server: ControlServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        head = f"POST /v1/identity HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 50\r\n\r\n"
        client.sendall(head.encode() + b'{"face": "hopper"')
    talk(server, is_well)
    assert server._service.studio.settings == SMALL
