"""The frames of the long connection: protobuf (proto2) by hand, as far as this one message needs it.

=====================  ======  =======================================================
field                  number  type
=====================  ======  =======================================================
SeqID, LogID           1, 2    uint64, required
service                3       int32, required: the ``service_id`` of the connection
method                 4       int32, required: 0 control, 1 data
headers                5       repeated message: key 1, value 2, both text
payload_encoding       6       text
payload_type           7       text
payload                8       bytes
LogIDNew               9       text
=====================  ======  =======================================================
"""

from __future__ import annotations

import attrs

__all__ = ["CONTROL", "DATA", "Frame", "decode", "encode"]

CONTROL, DATA = 0, 1

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1
_LONGEST_VARINT = 10


@attrs.frozen(kw_only=True)
class Frame:
    """One frame. ``headers`` are pairs in order; a key may come twice, and the first one counts."""

    service: int
    method: int
    headers: tuple[tuple[str, str], ...] = ()
    payload: bytes = attrs.field(default=b"", repr=False)
    seq_id: int = 0
    log_id: int = 0
    payload_encoding: str = ""
    payload_type: str = ""
    log_id_new: str = ""

    def header(self, key: str) -> str:
        """Return the value of a header, ``""`` where there is none."""
        return next((value for name, value in self.headers if name == key), "")


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame; what is empty and not required is left out."""
    out = bytearray()
    for number, value in ((1, frame.seq_id), (2, frame.log_id), (3, frame.service), (4, frame.method)):
        out += _varint(number << 3 | _VARINT) + _varint(value)
    for header in frame.headers:
        _put(out, 5, _pair(*header))
    texts = (frame.payload_encoding.encode(), frame.payload_type.encode(), frame.payload, frame.log_id_new.encode())
    for number, blob in enumerate(texts, 6):
        if blob:
            _put(out, number, blob)
    return bytes(out)


def decode(data: bytes) -> Frame:
    """Return the frame that some bytes hold; fields that are not known are passed over.

    :raises ValueError: they hold none.
    """
    numbers = {1: 0, 2: 0, 3: 0, 4: 0}
    seen: set[int] = set()
    blobs: dict[int, bytes] = {}
    headers: list[tuple[str, str]] = []
    for field, value in _fields(data):
        if field in numbers and isinstance(value, int):
            numbers[field] = value
            seen.add(field)
        elif field == 5 and isinstance(value, bytes):
            headers.append(_header(value))
        elif isinstance(value, bytes):
            blobs[field] = value
    if not {3, 4} <= seen:
        raise ValueError("a frame without service or method")
    return Frame(
        seq_id=numbers[1],
        log_id=numbers[2],
        service=_int32(numbers[3]),
        method=_int32(numbers[4]),
        headers=tuple(headers),
        payload_encoding=_text(blobs.get(6, b"")),
        payload_type=_text(blobs.get(7, b"")),
        payload=blobs.get(8, b""),
        log_id_new=_text(blobs.get(9, b"")),
    )


def _put(out: bytearray, number: int, value: bytes) -> None:
    out += _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _pair(key: str, value: str) -> bytes:
    out = bytearray()
    _put(out, 1, key.encode())
    _put(out, 2, value.encode())
    return bytes(out)


def _varint(value: int) -> bytes:
    value &= _MASK  # a negative number is its two's complement in ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return number and value of each field, in order; fixed-width numbers come as their bytes."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("a field without a number")
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            found.append((number, value))
            continue
        if kind == _BYTES:
            length, at = _read_varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        if length > len(data) - at:
            raise ValueError("a field that is longer than its frame")
        if kind == _BYTES:
            found.append((number, data[at : at + length]))
        at += length
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value & _MASK, at + count + 1
    raise ValueError("a number that does not end")


def _header(data: bytes) -> tuple[str, str]:
    parts = {number: value for number, value in _fields(data) if isinstance(value, bytes)}
    return _text(parts.get(1, b"")), _text(parts.get(2, b""))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
