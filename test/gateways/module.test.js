// The module for nginx: which requests it decides by the table, what it tells, and that nothing that is not a table is
// taken for one.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../support/deployment.js';
import { ACCOUNT, NOT_TABLES, REFUSAL, SOMETIMES, VARIABLES } from './module_nginx.js';
import { bearer, checks, children, descriptors, folder, from, hasTable, http2Port, keepsNoMore, knows } from './module_nginx.js';
import { mappings, refusedByNginx, send, serveTable, startNginx, table, told, useNginx } from './module_nginx.js';

useNginx();

const PLAIN = [
  ['GET', '/v1/patients'],
  ['HEAD', '/v1/patients/1'],
  ['GET', '/v1/patients/a.b/c_d~E-9/?q=a%20b&at=http://a//b/../c;d'],
  ['POST', '/v1/patients', [], '{}'],
  ['PUT', '/v1/patients/1', [], '{}'],
  ['PATCH', '/v1/patients/1', [], '{}'],
  ['DELETE', '/v1/patients/1'],
  ['GET', '/v1/patients/1', ['Origin', 'https://elsewhere', 'X-CSRF-Token', 'x', 'X-Api-Key', 'good']],
  ['GET', '/v1/patients', ['X-Auth-Account', 'acct_other', 'X-From', 'client']],
];
const NOT_PLAIN = [
  ['OPTIONS', '/v1/patients'],
  ['GET', '/v1/patientsX'],
  ['GET', '/v1/patients/%61'],
  ['GET', '/v1/patients/a;b'],
  ['GET', '/v1/patients//1'],
  ['GET', '/v1/patients/./1'],
  ['GET', '/v1/x/../patients/1'],
  ['GET', '/v1/patients/a.'],
  ['GET', `/v1/patients/${'a'.repeat(300)}`],
  ['GET', '/v1/patients/1/identifier'],
  ['GET', '/v1/rewritten'],
  ['GET', '/v1/exchanges'],
  ['GET', '/v1/patients', ['Cookie', 'a=b']],
];

test('plain requests are decided by the table, and no others', async (context) => {
  const nginx = await startNginx(context);

  await serveTable('good');
  await hasTable();
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
    const answer = await send('GET', '/v1/patients', ['Authorization', `${scheme} known`]);
    assert.equal(from(answer), 'table', scheme);
  }
  for (const [method, path, headers = [], body] of PLAIN) {
    const asked = checks.length;
    const { status, json } = await send(method, path, [...headers, ...bearer('known')], body);

    assert.equal(status, 200, `${method} ${path}`);
    assert.equal(checks.length, asked, `${method} ${path}`);
    if (method === 'HEAD') continue;
    assert.deepEqual([json.method, json.url, json.headers['x-from']], [method, path, 'table']);
  }
  for (const [method, path, headers = [], body] of NOT_PLAIN) {
    const { status, json } = await send(method, path, [...headers, ...bearer('known')], body);

    assert.equal(status, 200, `${method} ${path}`);
    assert.equal(json.headers['x-from'], 'node', `${method} ${path}`);
    assert.deepEqual(checks.at(-1), { method, target: path });
  }
  await nginx.stop();
});

test('who is not accepted by the table is asked of a node', async (context) => {
  const nginx = await startNginx(context);

  assert.equal((await send('GET', '/v1/patients', bearer('good'))).status, 200); // the first check is a double one
  await serveTable('good');
  await hasTable();
  const uses = await table.tell('uses', 1);
  const cases = [
    [bearer('good'), 200],
    [bearer('unknown'), 401],
    [bearer('knowm'), 401],
    [['Authorization', 'Basic known'], 401],
    [['Authorization', 'known'], 401],
    [['Authorization', 'Bearer=known'], 401],
    [[], 401],
    [['X-Api-Key', 'known'], 401],
    [bearer('forbidden'), 403],
    [bearer('busy'), 500],
  ];

  for (const [headers, status] of cases) {
    const asked = checks.length;
    const answer = await send('GET', '/v1/patients?key=known', headers);

    assert.equal(answer.status, status, headers.join(': '));
    assert.equal(checks.length, asked + 1);
    assert.equal(answer.headers['www-authenticate'], status === 401 ? 'Bearer realm="node"' : undefined);
    if (status !== 403) continue;
    assert.equal(answer.headers['x-error'], 'insufficient_scope');
    const passedOn = REFUSAL.map((name) => answer.headers[`x-${name.replace('_', '-')}`]);
    assert.deepEqual(passedOn, ['403', 'Bearer scope="a"', '7', 'GET', 'max-age=1']);
  }
  const two = await send('GET', '/v1/patients', [...bearer('known'), ...bearer('known')]);
  assert.equal(two.status, 400, 'two credentials, which nginx itself refuses');
  assert.equal(from(await send('POST', '/v1/patients', bearer('reader'), '{}')), 'node', 'a scope that it lacks');
  assert.equal(from(await send('GET', '/v1/documents/1', bearer('device'))), 'node', 'no scope was said');
  assert.equal(await table.tell('uses', 1), uses);
  await nginx.stop();
});

