// The module for nginx: whom it believes that a request is allowed, what a backend is told of it, on each way to it, and that
// it is counted once.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/deployment.js';
import { startFastcgi } from './fastcgi.js';
import { backend, bearer, checks, folder, from, hasTable, node, refusedByNginx, send } from './module_nginx.js';
import { serveTable, startNginx, table, told, useNginx } from './module_nginx.js';
import { listen } from './stub_node.js';

useNginx();

const patients = (headers, path = '') => send('GET', `/v1/patients${path}`, headers);
const toBackend = (path = '') => `proxy_pass http://127.0.0.1:${backend.port}${path};`;
/** A location that is checked by one of its own. */
const checkedBy = (name, check) =>
  `location /v1/${name} { chatelaine_check /_${name}; ${toBackend()} } location = /_${name} { internal; ${check} }`;
const asNode = (more) => `proxy_set_header X-Original-URI $request_uri; proxy_pass http://127.0.0.1:${node.port}/check/auth-request${more};`;

// Whoever says yes without being a node, or without looking at the credential.
const OTHERS = () => ({
  nothing: 'return 204;',
  page: 'return 200 "{}";',
  catchall: toBackend('/anything'),
  echo: toBackend('/?echo=1'),
  created: asNode('?status=201'),
  pardoned: 'error_page 401 =200 /_page; ' + asNode('') + ' proxy_intercept_errors on;',
  anonymous: 'add_header X-Auth-Kind none; return 200;',
  named: 'add_header X-Auth-Kind none; add_header X-Auth-Principal key_1; add_header X-Request-Id req_1; return 200;',
  nameless: `proxy_hide_header X-Request-Id; ${toBackend('/')} add_header X-Auth-Principal key_1;`,
});
const FORGED_OPEN = ['X-Auth-Kind', 'none', 'X-Request-Id', 'req_01j80000000000000000000001'];
const FORGED = ['X-Auth-Principal', 'key_01j80000000000000000000001', 'X-Request-Id', 'req_01j80000000000000000000001'];

test('only a node can accept', async (context) => {
  const others = Object.entries(OTHERS()).map(([name, check]) => checkedBy(name, check));
  const nginx = await startNginx(context, { location: others.join('\n') });

  for (const name of Object.keys(OTHERS()))
    for (const headers of [[], FORGED, FORGED_OPEN, [...bearer('good'), ...FORGED]]) {
      const { status } = await send('GET', `/v1/${name}`, headers);
      assert.ok(status === 500 || status === 401, `${name}, ${headers}: ${status}`);
    }
  assert.match(told().join('\n'), /answered with status 204, but not by a node/);
  assert.match(told().join('\n'), /answered with status 201, but not by a node/);
  assert.equal((await patients(bearer('good'))).status, 200);
  await nginx.stop();
});

test('who accepts a request without a credential is believed by nobody', async (context) => {
  const own = `proxy_set_header Authorization "Bearer good"; ${asNode('')}`;
  const nginx = await startNginx(context, { location: checkedBy('own', own) });

  assert.equal((await send('GET', '/v1/own/ambiguous', [])).status, 500, 'is refused whoever asks, which proves nothing');
  for (const headers of [[], bearer('good'), bearer('unknown')])
    assert.equal((await send('GET', '/v1/own', headers)).status, 500);
  const lines = told().filter((line) => line.includes('[emerg]'));
  assert.equal(lines.length, 1, 'told once');
  assert.match(lines[0], /check at "\/_own" was accepted without a credential/);
  await nginx.stop();
});

test('what is public passes as nobody, and proves nothing of its location', async (context) => {
  const location = checkedBy('public', asNode('')) + checkedBy('own', asNode(''));
  const nginx = await startNginx(context, { location });
  const said = [...FORGED, 'X-Auth-Kind', 'api_key', 'X-Auth-Account', 'acct_other', 'X-Auth-Mode', 'live'];
  const askedFor = async (path, headers) => {
    const before = checks.length;
    const { status, json } = await send('GET', path, headers);
    return [status, checks.length - before, json?.headers];
  };
  const isNobody = ({ authorization, ...headers }) => {
    assert.equal(authorization, undefined);
    const identity = Object.entries(headers).filter(([name]) => name.startsWith('x-auth-'));
    assert.deepEqual(Object.fromEntries(identity), { 'x-auth-kind': 'none' });
    assert.equal(headers['x-request-id'], 'req_node');
  };

  for (const credential of [[], bearer('good'), bearer('unknown')]) {
    const [status, asked, headers] = await askedFor('/v1/public/1', [...credential, ...said]);
    assert.deepEqual([status, asked], [200, credential.length > 0 ? 2 : 1], 'without one, the answer to the probe will do');
    isNobody(headers);
  }
  assert.deepEqual((await askedFor('/v1/public/1', ['Authorization', 'Bearer'])).slice(0, 2), [500, 2], 'a 400 of the node, which error_page tells');
  const [refused, probes] = await askedFor('/v1/public1', []);
  assert.deepEqual([refused, probes], [401, 2], 'now the location proves itself');
  const [status, asked, headers] = await askedFor('/v1/public/1', [...bearer('good'), ...said]);
  assert.deepEqual([status, asked], [200, 1]);
  isNobody(headers);
  assert.equal((await send('GET', '/v1/own', bearer('good'))).status, 200);
  assert.deepEqual(told().filter((line) => line.includes('[emerg]')), []);
  await nginx.stop();
});

