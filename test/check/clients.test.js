// Clients in three languages check keys by the table of a real node: each asks over HTTP first, then finds the key in
// the table, and no longer once its revocation was answered.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {after, before, test} from 'node:test';

import {Deployment, Session, until} from '../support/deployment.js';

const {CHATELAINE_SOURCE, CHECK_CLIENT} = process.env;
const folder = mkdtempSync(join(tmpdir(), 'chatelaine-check-'));
const socket = join(folder, 'table.sock');
const TIMEOUT = {timeout: 240000};
const LANGUAGES = {
    'C': [CHECK_CLIENT],
    'Python': ['python3', join(CHATELAINE_SOURCE, 'test/check/client.py')],
    'Node.js': [process.execPath, 'client.js'],
};

let deployment, session;

before(async () => {
    deployment = await Deployment.start([{origin: 'https://console.test', more: ['--table', socket]}]);
    session = await Session.open(deployment.nodes[0].url, deployment.addPerson());
}, TIMEOUT);
after(async () => {
    await deployment?.stop();
    rmSync(folder, {recursive: true, force: true});
}, TIMEOUT);

class Client {
    #child;
    #lines;
    said = '';

    constructor([program, ...args], path = socket) {
        const {port} = new URL(deployment.nodes[0].internalUrl);

        this.#child = spawn(program, [...args, path, port], {stdio: ['pipe', 'pipe', 'pipe']});
        this.#child.stderr.on('data', (data) => (this.said += data));
        this.#lines = createInterface({input: this.#child.stdout})[Symbol.asyncIterator]();
    }

    // What it says of a request with that key.
    async decide(secret) {
        this.#child.stdin.write(`${secret}\n`);
        const {value} = await this.#lines.next();
        assert.ok(value, 'the client has ended');
        const [by, status, account, principal] = value.split(' ');

        return {by, status: Number(status), account, principal};
    }

    async untilDecidedBy(by, secret) {
        let decision;

        await until(`a decision by ${by}`, async () => {
            decision = await this.decide(secret);
            return decision.by === by;
        });
        return decision;
    }

    async end() {
        this.#child.stdin.end();
        const [code] = this.#child.exitCode === null ? await once(this.#child, 'exit') : [this.#child.exitCode];
        assert.equal(code, 0);
    }

    kill() {
        this.#child.kill('SIGKILL');
    }
}

async function makeKey(scopes) {
    await session.stepUp();
    const {status, json, text} = await session.send('POST', '/v1/console/api_keys', {name: 'x', mode: 'live', scopes});

    assert.equal(status, 201, text);
    return json;
}

for (const [language, command] of Object.entries(LANGUAGES)) {
    test(`a client in ${language}`, TIMEOUT, async (context) => {
        const client = new Client(command);
        context.after(() => client.kill());
        const key = await makeKey(['patients:read', 'audit:read']);
        const other = await makeKey(['audit:read']);

        const first = await client.decide(key.secret);
        assert.deepEqual(first, {by: 'http', status: 200, account: deployment.account, principal: key.id});
        const second = await client.untilDecidedBy('table', key.secret);
        assert.deepEqual(second, {...first, by: 'table'});

        // What the table does not accept, the node decides, and it refuses.
        for (let times = 0; times < 5; times++) {
            assert.equal((await client.decide(other.secret)).status, 403, 'without the scope');
            assert.equal((await client.decide(`${key.secret}x`)).status, 401, 'no key');
        }
        await client.untilDecidedBy('table', key.secret);

        await session.stepUp();
        const answer = await session.send('DELETE', `/v1/console/api_keys/${key.id}`);
        assert.equal(Math.floor(answer.status / 100), 2, answer.text);
        const {by, status} = await client.decide(key.secret);
        assert.deepEqual({by, status}, {by: 'http', status: 401}, 'a key that was revoked');
        await client.end();
    });

    test(`a client in ${language} that reaches no table`, TIMEOUT, async (context) => {
        const client = new Client(command, '/nowhere/table.sock');
        context.after(() => client.kill());
        const key = await makeKey(['patients:read']);

        for (let times = 0; times < 3; times++) {
            const {by, status} = await client.decide(key.secret);
            assert.deepEqual({by, status}, {by: 'http', status: 200});
        }
        await client.end();
        assert.match(client.said, /no table: the node's socket cannot be reached/);
    });
}
