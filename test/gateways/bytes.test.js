// Requests that gateways read in ways of their own, and streams. The differences are those that README.md names.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { Deployment, until } from '../support/deployment.js';
import { isInstalled, startShipped } from './shipped.js';
import { listen, startNode } from './stub_node.js';

let deployment, node, backend, ports;
const got = []; // what the backend got
let stream; // the response that is not over
const slow = {}; // ms: how long an answer to /v1/patients/slow should take; took: how long the last one did
let started = 0;

before(async () => {
  deployment = new Deployment();
  node = startNode([]);
  backend = http.createServer((request, response) => {
    got.push(`${request.method} ${request.url}`);
    response.setHeader('X-Request-Id', 'of the backend');
    if (request.url === '/v1/patients/slow') {
      const began = performance.now();

      request.resume();
      setTimeout(() => {
        response.end('{}');
        slow.took = performance.now() - began;
      }, slow.ms);
      return;
    }
    if (request.url !== '/v1/patients/log') {
      response.end('{}');
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('0\n');
    stream = response;
  });
  ports = { node: await listen(node), backend: await listen(backend) };
  ports.check = ports.node;
});
after(async () => {
  node.close();
  backend.close();
  await deployment.stop();
});

const KEY = 'Authorization: Bearer good';
/** Bytes as they are, without the end of the head; the gateway closes. */
function send(port, ...lines) {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port }, () => socket.write([...lines, 'Connection: close', '', ''].join('\r\n')));
    let text = '';

    socket.on('error', reject);
    socket.on('data', (bytes) => (text += bytes));
    socket.on('close', () => {
      const [head, ...body] = text.split('\r\n\r\n');
      const isJson = /^content-type: application\/json/im.test(head);

      resolve({ status: Number(text.split(' ')[1]), head, body: body.join('\r\n\r\n'), isJson });
    });
  });
}
async function start(context, gateway, change) {
  const { port, child } = await startShipped(deployment, gateway, { ...ports, name: `${gateway}${++started}`, change });

  context.after(() => child.kill('SIGTERM'));
  await until('it serves', async () => (await send(port, 'GET /v1/patients/1 HTTP/1.1', 'Host: a.test', KEY)).status === 200);
  got.length = 0;
  return port;
}

const A_TARGET = `/v1/patients/${'x'.repeat(40000)}`;
// By gateway: the status, and what the backend gets. JSON only from nginx, because the others answer before their own rules.
const ODD = {
  'a head that is too large': [['GET /v1/patients/1 HTTP/1.1', 'Host: a.test', KEY, `Cookie: a=${'x'.repeat(40000)}`], { nginx: [431], haproxy: [400], caddy: [431] }],
  'a target that is too long': [[`GET ${A_TARGET} HTTP/1.1`, 'Host: a.test', KEY], { nginx: [414], haproxy: [400], caddy: [431] }],
  'an absolute target': [
    ['GET http://a.test/v1/patients/2 HTTP/1.1', 'Host: a.test', KEY],
    { nginx: [200, 'GET /v1/patients/2'], haproxy: [200, 'GET http://a.test/v1/patients/2'], caddy: [400] },
  ],
  'an absolute target of another host': [
    ['GET http://b.test/v1/patients/3 HTTP/1.1', 'Host: a.test', KEY],
    { nginx: [200, 'GET /v1/patients/3'], haproxy: [400], caddy: [400] },
  ],
  'an absolute target without a key': [['GET http://a.test/v1/patients/4 HTTP/1.1', 'Host: a.test'], { nginx: [401], haproxy: [401], caddy: [400] }],
  'an absolute target with dots': [['GET http://a.test/v1/../patients HTTP/1.1', 'Host: a.test', KEY], { nginx: [400], haproxy: [400], caddy: [400] }],
  'OPTIONS *': [['OPTIONS * HTTP/1.1', 'Host: a.test', KEY], { nginx: [400], haproxy: [400], caddy: [200] }],
  'HTTP/1.0 without Host': [['GET /v1/patients/5 HTTP/1.0', KEY], { nginx: [200, 'GET /v1/patients/5'], haproxy: [200, 'GET /v1/patients/5'], caddy: [200, 'GET /v1/patients/5'] }],
  'a refused HEAD': [['HEAD /v1/patients/6 HTTP/1.1', 'Host: a.test'], { nginx: [401], haproxy: [401], caddy: [401] }],
};
for (const gateway of ['nginx', 'haproxy', 'caddy'])
  test(`odd requests at ${gateway}`, { skip: !isInstalled(gateway) }, async (context) => {
    const port = await start(context, gateway);

    for (const [title, [lines, expected]] of Object.entries(ODD)) {
      const { status, head, body, isJson } = await send(port, ...lines);
      const [wanted, ...passed] = expected[gateway];

      assert.equal(status, wanted, title);
      assert.deepEqual(got.splice(0), passed, title);
      assert.doesNotMatch(head, /^x-auth-error:/im, title);
      if (passed.length > 0) assert.match(head, /^x-request-id: req_node$/im, title);
      if (gateway === 'nginx' && status >= 400) assert.ok(isJson, title);
      if (lines[0].startsWith('HEAD')) assert.equal(body, '', title);
    }
  });

