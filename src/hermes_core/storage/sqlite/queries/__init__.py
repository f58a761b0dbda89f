"""Reads of the store, one module per noun: functions of one consistent view."""
