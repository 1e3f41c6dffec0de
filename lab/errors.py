"""The one kind of error that the lab shows to a person: a line that says what is wrong and where to look."""


class LabError(Exception):
    """What the lab could not do.

    The message is shown as it is, without a traceback; ``python -m lab`` then exits with ``status``.
    """

    status = 1


class RefusedError(LabError):
    """The lab will not start here; the message names what is missing and how to get it. Nothing was changed."""

    status = 2
