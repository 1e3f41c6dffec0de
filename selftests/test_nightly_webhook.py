"""A chat by webhook: one POST, no redirect, and all of the URL but scheme and host is a secret."""

import contextlib
import socket
import threading

import pytest
from webhook_receiver import receiver

from servicepath.nightly import __main__ as command
from servicepath.nightly import webhook
from servicepath.nightly.telling import TellingError

HERE = r"the webhook at http://127\.0\.0\.1"


def test_a_webhook_gets_one_text():
    with receiver() as (url, got):
        webhook.post(url, 'held "<b>" → fine')

    assert got == [("application/json", {"text": 'held "<b>" → fine'})]


def test_a_webhook_that_refuses_or_is_not_there_is_one_line_without_its_secret():
    refused = rf"^{HERE}: HTTP 404 Not Found$"
    with receiver(status=404, reason="no /hooks/s3cret here") as (url, _), pytest.raises(TellingError, match=refused):
        webhook.post(url, "held")
    with pytest.raises(TellingError, match=rf"^{HERE}: Connection refused$"):
        webhook.post(url, "held")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_and_not_followed(status):
    told = rf"^{HERE}: HTTP {status} [A-Za-z ]+: a redirect, which is not followed"
    with (
        receiver() as (other, elsewhere),
        receiver(status, headers=[("Location", other)]) as (url, got),
        pytest.raises(TellingError, match=told) as wrong,
    ):
        webhook.post(url, "held")

    assert len(got) == 1
    assert elsewhere == []
    assert "s3cret" not in str(wrong.value)


def test_an_answer_that_is_no_http_is_one_line_without_what_it_says():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"s3cret\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TellingError, match=rf"^{HERE}: no HTTP answer \(BadStatusLine\)$"):
            webhook.post(f"http://127.0.0.1:{server.getsockname()[1]}/s3cret", "held")
        thread.join()


WRONG = (
    "file:///etc/s3cret", "ftp://a/s3cret", "https://", "s3cret", "hooks.example.com/s3cret", "https:/s3cret", "https://:443/s3cret",
    "http://h:s3cret/x", "http://h:99999/s3cret", "http://[::1/s3cret", "http://me:s3cret@h/x", "https://h/s3 cret", "https://h/s3cret\n",
    "https://h/s3crét", "https://bücher.example/s3cret", "\ud800",
)  # fmt: skip


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_url_is_one_line_before_the_night_and_shows_nothing_of_it(url, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("os.environ", {"SERVICEPATH_WEBHOOK": url})

    assert command.main(["--state", str(tmp_path / "state"), "--", "--replay=x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("$SERVICEPATH_WEBHOOK: expected https://host/… or http://host:port/…")
    assert "3cret" not in line
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("url", ["https://hooks.example.com/services/a/b?c=d", "HTTP://127.0.0.1:8080", "http://[::1]:80/x"])
def test_a_right_url_is_taken_as_it_is(url):
    assert webhook.url_of(url) == url


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_a_url_nobody_is_told(nothing):
    assert webhook.url_of(nothing) is None


def test_an_answer_in_small_pieces_does_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(webhook, "LONGEST", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):  # until nobody listens
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not over.wait(0.02):
                    connection.sendall(b"x")

        over, thread = threading.Event(), threading.Thread(target=answer)
        thread.start()
        try:
            with pytest.raises(TellingError, match=rf"^{HERE}: no whole answer within 0 s$"):
                webhook.post(f"http://127.0.0.1:{server.getsockname()[1]}/s3cret", "held")
        finally:
            over.set()
            thread.join()
