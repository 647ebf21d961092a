// The gateways as they are shipped: no trailer of a client reaches a backend, and nginx's lists of headers hold where another
// directive than proxy_pass leads to it.
import assert from 'node:assert/strict';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { Deployment, until } from '../support/deployment.js';
import { startFastcgi } from './fastcgi.js';
import { isInstalled, startShipped } from './shipped.js';
import { listen, startNode } from './stub_node.js';

let deployment, node, backend, ports;
const got = []; // what the backend got

/** Tells its path, and keeps the rest. */
function startBackend() {
  return http.createServer(async (request, response) => {
    for await (const chunk of request) assert.ok(chunk);
    got.push({ headers: request.headers, trailers: request.rawTrailers });
    if (request.url === '/v1/moved') response.writeHead(302, { Location: 'http://backend/v1/there' });
    response.end(request.url);
  });
}

before(async () => {
  deployment = new Deployment();
  node = startNode([]);
  backend = startBackend();
  ports = { node: await listen(node), backend: await listen(backend) };
  ports.check = ports.node;
});
after(async () => {
  node.close();
  backend.close();
  await deployment.stop();
});

/** Bytes as they are. Returns the status line. */
function sendRaw(port, text) {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port }, () => socket.write(text));
    let answer = '';

    socket.on('error', reject);
    socket.on('data', (chunk) => {
      answer += chunk;
      if (!answer.includes('\r\n')) return;
      socket.destroy();
      resolve(Number(answer.split(' ')[1]));
    });
  });
}
const HEAD = 'POST /v1/patients HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer good\r\n';
const CHUNKS = 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n';
const TRAILERS = 'X-Auth-Account: acct_other\r\nX-Own: a\r\n\r\n';
/** By HTTP/2, with and without the length of the body. */
async function sendByHttp2(port, headers) {
  const client = http2.connect(`http://127.0.0.1:${port}`);
  const stream = client.request(
    { ':method': 'POST', ':path': '/v1/patients', authorization: 'Bearer good', ...headers },
    { waitForTrailers: true },
  );
  const status = new Promise((resolve, reject) => {
    stream.on('response', (answer) => resolve(answer[':status']));
    stream.on('error', reject);
  });

  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-auth-account': 'acct_other', 'x-own': 'a' }));
  stream.end('abc');
  try {
    return await status;
  } finally {
    client.destroy();
  }
}
/** HAProxy takes a moment to find its nodes. */
const serves = (port) => until('it serves', async () => (await sendRaw(port, `${HEAD}Content-Length: 3\r\n\r\nabc`)) === 200);

// Before 3.2, HAProxy cannot drop trailers; then it takes no body without a length, and no HTTP/2.
const REFUSED = { haproxy: 411 };
for (const gateway of ['nginx', 'haproxy', 'caddy'])
  test(`${gateway} passes no trailers on`, { skip: !isInstalled(gateway) }, async (context) => {
    const { port, child } = await startShipped(deployment, gateway, ports);
    const accepted = [200, REFUSED[gateway]];

    context.after(() => child.kill('SIGTERM'));
    await serves(port);
    got.length = 0;
    for (const announced of ['', 'Trailer: X-Auth-Account, X-Own\r\n']) {
      const status = await sendRaw(port, `${HEAD}${announced}${CHUNKS}${TRAILERS}`);
      assert.ok(accepted.includes(status), `${announced}${status}`);
    }
    assert.ok(accepted.includes(await sendRaw(port, `${HEAD}${CHUNKS}\r\n`)), 'a body in chunks alone');
    if (gateway === 'haproxy')
      for (const headers of [{}, { 'content-length': '3' }])
        assert.ok([200, 505].includes(await sendByHttp2(port, headers)), `HTTP/2, ${JSON.stringify(headers)}`);
    assert.equal(await sendRaw(port, `${HEAD}Content-Length: 3\r\n\r\nabc`), 200);
    for (const { headers, trailers } of got) {
      assert.deepEqual(trailers, []);
      assert.deepEqual([headers['x-auth-account'], headers['x-own']], ['acct_node', undefined]);
    }
    assert.ok(got.length > 0);
  });

// What is said at a node's address, and whether it is a node's yes.
const ID = 'X-Request-Id=req_01jd';
const SOMEBODY = 'X-Auth-Account=acct_01jd&X-Auth-Principal=key_01jd&X-Auth-Kind=api_key';
const SAID = [
  [`X-Auth-Kind=none&${ID}`, 200],
  [`${SOMEBODY}&${ID}`, 200],
  ['', 503],
  [ID, 503],
  ['X-Auth-Kind=none', 503],
  ['X-Auth-Kind=none&X-Request-Id=1', 503],
  [`X-Auth-Kind=none&X-Auth-Principal=key_01jd&${ID}`, 503],
  [`X-Auth-Kind=None&${ID}`, 503],
  [`X-Auth-Kind=nonesuch&${ID}`, 503],
  [`X-Auth-Kind=api_key&${ID}`, 503],
  [SOMEBODY, 503],
];
const CLAIMED = ['account', 'principal', 'kind', 'mode', 'role', 'scopes', 'billable'].map((name) => `X-Auth-${name}: forged\r\n`).join('');

/** Says 200 with the headers that stand in Authorization. */
const startSayer = () =>
  http.createServer((request, response) => {
    response.writeHead(200, Object.fromEntries(new URLSearchParams(request.headers.authorization)));
    response.end();
  });

