"""Storage, search, attachments, waking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.search import SearchSource
    from hermes_hookspecs.ports.services import AttachmentStore, Waker
    from hermes_hookspecs.ports.store import StoreBackend


@hookspec(kind="provider", on_error="raise")
def hermes_store_backends() -> Sequence[StoreBackend] | None:
    """Return kinds of store; ``[storage] backend`` picks one by name.

    Called once when the profile opens, only when the configured backend is not a built-in one. All results are
    joined; the same name twice is an error that names both plugins. Fails closed.

    :returns: backends whose stores pass ``StorageSuite``.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_search_sources() -> Sequence[SearchSource] | None:
    """Return kinds of search index. The first that works on the open store is used; without one, search scans.

    Called once when search is first needed. A failure is logged and search scans.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="raise", firstresult=True)
def hermes_attachment_store(folder: str) -> AttachmentStore | None:
    """Return where the bytes of attachments are kept, or ``None`` for the built-in folder.

    Called once, when attachments are first needed. Stops at the first result. Fails closed.

    :param folder: folder of the profile, private to it.
    :returns: a store that passes ``AttachmentStoreSuite``.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="raise", firstresult=True, pending="waking across hosts")
def hermes_waker(folder: str) -> Waker | None:
    """Return what wakes waiters, or ``None`` for the built-in one, which reaches one host.

    Called once when the profile opens. Stops at the first result. Fails closed.

    .. versionadded:: 0.1
    """
