"""All parts of the adapter suite in one class."""

from __future__ import annotations

from hermes_hookspecs.testing.adapters.connecting import AccountTests, ConnectionTests, LeavingTests
from hermes_hookspecs.testing.adapters.files import FileTests
from hermes_hookspecs.testing.adapters.receiving import AcknowledgementTests, IdentityTests, SourceTests
from hermes_hookspecs.testing.adapters.sending import AbilityTests, FailureTests, SendingTests
from hermes_hookspecs.testing.completeness import CompleteSuite

__all__ = ["PlatformAdapterSuite"]


class PlatformAdapterSuite(
    AcknowledgementTests,
    IdentityTests,
    SourceTests,
    SendingTests,
    FailureTests,
    FileTests,
    AbilityTests,
    ConnectionTests,
    LeavingTests,
    AccountTests,
    CompleteSuite,
):
    """What every adapter does. A subclass gives the fixture ``fake``, and says what its platform cannot do."""
