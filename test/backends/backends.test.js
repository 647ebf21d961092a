// The middleware of docker/backends in front of a small service in each language, by the same requests: who is let in, how
// others are refused, and that nobody is while the node or its store cannot answer.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {once} from 'node:events';
import {copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, describe, test} from 'node:test';

import {Deployment, PATIENCE_MS, Session, ask, until} from '../support/deployment.js';

const {CHATELAINE_SOURCE, BACKEND_C} = process.env;
const EXAMPLES = join(CHATELAINE_SOURCE, 'docker/backends');
const SERVERS = join(CHATELAINE_SOURCE, 'test/backends');
const TIMEOUT = {timeout: 2 * PATIENCE_MS};
const REQUESTS = 1000;
const WORKERS = 8;
const BARE = 'Bearer realm="api"';
const UNKNOWN_KEY = `svc_sk_live_${'a'.repeat(39)}`;

// Keys go to the node and through no proxy, whatever the environment says.
process.env.http_proxy = 'http://127.0.0.1:9';
const JAVA = ['-XX:TieredStopAtLevel=1', '-Dhttp.proxyHost=127.0.0.1', '-Dhttp.proxyPort=9', '-Dhttp.nonProxyHosts='];

// Each returns what to start, or nothing if its language is not here.
const LANGUAGES = {
    'Express': () => [process.execPath, 'express.js'],
    'Fastify': () => [process.execPath, 'fastify.js'],
    'WSGI': () => has('python3') && ['python3', '-B', join(SERVERS, 'server.py'), 'wsgi'],
    'ASGI': () => has('python3') && ['python3', '-B', join(SERVERS, 'server.py'), 'asgi'],
    'net/http': () => has('go') && [buildGo()],
    'HttpServer': () => has('javac') && ['java', ...JAVA, '-cp', buildJava(), 'Server'],
    'C': () => BACKEND_C && [BACKEND_C],
};

const folder = mkdtempSync(join(tmpdir(), 'chatelaine-backends-'));
const socket = join(folder, 'check.sock');
const backends = {};
let pretender, deployment, session, key, other;

