"""Processes that begin as forks of a script which has imported everything: a start costs little."""

import os
import sys
import traceback


def begin(work):
    """Return the number of a new process that does `work` and ends, with 1 if that raised."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def end(child):
    """Wait for a process and return its exit status, or the signal that ended it, negative."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
