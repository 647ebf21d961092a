// A few lines in the place of a node.
import http from 'node:http';

/** The node that is asked: who says "Bearer good" may pass, and everybody what is public. checks: gets what it was asked about. */
export function startNode(checks) {
  return http.createServer((request, response) => {
    const { authorization = '' } = request.headers;
    const { searchParams: wanted } = new URL(request.url, 'http://node'); // another status, and without a header
    const target = request.headers['x-original-uri'] ?? request.headers['x-forwarded-uri'];

    if (request.url === '/readyz') {
      response.end();
      return;
    }
    checks.push({ method: request.headers['x-original-method'], target });
    if (!target?.startsWith('/') || /ambiguous/.test(target) || authorization === 'Bearer') {
      response.writeHead(400, { 'X-Auth-Error': 'bad_request' });
    } else if (/^\/v1\/public(\/|$)/.test(request.headers['x-original-uri'])) {
      response.writeHead(200, { 'X-Auth-Kind': 'none', 'X-Request-Id': 'req_node' });
    } else if (/^bearer (good|known|reader|device)/i.test(authorization)) {
      response.writeHead(Number(wanted.get('status') ?? 200), {
        'X-Auth-Account': 'acct_node',
        'X-Auth-Principal': 'key_node',
        'X-Auth-Kind': 'api_key',
        'X-Auth-Mode': 'live',
        'X-Auth-Scopes': 'patients:read patients:write',
        'X-Auth-Billable': 'true',
        'X-Request-Id': 'req_node',
        traceparent: 'of the node',
      });
    } else if (authorization.startsWith('Bearer forbidden')) {
      response.writeHead(403, {
        'X-Auth-Error': 'insufficient_scope',
        'WWW-Authenticate': 'Bearer scope="a"',
        'Retry-After': '7',
        Allow: 'GET',
        'Strict-Transport-Security': 'max-age=1',
      });
    } else if (authorization.startsWith('Bearer busy')) {
      response.writeHead(503, { 'X-Auth-Error': 'overloaded' });
    } else {
      response.writeHead(401, { 'X-Auth-Error': 'invalid_api_key', 'WWW-Authenticate': 'Bearer realm="node"' });
    }
    response.end();
  });
}
export function listen(server) {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
}
