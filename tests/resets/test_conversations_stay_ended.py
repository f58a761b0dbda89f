"""Nothing brings an ended conversation back, and nothing ends one whose policy said keep.

``make laws ARGS=tests/resets`` plays it longer (``LAWS`` examples) and prints what was played.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from resets_law import TALLY, Conversations


@pytest.fixture(autouse=True)
def _counts(request):
    request.node.user_properties.append(("conversations that end", TALLY))


TestConversations = Conversations.TestCase
TestConversations.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
