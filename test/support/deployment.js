// The deployment for tests on Node.js: a private durable Redis, nodes of the real program, an account, and people with an
// authenticator app. It lives in a temporary folder and ends with stop().
import {execFileSync, spawn, spawnSync} from 'node:child_process';
import {createHmac, randomBytes} from 'node:crypto';
import {closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {connect} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as pause} from 'node:timers/promises';

export const PASSWORD = 'amber falcons drift at 42';
export const PATIENCE_MS = 120000; // for a machine that has other things to do
const TOTP_STEP_MS = 30000;
const STEP_UP_MS = 240000; // it is valid for five minutes
const REDIS_TIMEOUT = ['--redis-timeout-ms', '5s']; // more than by default: a busy disk holds Redis up
process.env.CHATELAINE_TEST_PASSWORD_COST ??= '10'; // see quick_password.c
const REPORT = /AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:/;

// Calls holds() until it is true; fails with `what` if that takes too long.
export async function until(what, holds) {
    const end = Date.now() + PATIENCE_MS;

    while (!(await holds())) {
        if (Date.now() > end) throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`);
        await pause(20);
    }
}

// where: see net.connect().
export async function listens(where) {
    return await new Promise((resolve) => {
        const socket = connect(where, () => {
            socket.destroy();
            resolve(true);
        });

        socket.on('error', () => resolve(false));
    });
}

export function freePort() {
    return Number(execFileSync(join(process.env.CHATELAINE_SOURCE, 'test/support/free-port')));
}

// Returns {status, headers, text, json}; follows no redirect.
export async function ask(base, method, path, {headers = {}, json} = {}) {
    const response = await fetch(base + path, {
        method,
        headers: {...headers, ...(json && {'Content-Type': 'application/json'})},
        body: json && JSON.stringify(json),
        redirect: 'manual',
    });
    const text = await response.text();

    return {
        status: response.status,
        headers: response.headers,
        text,
        json: text.startsWith('{') ? JSON.parse(text) : undefined,
    };
}

function base32(text) {
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
    const bits = [...text].map((letter) => letters.indexOf(letter).toString(2).padStart(5, '0')).join('');

    return Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
}

// Someone with an authenticator app (RFC 6238). A code is accepted once, one step early or late.
export class Person {
    #secret;
    #lastStep = 0;
    #forgetCodes;

    // forgetCodes: makes the store forget which codes were used. Without it, whoever is out of codes waits for the next.
    constructor(email, totpUri, forgetCodes) {
        this.email = email;
        this.#forgetCodes = forgetCodes;
        this.#secret = base32(new URL(totpUri).searchParams.get('secret'));
    }

    async freshCode() {
        const now = () => Math.floor(Date.now() / TOTP_STEP_MS);
        let next = Math.max(now(), this.#lastStep + 1); // not the one before: it may end before it is looked at

        if (this.#forgetCodes && now() + 1 < next) {
            this.#forgetCodes();
            next = now();
        }
        await until('the next code', () => now() + 1 >= next);
        this.#lastStep = next;
        return this.lastCode();
    }

    // The app shows codes of another secret from now on.
    renew(totpUri) {
        this.#secret = base32(new URL(totpUri).searchParams.get('secret'));
        this.#lastStep = 0;
    }

    // Seconds until the app shows an unused code.
    nextCodeInS() {
        return ((this.#lastStep + 1) * TOTP_STEP_MS - Date.now()) / 1000;
    }

    lastCode() {
        const counter = Buffer.alloc(8);

        counter.writeBigUInt64BE(BigInt(this.#lastStep));
        const digest = createHmac('sha1', this.#secret).update(counter).digest();
        const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;

        return String(number % 1000000).padStart(6, '0');
    }
}

// A signed-in person, without a browser.
export class Session {
    #base;
    #person;
    #headers = {};
    #stepUpEndsMs = 0;

    static async open(base, person) {
        const session = new Session();

        session.#base = base;
        session.#person = person;
        session.email = person.email;
        const login = await session.#prove('/v1/auth/login', {email: person.email});
        session.#headers['X-CSRF-Token'] = login.json.csrf_token;
        return session;
    }

    async #prove(path, more) {
        const json = {...more, password: PASSWORD, totp: await this.#person.freshCode()};
        const answer = await this.send('POST', path, json);

        if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`);
        this.#headers.Cookie = answer.headers.get('set-cookie').split(';')[0];
        return answer;
    }

    async send(method, path, json) {
        return await ask(this.#base, method, path, {headers: this.#headers, json});
    }

    // Does nothing while a step-up is valid.
    async stepUp() {
        if (Date.now() < this.#stepUpEndsMs) return;
        await this.#prove('/v1/console/step_up', {});
        this.#stepUpEndsMs = Date.now() + STEP_UP_MS;
    }
}

export class Deployment {
    folder = mkdtempSync(join(tmpdir(), 'chatelaine-node-'));
    // Each is {url, internalUrl}.
    nodes = [];
    #children = [];
    #people = 0;
    #redis;

    // nodes: each is {origin, port, more}. Without port, a free one; more: arguments of `chatelaine serve`.
    static async start(nodes) {
        const made = new this();

        try {
            await made.#begin(nodes);
            return made;
        } catch (error) {
            await made.stop();
            throw error;
        }
    }

    async #begin(nodes) {
        const args = `--port 0 --unixsocket ${this.redisSocket} --dir ${this.folder} --appendonly yes --appendfsync always`;

        this.#redis = this.launch('redis', 'redis-server', [
            ...`${args} --maxmemory-policy noeviction --save`.split(' '),
            '',
        ]);
        await until('Redis listens', () => listens(this.redisSocket));
        writeFileSync(this.#path('master.key'), randomBytes(32).toString('hex'), {mode: 0o600});
        writeFileSync(this.#path('password'), PASSWORD, {mode: 0o600});
        this.account = this.addAccount('Köln Clinic');
        for (const node of nodes) this.nodes.push(await this.#startNode(node));
    }

    #path(name) {
        return join(this.folder, name);
    }

    get redisSocket() {
        return this.#path('redis.sock');
    }

    get #store() {
        const redis = ['--redis', `unix:${this.redisSocket}`, ...REDIS_TIMEOUT];

        return [...redis, '--master-key-file', this.#path('master.key')];
    }

    // A program that ends with the deployment: a child process, with {name, log (a path), ended (a promise)}.
    launch(name, program, args) {
        const log = this.#path(`${name}.log`);
        const output = openSync(log, 'w');
        const child = spawn(program, args, {stdio: ['ignore', output, output]});
        const kill = () => child.kill('SIGKILL');

        closeSync(output);
        process.once('exit', kill);
        const ended = new Promise((resolve) => {
            child.once('error', resolve);
            child.once('exit', resolve);
        }).finally(() => process.off('exit', kill));

        this.#children.push(Object.assign(child, {name, log, ended}));
        return child;
    }

    async #startNode({origin, port = 0, more = []}) {
        const name = `node${this.nodes.length}`;
        const ready = this.#path(`${name}.ready`);
        const listen = ['--listen', `127.0.0.1:${port}`, '--internal-listen', '127.0.0.1:0', '--ready-file', ready];
        // Sanitizers mark the cache's memory, used or not.
        const small = ['--drain-ms', '400', '--cache-entries', '20000'];
        const args = ['serve', ...this.#store, '--public-origin', origin, ...small, ...listen, ...more];
        const node = this.launch(name, process.env.CHATELAINE_BINARY, args);

        node.isNode = true;
        await until('the node is ready', () => existsSync(ready) || node.exitCode !== null || node.signalCode !== null);
        if (!existsSync(ready)) throw new Error(`${name} has ended: ${readFileSync(node.log, 'utf8')}`);
        const at = JSON.parse(readFileSync(ready, 'utf8'));

        return {url: `http://${at.listen}`, internalUrl: `http://${at.internal_listen}`};
    }

    #run(...words) {
        const args = [...words, ...this.#store, '--json'];

        return JSON.parse(execFileSync(process.env.CHATELAINE_BINARY, args, {encoding: 'utf8'}));
    }

    // Its id.
    addAccount(name) {
        return this.#run('account', 'create', '--name', name).id;
    }

    // what: 'suspend' or 'resume'.
    changeAccount(what, account = this.account) {
        this.#run('account', what, account);
    }

    addPerson({account = this.account, role = 'owner'} = {}) {
        this.#people += 1;
        const email = `ada${this.#people}@example.org`;
        const options = ['--account', account, '--email', email, '--role', role];
        const password = ['--password-file', this.#path('password'), '--permanent-password'];

        return this.personOf(email, this.#run('user', 'create', ...options, ...password).totp_uri);
    }

    // Somebody whose authenticator was set up otherwise.
    personOf(email, totpUri) {
        return new Person(email, totpUri);
    }

    // What `chatelaine audit verify` finds in these files. It says that nothing is wrong or missing if its exit status
    // is 0.
    verifyAudit(...files) {
        const keys = ['--master-key-file', this.#path('master.key')];
        const args = ['audit', 'verify', '--redis', `unix:${this.redisSocket}`, ...keys, '--json', ...files];
        const {status, stdout, stderr} = spawnSync(process.env.CHATELAINE_BINARY, args, {encoding: 'utf8'});

        if (!stdout) throw new Error(`audit verify: ${status} ${stderr}`);
        return {status, ...JSON.parse(stdout)};
    }

    tellRedis(...command) {
        execFileSync('redis-cli', ['-s', this.redisSocket, ...command]);
    }

    // Until each node has a lease, and so is in the registry: whoever revokes asks those who are there.
    async untilLeases() {
        for (const {internalUrl} of this.nodes)
            await until('the node has a lease', async () =>
                (await ask(internalUrl, 'GET', '/metrics')).text.includes('\nchatelaine_lease_held 1\n'),
            );
    }

    // A paused Redis accepts connections and never answers.
    pauseRedis() {
        this.#redis.kill('SIGSTOP');
    }

    resumeRedis() {
        this.#redis.kill('SIGCONT');
    }

    #node(number) {
        return this.#children.find(({name}) => name === `node${number}`);
    }

    // A paused node accepts connections and never answers.
    pauseNode(number) {
        this.#node(number).kill('SIGSTOP');
    }

    // stop() does not ask how it ended.
    async killNode(number) {
        const node = this.#node(number);

        node.isNode = false;
        node.kill('SIGKILL');
        await node.ended;
    }

    // Ends the nodes, in the order in which they began. Throws as stop() does.
    async stopNodes() {
        await this.#end(this.#children.filter(({isNode}) => isNode));
    }

    // Ends everything, nodes before Redis. Throws if a node did not drain and end cleanly, or if a sanitizer
    // reported something.
    async stop() {
        this.#redis?.kill('SIGCONT');
        try {
            await this.#end(this.#children.splice(0).reverse());
        } finally {
            rmSync(this.folder, {recursive: true, force: true});
        }
    }

    async #end(children) {
        const complaints = [];

        for (const child of children) {
            const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);

            child.kill('SIGTERM');
            await child.ended;
            clearTimeout(patience);
            const said = readFileSync(child.log, 'utf8');
            if (child.isNode && (child.exitCode !== 0 || REPORT.test(said)))
                complaints.push(`${child.name} ended with ${child.exitCode ?? child.signalCode}: ${said}`);
        }
        if (complaints.length) throw new Error(complaints.join('\n'));
    }
}
