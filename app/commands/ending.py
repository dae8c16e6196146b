"""The end of a command: a line on standard error if something is wrong, and an exit code."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from app.common.errors import InvalidInput, InvalidSetting, WhisperfleetError

P = ParamSpec("P")
T = TypeVar("T")


def command(
    *, stopped: str = "", errors: tuple[type[Exception], ...] = ()
) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Decorate a function that returns an exit code: it returns one for each error as well.

    2 for wrong usage and invalid settings, 1 for other errors of the service and for `errors`, 130 after
    Ctrl-C, and 143 after SIGTERM. `stopped` is the line after the last two.
    """

    printed: tuple[type[Exception], ...] = (WhisperfleetError, *errors)

    def decorate(function: Callable[P, int]) -> Callable[P, int]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                return function(*args, **kwargs)
            except (InvalidInput, InvalidSetting) as error:
                return _fail(error, 2)
            except printed as error:
                return _fail(error, 1)
            except KeyboardInterrupt:
                return _fail(stopped, 130)
            except asyncio.CancelledError:
                return _fail(stopped, 143)

        return run

    return decorate


def run_until(work: Coroutine[Any, Any, T], *signals: int) -> T:
    """Run `work`. The signals cancel it, which ends its processes and removes its files."""

    async def run() -> T:
        task = asyncio.ensure_future(work)
        for number in signals:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    return asyncio.run(run())


def print_error(message: object) -> None:
    """Print a line on standard error that says whose it is."""
    print(f"whisperfleet: {message}", file=sys.stderr, flush=True)


def _fail(message: object, code: int) -> int:
    if message:
        print_error(message)
    return code
