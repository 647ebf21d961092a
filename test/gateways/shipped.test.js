// The gateways as they are shipped: nginx's lists of headers hold where another directive than proxy_pass leads to a
// backend.
import assert from 'node:assert/strict';
import http from 'node:http';
import http2 from 'node:http2';
import { after, before, test } from 'node:test';
import { Deployment } from '../support/deployment.js';
import { startFastcgi } from './fastcgi.js';
import { isInstalled, startShipped } from './shipped.js';
import { listen, startNode } from './stub_node.js';

let deployment, node, ports;

before(async () => {
  deployment = new Deployment();
  node = startNode([]);
  ports = { node: await listen(node) };
  ports.check = ports.node;
});
after(async () => {
  node.close();
  await deployment.stop();
});

// What a client says of itself.
const FORGED = [
  ...['X-Auth-Account', 'X-Auth-Role', 'X-Auth-Admin', 'X-Forwarded-User', 'X-Authentik-Username', 'Remote-User', 'X-WebAuth-User'],
  ...['X-HTTP-Method-Override', 'X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Host', 'X-Forwarded-Tls-Client-Cert', 'X-Host'],
  ...['SSL-Client-Verify', 'Forwarded', 'X-Real-IP', 'CF-Connecting-IP', 'Cookie', 'X-Request-Id'],
].flatMap((name) => [name, 'forged']);
const SENT = [...FORGED, 'Authorization', 'Bearer good', 'X-Forwarded-For', '203.0.113.9', 'User-Agent', 'kept'];
function ask(port, secret) {
  return new Promise((resolve, reject) => {
    const headers = ['Host', 'a.test', ...SENT.map((each) => (each === 'Bearer good' ? `Bearer ${secret}` : each))];
    const request = http.request({ host: '127.0.0.1', port, path: '/v1/other/1', headers, agent: false }, async (response) => {
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
