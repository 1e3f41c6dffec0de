"""A chat told by webhook. All of the URL but scheme and host is a secret: the path or the query is what lets one post."""

from __future__ import annotations

import http
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from typing import IO

from ..report.visible import visible
from . import stopping
from .stopping import TimeIsUp
from .telling import TellingError

TIMEOUT = 10.0  # seconds for the connection, and for each piece of the answer
LONGEST = 30.0  # seconds for all of it, however small the pieces
_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)  # urllib takes no space and nothing beyond ASCII, and shows the URL when it says so


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    """A redirect is told, not followed: it would become a GET, and the text would be lost and the secret be sent elsewhere."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:  # fmt: skip
        return None


def url_of(text: str | None) -> str | None:
    """What $SERVICEPATH_WEBHOOK holds, seen to be a URL that can be posted to; None for none.

    Raises:
        TellingError: it is none; the text shows nothing of it.
    """
    if not text:
        return None
    try:
        place = urllib.parse.urlsplit(text)
        fits = _URL.fullmatch(text) and place.hostname and place.port != 0 and "@" not in place.netloc
    except ValueError:  # no port, or no IPv6 address
        fits = False
    if not fits:
        expected = "expected https://host/… or http://host:port/…, with no user, no space and no letter beyond ASCII"
        raise TellingError(f"$SERVICEPATH_WEBHOOK: {expected}")
    return text


def post(url: str, text: str) -> None:
    """POST ``{"text": …}``, which Slack, Mattermost, Rocket.Chat, Teams and Google Chat take (Discord: put /slack behind its URL).

    Raises:
        TellingError: no answer, or one that is not 2xx; a redirect is not followed.
    """
    place = urllib.parse.urlsplit(url)
    told = f"the webhook at {place.scheme}://{place.hostname}"
    body = json.dumps({"text": text}).encode()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})  # noqa: S310 - url_of saw the scheme
    try:
        with stopping.within(LONGEST), urllib.request.build_opener(_Unfollowed).open(request, timeout=TIMEOUT):
            return
    except TimeIsUp:
        raise TellingError(f"{told}: no whole answer within {LONGEST:.0f} s") from None
    except urllib.error.HTTPError as wrong:
        wrong.close()
        more = ": a redirect, which is not followed; expected the URL that it leads to" if 300 <= wrong.code < 400 else ""
        raise TellingError(f"{told}: HTTP {wrong.code}{_phrase(wrong.code)}{more}") from None
    except http.client.HTTPException as wrong:  # its text may be the answer, or the URL
        raise TellingError(f"{told}: no HTTP answer ({type(wrong).__name__})") from None
    except (OSError, ValueError) as wrong:
        reason = wrong.reason if isinstance(wrong, urllib.error.URLError) else wrong
        text = reason.strerror or str(reason) if isinstance(reason, OSError) else type(reason).__name__
        raise TellingError(visible(f"{told}: {text}")) from None


def _phrase(code: int) -> str:
    """The status in words; not those of the answer, which may repeat the URL."""
    return f" {http.HTTPStatus(code).phrase}" if code in set(http.HTTPStatus) else ""
