"""WSGI (Flask, Django, gunicorn, uWSGI): the key of each request is checked before the application sees it.

    app.wsgi_app = Chatelaine(app.wsgi_app, "/run/chatelaine/check.sock")
    ... request.environ["chatelaine"]["account"]
"""
from http import HTTPStatus
from urllib.parse import quote

from chatelaine import decide, response_of


class Chatelaine:
    def __init__(self, app, socket_path):
        self.app, self.socket_path = app, socket_path

    def __call__(self, environ, start_response):
        # A server joins a header that came twice with a comma, which no key has.
        header = environ.get("HTTP_AUTHORIZATION")
        authorization = header.split(",") if header else []
        # The path that the application acts on. The client's own spelling is not always here.
        path = quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1")) or "/"
        who, refusal = decide(self.socket_path, authorization, environ["REQUEST_METHOD"], path,
                              environ.get("REMOTE_ADDR"))
        if who:
            environ["chatelaine"] = who
            return self.app(environ, start_response)
        status, headers, body = response_of(refusal)
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [body]
