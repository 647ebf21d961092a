"""A service behind the middleware for WSGI or ASGI: answers with who asked.

    server.py wsgi|asgi SOCKET

The servers are the least that can carry such an application over connections that stay open.
"""
import asyncio
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from socketserver import ThreadingMixIn

sys.path.insert(0, os.environ["CHATELAINE_SOURCE"] + "/docker/backends/python")
KIND, SOCKET = sys.argv[1:3]


def serve_wsgi():
    from wsgi import Chatelaine

    class Server(ThreadingMixIn, WSGIServer):
        request_queue_size = 64
        threads = ThreadPoolExecutor(16)  # which stay, as those of servers for production do

        def process_request(self, request, client_address):
            self.threads.submit(self.process_request_thread, request, client_address)

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(environ["chatelaine"]).encode()]

    server = Server(("127.0.0.1", 0), Quiet)
    server.set_app(Chatelaine(app, SOCKET))
    return server


def serve_asgi():
    from asgi import Chatelaine

    async def app(scope, receive, send):
        body = json.dumps(scope["chatelaine"]).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    guarded = Chatelaine(app, SOCKET)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        async def send(self, event):
            if event["type"] == "http.response.start":
                self.send_response(event["status"])
                for name, value in event["headers"]:
                    self.send_header(name.decode(), value.decode())
                self.end_headers()
            else:
                self.wfile.write(event["body"])

        def do_GET(self):
            headers = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
            scope = {"type": "http", "method": self.command, "path": unquote(self.path.partition("?")[0]),
                     "headers": headers, "client": self.client_address}
            asyncio.run_coroutine_threadsafe(guarded(scope, None, self.send), loop).result()

        do_POST = do_GET

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

    return Server(("127.0.0.1", 0), Handler)


server = serve_wsgi() if KIND == "wsgi" else serve_asgi()
print(server.server_port, flush=True)
server.serve_forever()
