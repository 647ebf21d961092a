// Strangers who hold connections: gateways as they are shipped, with limits that a test can fill.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Deployment, until } from '../support/deployment.js';
import { isInstalled, startShipped } from './shipped.js';
import { listen, startNode } from './stub_node.js';

const LIMIT = 64; // connections, of all
/** Starts it with these words in the place of others, each of which its configuration must have once. */
async function startChanged(context, gateway, name, changes) {
  const found = changes.map(() => 0);
  const change = (text) =>
    changes.reduce((changed, [from, to], number) => {
      found[number] += changed.split(from).length - 1;
      return changed.replace(from, to);
    }, text);
  const started = await startShipped(deployment, gateway, { ...ports, name, change });

  context.after(() => started.child.kill('SIGTERM'));
  assert.deepEqual(
    found,
    changes.map(() => 1),
  );
  return started;
}

let deployment, node, backend, ports;

before(async () => {
  deployment = new Deployment();
  node = startNode([]);
  backend = http.createServer((_request, response) => response.end('{}'));
  ports = { node: await listen(node), backend: await listen(backend) };
  ports.check = ports.node;
});
after(async () => {
  node.close();
  backend.close();
  await deployment.stop();
});

/** A client that keeps its connection. */
class Client {
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  #port;

  constructor(port) {
    this.#port = port;
  }

  ask() {
    return new Promise((resolve, reject) => {
      const headers = { Authorization: 'Bearer good' };
      const request = http.request({ host: '127.0.0.1', port: this.#port, path: '/v1/patients/1', headers, agent: this.#agent }, (response) => {
        response.resume().on('end', () => resolve(`${response.statusCode} ${request.reusedSocket ? 'again' : 'new'}`));
      });

      request.on('error', reject);
      request.end();
    });
  }

  end() {
    this.#agent.destroy();
  }
}

/** One that says so much and no more. */
function startStranger(port, says) {
  const socket = net.connect({ host: '127.0.0.1', port }, () => socket.write(says));

  socket.isEnded = false;
  socket.on('error', () => (socket.isEnded = true));
  socket.on('close', () => (socket.isEnded = true));
  socket.resume();
  return socket;
}
const HALF_A_HEAD = 'GET /v1/patients/1 HTTP/1.1\r\nHost: ';

/** What HAProxy's socket says. */
function askHaproxy(folder, words) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(join(folder, 'haproxy.sock'), () => socket.write(`${words}\n`));
    let text = '';

    socket.on('data', (bytes) => (text += bytes));
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}

for (const [kind, says] of [
  ['silent', ''],
  ['slow', HALF_A_HEAD],
])
  test(`HAProxy full of ${kind} strangers checks requests on open connections`, { skip: !isInstalled('haproxy') }, async (context) => {
    const { port, folder } = await startChanged(context, 'haproxy', kind, [
      ['maxconn 4096', `maxconn ${LIMIT}`],
      ['maxconn 2048', `maxconn ${LIMIT / 2}`],
      ['timeout http-request 10s', 'timeout http-request 1h'], // none of them is let go
    ]);
    const clients = Array.from({ length: 4 }, () => new Client(port));

    context.after(() => clients.forEach((client) => client.end()));
    await until('it serves', async () => (await clients[0].ask()).startsWith('200'));
    await Promise.all(clients.map((client) => client.ask()));
    const strangers = Array.from({ length: LIMIT }, () => startStranger(port, says));
    context.after(() => strangers.forEach((stranger) => stranger.destroy()));
    await until('it is full', async () => {
      const [, connections] = (await askHaproxy(folder, 'show info')).match(/^CurrConns: (\d+)$/m);
      return Number(connections) >= LIMIT / 2;
    });
    for (let round = 0; round < 5; round++)
      assert.deepEqual(
        await Promise.all(clients.map((client) => client.ask())),
        clients.map(() => '200 again'),
      );
    assert.ok(strangers.every(({ isEnded }) => !isEnded));
  });

const HEAD_TIMEOUTS = {
  nginx: ['client_header_timeout 10s', 'client_header_timeout 1s'],
  haproxy: ['timeout http-request 10s', 'timeout http-request 1s'],
  caddy: ['read_header 10s', 'read_header 1s'],
};
for (const [gateway, timeouts] of Object.entries(HEAD_TIMEOUTS))
  test(`${gateway} lets go who stops within a head`, { skip: !isInstalled(gateway) }, async (context) => {
    const { port } = await startChanged(context, gateway, `${gateway}-heads`, [timeouts]);
    const stranger = startStranger(port, HALF_A_HEAD);

    await until('its connection is closed', () => stranger.isEnded);
  });

test('nginx full of silent strangers takes others in their place', { skip: !isInstalled('nginx') }, async (context) => {
  const { port } = await startChanged(context, 'nginx', 'nginx', [
    ['worker_processes auto;', 'worker_processes 1;'],
    ['worker_connections 8192;', `worker_connections ${LIMIT};`],
  ]);
  const strangers = Array.from({ length: 2 * LIMIT }, () => startStranger(port, ''));
  context.after(() => strangers.forEach((stranger) => stranger.destroy()));
  await until('nginx is full', () => strangers.some(({ isEnded }) => isEnded));
  for (let round = 0; round < 5; round++) {
    const client = new Client(port);

    assert.equal(await client.ask(), '200 new');
    client.end();
  }
});
