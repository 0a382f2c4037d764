"""The shop's ASGI application for a Granian that is somebody's child: its workers end with it, even by SIGKILL."""

import multiprocessing

from benchmarks.servers.process import end_with_parent

# Granian's master is ended by the kernel when whoever started it dies, but what the master forked would live on.
if (master := multiprocessing.parent_process()) is not None and master.pid is not None:
    end_with_parent(master.pid)

from config.asgi import application

__all__ = ["application"]
