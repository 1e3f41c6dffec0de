"""Waiting for a state, never for a time: a check is asked again until it has nothing left to complain about."""

from collections.abc import Callable

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from lab.errors import LabError


class NotInTimeError(LabError):
    """A state that was waited for did not come."""


Check = Callable[[], str | None]
"""Returns None once the state is there, else what is still missing, as a person would say it."""


def until(check: Check, what: str, *, seconds: float, every: float = 0.05, where: str = "") -> None:
    """Return as soon as ``check`` returns None.

    Args:
        check: asked at once and then again and again; an exception of it ends the wait.
        what: the state that is waited for, for the message.
        seconds: how long to go on asking.
        every: seconds between two questions.
        where: where a person would look next, such as a log file.

    Raises:
        NotInTimeError: the state was not there in time; the message has the last complaint.
    """
    asking = Retrying(
        retry=retry_if_result(lambda complaint: complaint is not None),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(every),
    )
    try:
        asking(check)
    except RetryError as error:
        complaint = error.last_attempt.result()
        raise NotInTimeError(f"{what}: not after {seconds:.0f} s: {complaint}{f' (see {where})' if where else ''}") from error
