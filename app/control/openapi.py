"""The control interface as an OpenAPI document, made of the messages: `ffrt ctl schema`, and `docs/control.openapi.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import TypeAdapter

from app.control.messages import COMMANDS, EVENTS, Command, Face, Failure, State
from app.live_options import CONTROL_PORT

VERSION = "1"
"""Of the interface, as in the addresses: what is added keeps it, what changes or goes makes another."""

REFUSALS = {
    400: "What was sent is no command.",
    401: "The token is missing or wrong.",
    403: "It came from a page in a browser, or to another name than this machine's own.",
    404: "There is no such address, preset or face.",
    408: "The message was not whole in time.",
    409: "Only a line that is live can do that, or only a window.",
    413: "The message is too long.",
    422: "It could not be done: the sentence says why and what to do.",
    429: "Too many requests, or too much under way. A stop is never refused so.",
    500: "Something unexpected; the log has the details.",
    503: "ffrt ends.",
}
"""Status → when it is given."""


@dataclass(frozen=True, slots=True)
class Question:
    """A GET: it changes nothing."""

    says: str
    media: str
    schema: dict[str, Any]


JSON = "application/json"

QUESTIONS = {
    "state": Question("How things stand.", JSON, {"$ref": "#/components/schemas/State"}),
    "metrics": Question("The numbers, for Prometheus (text format 0.0.4).", "text/plain", {"type": "string"}),
    "snapshot": Question("The next picture, as the outputs get it.", "image/png", {}),
    "presets": Question("The names of the presets.", JSON, {"type": "array", "items": {"type": "string"}}),
    "faces": Question("The faces of the gallery.", JSON, {"type": "array", "items": {"$ref": "#/components/schemas/Face"}}),
    "schema": Question("This document.", JSON, {"type": "object"}),
    "events": Question(
        "A WebSocket: the server sends Events as text; the client may send Commands as text, and gets an Answer to each.",
        JSON,
        {"$ref": "#/components/schemas/Event"},
    ),
}
"""Name, as in ``/v1/NAME`` → what is answered."""


def commands() -> dict[str, type[Any]]:
    """Name, as in ``/v1/NAME`` → its message. To ask for the state is a command on a WebSocket alone."""
    kinds = get_args(get_args(Command)[0])
    return {kind.model_fields["do"].default: kind for kind in kinds if kind.model_fields["do"].default not in QUESTIONS}


def document() -> dict[str, Any]:
    """OpenAPI 3.1, JSON-ready."""
    paths: dict[str, Any] = {f"/v1/{name}": {"get": _question(name, question)} for name, question in QUESTIONS.items()}
    paths |= {f"/v1/{name}": {"post": _command(name, kind)} for name, kind in commands().items()}
    bearer = {"type": "http", "scheme": "bearer", "description": "`ffrt ctl token` says in which file the token lies."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "ffrt control", "version": VERSION, "license": {"name": "MIT", "identifier": "MIT"}},
        "servers": [{"url": f"http://127.0.0.1:{CONTROL_PORT}"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": {"token": bearer}, "schemas": _schemas()},
    }


def _question(name: str, question: Question) -> dict[str, Any]:
    answer = {"description": question.says, "content": {question.media: {"schema": question.schema}}}
    status = "101" if name == "events" else "200"
    return {"operationId": name, "summary": question.says, "responses": {status: answer, **_refusals()}}


def _command(name: str, kind: type[Any]) -> dict[str, Any]:
    says = " ".join((kind.__doc__ or "").split())
    body = {"content": {JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}, "required": bool(_fields(kind))}
    answer = {"description": "It was done: the state after it.", "content": {JSON: {"schema": {"$ref": "#/components/schemas/State"}}}}
    return {"operationId": name, "summary": says, "requestBody": body, "responses": {"200": answer, **_refusals()}}


def _refusals() -> dict[str, Any]:
    content = {JSON: {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {str(status): {"description": when, "content": content} for status, when in REFUSALS.items()}


def _fields(kind: type[Any]) -> list[str]:
    """Of its own, beside those that every command has."""
    return [name for name in kind.model_fields if name not in ("do", "id")]


def _schemas() -> dict[str, Any]:
    return dict(sorted(_named_schemas()))


def _named_schemas() -> Iterator[tuple[str, Any]]:
    parts: dict[str, tuple[TypeAdapter[Any], bool]] = {"Command": (COMMANDS, True), "Event": (EVENTS, False)}
    parts |= {kind.__name__: (TypeAdapter(kind), False) for kind in (State, Face, Failure)}
    for name, (adapter, is_given) in parts.items():
        made = adapter.json_schema(mode="validation" if is_given else "serialization", ref_template="#/components/schemas/{model}")
        yield from made.pop("$defs", {}).items()
        yield name, made
