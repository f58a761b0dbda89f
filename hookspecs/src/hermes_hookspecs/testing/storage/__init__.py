"""The suite of a storage backend, one module per topic; :class:`StorageSuite` is all of them.

Every rule of :mod:`hermes_hookspecs.operations` and :mod:`hermes_hookspecs.ports.store` has a test here.
"""

from __future__ import annotations

from hermes_hookspecs.testing.storage.suite import RecordsSuite, StorageSuite

__all__ = ["RecordsSuite", "StorageSuite"]
