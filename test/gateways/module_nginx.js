// nginx with the module for its tests: the table comes from table_server, the node that is asked about the rest and the
// backend are a few lines here.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before } from 'node:test';
import { Deployment, freePort, listens, until } from '../support/deployment.js';
import { listen, startNode } from './stub_node.js';

const { NGINX_PROGRAM, NGINX_MODULE, TABLE_SERVER } = process.env;
// The sanitizers that the module was built with: they have to be loaded before it, because nginx has none.
const LD_PRELOAD = (spawnSync('ldd', [NGINX_MODULE]).stdout.toString().match(/\/\S*lib[au]b?san\S*/g) ?? []).join(':');
const READ = 1 << 2; // patients:read
const WRITE = 1 << 3; // patients:write
// What the table server makes of its first key and its third.
export const ACCOUNT = 'acct_01j80000000000000000000001';
const KEYS = [
  ['known', READ | WRITE, 'l'],
  ['reader', READ, '-'],
  ['device', 1 << 10, 'dl'],
];
export const NOT_TABLES = spawnSync(TABLE_SERVER, ['x', '?']).stdout.toString().trim().split('\n').filter((mode) => mode !== 'good');
export const SOMETIMES = 'flipping sets'; // a table, if one looks at the right moment
const REPORT = /AddressSanitizer|runtime error:|exited on signal|exited with code [^0]|\[alert\]/;

export let folder, deployment, table, node, backend, port, http2Port, checks;

/** Tells the client what it has got. On demand it sends nginx elsewhere, says what it was told, or what its mirror got. */
function startBackend() {
  let last = {};

  return http.createServer(async (request, response) => {
    const { searchParams: wanted } = new URL(request.url, 'http://backend');
    let bytes = 0;

    for await (const chunk of request) bytes += chunk.length;
    if (wanted.has('accel')) response.setHeader('X-Accel-Redirect', wanted.get('accel'));
    for (const name of ['x-auth-principal', 'x-request-id'])
      if (wanted.has('echo') && request.headers[name]) response.setHeader(name, request.headers[name]);
    if (request.url === '/mirrored') last = request.headers;
    if (wanted.has('last')) response.setHeader('X-Last', JSON.stringify(last));
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ method: request.method, url: request.url, bytes, headers: request.headers }));
  });
}

