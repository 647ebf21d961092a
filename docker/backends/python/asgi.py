"""ASGI (FastAPI, Starlette, Quart, uvicorn): the key of each request is checked before the application sees it.

    app = Chatelaine(app, "/run/chatelaine/check.sock")  # around all others
    ... request.scope["chatelaine"]["account"]
"""
import asyncio
from urllib.parse import quote

from chatelaine import decide, response_of


class Chatelaine:
    def __init__(self, app, socket_path):
        self.app, self.socket_path = app, socket_path

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # a WebSocket would outlive the revocation of its key
            return await send({"type": "websocket.close", "code": 1008})
        authorization = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
        network = (scope.get("client") or [None])[0]
        # quote: of the path that the application acts on.
        who, refusal = await asyncio.to_thread(decide, self.socket_path, authorization, scope["method"],
                                               quote(scope["path"]), network)
        if who:
            return await self.app({**scope, "chatelaine": who}, receive, send)
        status, headers, body = response_of(refusal)
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})
