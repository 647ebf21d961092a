// WebSockets end when their key is revoked or their account suspended: by HAProxy with its script end-revoked, and by a
// backend that watches by itself.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ask, Deployment, Session, until } from '../support/deployment.js';
import { startShipped } from './shipped.js';
import { Backend, Client, endRevoked } from './websocket.js';

const source = process.env.CHATELAINE_SOURCE;
const PATH = '/v1/patients/socket';

let deployment, session;
const backends = [];

/** HAProxy as it is shipped, with the addresses of this deployment. */
async function startHaproxy(name, backendPort) {
  const [{ url, internalUrl }] = deployment.nodes;
  const { port, folder } = await startShipped(deployment, 'haproxy', {
    name,
    node: new URL(url).port,
    check: new URL(internalUrl).port,
    backend: backendPort,
  });

  return { url: `http://127.0.0.1:${port}`, socket: join(folder, 'haproxy.sock') };
}

/** A node that has lost Redis before answers 503 for a moment. */
async function makeKey() {
  let answer;

  await session.stepUp();
  await until('a key', async () => {
    answer = await session.send('POST', '/v1/console/api_keys', {
      name: 'socket',
      mode: 'live',
      scopes: ['patients:read'],
    });
    return answer.status !== 503;
  });
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}
async function revoke(key) {
  const { status, text } = await session.send('DELETE', `/v1/console/api_keys/${key.id}`);

  assert.equal(status, 200, text);
}
async function watchers(node) {
  const { text } = await ask(node.internalUrl, 'GET', '/metrics');

  return Number(text.match(/^chatelaine_watchers (\d+)/m)[1]);
}
/** HAProxy takes a moment to find its nodes. */
async function open(base, key) {
  let client;

  await until('a WebSocket', async () => {
    client = await Client.open(base, PATH, key.secret).catch(() => undefined);
    return client;
  });
  return client;
}
async function answers(client, text) {
  client.send(text);
  await until(`${text} comes back`, () => client.heard(text) || !client.isOpen);
  return client.heard(text);
}

before(async () => {
  const more = [
    ...['--policy-file', join(source, 'docker/policy.json'), '--trusted-proxies', '127.0.0.1/32'],
    ...['--step-up-ms', '1h', '--lease-ms', '10s'], // so long may a watcher take to acknowledge
  ];
  deployment = await Deployment.start([{ origin: 'http://localhost:1', more }]);
  session = await Session.open(deployment.nodes[0].url, deployment.addPerson());
});
after(async () => {
  for (const backend of backends) backend.close();
  await deployment?.stop();
});

async function startBackend() {
  const backend = new Backend();

  backends.push(backend);
  return { backend, port: await backend.listen() };
}

const SCRIPT = join(source, 'docker/gateways/haproxy/end-revoked');
/** More patient: on a busy machine it may itself take longer than two seconds, and then ends what it should not. */
function patientScript() {
  const script = readFileSync(SCRIPT, 'utf8');
  const path = join(deployment.folder, 'end-revoked');

  assert.match(script, /^CERTAIN_S=2$/m);
  writeFileSync(path, script.replace('CERTAIN_S=2', 'CERTAIN_S=30'));
  return path;
}

test('HAProxy ends what its script hears of', async () => {
  const { port } = await startBackend();
  const { url, socket } = await startHaproxy('haproxy', port);
  const [node] = deployment.nodes;
  const keys = [await makeKey(), await makeKey(), await makeKey()];
  const env = [`HAPROXY_SOCKET=${socket}`, 'ACKNOWLEDGE=1'];
  const watch = async (script) => {
    const watcher = deployment.launch('end-revoked', 'env', [...env, 'sh', script, 'http://127.0.0.1:9', node.internalUrl]);

    await until('the script watches', async () => (await watchers(node)) === 1);
    return watcher;
  };
  const endWatcher = async (watcher) => {
    watcher.kill();
    await watcher.ended;
    await until('nobody watches', async () => (await watchers(node)) === 0);
  };

  const early = await open(url, keys[0]);
  const patient = await watch(patientScript());
  await until('what ran before it did is ended', () => !early.isOpen);

  const clients = await Promise.all(keys.map((key) => open(url, key)));
  for (const client of clients) assert.ok(await answers(client, 'hello'));
  await revoke(keys[0]);
  clients[0].send('after');
  await until('the WebSocket is closed', () => !clients[0].isOpen);
  assert.ok(!clients[0].heard('after'), 'nothing comes back that was sent after the revocation was answered');
  assert.ok(await answers(clients[1], 'still there'));

  deployment.changeAccount('suspend');
  await until('its WebSockets are closed', () => !clients[1].isOpen && !clients[2].isOpen);
  deployment.changeAccount('resume');

  await endWatcher(patient);
  const asShipped = await watch(SCRIPT);
  let last;
  await until('a WebSocket', async () => {
    last = await open(url, keys[1]);
    return answers(last, 'hello');
  });
  deployment.pauseRedis();
  await until('everything is ended when nothing is certain', () => !last.isOpen);
  deployment.resumeRedis();
  await until('the node serves again', async () => (await ask(node.internalUrl, 'GET', '/readyz')).status === 200);
  await endWatcher(asShipped);
});

test('a backend ends what it hears of by itself', async () => {
  const { backend, port } = await startBackend();
  const { url } = await startHaproxy('plain', port);
  const [node] = deployment.nodes;
  const keys = [await makeKey(), await makeKey()];
  const stop = new AbortController();
  const watching = endRevoked(backend, node.internalUrl, stop.signal).catch((error) => error);

  await until('the backend watches', async () => (await watchers(node)) === 1);
  const clients = await Promise.all(keys.map((key) => open(url, key)));
  for (const client of clients) assert.ok(await answers(client, 'hello'));
  await revoke(keys[0]);
  assert.equal(backend.sockets.size, 1, 'the revocation is answered once the backend has closed');
  await until('the WebSocket is closed', () => !clients[0].isOpen);
  assert.ok(await answers(clients[1], 'still there'));
  stop.abort();
  assert.equal((await watching).name, 'AbortError');
});