function has(program) {
    return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

function run(program, args, cwd, env = {}) {
    execFileSync(program, args, {cwd, env: {...process.env, ...env}, stdio: 'inherit'});
}

function buildGo() {
    const module = join(folder, 'go');

    mkdirSync(join(module, 'chatelaine'), {recursive: true});
    writeFileSync(join(module, 'go.mod'), 'module backends\n\ngo 1.19\n');
    copyFileSync(join(SERVERS, 'go/main.go'), join(module, 'main.go'));
    copyFileSync(join(EXAMPLES, 'go/chatelaine.go'), join(module, 'chatelaine/chatelaine.go'));
    run('go', ['build', '-o', 'server', '.'], module, {GOPROXY: 'off', GOTOOLCHAIN: 'local', CGO_ENABLED: '0'});
    return join(module, 'server');
}

function buildJava() {
    const classes = join(folder, 'java');

    run('javac', ['-Xlint:all', '-Werror', '-d', classes, join(EXAMPLES, 'java/Chatelaine.java'), join(SERVERS, 'java/Server.java')]);
    return classes;
}

// This server stands in for the node, on a Unix socket and on a port, and answers as the test tells it to.
class Pretender {
    socket = join(folder, 'pretender.sock');
    #servers = [http.createServer(), http.createServer()];

    async listen() {
        for (const server of this.#servers) server.on('request', (request, response) => this.answer(request, response));
        await once(this.#servers[0].listen(this.socket), 'listening');
        await once(this.#servers[1].listen(0, '127.0.0.1'), 'listening');
        this.url = `http://127.0.0.1:${this.#servers[1].address().port}`;
    }

    close() {
        for (const server of this.#servers) {
            server.close();
            server.closeAllConnections?.();
        }
    }
}

async function start(language, command, at) {
    const name = `${language.replace('/', '-')}-${at.socket === socket ? 'node' : 'pretender'}`;
    const backend = deployment.launch(name, command[0], [...command.slice(1), at.socket, at.url]);
    const log = () => readFileSync(backend.log, 'utf8');

    await until(`${language} listens`, () => {
        assert.equal(backend.exitCode, null, log());
        return /^\d+\n/.test(log());
    });
    backend.port = Number(log().split('\n', 1)[0]);
    backend.agent = new http.Agent({keepAlive: true, maxSockets: WORKERS});
    backend.said = log;
    return backend;
}

// Sends the path as it is. authorization: a value, or a list for a header that comes as often.
function send(backend, authorization, path = '/v1/patients/42', method = 'GET') {
    return new Promise((resolve, reject) => {
        const {port, agent} = backend;
        const headers = authorization ? {authorization} : {};
        const request = http.request({host: '127.0.0.1', port, agent, path, method, headers}, async (response) => {
            const text = (await response.setEncoding('utf8').toArray()).join('');

            resolve({status: response.statusCode, challenge: response.headers['www-authenticate'], json: JSON.parse(text), text});
        });

        // A server may close a kept connection while the request is under way.
        request.on('error', (error) => {
            if (request.reusedSocket && error.code === 'ECONNRESET') resolve(send(backend, authorization, path, method));
            else reject(error);
        });
        request.end();
    });
}

async function expectRefused(backend, wanted, ...request) {
    const {status, challenge, json, text} = await send(backend, ...request);
    const what = `${request.slice(1)}: ${text}`;

    assert.equal(status, wanted.status, what);
    assert.equal(json.error.code, wanted.code, what);
    assert.equal(challenge, wanted.challenge, what);
}

async function makeKey(scopes) {
    await session.stepUp();
    const {status, json, text} = await session.send('POST', '/v1/console/api_keys', {name: 'x', mode: 'live', scopes});

    assert.equal(status, 201, text);
    return json;
}

async function revoke({id}) {
    await session.stepUp();
    const {status, text} = await session.send('DELETE', `/v1/console/api_keys/${id}`);

    assert.equal(status, 200, text);
    return performance.now();
}

// Takes `what` for all that are here at once: what a test of the store or the node needs.
async function forAll(what) {
    await Promise.all(Object.values(backends).map(what));
}

describe('backends without a gateway', TIMEOUT, () => {
    before(async () => {
        // People use the first node, backends the second.
        const origin = 'https://console.test';
        const more = ['--check-socket', socket, '--idle-timeout-ms', '3s'];

        deployment = await Deployment.start([{origin}, {origin, more}]);
        session = await Session.open(deployment.nodes[0].url, deployment.addPerson());
        key = await makeKey(['patients:read', 'usage:read']);
        other = await makeKey(['audit:read']);
        await deployment.untilLeases();
        pretender = new Pretender();
        await pretender.listen();
    }, TIMEOUT);
    after(async () => {
        for (const {agent} of Object.values(backends)) agent.destroy();
        await deployment?.stop();
        pretender?.close();
        rmSync(folder, {recursive: true, force: true});
    }, TIMEOUT);

    for (const [language, command] of Object.entries(LANGUAGES)) {
        test(language, TIMEOUT, async (context) => {
            const words = command();

            if (!words) {
                context.skip('its language is not installed');
                return;
            }
            const backend = await start(language, words, {socket, url: deployment.nodes[1].internalUrl});

            backends[language] = backend;
            await letsIn(backend);
            await refuses(backend);
            await readsPathsAsTheNodeDoes(backend);
            await acceptsNothingAfterARevocation(backend);
            await believesNoPretender(await start(language, words, pretender));
            for (const secret of [key.secret, other.secret, UNKNOWN_KEY])
                assert.ok(!backend.said().includes(secret), 'a key in the log');
        });
    }

    test('a connection that the node has closed is noticed', TIMEOUT, async () => {
        await until('idle connections have ended', async () => {
            const {text} = await ask(deployment.nodes[1].internalUrl, 'GET', '/metrics');

            return text.includes('\nchatelaine_connections{listener="internal"} 1\n'); // the one that asks
        });
        await forAll(letsIn);
    });

    test('without the store, nobody is let in', TIMEOUT, async () => {
        deployment.pauseRedis();
        await forAll(async (backend) => {
            await until('503', async () => (await send(backend, `Bearer ${key.secret}`)).status === 503);
            await expectRefused(backend, {status: 503, code: 'store_unavailable'}, `Bearer ${key.secret}`);
        });
        deployment.resumeRedis();
        await forAll((backend) =>
            until('200', async () => (await send(backend, `Bearer ${key.secret}`)).status === 200),
        );
    });

    test('while the node does not answer, and once it was killed, nobody is let in', TIMEOUT, async () => {
        deployment.pauseNode(1);
        await forAll((backend) => expectRefused(backend, {status: 503, code: 'store_unavailable'}, `Bearer ${key.secret}`));
        await deployment.killNode(1);
        await forAll((backend) => expectRefused(backend, {status: 503, code: 'store_unavailable'}, `Bearer ${key.secret}`));
        await forAll((backend) => expectRefused(backend, {status: 401, code: 'missing_credentials', challenge: BARE}));
    });
});

async function letsIn(backend) {
    const {status, json, text} = await send(backend, `Bearer ${key.secret}`);

    assert.equal(status, 200, text);
    assert.deepEqual(json, {
        account: deployment.account,
        principal: key.id,
        kind: 'api_key',
        mode: 'live',
        scopes: ['patients:read', 'usage:read'],
    });
    assert.equal((await send(backend, `bearer  ${key.secret}`, '/v1/patients?at=http://a//b')).status, 200);
}

async function refuses(backend) {
    const bearer = `Bearer ${key.secret}`;
    const invalid = {status: 401, code: 'invalid_api_key', challenge: `${BARE}, error="invalid_token"`};
    const missing = {status: 401, code: 'missing_credentials', challenge: BARE};
    const scope = (name) => `${BARE}, error="insufficient_scope", scope="${name}"`;

    await expectRefused(backend, missing);
    await expectRefused(backend, missing, `Basic ${key.secret}`);
    await expectRefused(backend, missing, `Bearer ${'a'.repeat(300)}`);
    await expectRefused(backend, invalid, `Bearer ${UNKNOWN_KEY}`);
    await expectRefused(backend, invalid, `${bearer}x`);
    await expectRefused(backend, {status: 400, code: 'bad_request'}, [bearer, bearer]);
    await expectRefused(backend, {status: 400, code: 'bad_request'}, [`Bearer ${UNKNOWN_KEY}`, bearer]);
    const denied = {status: 403, code: 'insufficient_scope'};
    await expectRefused(backend, {...denied, challenge: scope('patients:read')}, `Bearer ${other.secret}`);
    await expectRefused(backend, {...denied, challenge: scope('patients:write')}, bearer, '/v1/patients', 'POST');
}

// A backend refuses a path that two programs might read differently, and checks every other path as the node reads it.
async function readsPathsAsTheNodeDoes(backend) {
    const bearer = `Bearer ${key.secret}`;
    const bad = {status: 400, code: 'bad_request'};

    for (const path of [
        '/v1/exchanges/../patients',
        '/v1/patients/..',
        '/v1/exchanges/..;/patients',
        '/v1/exchanges/..%2fpatients',
        '/v1/exchanges/%2e%2e/patients',
        '/v1/exchanges%5c..%5cpatients',
        '/v1//patients',
    ])
        await expectRefused(backend, bad, bearer, path);
    await expectRefused(backend, {status: 404, code: 'not_found'}, bearer, '/v1/nothing');
    // Some servers decode the path before they show it: then it is judged as the application sees it.
    const {status} = await send(backend, bearer, '/v1/exchanges%2f1');
    assert.ok([400, 403].includes(status), `an escaped slash: ${status}`);
}

// The requests are on their way all the time; one that began after the revocation was answered finds it.
async function acceptsNothingAfterARevocation(backend) {
    const victim = await makeKey(['patients:read']);
    const answers = [];
    let late = 0;
    let revokedMs = Infinity;
    let revocation;

    async function work() {
        while (answers.length < REQUESTS || late < REQUESTS / 10) {
            const beganMs = performance.now();
            const {status} = await send(backend, `Bearer ${victim.secret}`);

            answers.push({beganMs, status});
            late += beganMs > revokedMs;
            if (answers.length === REQUESTS / 4) revocation = revoke(victim).then((ms) => (revokedMs = ms));
        }
    }
    await Promise.all(Array.from({length: WORKERS}, work));
    await revocation;
    assert.deepEqual([...new Set(answers.map(({status}) => status))].sort(), [200, 401], backend.said());
    assert.ok(answers.filter(({status}) => status === 200).length >= REQUESTS / 4);
    assert.deepEqual(answers.filter(({beganMs, status}) => beganMs > revokedMs && status === 200), []);
    await expectRefused(backend, {status: 401, code: 'api_key_revoked', challenge: `${BARE}, error="invalid_token"`},
        `Bearer ${victim.secret}`);
}

// Only the whole, positive answer lets a request pass. A question whose connection ended is asked once more.
async function believesNoPretender(backend) {
    const who = {code: 'ok', kind: 'api_key', id: 'key_1', account_id: 'acct_1', mode: 'live', scopes: [], ends_at: null};
    const yes = JSON.stringify({valid: true, ...who});
    const bearer = `Bearer ${UNKNOWN_KEY}`;
    const answers = {
        'nothing': [200, ''],
        'no JSON': [200, `<p>"valid":true,</p>`],
        'more than JSON': [200, `x${yes}`],
        'a list': [200, `[${yes}]`],
        'no verdict': [200, JSON.stringify(who)],
        'a word': [200, JSON.stringify({valid: 'true', ...who})],
        'a number': [200, JSON.stringify({valid: 1, ...who})],
        'null': [200, JSON.stringify({valid: null, code: 'store_unavailable'})],
        'a refusal without status': [200, JSON.stringify({valid: false, code: 'x', message: 'x'})],
        'a refusal with 200': [200, JSON.stringify({valid: false, status: 200, code: 'x', message: 'x'})],
        'half of it': [200, yes.slice(0, 40)],
        'too much': [200, JSON.stringify({valid: true, ...who, padding: 'x'.repeat(100000)})],
        'an error': [500, yes],
        'not found': [404, yes],
        'created': [201, yes],
        'a redirect': [302, yes],
    };

    for (const [what, [status, body]] of Object.entries(answers)) {
        pretender.answer = (request, response) => {
            if (request.url !== '/check/verify') response.end(yes);
            else response.writeHead(status, {'Location': '/yes', 'Content-Length': Buffer.byteLength(body)}).end(body);
        };
        const {status: got, text} = await send(backend, bearer);
        assert.equal(got, 503, `${what}: ${text}`);
    }
    let hasEnded = false;
    pretender.answer = (request, response) => {
        const isKept = request.socket.wasUsed;

        request.socket.wasUsed = true;
        if (isKept && !hasEnded) {
            hasEnded = true;
            request.socket.destroy();
            return;
        }
        response.writeHead(200, {'Content-Length': yes.length}).end(yes);
    };
    for (let times = 0; times < 3; times++) assert.equal((await send(backend, bearer)).status, 200, backend.said());
    assert.ok(hasEnded, 'no connection was kept');
    backend.agent.destroy();
    backend.kill('SIGKILL');
}
