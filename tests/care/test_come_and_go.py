"""Case B14: programs that open, look, write, copy, repair and die beside one that writes all the time."""

from __future__ import annotations

import pytest

from hermes_core.storage.sqlite.checkpoint import LIMIT_PAGES

GATEWAY = """
with open_app(HOME, plugins=False, overrides=FAST) as app:
    app.ask("begin", ALICE, agent="echo")
    say("ready")
    import threading
    stop = threading.Event()
    threading.Thread(target=lambda: (hear(), stop.set()), daemon=True).start()
    count = 1
    while not stop.is_set():
        app.ask(f"say {count}", ALICE, agent="echo")
        count += 1
say(count)
"""
COME_AND_GO = """
from pathlib import Path
me = SessionSource(platform="webhook", chat_id=sys.argv[2], user_id="u")
wrote = 0
for number in range(int(sys.argv[3])):
    with open_app(HOME, plugins=False, overrides=FAST) as app:
        if number % 5 == 0:
            app.ask(f"say {number}", me, agent="echo")
            wrote += 1
        elif number % 5 == 1:
            app.store.summaries(ALL)
        elif number % 5 == 2:
            assert app.store.integrity() == []
        elif number % 5 == 3:
            assert not [one for one in app.store.care().repair()]
        else:
            copy = Path(HOME) / f"{sys.argv[2]}-{number}.db"
            app.store.care().backup(copy)
            copy.unlink()
say(wrote)
"""
DIE_OPEN = """
app = open_app(HOME, plugins=False, overrides=FAST)
app.store.stats()
app.ask("acknowledged", SessionSource(platform="slack", chat_id=sys.argv[2], user_id="u"), agent="echo")
say("open")
hear()
"""
VISITS = 100


@pytest.mark.slow
def test_b14_two_hundred_visits_and_some_deaths_lose_nothing(start, sql, open_home, home):
    gateway = start(GATEWAY)
    assert gateway.hear() == "ready"
    log = (home / "state.db-wal").stat().st_ino
    visitors = [start(COME_AND_GO, f"w{number}", str(VISITS)) for number in range(2)]
    for number in range(4):
        victim = start(DIE_OPEN, f"d{number}")
        assert victim.hear() == "open"
        victim.kill()
    wrote = sum(int(visitor.end()[0]) for visitor in visitors)

    same_log = (home / "state.db-wal").stat().st_ino == log
    log_size = (home / "state.db-wal").stat().st_size
    gateway.say("stop")
    (count,) = gateway.end()

    assert same_log, "the log was replaced under a program that writes into it"
    assert log_size < 16 * LIMIT_PAGES * 4096, "copies keep the log from ever starting anew"
    assert sql("PRAGMA integrity_check") == [("ok",)]
    assert sql("PRAGMA journal_mode") == [("wal",)]
    by_platform = {name: messages for name, _, messages in open_home().store.stats().per_platform}
    assert by_platform == {"feishu": 2 * int(count), "webhook": 2 * wrote, "slack": 2 * 4}
    assert open_home().store.care().findings() == []
