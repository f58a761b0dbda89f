"""Sessions around a function of one's own: open, route, run turns, read back."""

from __future__ import annotations

from hermes_core import SessionSource, open_app


def answer(turn):
    return f"You said {turn.text!r}. That makes {len(turn.messages)} messages."


with open_app() as app:
    kitchen = SessionSource(platform="api_server", chat_id="kitchen", user_id="ming")
    app.ask("Is there tea?", kitchen, agent=answer)
    result = app.ask("And coffee?", kitchen, agent=answer)
    for message in app.sessions.load_transcript(result.entry.session_id):
        print(f"{message.role}: {message.content}")
