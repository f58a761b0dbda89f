"""Hook specifications of version 1, one module a concern; :data:`ALL_SPECS` holds the modules in order.

Provider hooks run once at start and return objects that satisfy a port. Decision hooks are sync, pure and without
I/O. Event hooks run after commit, on copies, at most once; who needs certainty reads the change feed.

Order: plugins are asked by name, built-in ones last. A hook's failure policy is part of its specification.
"""

from __future__ import annotations

from hermes_hookspecs.specs import agents, commands, context, gateway, keys, lifecycle, policies, storage

__all__ = ["ALL_SPECS"]

ALL_SPECS = (keys, storage, agents, commands, context, policies, gateway, lifecycle)
