"""A llama-server that computes nothing: enough of its help, health check and /completion to be a peer.

Written to a script file by ``write_fake_server``. ``FAKE_SERVER_LOG`` names a file that gets one
JSON line for every start and every request; ``FAKE_SERVER_DIES`` is "start" or "answer".
"""

from __future__ import annotations

import sys
from pathlib import Path

_SCRIPT = '''import http.server, json, os, sys

HELP = """--spec-type none,draft-simple,draft-eagle3,draft-mtp,ngram-simple,ngram-mod
                        comma-separated list of types of speculative decoding to use (default: none)
"""
if "--help" in sys.argv:
    print(HELP)
    raise SystemExit
arguments = sys.argv[1:]
value = lambda name: arguments[arguments.index(name) + 1]


def note(**what):
    if path := os.environ.get("FAKE_SERVER_LOG"):
        with open(path, "a") as file:
            file.write(json.dumps(what) + "\\n")


note(pid=os.getpid(), arguments=arguments)
dies = os.environ.get("FAKE_SERVER_DIES")
if dies == "start":
    print("error: the model file is not to my taste", file=sys.stderr)
    raise SystemExit(3)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.reply({"status": "ok"})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(request=request)
        if dies == "answer":
            print("GGML_ASSERT(false) failed", file=sys.stderr, flush=True)
            os._exit(134)
        n = request["n_predict"]
        timings = {"predicted_n": n, "predicted_ms": 100.0, "predicted_per_second": (n - 1) / 0.1}
        if value("--spec-type") != "none":
            timings |= {"draft_n": 4, "draft_n_accepted": 2}
        self.reply({"content": "", "tokens": [1] * n, "timings": timings})

    def reply(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


http.server.HTTPServer((value("--host"), int(value("--port"))), Handler).serve_forever()
'''


def write_fake_server(folder: Path) -> Path:
    """An executable file, which runs its script with this interpreter."""
    path = folder / "llama-server"
    # By way of a shell: behind "#!" a path with a space in it would be two words.
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$0.py" "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    path.with_name("llama-server.py").write_text(_SCRIPT, encoding="utf-8")
    return path
