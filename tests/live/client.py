"""A plain HTTP client for the server: JSON in, JSON out, and a way to hang up in the middle."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT = 40.0


@dataclass(frozen=True)
class Reply:
    """HTTP status and decoded body; both None if the client hung up or the server died."""

    status: int | None
    body: Any


class Client:
    """Talks to one address, a connection a request; never through a proxy."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """POST ``body`` as JSON; TimeoutError if no answer comes."""
        connection = self._send(path, body)
        try:
            answer = connection.getresponse()
            return Reply(answer.status, _decode(answer.read()))
        except (http.client.HTTPException, ConnectionError):
            return Reply(None, None)
        finally:
            connection.close()

    def post_and_hang_up(
        self, path: str, body: dict[str, Any], *, seconds: float | None, chunks: int
    ) -> None:
        """Send, then close after ``seconds``, or (None) once ``chunks`` pieces of a streamed answer came."""
        connection = self._send(path, {**body, "stream": True})
        if seconds is None:
            answer = connection.getresponse()
            seen = 0
            while seen < chunks and (line := answer.readline()):
                seen += line.startswith(b"data:")
            answer.close()
        else:
            time.sleep(seconds)
        connection.close()

    def _send(self, path: str, body: dict[str, Any]) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT)
        connection.request(
            "POST", path, json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
        return connection


def _decode(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")
