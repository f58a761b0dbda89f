"""What the headers of a request must be."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["app_faults", "credential_faults"]


def app_faults(path: str, headers: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the two headers that every request has."""
    right = headers.get("iLink-App-Id") == "bot" and headers.get("iLink-App-ClientVersion", "").isdigit()
    return [] if right else [f"{path}: iLink-App headers"]


def credential_faults(path: str, headers: Mapping[str, str]) -> list[str]:
    """Return what is wrong with those of a request to a bot."""
    found = [] if headers.get("AuthorizationType") == "ilink_bot_token" else [f"{path}: AuthorizationType"]
    try:
        uin = base64.b64decode(headers.get("X-WECHAT-UIN", ""), validate=True)
        right = uin.isdigit() and int(uin) < 2**32
    except ValueError:
        right = False
    return found if right else [*found, f"{path}: X-WECHAT-UIN"]
