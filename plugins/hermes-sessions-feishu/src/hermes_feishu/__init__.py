"""Feishu and Lark as an entrance."""
