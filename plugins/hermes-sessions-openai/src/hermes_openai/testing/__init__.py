"""A fake endpoint on loopback, for tests of this plugin and of whoever builds on it.

::

    with FakeEndpoint(calls(("look", '{"city": "Ulm"}')), answer("It ", "rains.")) as endpoint:
        ...                                     # talk to endpoint.base_url
    endpoint.requests[1].messages[-1]           # what it was sent
"""

from __future__ import annotations

from hermes_openai.testing.endpoint import FakeEndpoint
from hermes_openai.testing.replies import answer, calls, cut, drop, hold, raw, refuse, stream_of, transcript, whole
from hermes_openai.testing.requests import Asked

__all__ = [
    "Asked",
    "FakeEndpoint",
    "answer",
    "calls",
    "cut",
    "drop",
    "hold",
    "raw",
    "refuse",
    "stream_of",
    "transcript",
    "whole",
]
