"""AMF0, the notation of RTMP's commands: numbers, booleans, strings, objects, null (Adobe, "Action Message Format -- AMF 0", 2007)."""

from __future__ import annotations

import struct
from typing import Any

_NUMBER, _BOOLEAN, _STRING, _OBJECT, _NULL, _END = 0, 1, 2, 3, 5, 9


def encode(*values: Any) -> bytes:
    """float or int, bool, str, dict of these, None. Raises TypeError for anything else."""
    return b"".join(map(_encode_one, values))


def decode(data: bytes) -> list[Any]:
    """Raises ValueError for what is cut off or of another kind."""
    values, at = [], 0
    try:
        while at < len(data):
            value, at = _decode_one(data, at)
            values.append(value)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"no AMF0 at byte {at}: {error}") from None
    return values


def _encode_one(value: Any) -> bytes:
    match value:
        case None:
            return bytes([_NULL])
        case bool():
            return bytes([_BOOLEAN, value])
        case int() | float():
            return struct.pack(">Bd", _NUMBER, value)
        case str():
            return bytes([_STRING]) + _text(value)
        case dict():
            fields = b"".join(_text(key) + _encode_one(item) for key, item in value.items())
            return bytes([_OBJECT]) + fields + b"\0\0" + bytes([_END])
    raise TypeError(f"AMF0 has no form here for {type(value).__name__}")


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def _decode_one(data: bytes, at: int) -> tuple[Any, int]:
    kind, at = data[at], at + 1
    match kind:
        case 0:
            return struct.unpack_from(">d", data, at)[0], at + 8
        case 1:
            return bool(data[at]), at + 1
        case 2:
            return _decode_text(data, at)
        case 3:
            return _decode_fields(data, at)
        case 5 | 6:
            return None, at
        case 8:
            return _decode_fields(data, at + 4)
    raise ValueError(f"AMF0 type {kind} is not read here")


def _decode_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", data, at)
    if at + 2 + length > len(data):
        raise IndexError("string is cut off")
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def _decode_fields(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    while True:
        key, at = _decode_text(data, at)
        if data[at] == _END:
            return fields, at + 1
        fields[key], at = _decode_one(data, at)