test('what is told of an accepted key', async (context) => {
  const nginx = await startNginx(context);
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const tell = async (method, path, ...headers) => {
    const { json } = await send(method, path, headers);
    return Object.fromEntries(VARIABLES.map((name) => [name, json.headers[`x-${name.replace('_', '-')}`]]));
  };

  await serveTable('good');
  await hasTable();
  const live = await tell('GET', '/v1/patients', ...bearer('known'), 'traceparent', trace);
  assert.match(live.request_id, /^req_0[0-9a-hjkmnp-tv-z]{25}$/);
  assert.deepEqual(
    { ...live, request_id: '' },
    {
      account: ACCOUNT,
      principal: 'key_01j80000000000000000000002',
      kind: 'api_key',
      mode: 'live',
      role: undefined,
      scopes: 'patients:read patients:write',
      billable: 'true',
      error: undefined,
      request_id: '',
      traceparent: trace,
      from: 'table',
    },
  );
  const reader = await tell('GET', '/v1/patients', ...bearer('reader'), 'traceparent', 'none');
  assert.deepEqual([reader.mode, reader.billable, reader.scopes], ['test', 'false', 'patients:read']);
  assert.equal(reader.traceparent, undefined);
  assert.notEqual(reader.request_id, live.request_id);
  const twice = await tell('GET', '/v1/patients', ...bearer('known'), 'traceparent', trace, 'traceparent', trace);
  assert.deepEqual([twice.from, twice.traceparent], ['table', undefined]);
  const device = await tell('POST', '/v1/documents/1', ...bearer('device'));
  assert.deepEqual(
    [device.kind, device.mode, device.billable, device.principal],
    ['device_key', 'live', 'true', 'dev_01j80000000000000000000004'],
  );
  const asked = await tell('GET', '/v1/patients', ...bearer('good'), 'traceparent', trace);
  assert.deepEqual(Object.values(asked), [
    ...['acct_node', 'key_node', 'api_key', 'live', undefined, 'patients:read patients:write', 'true', undefined],
    ...['req_node', 'of the node', 'node'],
  ]);
  const moved = await tell('GET', '/v1/moved', ...bearer('known'));
  assert.deepEqual([moved.account, moved.from], [ACCOUNT, 'table'], 'after an internal redirect');
  const open = await tell('GET', '/v1/patients/open', ...bearer('known'));
  assert.deepEqual([open.account, open.from], [undefined, undefined], 'where nothing is checked');
  await nginx.stop();
  const lines = readFileSync(join(folder, 'access'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  assert.equal(lines.at(-2).principal, 'key_01j80000000000000000000002', 'in the log, too');
  assert.equal(lines.at(-1).from, '');
});

test('bodies, HTTP/2 and other access rules', async (context) => {
  const nginx = await startNginx(context);
  const body = 'x'.repeat(300000);

  await serveTable('good');
  await hasTable();
  for (const [secret, expected] of [['known', 'table'], ['good', 'node']]) {
    const { json } = await send('POST', '/v1/patients', bearer(secret), body);
    assert.deepEqual([json.bytes, json.headers['x-from']], [body.length, expected]);
  }

  const client = http2.connect(`http://127.0.0.1:${http2Port}`);
  const streams = [...Array(40).keys()].map(async (number) => {
    const secret = ['known', 'good'][number % 2];
    const stream = client.request({ ':method': 'POST', ':path': `/v1/patients/${number}`, authorization: `Bearer ${secret}` });
    let text = '';

    stream.end(body.slice(0, number * 1000));
    for await (const chunk of stream) text += chunk;
    const { url, bytes, headers } = JSON.parse(text);
    assert.deepEqual(
      [url, bytes, headers['x-from']],
      [`/v1/patients/${number}`, number * 1000, secret === 'known' ? 'table' : 'node'],
    );
  });
  await Promise.all(streams);
  client.close();

  const uses = await table.tell('uses', 0);
  assert.equal(from(await send('GET', '/v1/either', bearer('known'))), 'table', 'satisfy any');
  assert.equal(from(await send('GET', '/v1/either', bearer('good'))), 'node');
  assert.equal((await send('GET', '/v1/either', bearer('unknown'))).status, 401);
  assert.equal(await table.tell('uses', 0), uses + 1, 'each hit is one use');
  const asked = checks.length;
  assert.equal((await send('GET', '/v1/both', bearer('known'))).status, 403, 'deny comes first');
  assert.equal((await send('GET', '/v1/both', bearer('good'))).status, 403);
  assert.equal(await table.tell('uses', 0), uses + 1);
  assert.equal(checks.length, asked);
  await nginx.stop();
});

test('nothing of a table counts that has ended', async (context) => {
  const nginx = await startNginx(context);

  await serveTable('good');
  await hasTable();
  await table.tell('forget', 0);
  assert.equal(await knows(), false, 'a key that was removed');
  assert.equal(await knows('reader'), true);
  await table.tell('lease', 0);
  assert.equal(await knows('reader'), false, 'no lease');
  await table.tell('lease', 3600000);
  assert.equal(await knows('reader'), true);
  await table.tell('epoch');
  assert.equal(await knows('reader'), false, 'an earlier epoch');

  await serveTable('good');
  await hasTable();
  await table.end();
  await until('it is told that there is no table', () => /cannot be reached/.test(told().at(-1)));
  assert.equal(await knows(), false);
  assert.equal((await send('GET', '/v1/patients', bearer('known'))).status, 200);
  await nginx.stop();
});

test('scopes count for the policy that nginx was started with', async (context) => {
  await serveTable('good');
  const nginx = await startNginx(context, { workers: 2 });

  // Each of them opens the table for itself. A node of an earlier version tells no policy.
  await until('both workers have the table', async () => {
    for (let i = 0; i < 20; i++) if (!(await knows())) return false;
    return true;
  });
  await table.tell('policy', 7);
  assert.equal(await knows(), true);
  await table.tell('policy', 8);
  assert.equal(await knows(), false, 'another one: the node knows its scopes');
  assert.equal((await send('GET', '/v1/patients', bearer('known'))).status, 200);
  await until('it is told', () => /its policy has changed/.test(readFileSync(join(folder, 'error'), 'utf8')));
  await table.tell('policy', 7);
  assert.equal(await knows(), true, 'the first one again');
  await table.tell('policy', 8);
  await nginx.reload({ workers: 2 });
  await hasTable();
  await until('the configuration is that of the new policy', knows);
  await nginx.stop();
});

test('what is no table is told, and never used', async (context) => {
  const nginx = await startNginx(context);
  const [worker] = children();
  const reasons = {
    silence: 'the node has not sent its table yet',
    closing: '104: Connection reset',
    'other clock': 'the node runs in another time namespace',
    'other deployment': 'the table belongs to another deployment',
  };

  await until('the worker has looked', () => told().length > 0);
  const open = descriptors(worker);
  for (const mode of NOT_TABLES) {
    const reason = reasons[mode] ?? 'what was sent is not a table of this version';

    if (mode === SOMETIMES) continue;
    await table?.end();
    await until('nobody is there', () => /cannot be reached \((2|111): /.test(told().at(-1)));
    const already = told().length;
    await serveTable(mode);
    await until(`${mode} is told`, () => told().slice(already).some((line) => line.includes(reason)));
    for (let i = 0; i < 3; i++) {
      const answer = await send('GET', '/v1/patients', bearer('known'));
      assert.deepEqual([answer.status, from(answer)], [200, 'node'], mode);
    }
    await pause(500); // two more looks
    assert.equal(told().slice(already).filter((line) => line.includes(reason)).length, 1, `${mode} is told once`);
    await keepsNoMore(worker, open + 1, mode);
    await until(`nothing of ${mode} stays mapped`, () => mappings(worker) === 0);
  }
  await serveTable('good');
  await hasTable();
  assert.deepEqual(children(), [worker], 'the worker is the same');
  assert.equal(mappings(worker), 2);
  await nginx.stop();
});

test('a table that changes its size ends nothing', async (context) => {
  const nginx = await startNginx(context);
  const [worker] = children();

  await until('the worker has looked', () => told().length > 0);
  const open = descriptors(worker);
  for (let i = 0; i < 20; i++) {
    await serveTable(SOMETIMES);
    await pause(300);
    assert.equal((await send('GET', '/v1/patients', bearer('unknown'))).status, 401);
  }
  await keepsNoMore(worker, open + 1, 'the worker');
  assert.deepEqual(children(), [worker], 'the worker is the same');
  await nginx.stop();
});

test('only the owner of the folder is believed, or who is said to be', { skip: process.getuid() !== 0 }, async (context) => {
  const nobody = ['setpriv', '--reuid=nobody', '--clear-groups', '--regid=nogroup'];
  const nginx = await startNginx(context);

  chmodSync(join(folder, 'run'), 0o777);
  await serveTable('good', { as: nobody });
  await until('it is told', () => /served by a user who does not own its folder/.test(told().at(-1)));
  assert.equal(await knows(), false);
  await nginx.reload({ table: 'owner=nobody deployment=test' });
  await hasTable();
  await nginx.reload({ table: `owner=${execFileSync('id', ['-u', 'nobody']).toString().trim()} deployment=test` });
  await hasTable();
  chmodSync(join(folder, 'run'), 0o755);
  await nginx.stop();
});

test('each worker has the table, the master and the keeper of a cache have not; reloads and ends leave nothing', async (context) => {
  await serveTable('good');
  assert.equal(await table.tell('clients'), 0);
  const options = { workers: 2, more: `proxy_cache_path ${folder}/cache keys_zone=cache:1m;` };
  const nginx = await startNginx(context, options);
  const master = readFileSync(join(folder, 'pid'), 'utf8').trim();
  const allHaveIt = () => until('both have it', async () => (await table.tell('clients')) === 2);

  await allHaveIt();
  const open = descriptors(master);
  for (let i = 0; i < 5; i++) {
    await nginx.reload(options);
    await allHaveIt();
    await hasTable();
  }
  assert.equal(mappings(master), 0);
  await keepsNoMore(master, open, 'the master');
  await nginx.reload({ ...options, table: null });
  await until('nobody has it', async () => (await table.tell('clients')) === 0);
  assert.equal(await knows(), false);
  await nginx.reload(options);
  await allHaveIt();
  await nginx.stop('SIGTERM');
  assert.equal(await table.tell('clients'), 0);
});

test('what cannot be meant is refused by nginx -t', async () => {
  const cases = [
    [{ table: 'owner=nobody-of-that-name' }, /there is no user "nobody-of-that-name"/],
    [{ table: 'deployment=' }, /not the name of a deployment/],
    [{ table: `deployment=${'x'.repeat(64)}` }, /not the name of a deployment/],
    [{ table: 'deploymant=test' }, /unknown parameter "deploymant=test"/],
    [{ more: 'chatelaine_table /run/x;' }, /"chatelaine_table" directive is duplicate/],
    [{ table: null, more: 'chatelaine_table run/x;' }, /not an absolute path/],
    [{ table: null, more: `chatelaine_table /${'x'.repeat(107)};` }, /not an absolute path/],
    [{ location: 'location /v1/x { chatelaine_scope read=patients; }' }, /there is no scope "patients"/],
    [{ location: 'location /v1/x { chatelaine_scope read=; }' }, /there is no scope ""/],
    [{ location: 'location /v1/x { chatelaine_scope reads=none; }' }, /unknown or repeated parameter/],
    [{ location: 'location /v1/x { chatelaine_scope read=none read=none; }' }, /unknown or repeated parameter/],
    [{ location: 'location / { chatelaine_scope read=audit:read; }' }, /not a location of a row for keys/],
    [{ location: 'location /v1/ { chatelaine_scope read=audit:read; }' }, /not a location of a row for keys/],
    [{ location: 'location /v1/console/x { chatelaine_scope read=audit:read; }' }, /not a location of a row for keys/],
    [{ location: 'location ~ ^/v1/x { chatelaine_scope read=audit:read; }' }, /not into the expression/],
    [{ location: 'location @x { chatelaine_scope read=audit:read; }' }, /not a location of a row for keys/],
    [{ location: 'location /v1/x { chatelaine_check check; }' }, /neither a URI nor "off"/],
    [{ location: 'location /v1/x { chatelaine_check /a; chatelaine_check off; }' }, /is duplicate/],
    [{ location: 'set $chatelaine_account x;' }, /the duplicate "chatelaine_account" variable/],
  ];

  for (const [options, expected] of cases) refusedByNginx(options, expected);
});
