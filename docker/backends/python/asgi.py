"""ASGI (FastAPI, Starlette, Quart, uvicorn): the key of each request is checked before the application sees it.

    app = Chatelaine(app, "/run/chatelaine/check.sock")  # around all others
    ... request.scope["chatelaine"]["account"]
"""
import asyncio
from urllib.parse import quote

from chatelaine import PATIENCE_S, UNKNOWN, decide, response_of


class Chatelaine:
    # mount: the root_path that the server was given. Some servers let clients say another.
    def __init__(self, app, socket_path, mount=""):
        self.app, self.socket_path, self.mount = app, socket_path, mount

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # a WebSocket would outlive the revocation of its key
            return await send({"type": "websocket.close", "code": 1008})
        authorization = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
        network = (scope.get("client") or [None])[0]
        # quote: of the path that the application acts on. "": 400.
        path = quote(scope["path"]) if scope.get("root_path", "") == self.mount else ""
        question = asyncio.to_thread(decide, self.socket_path, authorization, scope["method"], path, network)
        try:
            who, refusal = await asyncio.wait_for(question, PATIENCE_S)
        except asyncio.TimeoutError:
            who, refusal = None, UNKNOWN
        if who:
            return await self.app({**scope, "chatelaine": who}, receive, send)
        status, headers, body = response_of(refusal)
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})
