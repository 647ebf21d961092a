// A deployment of the test's own: a private durable Redis, one node of the real program, an account. Everything lies in a
// temporary folder and ends with stop().
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

export const ORIGIN = 'https://console.test';
export const PASSWORD = 'amber falcons drift at 42';
const STEP_MS = 30_000;
const PATIENCE_MS = 120_000; // for a machine that has other things to do

/** Asks again and again until `holds` says so; fails with `what` when patience ends. */
export async function until(what, holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`);
    await pause(20);
  }
}

function listens(where) {
  return new Promise((resolve) => {
    const socket = connect(where, () => resolve(true) || socket.destroy());
    socket.on('error', () => resolve(false));
  });
}

/** One request as it is written, on a connection of its own: {status, headers, body (text), json}. Headers are an object;
 * an array as a value is sent as several lines. */
export function send(base, { method = 'GET', path, headers = {}, body }) {
  const { hostname, port } = new URL(base);
  const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const options = {
      hostname,
      port,
      method,
      path,
      headers: { ...headers, ...length },
      agent: false,
      timeout: PATIENCE_MS,
    };
    const asked = request(options, (answer) => {
      const pieces = [];
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('error', reject);
      answer.on('end', () => {
        const bytes = Buffer.concat(pieces);
        const text = (answer.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString('utf8');
        const isJson = /^application\/([a-z.]+\+)?json/.test(answer.headers['content-type'] ?? '');
        resolve({
          status: answer.statusCode,
          headers: answer.headers,
          body: text,
          json: isJson && text ? JSON.parse(text) : undefined,
        });
      });
    });
    asked.on('timeout', () => asked.destroy(new Error(`${method} ${path}: no answer`)));
    asked.on('error', reject);
    asked.end(body);
  });
}

/** The same for what is no HTTP that a client library would write: bytes out, bytes in. */
export function sendBytes(base, bytes) {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect({ host: hostname, port }, () => socket.end(bytes));
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer')));
    socket.on('error', reject);
    socket.on('data', (piece) => (text += piece));
    socket.on('end', () => {
      const [head, body] = text.split('\r\n\r\n');
      const [first, ...lines] = head.split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
      );
      resolve({ status: Number(first.split(' ')[1]), headers, body, json: JSON.parse(body) });
    });
  });
}

function base32Decode(text) {
  let bits = 0n;
  for (const letter of text) bits = (bits << 5n) | BigInt('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter));
  const bytes = Math.floor((text.length * 5) / 8);
  return Buffer.from((bits >> BigInt((text.length * 5) % 8)).toString(16).padStart(2 * bytes, '0'), 'hex');
}

/** A person with an authenticator app (RFC 6238). A code counts once, and one step either side is accepted: the present one
 * and the next are at hand, and each stays good for half a minute at least. */
class Person {
  #secret;
  #lastStep = 0;

  constructor(email, totpUri) {
    this.email = email;
    this.#secret = base32Decode(new URL(totpUri).searchParams.get('secret'));
  }

  async freshCode() {
    const step = () => Math.floor(Date.now() / STEP_MS);
    const next = Math.max(step(), this.#lastStep + 1);
    await until('the next code', () => step() + 1 >= next);
    this.#lastStep = next;
    return this.lastCode();
  }

  lastCode() {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(this.#lastStep));
    const digest = createHmac('sha1', this.#secret).update(counter).digest();
    const offset = digest[19] & 15;
    return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0');
  }
}

export class Deployment {
  #folder = mkdtempSync(join(tmpdir(), 'chatelaine-openapi-'));
  #children = [];
  #account;

  static async start() {
    const made = new Deployment();
    try {
      await made.#begin();
      return made;
    } catch (error) {
      await made.stop();
      throw error;
    }
  }

  get folder() {
    return this.#folder;
  }

  #env() {
    return {
      ...process.env,
      CHATELAINE_REDIS: `unix:${join(this.#folder, 'redis.sock')}`,
      CHATELAINE_MASTER_KEY_FILE: join(this.#folder, 'master'),
    };
  }

  #run(...args) {
    return execFileSync(process.env.CHATELAINE_BINARY, args, { env: this.#env(), encoding: 'utf8' });
  }

  /** Starts a program that ends with the deployment; what it says goes into a file. Returns the file's path. */
  launch(name, program, args, options = {}) {
    const said = join(this.#folder, `${name}.log`);
    const child = spawn('sh', ['-c', 'exec "$0" "$@" >"$SAID" 2>&1', program, ...args], {
      ...options,
      stdio: 'ignore',
      env: { ...(options.env ?? process.env), SAID: said },
    });
    child.ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
    child.label = name;
    this.#children.push(child);
    return said;
  }

  async #begin() {
    const at = (name) => join(this.#folder, name);
    this.launch('redis', 'redis-server', [
      '--port',
      '0',
      '--unixsocket',
      at('redis.sock'),
      '--dir',
      this.#folder,
      '--appendonly',
      'yes',
      '--appendfsync',
      'always',
      '--maxmemory-policy',
      'noeviction',
      '--save',
      '',
    ]);
    await until('Redis listens', () => listens(at('redis.sock')));
    writeFileSync(at('master'), this.#run('master-key'), { mode: 0o600 });
    writeFileSync(at('password'), `${PASSWORD}\n`);
    this.#account = JSON.parse(this.#run('account', 'create', '--name', 'Nörd Clinic', '--json')).id;
    const log = this.launch(
      'node',
      process.env.CHATELAINE_BINARY,
      [
        'serve',
        '--listen',
        '127.0.0.1:0',
        '--internal-listen',
        '127.0.0.1:0',
        '--public-origin',
        ORIGIN,
        '--step-up-ms',
        '3600000',
        '--ready-file',
        at('ready'),
      ],
      { env: this.#env() },
    );
    await until('the node is ready', () => existsSync(at('ready')) || this.#failIfEnded('node', log));
    this.url = `http://${JSON.parse(readFileSync(at('ready'), 'utf8')).listen}`;
  }

  #failIfEnded(name, log) {
    const child = this.#children.find((one) => one.label === name);
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${readFileSync(log, 'utf8')}`);
    return false;
  }

  /** A user of the account, made by the command line. */
  addPerson(email) {
    const made = JSON.parse(
      this.#run(
        'user',
        'create',
        '--account',
        this.#account,
        '--email',
        email,
        '--password-file',
        join(this.#folder, 'password'),
        '--json',
      ),
    );
    return new Person(email, made.totp_uri);
  }

  /** A Redis that takes connections and never answers; and back again. */
  freezeStore(isFrozen) {
    this.#children.find((one) => one.label === 'redis').kill(isFrozen ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Ends everything, the node first: it must drain and end cleanly. */
  async stop() {
    let nodeExit = 0;
    for (const child of this.#children.reverse()) {
      child.kill('SIGTERM');
      child.kill('SIGCONT');
      const code = await child.ended;
      if (child.label === 'node') nodeExit = code;
    }
    const log = join(this.#folder, 'node.log');
    const said = nodeExit !== 0 && existsSync(log) ? readFileSync(log, 'utf8') : '';
    rmSync(this.#folder, { recursive: true });
    if (nodeExit !== 0) throw new Error(`the node ended with ${nodeExit}: ${said}`);
  }
}

/** A validating proxy in front of the node. Where it is strict, an answer that breaks the document comes out as 500. */
export async function startPrism(deployment, name, document, strict) {
  const port = await freePort();
  const log = deployment.launch(name, process.execPath, [
    'node_modules/@stoplight/prism-cli/dist/index.js',
    'proxy',
    document,
    deployment.url,
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    ...(strict ? ['--errors'] : []),
  ]);
  await until(`${name} listens: see ${log}`, () => listens({ host: '127.0.0.1', port }));
  return `http://127.0.0.1:${port}`;
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
