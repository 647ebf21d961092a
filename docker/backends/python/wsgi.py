"""WSGI (Flask, Django, gunicorn, uWSGI): the key of each request is checked before the application sees it.

    app.wsgi_app = Chatelaine(app.wsgi_app, "/run/chatelaine/check.sock")
    ... request.environ["chatelaine"]["account"]
"""
from http import HTTPStatus
from urllib.parse import quote

from chatelaine import decide, response_of


class Chatelaine:
    # mount: the SCRIPT_NAME that the server was given. Some servers let clients say another.
    def __init__(self, app, socket_path, mount=""):
        self.app, self.socket_path, self.mount = app, socket_path, mount

    def __call__(self, environ, start_response):
        # A server joins a header that came twice with a comma, which no key has.
        header = environ.get("HTTP_AUTHORIZATION")
        authorization = header.split(",") if header else []
        # The path that the application acts on. The client's own spelling is not always here.
        path = quote((self.mount + environ.get("PATH_INFO", "")).encode("latin-1")) or "/"
        if environ.get("SCRIPT_NAME", "") != self.mount:
            path = ""  # 400
        who, refusal = decide(self.socket_path, authorization, environ["REQUEST_METHOD"], path,
                              environ.get("REMOTE_ADDR"))
        if who:
            environ["chatelaine"] = who
            return self.app(environ, start_response)
        status, headers, body = response_of(refusal)
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [body]
