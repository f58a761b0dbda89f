"""WeChat, by the iLink bot channel: one person per bot, long polling, a quota on every answer."""
