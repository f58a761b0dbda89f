"""A stage: a fake platform, accounts whose adapters run as a gateway runs them, and eyes on the rules of them all."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import AuthFailed, ConfigError
from hermes_hookspecs.ports.platform import AccountSetup, Deferred, DeliveryPart, Sent
from hermes_hookspecs.testing.adapters.inlet import ScriptedInlet
from hermes_hookspecs.testing.adapters.state import MemoryState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from hermes_hookspecs.files import OutgoingFile
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import Platform, PlatformAdapter, SendResult
    from hermes_hookspecs.testing.fakes import FakePlatform

__all__ = ["AccountOnStage", "Stage", "Timing"]

_SHORTEST_SECRET = 6
_SHORTEST_TEXT = 12
"""Shorter ones stand in a log by chance."""
_AGAIN_S = 0.02


@attrs.frozen(kw_only=True)
class Timing:
    """How long a stage waits.

    Attributes:
        patience_s: for anything that must happen. grace_s: for what must not happen.
        watchdog_s: silence behind an ``alive()`` after which a run is ended, and another begins.
        leave_s: in which a cancelled run has ended.
    """

    patience_s: float = 20.0
    grace_s: float = 0.1
    watchdog_s: float = 2.0
    leave_s: float = 10.0


class AccountOnStage:
    """One account: its inlet stays, its adapters come and go.

    Attributes:
        adapter: the one that runs. failed: the error with which it gave up, ``None`` while it has not.
        crashes: what its runs raised otherwise; each was followed by another run.
    """

    def __init__(self, stage: Stage, platform: Platform, account_id: str, inlet: ScriptedInlet) -> None:
        self._stage = stage
        self._platform = platform
        self._account_id = account_id
        self._task: asyncio.Task[None] | None = None
        self.inlet = inlet
        self.adapter: PlatformAdapter | None = None
        self.failed: Exception | None = None
        self.crashes: list[Exception] = []

    # --- running

    async def start(self, *, wait: bool = True) -> None:
        """Make an adapter, in a thread that has no event loop, and run it. ``wait``: until it is connected."""
        self.adapter = await asyncio.to_thread(self._platform.adapter, self._stage.setup(self._account_id))
        self._stage.look_at_repr(self.adapter)
        self.run()
        if wait:
            await self.up()

    async def up(self) -> None:
        """Wait until the adapter says that it is connected."""
        await self.inlet.until(lambda: self.inlet.is_up or self.failed is not None, "the adapter reports `connected`")
        if self.failed is not None:
            raise AssertionError(f"the adapter gave up: {self.failed!r}") from self.failed

    def run(self) -> None:
        """Run the adapter again that was made last."""
        assert self.adapter is not None
        self.failed = None
        self.inlet.forget()
        self._task = asyncio.create_task(self._keep_running(self.adapter), name="stage-gateway")

    def cancel(self) -> None:
        """Ask the run to end, as a gateway does that leaves; :meth:`leave` waits for it."""
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    async def leave(self) -> None:
        """End the run, and wait for it."""
        self.cancel()
        task, self._task = self._task, None
        if task is None:
            return
        await asyncio.wait({task}, timeout=self._stage.timing.leave_s)
        if not task.done():
            self._stage.faults.append(f"a run does not end within {self._stage.timing.leave_s:g} s")

    async def stop(self) -> None:
        """End the run, and let go of the adapter."""
        await self.leave()
        close: Callable[[], Awaitable[None]] | None = getattr(self.adapter, "aclose", None)
        if close is not None:
            await close()
        self.adapter = None

    async def restart(self) -> None:
        """Stop, and start a new adapter that knows what was stored and nothing else."""
        await self.stop()
        await self.start()

    async def _keep_running(self, adapter: PlatformAdapter) -> None:
        """Do what a gateway does: run, again after a failure, anew where nothing is heard any more."""
        while True:
            run = asyncio.create_task(adapter.run(self.inlet), name="stage-adapter")
            try:
                await self._watch(run)
            except (AuthFailed, ConfigError) as error:
                self.failed = error
                self.inlet.nudge()
                return
            except Exception as error:  # noqa: BLE001 - whatever an adapter raises, a gateway runs it again
                self.crashes.append(error)
            finally:
                if not run.done():
                    run.cancel()
                    await asyncio.wait({run})
                if not run.cancelled():
                    run.exception()
            await asyncio.sleep(_AGAIN_S)

    async def _watch(self, run: asyncio.Task[None]) -> None:
        self.inlet.begin()
        limit_s = self._stage.timing.watchdog_s
        while not run.done():
            heard = self.inlet.heard
            left_s = limit_s if heard is None else heard + limit_s - time.monotonic()
            if left_s <= 0:
                return
            await asyncio.wait({run}, timeout=left_s)
        run.result()

    # --- talking

    async def hear(self, text: str | None = None, **said: object) -> MessageEvent:
        """Let somebody write, and return it as it was stored; keywords are those of the fake's ``say``."""
        message_id = await self._stage.say(text, account_id=self._account_id, **said)
        return await self.stored(message_id)

    async def stored(self, message_id: str) -> MessageEvent:
        """Wait until a message is stored, and return it."""

        def found() -> list[MessageEvent]:
            return [event for event in self.inlet.events if event.source.message_id == message_id]

        await self.inlet.until(lambda: bool(found()), f"message {message_id} is stored")
        return found()[0]

    async def handed(self, count: int) -> None:
        """Wait until ``count`` batches were handed in, stored or not."""
        await self.inlet.until(lambda: len(self.inlet.begun) >= count, f"{count} batches are handed in")

    def part(
        self,
        to: MessageEvent,
        text: str,
        *,
        key: str = "key-1",
        index: int = 0,
        count: int = 1,
        media: OutgoingFile | None = None,
    ) -> DeliveryPart:
        """Return one part of an answer to a message."""
        return DeliveryPart(
            target=to.source,
            text=text,
            key=key,
            index=index,
            count=count,
            reply_to=to.source.message_id if index == 0 else None,
            media=media,
        )

    async def send(self, part: DeliveryPart) -> SendResult:
        """Send a part; what the adapter wants to remember of it is stored when it went out."""
        assert self.adapter is not None
        async with asyncio.timeout(self._stage.timing.patience_s):
            result = await self.adapter.send(part)
        assert isinstance(result, Sent | Deferred), f"send returned {result!r}, neither Sent nor Deferred"
        if isinstance(result, Sent):
            self._stage.state.take(result.state)
        return result