for (const gateway of ['nginx', 'haproxy', 'caddy'])
  test(`${gateway} believes only a node, and tells of nobody what a client says`, { skip: !isInstalled(gateway) }, async (context) => {
    const sayer = startSayer();
    const check = await listen(sayer);
    const { port, child } = await startShipped(deployment, gateway, { ...ports, check, name: `${gateway}-believing` });
    const say = (said) => sendRaw(port, `GET /v1/patients HTTP/1.1\r\nHost: a.test\r\nAuthorization: ${said || 'a=b'}\r\n${CLAIMED}\r\n`);

    context.after(() => [child.kill('SIGTERM'), sayer.close()]);
    await until('it serves', async () => (await say(`${SOMEBODY}&${ID}`)) === 200);
    for (const [said, status] of SAID) {
      got.length = 0;
      assert.equal(await say(said), status, said);
      assert.equal(got.length, status === 200 ? 1 : 0, said);
    }
    await say(`X-Auth-Kind=none&${ID}`);
    const told = Object.entries(got.at(-1).headers).filter(([name]) => /^x-auth-|^x-request-id$/.test(name));
    assert.deepEqual(Object.fromEntries(told), { 'x-auth-kind': 'none', 'x-request-id': 'req_01jd' });
  });

test('a redirection to the name that nginx has for the backend leads to nginx', { skip: !isInstalled('nginx') }, async (context) => {
  const { port, child } = await startShipped(deployment, 'nginx', { ...ports, name: 'redirecting' });

  context.after(() => child.kill('SIGTERM'));
  const { status, headers } = await ask(port, 'good', '/v1/moved');
  assert.deepEqual([status, headers.location], [302, `http://a.test:${port}/v1/there`]);
});

// What a client says of itself.
const FORGED = [
  ...['X-Auth-Account', 'X-Auth-Role', 'X-Auth-Admin', 'X-Forwarded-User', 'X-Authentik-Username', 'Remote-User', 'X-WebAuth-User'],
  ...['X-HTTP-Method-Override', 'X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Host', 'X-Forwarded-Tls-Client-Cert', 'X-Host'],
  ...['SSL-Client-Verify', 'Forwarded', 'X-Real-IP', 'CF-Connecting-IP', 'Cookie', 'X-Request-Id'],
].flatMap((name) => [name, 'forged']);
const SENT = [...FORGED, 'Authorization', 'Bearer good', 'X-Forwarded-For', '203.0.113.9', 'User-Agent', 'kept'];
function ask(port, secret, path = '/v1/other/1') {
  return new Promise((resolve, reject) => {
    const headers = ['Host', 'a.test', ...SENT.map((each) => (each === 'Bearer good' ? `Bearer ${secret}` : each))];
    const request = http.request({ host: '127.0.0.1', port, path, headers, agent: false }, async (response) => {
      let text = '';

      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode, headers: response.headers, text });
    });

    request.on('error', reject);
    request.end();
  });
}
/** got: by names in lower case. */
function isTold(headers, address) {
  const wrong = Object.entries(headers).filter(([name, value]) => name !== 'path' && /forged|Bearer|203\.0/.test(value));

  assert.deepEqual(wrong, []);
  assert.equal(headers['x-auth-account'], 'acct_node');
  assert.equal(headers['x-auth-principal'], 'key_node');
  assert.equal(headers['x-request-id'], 'req_node');
  assert.equal(headers['x-forwarded-for'], address);
  assert.equal(headers['user-agent'], 'kept');
}
/** A location that leads elsewhere, as grpc.conf and fastcgi.conf say: with the check of location /. */
function elsewhere(text, inside) {
  const location = text.match(/location \/ \{([^}]*?)proxy_set_header/)?.[1];
  return location ? text.replace('location / {', `location /v1/other {${location}${inside}}\n location / {`) : text;
}
async function startElsewhere(context, name, backendPort, inside) {
  const change = (text) => elsewhere(text, inside);
  const { port, child } = await startShipped(deployment, 'nginx', { ...ports, name, backend: backendPort, change });

  context.after(() => child.kill('SIGTERM'));
  return port;
}

test('fastcgi.conf', { skip: !isInstalled('nginx') }, async (context) => {
  const scripts = startFastcgi();
  const inside = 'include /etc/nginx/fastcgi_params; include fastcgi.conf; fastcgi_pass $checked;';
  const port = await startElsewhere(context, 'fastcgi', await listen(scripts), inside);
  const { text } = await ask(port, 'good');
  const params = JSON.parse(text);

  context.after(() => scripts.close());
  isTold(
    Object.fromEntries(
      Object.entries(params).map(([name, value]) => [name.replace(/^HTTP_/, '').toLowerCase().replaceAll('_', '-'), value]),
    ),
    '127.0.0.1',
  );
  assert.equal(params.REQUEST_URI, '/v1/other/1');
  assert.equal((await ask(port, 'unknown')).status, 401);
  assert.equal((await ask(port, 'forbidden')).status, 403);
});

test('grpc.conf', { skip: !isInstalled('nginx') }, async (context) => {
  const calls = http2.createServer((request, response) => {
    response.writeHead(200, { 'x-got': JSON.stringify(request.headers) });
    response.end();
  });
  const port = await startElsewhere(context, 'grpc', await listen(calls), 'include grpc.conf; grpc_pass grpc://$checked;');
  const { headers } = await ask(port, 'good');

  context.after(() => calls.close());
  isTold(JSON.parse(headers['x-got']), '127.0.0.1');
  assert.equal((await ask(port, 'unknown')).status, 401);
});
