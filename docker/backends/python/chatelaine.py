"""Asks a node whether the key of a request is good, with the standard library alone: for wsgi.py and asgi.py."""
import http.client
import json
import logging
import re
import socket
import threading

PATIENCE_S = 2
ANSWER_MAX_BYTES = 65536
UNKNOWN = (503, "store_unavailable", "Nobody can tell now whether the key is good. Repeat the request.", None)
BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]{1,256}={0,2})", re.IGNORECASE)
_kept = threading.local()  # a connection for each thread


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _post(connection, body):
    connection.request("POST", "/check/verify", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read(ANSWER_MAX_BYTES)
    if response.status != 200 or response.read(1):
        raise OSError(f"the node answered {response.status}")
    return json.loads(answer)


def _ask(path, question):
    connection = _kept.__dict__.setdefault(path, _Connection(path))
    body = json.dumps(question)
    try:
        if connection.sock:
            try:
                return _post(connection, body)
            except ConnectionError:  # The node had closed it. To ask twice is harmless; the use may count twice.
                connection.close()
        return _post(connection, body)
    except BaseException:
        connection.close()
        raise


def decide(socket_path, authorization, method, path, network):
    """authorization: a list of the header's values. Returns who, None; or None, (status, code, message, challenge)."""
    if len(authorization) > 1:
        return None, (400, "bad_request", "Authorization was sent more than once.", None)
    if not path.startswith("/"):
        return None, (400, "bad_request", "The path must begin with /.", None)
    bearer = BEARER.fullmatch(authorization[0].strip()) if authorization else None
    if not bearer:
        return None, (401, "missing_credentials", "Send Authorization: Bearer and a key.", 'Bearer realm="api"')
    question = {"key": bearer[1], "method": method, "path": path}
    if network:
        question["network"] = network.split("%")[0]
    try:
        answer = _ask(socket_path, question)
        if answer["valid"] is True:
            names = {"account": "account_id", "principal": "id", "kind": "kind", "mode": "mode", "scopes": "scopes"}
            return {name: answer[member] for name, member in names.items()}, None
        if answer["valid"] is False and answer["status"] >= 400:
            return None, (answer["status"], answer["code"], answer["message"], answer.get("www_authenticate"))
    except Exception as error:  # whatever it is: without a verdict, nobody is let in
        logging.getLogger("chatelaine").error("no verdict: %s", type(error).__name__)
    return None, UNKNOWN


def response_of(refusal):
    """Returns status, [(name, value)], body."""
    status, code, message, challenge = refusal
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")]
    return status, headers + ([("WWW-Authenticate", challenge)] if challenge else []), body