class Stage:
    """One scene between a fake platform and the adapters of its accounts. :meth:`play` runs it.

    Attributes:
        fake: the platform's side. state: what the adapters of all accounts remember. environ: where their secrets are;
            a test may change it before it starts an account.
        faults: rules that were broken where nobody could raise; the end of the play looks at them.
    """

    def __init__(
        self, fake: FakePlatform, folder: Path, *, accounts: Sequence[str] = ("default",), timing: Timing | None = None
    ) -> None:
        self.fake = fake
        self.timing = timing or Timing()
        self.clock = SystemClock()
        self.state = MemoryState(fake.name, self.clock)
        self.faults: list[str] = []
        self.environ: dict[str, str] = {}
        self._folder = folder
        self._accounts = tuple(accounts)
        self._open: list[AccountOnStage] = []
        self._platform: Platform | None = None
        self._said: dict[str, str] = {}
        self._log = _Listener()

    def play(self, scene: Callable[[], Awaitable[None]]) -> None:
        """Run a scene on an event loop of its own, from the start of the fake to the end of the last task.

        :raises AssertionError: of the scene, or of a rule that holds in every scene.
        """
        asyncio.run(self._play(scene))

    async def _play(self, scene: Callable[[], Awaitable[None]]) -> None:
        with self._log:
            try:
                async with asyncio.timeout(8 * self.timing.patience_s):
                    await self.fake.start()
                    self.environ = dict(self.fake.environ())
                    await scene()
            finally:
                for account in self._open:
                    account.inlet.release()
                    await account.stop()
                await self.fake.stop()
            await self._look_for_tasks_left()
            gc.collect()  # what was not closed says so when it is collected
        self._listen()
        assert self.faults == [], "; ".join(self.faults)

    # --- accounts

    @property
    def platform(self) -> Platform:
        """Return the product's platform, with the accounts of this stage."""
        if self._platform is None:
            self._platform = self.fake.platform(self._accounts)
            self.look_at_repr(self._platform)
        return self._platform

    def account(self, account_id: str = "default") -> AccountOnStage:
        """Return an account that nobody has started."""
        inlet = ScriptedInlet(
            self.fake.name,
            account_id,
            self.state,
            is_acknowledged=self._is_acknowledged,
            faults=self.faults,
            patience_s=self.timing.patience_s,
        )
        account = AccountOnStage(self, self.platform, account_id, inlet)
        self._open.append(account)
        return account

    @asynccontextmanager
    async def running(self, account_id: str = "default") -> AsyncIterator[AccountOnStage]:
        """Run an account while the block runs."""
        account = self.account(account_id)
        await account.start()
        yield account
        await account.stop()

    def setup(self, account_id: str, environ: Mapping[str, str] | None = None) -> AccountSetup:
        """Return what an adapter of an account is made with. ``environ``: another one than the stage's."""
        folder = self._folder / account_id
        folder.mkdir(mode=0o700, exist_ok=True)
        setup = AccountSetup(
            account_id=account_id,
            state=self.state,
            folder=folder,
            clock=self.clock,
            environ=self.environ if environ is None else environ,
        )
        self.look_at_repr(setup)
        return setup

    # --- talking

    async def say(self, text: str | None = None, **said: object) -> str:
        """Let somebody write; return the message's id. Without a text it is one that nobody else says."""
        words = f"words number {len(self._said)} of this stage" if text is None else text
        say: Callable[..., Awaitable[str]] = self.fake.say
        message_id = await say(words, **said)
        self._said[message_id] = words
        return message_id

    async def grace(self) -> None:
        """Give what must not happen the time to happen."""
        await asyncio.sleep(self.timing.grace_s)

    def _is_acknowledged(self, message_id: str) -> bool:
        return message_id in self._said and self.fake.is_acknowledged(message_id)

    # --- rules of every scene

    def secrets(self) -> list[str]:
        """Return the secrets of the accounts."""
        return [value for value in self.environ.values() if len(value) >= _SHORTEST_SECRET]

    def look_at_repr(self, thing: object) -> None:
        """Note a fault where the ``repr`` of something shows a secret."""
        shown = repr(thing)
        if any(secret in shown for secret in self.secrets()):
            self.faults.append(f"a secret stands in the repr of {type(thing).__name__}")

    async def _look_for_tasks_left(self) -> None:
        me = asyncio.current_task()
        left = {task for task in asyncio.all_tasks() if task is not me}
        if left:
            await asyncio.wait(left, timeout=1)
        self.faults += [
            f"a task is left behind: {task.get_name()} {task.get_coro()!r}" for task in left if not task.done()
        ]

    def _listen(self) -> None:
        secrets = self.secrets()
        texts = [text for text in self._said.values() if len(text) >= _SHORTEST_TEXT]
        for record, line in self._log.lines:
            if any(secret in line for secret in secrets):
                self.faults.append(f"a secret is logged by {record.name}")
            if record.levelno >= logging.INFO and any(text in line for text in texts):
                self.faults.append(f"the text of a message is logged by {record.name} at {record.levelname}")
            if record.levelno >= logging.ERROR and record.name == "asyncio":
                self.faults.append(f"asyncio complains: {line.splitlines()[0]}")
        for account in self._open:
            if any(secret in detail for detail in account.inlet.details for secret in secrets):
                self.faults.append("a secret stands in a report")
        if any(secret in entry.value for entry in self.state.list() for secret in secrets):
            self.faults.append("a secret is kept in the state")


class _Listener(logging.Handler):
    """Hears everything that is logged while it is entered."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(message)s"))
        self.lines: list[tuple[logging.LogRecord, str]] = []
        self._level = logging.WARNING

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append((record, self.format(record)))

    def __enter__(self) -> None:
        root = logging.getLogger()
        self._level = root.level
        root.setLevel(logging.DEBUG)
        root.addHandler(self)

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)