test('a location proves itself once: by a check without the credential, before the first one with it', async (context) => {
  const shown = 'proxy_set_header X-Original-URI "$request_uri $http_authorization $http_cookie";';
  const location = `location /v1/shown { chatelaine_check /_shown; ${toBackend()} }
    location = /_shown { internal; ${shown} proxy_set_header X-Original-Method GET;
      proxy_pass http://127.0.0.1:${node.port}/check/auth-request; }`;
  const nginx = await startNginx(context, { location });
  const already = checks.length;
  const ask = async (secret) => (await send('GET', '/v1/shown', [...bearer(secret), 'Cookie', 'a=b'])).status;

  assert.equal(await ask('good'), 200);
  assert.equal(await ask('unknown'), 401);
  assert.equal(await ask('good'), 200);
  const targets = checks.slice(already).map(({ target }) => target.trim());
  const withIt = (secret) => `/v1/shown Bearer ${secret} a=b`;
  assert.deepEqual(targets, ['/v1/shown', withIt('good'), withIt('unknown'), withIt('good')]);
  await nginx.stop();
});

test('what cannot protect is refused by nginx -t', () => {
  const scope = 'chatelaine_scope read=patients:read;';
  const cases = [
    [`location /v1/x { chatelaine_check off; ${scope} }`, /chatelaine_scope without chatelaine_check protects nothing, in location "\/v1\/x"/],
    ['location /v1/x { chatelaine_check /_nowhere; }', /"\/_nowhere" of location "\/v1\/x": its server has no "location = \/_nowhere \{ internal; ... \}"/],
    ['location /v1/x { chatelaine_check /_open; } location = /_open { return 401; }', /its server has no "location = \/_open/],
    ['location /v1/x { chatelaine_check /_wide; } location /_wide { internal; return 401; }', /its server has no "location = \/_wide/],
    ['location /v1/x { chatelaine_check /_wide/x; } location /_wide { internal; return 401; }', /its server has no "location = \/_wide\/x/],
    ['location /v1/x { chatelaine_check /_check?a; }', /its server has no "location = \/_check\?a/],
    ['} server { listen 127.0.0.1:1; chatelaine_check /_check;', /of location "": its server has no "location = \/_check/],
    [`} server { listen 127.0.0.1:1; location /v1/x { ${scope} }`, /chatelaine_scope without chatelaine_check/],
  ];

  for (const [location, expected] of cases) refusedByNginx({ location }, expected);
});

// What a client says of itself, in headers of all makers.
const SAID = [
  ...['X-Auth-Account', 'X-Auth-Role', 'X-Auth-Anything', 'X-Authentik-Username', 'Remote-User', 'X-Remote-Group', 'X-WebAuth-User'],
  ...['X-HTTP-Method-Override', 'X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Ssl'],
  ...['X-Forwarded-Tls-Client-Cert', 'SSL-Client-Verify', 'Forwarded', 'X-Real-IP', 'CF-Connecting-IP', 'X-Host', 'Proxy'],
];
const KEPT = { accept: 'a/b', 'content-type': 'text/x', 'x-own': 'c', 'user-agent': 'd', traceparent: 'e', origin: 'https://f' };
const FORGERY = [...SAID.flatMap((name) => [name, 'forged']), 'X-Request-Id', 'mine', ...Object.entries(KEPT).flat()];
/** got: by names in lower case. */
function isTold(got, expected, way) {
  assert.deepEqual(Object.entries(got).filter(([, value]) => /forged|a=b|mine|Bearer/.test(value)), [], way);
  for (const [name, value] of Object.entries({ ...KEPT, ...expected })) assert.equal(got[name], value, `${way}: ${name}`);
}
const lowered = (params) =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name.replace(/^HTTP_/, '').toLowerCase().replaceAll('_', '-'), value]));
const ofNode = { 'x-auth-account': 'acct_node', 'x-auth-principal': 'key_node', 'x-request-id': 'req_node' };
const ofTable = { 'x-auth-account': 'acct_01j80000000000000000000001', 'x-auth-mode': 'live' };

/** Tells what it got in the header that a client of gRPC can read here. */
async function startGrpc() {
  const server = http2.createServer((request, response) => {
    response.writeHead(200, { 'x-got': JSON.stringify(request.headers) });
    response.end();
  });
  server.port = await listen(server);
  return server;
}

test('on each way to a backend, it is told by the gateway alone', async (context) => {
  const [fastcgi, grpc] = [startFastcgi(), await startGrpc()];
  const scope = 'chatelaine_scope read=patients:read;';
  const port = await listen(fastcgi);
  const location = `
    location /v1/script { ${scope} fastcgi_pass 127.0.0.1:${port}; fastcgi_param SCRIPT_NAME x; fastcgi_param CONTENT_TYPE $content_type; }
    location /v1/grpc { ${scope} grpc_pass 127.0.0.1:${grpc.port}; }
    location /v1/bare { ${scope} proxy_set_header X-Bare 1; ${toBackend()} mirror /_mirror; }
    location = /_mirror { internal; proxy_set_header X-Bare 1; ${toBackend('/mirrored')} }`;
  const nginx = await startNginx(context, { location });

  context.after(() => [fastcgi, grpc].map((server) => server.close()));
  await serveTable('good');
  await hasTable();
  for (const [secret, expected] of [['good', ofNode], ['known', ofTable]]) {
    // With a cookie, a node is asked.
    const sent = [...FORGERY, ...(secret === 'good' ? ['Cookie', 'a=b'] : []), ...bearer(secret)];
    const ask = (path) => send('GET', path, sent);

    isTold(lowered((await ask('/v1/script/1')).json), expected, `FastCGI, ${secret}`);
    isTold(JSON.parse((await ask('/v1/grpc/1')).headers['x-got']), expected, `gRPC, ${secret}`);
    isTold((await ask('/v1/bare/1')).json.headers, expected, `HTTP, ${secret}`);
    await until('the mirror has it', async () => (await send('GET', '/v1/patients/open?last', [])).headers['x-last'] !== '{}');
    isTold(JSON.parse((await send('GET', '/v1/patients/open?last', [])).headers['x-last']), expected, `mirror, ${secret}`);
  }
  await nginx.stop();
});

test('whom another rule lets in without a check, nothing is told of', async (context) => {
  const location = `location /v1/inside { satisfy any; allow all; proxy_set_header X-Bare 1; ${toBackend()} }`;
  const nginx = await startNginx(context, { location });
  const { headers } = (await send('GET', '/v1/inside', FORGERY)).json;

  assert.deepEqual(Object.entries(headers).filter(([, value]) => value === 'forged'), []);
  await nginx.stop();
});

test('a request is counted once, however often nginx begins anew', async (context) => {
  mkdirSync(join(folder, 'files'), { recursive: true });
  writeFileSync(join(folder, 'files/x.json'), '{"headers":{}}');
  const location = `
    location /v1/files { chatelaine_scope read=patients:read; alias ${folder}/files; index x.json; }
    location /v1/tried { chatelaine_scope read=patients:read; try_files /nothing @tried; }
    location @tried { ${toBackend()} }`;
  const nginx = await startNginx(context, { location });
  const paths = ['/v1/files/', '/v1/tried/1', '/v1/patients?accel=/v1/patients/2', '/v1/patients?accel=/v1/exchanges'];

  await serveTable('good');
  await hasTable();
  assert.equal((await patients(bearer('good'))).status, 200);
  for (const path of paths) {
    const asked = checks.length;
    assert.equal((await send('GET', path, bearer('good'))).status, 200, path);
    assert.equal(checks.length - asked, 1, `${path}: asked once`);
    const uses = await table.tell('uses', 0);
    assert.equal((await send('GET', path, bearer('known'))).status, 200, path);
    assert.equal((await table.tell('uses', 0)) - uses, 1, `${path}: one use`);
    assert.equal(checks.length - asked, 1, `${path}: nobody is asked`);
  }
  await nginx.stop();
});

test('what nginx leads to another question is checked anew', async (context) => {
  const location = `
    location /v1/patients/strict { chatelaine_scope read=exchanges:read; ${toBackend()} }
    location /v1/else { chatelaine_check /_else; ${toBackend()} }
    location = /_else { internal; return 403; }`;
  const nginx = await startNginx(context, { location });
  const asked = checks.length;

  assert.equal((await patients(bearer('good'), '?accel=/v1/else')).status, 403);
  assert.equal((await patients(bearer('good'), '?accel=/v1/patients/strict')).status, 200);
  assert.ok(checks.length - asked >= 4, 'asked for each');
  await nginx.stop();
});

test('of one that was refused, nothing is remembered', async (context) => {
  const location = `location /v1/shown { error_page 401 =200 /v1/exchanges; ${toBackend()} }`;
  const nginx = await startNginx(context, { location });

  assert.equal((await send('GET', '/v1/shown', bearer('unknown'))).status, 401);
  assert.equal(from(await send('GET', '/v1/shown', bearer('good'))), 'node');
  await nginx.stop();
});
