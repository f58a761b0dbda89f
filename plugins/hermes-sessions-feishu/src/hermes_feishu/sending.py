"""What goes out: where to, in which form, and what becomes of it.

An answer in a topic goes into that topic, all of its parts. The key of a part becomes the ``uuid`` of its message:
within an hour the platform takes it once, however often it is sent.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import quote

import attrs

from hermes_feishu.client import text_of
from hermes_feishu.failures import CARD_WRONG, FORMAT_WRONG, GONE, NOT_EDITABLE_SO, TOO_LONG, Answer, error_of
from hermes_feishu.recent import Recent
from hermes_feishu.rendering import CARD, card_of, forms_of
from hermes_feishu.uploads import Uploads
from hermes_hookspecs.errors import Rejected
from hermes_hookspecs.ports.platform import Sent

if TYPE_CHECKING:
    from hermes_feishu.client import FeishuClient
    from hermes_feishu.config import AccountConfig, FeishuConfig
    from hermes_feishu.lookups import Lookups
    from hermes_feishu.pacing import Pacing
    from hermes_feishu.reader import EventReader
    from hermes_feishu.rendering import Form
    from hermes_hookspecs.ports.platform import DeliveryPart

__all__ = ["Outgoing"]

_MESSAGES = "/open-apis/im/v1/messages"
_SENDING, _EDITING = "sending", "editing"
_ANOTHER_FORM = FORMAT_WRONG | CARD_WRONG | {TOO_LONG}
_CARDS = 4000


@attrs.frozen(kw_only=True)
class _Place:
    """Where a message goes: an answer to one, in its topic or not, or a chat, or a person."""

    reply_to: str = ""
    in_thread: bool = False
    receive_id: str = ""
    id_type: str = "chat_id"


class Outgoing:
    """Sends and edits the messages of one account. For one event loop."""

    def __init__(
        self,
        client: FeishuClient,
        config: FeishuConfig,
        account: AccountConfig,
        *,
        reader: EventReader,
        lookups: Lookups,
        pacing: Pacing,
    ) -> None:
        self._client = client
        self._config = config
        self._account = account
        self._reader = reader
        self._lookups = lookups
        self._pacing = pacing
        self._cards: Recent[bool] = Recent(_CARDS)
        self._uploads = Uploads(client)

    # --- sending

    async def send(self, part: DeliveryPart) -> Sent:
        """Send one part; errors as the port says."""
        place = await self._place(part)
        if part.media is None:
            forms = forms_of(part.text, is_one_of_many=part.count > 1, cards=self._config.cards)
        else:
            forms = (await self._uploads.form(part.media),)
        uuid = hashlib.sha256(f"{self._account.app_id}:{part.key}".encode("utf-8", "surrogatepass")).hexdigest()[:40]
        for form in forms:
            answer = await self._post(part, place, form, f"{uuid}-{form.type[:4]}")
            if answer.code in GONE and place.reply_to:
                place = await self._other_place(part, place)
                answer = await self._post(part, place, form, f"{uuid}-{form.type[:4]}-2")
            if answer.is_good:
                return self._sent(part, place, form, answer)
            if answer.code not in _ANOTHER_FORM:
                break
        raise error_of(answer, _SENDING)

    def _sent(self, part: DeliveryPart, place: _Place, form: Form, answer: Answer) -> Sent:
        message_id = text_of(answer.data.get("message_id"))
        thread_id = text_of(answer.data.get("thread_id"))
        if message_id:
            self._reader.sent.put(message_id, part.target.chat_id or "")
            if form.type == CARD:
                self._cards.put(message_id, True)
        opened = thread_id if place.in_thread and thread_id and not part.target.thread_id else None
        return Sent(platform_message_id=message_id or None, opened_thread_id=opened)

    async def _place(self, part: DeliveryPart) -> _Place:
        target = part.target
        answered = part.reply_to or target.message_id or ""
        if target.thread_id:
            anchor = answered or self._reader.anchors.get(target.thread_id) or ""
            anchor = anchor or await self._lookups.last_of_thread(target.thread_id)
            if not anchor:
                raise Rejected(f"topic {target.thread_id} has no message that could be answered")
            return _Place(reply_to=anchor, in_thread=True)
        if target.chat_type != "dm" and answered:
            if self._account.reply_in_thread:
                return _Place(reply_to=answered, in_thread=True)
            if self._account.quote and part.index == 0:
                return _Place(reply_to=answered)
        return self._chat(part)

    def _chat(self, part: DeliveryPart) -> _Place:
        target = part.target
        if target.chat_id:
            return _Place(receive_id=target.chat_id)
        if target.user_id:
            return _Place(receive_id=target.user_id, id_type="open_id")
        raise Rejected("the answer has no address")

    async def _other_place(self, part: DeliveryPart, place: _Place) -> _Place:
        """Return where an answer goes whose question was taken back: never out of its topic."""
        thread_id = part.target.thread_id
        if not thread_id:
            return self._chat(part)
        newest = await self._lookups.last_of_thread(thread_id)
        if not newest or newest == place.reply_to:
            raise Rejected(f"topic {thread_id} has no message left that could be answered")
        return _Place(reply_to=newest, in_thread=True)

    async def _post(self, part: DeliveryPart, place: _Place, form: Form, uuid: str) -> Answer:
        await self._pacing.turn(part.target.chat_id or "")
        body: dict[str, object] = {"msg_type": form.type, "content": form.content, "uuid": uuid}
        if place.reply_to:
            body["reply_in_thread"] = place.in_thread
            path = f"{_MESSAGES}/{quote(place.reply_to, safe='')}/reply"
            return await self._client.ask(_SENDING, "POST", path, body=body)
        body["receive_id"] = place.receive_id
        return await self._client.ask(_SENDING, "POST", _MESSAGES, body=body, params={"receive_id_type": place.id_type})

    # --- editing

    async def edit(self, part: DeliveryPart, message_id: str) -> Sent:
        """Replace the text of a message; errors as the port says."""
        path = f"{_MESSAGES}/{quote(message_id, safe='')}"
        if message_id not in self._cards:
            answer = await self._put(part, path)
            if answer.is_good:
                return Sent(platform_message_id=message_id)
            if answer.code not in NOT_EDITABLE_SO:
                raise error_of(answer, _EDITING)
        await self._pacing.turn(part.target.chat_id or "")
        answer = await self._client.ask(_EDITING, "PATCH", path, body={"content": card_of(part.text).content})
        if not answer.is_good:
            raise error_of(answer, _EDITING)
        self._cards.put(message_id, True)
        return Sent(platform_message_id=message_id)

    async def _put(self, part: DeliveryPart, path: str) -> Answer:
        """Edit a message that is no card, in the first form that is taken; return the last answer."""
        first, *others = forms_of(part.text, is_one_of_many=part.count > 1)
        for form in (first, *others):
            await self._pacing.turn(part.target.chat_id or "")
            body = {"msg_type": form.type, "content": form.content}
            answer = await self._client.ask(_EDITING, "PUT", path, body=body)
            if answer.is_good or answer.code not in _ANOTHER_FORM | NOT_EDITABLE_SO:
                break
        return answer
