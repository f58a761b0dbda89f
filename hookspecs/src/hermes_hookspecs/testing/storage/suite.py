"""All parts of the storage suite in one class."""

from __future__ import annotations

from hermes_hookspecs.testing.completeness import CompleteSuite
from hermes_hookspecs.testing.storage.approvals import ApprovalTests
from hermes_hookspecs.testing.storage.audit import AuditTests
from hermes_hookspecs.testing.storage.branching import BranchingTests
from hermes_hookspecs.testing.storage.compression import CompressionTests
from hermes_hookspecs.testing.storage.concurrency import ConcurrencyTests
from hermes_hookspecs.testing.storage.controls import ControlTests
from hermes_hookspecs.testing.storage.deletion import DeletionTests
from hermes_hookspecs.testing.storage.files import FileTests
from hermes_hookspecs.testing.storage.finishes import FinishTests
from hermes_hookspecs.testing.storage.hiding import HidingTests
from hermes_hookspecs.testing.storage.inbox import InboxTests
from hermes_hookspecs.testing.storage.jobs import JobTests
from hermes_hookspecs.testing.storage.joining import JoiningTests
from hermes_hookspecs.testing.storage.leases import LeaseTests
from hermes_hookspecs.testing.storage.lineages import LineageTests, TitleTests
from hermes_hookspecs.testing.storage.moves import MoveTests, ScopeTests
from hermes_hookspecs.testing.storage.outbox import InboundTests, OutboxTests, PeopleTests
from hermes_hookspecs.testing.storage.presence import PresenceTests, WorkTests
from hermes_hookspecs.testing.storage.recovery import EndingTests, RecoveryTests
from hermes_hookspecs.testing.storage.resets import ResetTests
from hermes_hookspecs.testing.storage.rooms import RoomTests, StrangerTests
from hermes_hookspecs.testing.storage.routes import RouteTests
from hermes_hookspecs.testing.storage.sending import SendingTests, ThreadTests
from hermes_hookspecs.testing.storage.state import FeedTests, LifeTests, StateTests
from hermes_hookspecs.testing.storage.steering import SteeringTests
from hermes_hookspecs.testing.storage.sweep import SweepTests
from hermes_hookspecs.testing.storage.texts import TextTests
from hermes_hookspecs.testing.storage.transcripts import AccessTests, LegalityTests, TranscriptTests
from hermes_hookspecs.testing.storage.turns import BeginTests
from hermes_hookspecs.testing.storage.usage import UsageTests

__all__ = ["RecordsSuite", "StorageSuite"]


class StorageSuite(
    RouteTests,
    ScopeTests,
    TitleTests,
    LineageTests,
    DeletionTests,
    InboxTests,
    ControlTests,
    BeginTests,
    RecoveryTests,
    SteeringTests,
    FinishTests,
    EndingTests,
    OutboxTests,
    SendingTests,
    JoiningTests,
    FileTests,
    ThreadTests,
    InboundTests,
    PeopleTests,
    PresenceTests,
    WorkTests,
    SweepTests,
    LeaseTests,
    LegalityTests,
    TranscriptTests,
    AccessTests,
    RoomTests,
    StrangerTests,
    StateTests,
    FeedTests,
    CompressionTests,
    LifeTests,
    TextTests,
    ConcurrencyTests,
    CompleteSuite,
):
    """What every store does. A subclass gives the fixture ``store`` (open, empty), and says what it is capable of.

    ::

        class TestMyStore(StorageSuite):
            durable = True

            @pytest.fixture
            def store(self, tmp_path): ...

            @pytest.fixture
            def reopen(self, store, tmp_path): ...      # closes, opens the same place again, returns the new store

            @pytest.fixture
            def another_store(self, tmp_path): ...      # a second, empty one in another place
    """


class RecordsSuite(
    HidingTests,
    BranchingTests,
    ResetTests,
    ApprovalTests,
    AuditTests,
    JobTests,
    MoveTests,
    UsageTests,
    CompleteSuite,
):
    """What a store does beside that for people and agents at work.

    Rows taken back, branches, resets that clear and carry, requests for approval, calls, jobs, routes that move, costs.

    With the fixtures of :class:`StorageSuite`. A store that fails it still serves conversations.
    """
