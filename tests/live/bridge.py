"""HTTP for releases of xllamacpp that offer their server only as functions (before 0.2.7).

Standard library alone, like ``child.py``, which runs it. Only completions, chats and embeddings
have a function there: slot actions and the tokenizer are answered with 404.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def serve(server: Any) -> str:
    """Serve the functions of ``server`` on a free port; returns the address."""
    routes = {
        "/completion": lambda body: _plain(server.handle_completions(body)),
        "/v1/chat/completions": lambda body: _counted(server.handle_chat_completions(body)),
        "/v1/embeddings": lambda body: server.handle_embeddings(body),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            route = routes.get(self.path)
            answer: dict[str, Any] = {"code": 404, "message": "not served"} if route is None else route(body)
            # a failure comes back as the error object alone, its HTTP status within
            failed = "code" in answer
            data = json.dumps({"error": answer} if failed else answer).encode()
            self.send_response(answer["code"] if failed else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: standard error is the server's log."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{http.server_address[1]}"


def _counted(answer: dict[str, Any]) -> dict[str, Any]:
    """With the number of reused tokens, which the oldest builds give only as a difference."""
    if "timings" in answer:
        reused = answer["usage"]["prompt_tokens"] - answer["timings"]["prompt_n"]
        answer["timings"].setdefault("cache_n", reused)
    return answer


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer in OpenAI's form as ``/completion`` gives it."""
    if "choices" not in answer:
        return answer
    choice = answer["choices"][0]
    stop = "eos" if choice["finish_reason"] == "stop" else "limit"
    return {"content": choice["text"], "timings": _counted(answer)["timings"], "stop_type": stop}
