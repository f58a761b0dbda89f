"""Events that come in several frames."""

from __future__ import annotations

import attrs

__all__ = ["Fragments"]

_LIFE_S = 5.0
_MOST_PIECES = 1000
_MOST_WAITING = 64
_MOST_BYTES = 32 * 1024 * 1024


@attrs.define
class _Heap:
    count: int
    since: float
    pieces: dict[int, bytes] = attrs.field(factory=dict)


class Fragments:
    """Puts events together. What is not whole within five seconds is dropped: the platform sends it again."""

    def __init__(self) -> None:
        self._heaps: dict[str, _Heap] = {}

    def add(self, message_id: str, count: int, number: int, payload: bytes, now: float) -> bytes | None:
        """Return the whole event with its last piece, ``None`` before.

        :param count: pieces of the event. number: of this one, from 0. now: monotonic seconds.
        :raises ValueError: there is no such piece.
        """
        if not 1 <= count <= _MOST_PIECES or not 0 <= number < count:
            raise ValueError(f"piece {number} of {count}")
        if count == 1:
            return payload
        self._heaps = {each: heap for each, heap in self._heaps.items() if now - heap.since < _LIFE_S}
        heap = self._heaps.get(message_id)
        if heap is None or heap.count != count:
            while len(self._heaps) >= _MOST_WAITING:
                self._heaps.pop(next(iter(self._heaps)))
            heap = self._heaps[message_id] = _Heap(count, now)
        heap.pieces[number] = payload
        if sum(map(len, heap.pieces.values())) > _MOST_BYTES:
            del self._heaps[message_id]
            raise ValueError("an event that is too long")
        if len(heap.pieces) < count:
            return None
        del self._heaps[message_id]
        return b"".join(heap.pieces[each] for each in range(count))
