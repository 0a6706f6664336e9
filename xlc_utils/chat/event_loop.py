"""The event loop of all calls, in a thread of its own: a notebook's main thread already runs one, its kernel's."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import cache


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """The process's loop for calls, started by the first who asks. Connections stay open in it from call to call."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="xlc calls", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=event_loop.cache_clear)  # a child has the loop, but not its thread