const tableServers = [];
process.once('exit', () => {
  for (const child of tableServers) child.kill('SIGKILL');
});
/** mode: of table_server. Ends the one before. */
export async function serveTable(mode, { keys = KEYS, as = [] } = {}) {
  await table?.end();
  const args = [...as, TABLE_SERVER, join(folder, 'run/table.sock'), mode, ...keys.flat().map(String)];
  const child = spawn(args[0], args.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  const next = async () => (await lines.next()).value;

  tableServers.push(child);
  assert.equal(await next(), 'ready');
  table = {
    async tell(...words) {
      child.stdin.write(`${words.join(' ')}\n`);
      return Number(await next());
    },
    async end() {
      child.stdin.end();
      await ended;
      table = undefined;
    },
  };
}

export const VARIABLES = 'account principal kind mode role scopes billable error request_id traceparent from'.split(' ');
// What is told of a refusal.
export const REFUSAL = 'status challenge retry_after allow transport'.split(' ');
function configuration({ workers = 1, table: words = 'deployment=test', more = '', location = '' } = {}) {
  const headers = VARIABLES.map((name) => `proxy_set_header X-${name.replace('_', '-')} $chatelaine_${name};`).join('\n');
  const log = VARIABLES.map((name) => `"${name}":"$chatelaine_${name}"`).join(',');

  return `load_module ${NGINX_MODULE};
daemon off; worker_processes ${workers}; pid ${folder}/pid; error_log ${folder}/error notice;
${process.getuid() === 0 ? 'user root;' : ''}
events {}
http {
  client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3;
  uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
  log_format told escape=json '{${log}}';
  access_log ${folder}/access told;
  large_client_header_buffers 4 16k;
  ${words === null ? '' : `chatelaine_table ${folder}/run/table.sock ${words};`}
  ${more}
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${http2Port} http2;
    client_max_body_size 1m;
    proxy_http_version 1.1;
    ${headers}
    chatelaine_check /_check;
    location /v1/patients {
      chatelaine_scope read=patients:read write=patients:write;
      error_page 403 = @denied;
      proxy_pass http://127.0.0.1:${backend.port};
      location /v1/patients/open { chatelaine_check off; proxy_pass http://127.0.0.1:${backend.port}; }
      location ~ /identifier$ { chatelaine_scope read=none; proxy_pass http://127.0.0.1:${backend.port}; }
    }
    location /v1/documents/ {
      chatelaine_scope write=documents:write;
      proxy_pass http://127.0.0.1:${backend.port};
    }
    location /v1/exchanges { proxy_pass http://127.0.0.1:${backend.port}; }
    location /v1/either {
      satisfy any; deny all;
      chatelaine_scope read=patients:read;
      proxy_pass http://127.0.0.1:${backend.port};
    }
    location /v1/both {
      deny all;
      chatelaine_scope read=patients:read;
      proxy_pass http://127.0.0.1:${backend.port};
    }
    location /v1/moved {
      chatelaine_scope read=patients:read;
      try_files /nothing @moved;
    }
    location /v1/rewritten { rewrite ^ /v1/patients/1 last; }
    location @moved { chatelaine_check off; proxy_pass http://127.0.0.1:${backend.port}; }
    location @denied { chatelaine_check off; add_header X-Error $chatelaine_error always; ${REFUSAL.map((name) => `add_header X-${name.replace('_', '-')} $chatelaine_${name} always;`).join(' ')} return 403; }
    location = /_check {
      internal;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-Method $request_method;
      proxy_set_header X-Original-URI $request_uri;
      proxy_pass http://127.0.0.1:${node.port}/check/auth-request;
    }
    ${location}
  }
}`;
}
function writeConfiguration(options) {
  writeFileSync(join(folder, 'conf'), configuration(options));
}
export async function startNginx(context, options) {
  rmLogs();
  writeConfiguration(options);
  // nginx leaves its own arrays behind when it ends, so leaks are looked for as descriptors and mappings.
  const env = [`LD_PRELOAD=${LD_PRELOAD}`, 'ASAN_OPTIONS=detect_leaks=0'];
  const child = deployment.launch('nginx', 'env', [...env, NGINX_PROGRAM, '-e', `${folder}/error`, '-c', `${folder}/conf`]);

  context.after(() => child.kill('SIGTERM'));
  await until('nginx listens', () => listens({ host: '127.0.0.1', port }));
  // The master listens before it starts them: the workers, and the two keepers of a cache.
  await until('nginx has its processes', () => children().length === expectedChildren(options));
  return {
    child,
    async reload(changed) {
      const replaced = children();
      const isNew = (pid) => !replaced.includes(pid);

      writeConfiguration(changed);
      child.kill('SIGHUP');
      await until('new processes', () => children().length === expectedChildren(changed) && children().every(isNew));
    },
    async stop(signal = 'SIGQUIT') {
      child.kill(signal);
      await child.ended;
      const said = readFileSync(child.log, 'utf8') + errors(); // nginx turns its standard error to its log

      assert.equal(child.exitCode, 0, said);
      assert.doesNotMatch(said, REPORT);
    },
  };
}
function rmLogs() {
  for (const name of ['error', 'access']) writeFileSync(join(folder, name), '');
}
const errors = () => readFileSync(join(folder, 'error'), 'utf8');
export const told = () => errors().match(/^.*chatelaine: .*$/gm) ?? [];
const expectedChildren = ({ workers = 1, more = '' } = {}) => workers + (more.includes('proxy_cache_path') ? 2 : 0);
/** The workers come first. None, as long as the master has not written which process it is. */
export function children() {
  const path = join(folder, 'pid');
  const master = existsSync(path) && readFileSync(path, 'utf8').trim();

  return master ? readFileSync(`/proc/${master}/task/${master}/children`, 'utf8').trim().split(' ').filter(Boolean) : [];
}
export const descriptors = (pid) => readdirSync(`/proc/${pid}/fd`).length;
/** It may have a connection more than `limit` for a moment: a client has its answer before it is closed. */
export const keepsNoMore = (pid, limit, what) => until(`${what}: at most ${limit} descriptors`, () => descriptors(pid) <= limit);
export const mappings = (pid) => readFileSync(`/proc/${pid}/maps`, 'utf8').match(/memfd:/g)?.length ?? 0;

/** headers: a flat list. */
export function send(method, path, headers = [], body = '') {
  return new Promise((resolve, reject) => {
    const all = ['Host', 'gateway', ...headers, ...(body ? ['Content-Length', String(body.length)] : [])];
    const request = http.request({ host: '127.0.0.1', port, method, path, headers: all, agent: false }, async (response) => {
      let text = '';

      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode, headers: response.headers, json: text.startsWith('{') ? JSON.parse(text) : undefined });
    });

    request.on('error', reject);
    request.end(body);
  });
}
export const bearer = (secret) => ['Authorization', `Bearer ${secret}`];
export const from = (answer) => answer.json?.headers['x-from'];
export const knows = async (secret = 'known') => from(await send('GET', '/v1/patients', bearer(secret))) === 'table';
/** The last one that was served: one before may be used for a second, until its lease is over. */
export const hasTable = () => until('the table is used', async () => (await table.tell('clients')) > 0 && (await knows()));

/** For each file of tests, once. */
export function useNginx() {
  before(async () => {
    deployment = new Deployment();
    folder = deployment.folder;
    mkdirSync(join(folder, 'run'));
    chmodSync(folder, 0o755);
    [port, http2Port] = [freePort(), freePort()];
    checks = [];
    [node, backend] = [startNode(checks), startBackend()];
    node.port = await listen(node);
    backend.port = await listen(backend);
  });
  after(async () => {
    node.close();
    backend.close();
    await table?.end();
    await deployment.stop();
  });
}
/** nginx -t does not take such a configuration, and says why. */
export function refusedByNginx(options, expected) {
  writeConfiguration(options);
  const { status, stderr } = spawnSync(NGINX_PROGRAM, ['-t', '-e', `${folder}/error`, '-c', `${folder}/conf`], {
    env: { ...process.env, LD_PRELOAD, ASAN_OPTIONS: 'detect_leaks=0' },
  });

  assert.notEqual(status, 0, String(expected));
  assert.match(String(stderr) + errors(), expected);
}
