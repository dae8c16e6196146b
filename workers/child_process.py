"""What a child process does: it answers the calls of its parent, several at a time."""

import os
import pickle
import socket
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue

from workers import calls, log_lines
from workers.frames import LENGTH, framed, readable

_MAX_CALLS = 8  # that run at the same time; others wait for one of them


def serve(
    sock: socket.socket, form: log_lines.LogFormat | None, initializer: Callable[..., None], *initargs: object
) -> None:
    """Initialise this process, then answer calls until the parent has ended, or closed its end of the socket.

    A call is two messages: a number; and the ids of its log lines, a function and its arguments. So is its
    answer: the number; and an error or None, and an `Answer` or None. `form`: see `log_lines.initialise`.
    """
    sock.set_inheritable(False)  # the parent waits until nobody has this end any more
    log_lines.initialise(form, initializer, *initargs)
    server = _Server(sock)
    threading.Thread(target=server.receive, name="receive-calls", daemon=True).start()
    server.answer_calls()


class _Server:
    """Calls run in the main thread, and in further ones while there are several."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._received = sock.makefile("rb")
        self._calls: SimpleQueue[tuple[int, bytes]] = SimpleQueue()  # pickled
        self._threads = 1
        self._idle = threading.Semaphore(1)  # of these
        self._sending = threading.Lock()

    def receive(self) -> None:
        """Receive calls. The process ends at once when the parent has gone."""
        try:
            while True:
                self._calls.put((pickle.loads(self._read()), self._read()))
                if not self._idle.acquire(blocking=False) and self._threads < _MAX_CALLS:
                    self._threads += 1
                    threading.Thread(target=self.answer_calls, name="calls", daemon=True).start()
        finally:
            os._exit(1)

    def answer_calls(self) -> None:
        """Answer one call after the other."""
        try:
            while True:
                self._answer_next()
        finally:
            os._exit(1)  # else callers would wait for ever

    def _answer_next(self) -> None:
        number, call = self._calls.get()
        try:
            ids, function, *args = pickle.loads(call)
            del call  # it may be large
            answer = framed(number, (None, calls.answer(ids, function, *args)))
        except BaseException as error:
            answer = framed(number, (_with_traceback(error), None))
        # Earlier than it is so: the next call, which the answer may bring, must not begin another thread.
        self._idle.release()
        with self._sending:
            for piece in answer:
                self._socket.sendall(piece)

    def _read(self) -> bytes:
        [length] = LENGTH.unpack(self._received.read(LENGTH.size))
        return self._received.read(length)


def _with_traceback(error: BaseException) -> Exception:
    """The error as the parent can read it. A note says where it was raised, and why."""
    sent = readable(error)
    sent.add_note("".join(traceback.format_exception(error)))
    return sent