/** Each line is written when the one before has arrived. Resolves to the milliseconds that each took. */
function timeLines(port, count) {
  return new Promise((resolve, reject) => {
    const times = [];
    const headers = { Authorization: 'Bearer good' };
    let written;
    const request = http.get({ host: '127.0.0.1', port, path: '/v1/patients/log', headers, agent: false }, (response) => {
      response.on('data', () => {
        if (written) times.push(performance.now() - written);
        if (times.length === count) {
          stream.end();
          resolve(times);
          return;
        }
        written = performance.now();
        stream.write(`${times.length}\n`);
      });
    });

    request.on('error', reject);
  });
}
for (const gateway of ['nginx', 'haproxy', 'caddy'])
  test(`${gateway} passes the lines of a stream on as they come`, { skip: !isInstalled(gateway) }, async (context) => {
    const times = await timeLines(await start(context, gateway), 50);

    // One that HAProxy holds back waits for the kernel's 200 ms. Others may take as long on a busy machine, but not all.
    assert.ok(Math.min(...times) < 150, `${times.map(Math.round)} ms`);
  });

const SILENCE = { nginx: 'proxy_read_timeout 60s', haproxy: 'timeout server 60s', caddy: 'read_timeout 60s' };
/** One limit, the same minute in all three, and none of their others comes before it. Here it is two seconds. */
function shorten(gateway, found) {
  return (text) => {
    found.push(...text.split(SILENCE[gateway]).slice(1));
    return text.replace(SILENCE[gateway], SILENCE[gateway].replace('60s', '2s')).replace('timeout client 30s', 'timeout client 1s');
  };
}
for (const gateway of ['nginx', 'haproxy', 'caddy'])
  test(`${gateway} ends a stream that is silent for a minute`, { skip: !isInstalled(gateway) }, async (context) => {
    const found = [];
    const port = await start(context, gateway, shorten(gateway, found));
    assert.equal(found.length, 1);
    const silent = await new Promise((resolve, reject) => {
      const headers = { Authorization: 'Bearer good' };
      const request = http.get({ host: '127.0.0.1', port, path: '/v1/patients/log', headers, agent: false }, (response) => {
        const began = performance.now();

        response.resume();
        response.on('error', () => {}); // it is cut
        response.on('close', () => resolve(performance.now() - began));
      });

      request.on('error', reject);
    });

    assert.ok(silent > 1500, `${silent} ms`);
  });

/** POST, which nobody repeats, because the backend may have done it. */
function post(port) {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: 'Bearer good', 'Content-Length': 2 };
    const request = http.request({ method: 'POST', host: '127.0.0.1', port, path: '/v1/patients/slow', headers, agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    });

    request.on('error', reject);
    request.end('{}');
  });
}
const IDLE_MS = 3000;
for (const gateway of ['nginx', 'haproxy', 'caddy'])
  test(`a connection that was idle takes no time from an answer of ${gateway}`, { skip: !isInstalled(gateway) }, async (context) => {
    const limit = SILENCE[gateway];
    const change = (text) => text.replace(limit, limit.replace('60s', '4s')).replace('keepalive 5s', 'keepalive 300ms');
    const port = await start(context, gateway, change);

    slow.ms = 0;
    assert.equal(await post(port), 200);
    do {
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      slow.ms = 2000;
      const status = await post(port);
      if (slow.took < 3000) assert.equal(status, 200);
    } while (slow.took >= 3000); // this machine was too busy
  });
