// Clients that keep their connections and repeat nothing, for scripts/gateways --rolling. Each of them sends one request after
// the other over one connection. So each request must be answered, with the right verdict.
//   keep_alive.js FOLDER NAME=URL[,URL…]…   NAME is a gateway; with several URLs, nodes: their public listeners, or, if NAME
//                                           is "checks", their internal ones, which are asked as a gateway asks
// FOLDER/credentials.json has the secrets. FOLDER/round is the number of a round; once every client has had ANSWERS answers
// in it, FOLDER/round.NUMBER is there. FOLDER/enough ends all; then what was wrong goes to standard error, and a line for
// each NAME to standard output. Exit status 1 if anything was wrong.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';

const ANSWERS = 10; // of each client in each round
const PAUSE_MS = 60;
const PATIENCE_MS = 60000; // less than the script has for a round
const [folder, ...targets] = process.argv.slice(2);
const secret = JSON.parse(readFileSync(join(folder, 'credentials.json'), 'utf8'));
const wrong = [];

/** A connection, and a new one once that is closed: to the next node, if there is no gateway. */
class Client {
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  #urls;
  answers = { all: 0, inRound: 0, unavailable: 0, connections: 0, longest_ms: 0 };

  constructor(name, urls, first) {
    this.name = name;
    this.#urls = [...urls.slice(first), ...urls.slice(0, first)];
  }

  #exchange(method, path, headers, body) {
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(path, this.#urls[0]), { method, headers, agent: this.#agent });

      request.on('socket', () => (this.answers.connections += request.reusedSocket ? 0 : 1));
      request.on('error', reject);
      request.setTimeout(PATIENCE_MS, () => request.destroy(new Error(`no answer within ${PATIENCE_MS / 1000} s`)));
      request.on('response', async (response) => {
        let text = '';

        try {
          for await (const chunk of response) text += chunk;
          text += response.headers['x-auth-principal'] ?? '';
          resolve({ status: response.statusCode, text, isLast: response.headers.connection === 'close' });
        } catch (error) {
          reject(error);
        }
      });
      request.end(body);
    });
  }

  async #send(...what) {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#exchange(...what);

        if (answer.isLast) this.#next();
        return answer;
      } catch (error) {
        this.#next();
        // Nobody has got it. A gateway always listens.
        if (error.code !== 'ECONNREFUSED' || attempt === this.#urls.length) return { status: 0, text: String(error.message) };
      }
    }
  }

  #next() {
    this.#urls.push(this.#urls.shift());
  }

  /** verdicts: the statuses that are right, each with what its body must have. Returns the status. */
  async ask(method, path, key, verdicts, body) {
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    const json = body && { 'Content-Type': 'application/json', 'Content-Length': body.length };
    const what =
      this.name === 'checks'
        ? ['GET', '/check/forward-auth', { ...headers, 'X-Forwarded-Method': method, 'X-Forwarded-Uri': path }]
        : [method, path, { ...headers, ...json }, body];

    await pause(PAUSE_MS * (0.5 + Math.random()));
    await turn(); // what the other side has closed meanwhile is noticed
    const began = performance.now();
    const answer = await this.#send(...what);

    this.answers.all += 1;
    this.answers.inRound += 1;
    this.answers.unavailable += answer.status === 503 ? 1 : 0;
    this.answers.longest_ms = Math.max(this.answers.longest_ms, performance.now() - began);
    if (!(answer.status in verdicts && answer.text.includes(verdicts[answer.status])))
      wrong.push(`${this.name}: ${method} ${path}: ${answer.status} ${answer.text.slice(0, 300)}`);
    return answer;
  }
}

/** The requests that each client of a target repeats, with the responses they must get. path: a backend's, if there is one. */
const CONSTANT = (path) => [
  ['GET', path, secret.LIVE, { 200: secret.LIVE_ID }],
  ['GET', path, secret.TEST, { 200: secret.TEST_ID }],
  ['GET', path, secret.REVOKED, { 401: 'api_key_revoked' }],
  ['GET', path, undefined, { 401: 'missing_credentials' }],
  ['GET', '/v1/nothing', secret.LIVE, { 404: 'not_found' }],
];
const OF_BACKENDS = [
  ['POST', '/v1/patients', secret.READ, { 403: 'insufficient_scope' }, '{}'],
  ['POST', '/v1/patients', secret.LIVE, { 200: secret.LIVE_ID }, '{}'],
];
/** A change may be told that its node is about to end: then it has done nothing. When Caddy cannot connect to a node, it has
 * closed the body that it would send to the next one (2.6; caddyserver/caddy #7546), and says 503 itself. */
const tooLate = (name) => ({ 503: name === 'caddy' ? '"api_error"' : 'shutting_down' });

/** Makes a key, uses it, revokes it: from then on, no node may accept it. */
async function liveShort(client, path) {
  const made = await client.ask('POST', '/v1/api_keys', secret.LIVE, { 201: '"secret"', ...tooLate(client.name) }, '{"name":"short","mode":"live"}');
  if (made.status !== 201) return;
  const key = JSON.parse(made.text);

  await client.ask('GET', path, key.secret, { 200: key.id });
  const gone = await client.ask('DELETE', `/v1/api_keys/${key.id}`, secret.LIVE, { 200: 'revoked_at', ...tooLate(client.name) });
  for (let times = 1; gone.status === 200 && times <= 3; times++) await client.ask('GET', path, key.secret, { 401: 'api_key_revoked' });
}

const isEnough = () => existsSync(join(folder, 'enough'));
async function repeat(client, act) {
  try {
    while (!isEnough()) await act(client);
  } catch (error) {
    wrong.push(`${client.name}: ${error.stack}`);
  }
}

const clients = [], running = [];
for (const target of targets) {
  const [name, list] = target.split('=');
  const urls = list.split(',');
  const path = urls.length === 1 || name === 'checks' ? '/v1/patients/1' : '/v1/whoami';
  const acts = [...CONSTANT(path), ...(path === '/v1/whoami' ? [] : OF_BACKENDS)].map((asked) => (client) => client.ask(...asked));

  if (name !== 'checks') acts.push((client) => liveShort(client, path));
  for (const [number, act] of acts.entries()) {
    const client = new Client(name, urls, number % urls.length);

    clients.push(client);
    running.push(repeat(client, act));
  }
}

/** Tells when every client has had its answers of a round. */
async function tellRounds() {
  for (let round; !isEnough(); await pause(20)) {
    const told = readFileSync(join(folder, 'round'), 'utf8').trim();

    if (told !== round) for (const { answers } of clients) answers.inRound = 0;
    round = told;
    if (clients.every(({ answers }) => answers.inRound >= ANSWERS)) writeFileSync(join(folder, `round.${round}`), '');
  }
}
await Promise.all([tellRounds(), ...running]);
for (const name of new Set(clients.map((client) => client.name))) {
  const of = clients.filter((client) => client.name === name).map(({ answers }) => answers);
  const sum = (what) => of.reduce((all, answers) => all + answers[what], 0);
  const longest = Math.max(...of.map(({ longest_ms: ms }) => ms)) / 1000;

  console.log(`${name}: ${sum('all')} requests over ${sum('connections')} connections, ${sum('unavailable')} told 503, the longest took ${longest.toFixed(2)} s`);
}
for (const words of wrong) console.error(words);
process.exit(wrong.length > 0 ? 1 : 0);
