// What the pages are tested against: a private durable Redis and the real program, in a temporary folder that ends with
// stop(). The node is served at http://localhost:PORT: to browsers that is a secure context, so that they keep the
// cookie.
import {execFileSync, spawn} from 'node:child_process';
import {createHmac, randomBytes} from 'node:crypto';
import {existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as pause} from 'node:timers/promises';

export const PASSWORD = 'amber falcons drift at 42';
const STEP_MS = 30000;
const PATIENCE_MS = 30000;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export async function until(what, holds) {
    const end = Date.now() + PATIENCE_MS;

    while (!(await holds())) {
        if (Date.now() > end) throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`);
        await pause(20);
    }
}

function base32(text) {
    const bits = [...text].map((letter) => LETTERS.indexOf(letter).toString(2).padStart(5, '0')).join('');

    return Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
}

// Someone with an authenticator app (RFC 6238). A code counts once, and one step either side is accepted.
class Person {
    #secret;
    #lastStep = 0;

    constructor(email, totpUri) {
        this.email = email;
        this.#secret = base32(new URL(totpUri).searchParams.get('secret'));
    }

    #code(step) {
        const counter = Buffer.alloc(8);

        counter.writeBigUInt64BE(BigInt(step));
        const digest = createHmac('sha1', this.#secret).update(counter).digest();
        const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;

        return String(number % 1000000).padStart(6, '0');
    }

    usedCode() {
        return this.#code(this.#lastStep);
    }

    async freshCode() {
        const now = () => Math.floor(Date.now() / STEP_MS);
        const next = Math.max(now(), this.#lastStep + 1); // not the one before: it may end before it is looked at

        await until('the next code', () => now() + 1 >= next);
        this.#lastStep = next;
        return this.#code(next);
    }
}

async function freePort() {
    return await new Promise((resolve) => {
        const server = createServer().listen(0, '127.0.0.1', () => {
            const {port} = server.address();

            server.close(() => resolve(port));
        });
    });
}

export class Deployment {
    #folder = mkdtempSync(join(tmpdir(), 'chatelaine-console-'));
    #children = [];
    #people = 0;
    #node = null;
    #redis = null;

    // more: arguments of `chatelaine serve`.
    static async start(more = []) {
        const made = new Deployment();

        try {
            await made.#begin(more);
            return made;
        } catch (error) {
            await made.stop();
            throw error;
        }
    }

    async #begin(more) {
        this.#startRedis();
        await until('Redis', () => existsSync(this.#path('redis.sock')));
        writeFileSync(this.#path('master.key'), randomBytes(32).toString('hex'), {mode: 0o600});
        writeFileSync(this.#path('password'), PASSWORD, {mode: 0o600});
        this.account = this.#run('account', 'create', '--name', 'Northern Clinic').id;
        this.port = await freePort();
        this.origin = `http://localhost:${this.port}`;
        this.more = more;
        await this.startNode();
    }

    #path(name) {
        return join(this.#folder, name);
    }

    get #common() {
        return ['--redis', `unix:${this.#path('redis.sock')}`, '--master-key-file', this.#path('master.key')];
    }

    #run(...words) {
        return JSON.parse(
            execFileSync(process.env.CHATELAINE_BINARY, [...words, ...this.#common, '--json'], {encoding: 'utf8'}),
        );
    }

    #spawn(name, program, args) {
        const log = openSync(this.#path(`${name}.log`), 'a');
        const child = spawn(program, args, {cwd: this.#folder, stdio: ['ignore', log, log]});

        this.#children.push(child);
        return child;
    }

    #startRedis() {
        this.#redis = this.#spawn('redis', 'redis-server', [
            '--port',
            '0',
            '--unixsocket',
            this.#path('redis.sock'),
            '--dir',
            this.#folder,
            '--appendonly',
            'yes',
            '--appendfsync',
            'always',
            '--save',
            '',
            '--maxmemory-policy',
            'noeviction',
        ]);
    }

    async startNode() {
        const ready = this.#path('ready');

        rmSync(ready, {force: true});
        this.#node = this.#spawn('node', process.env.CHATELAINE_BINARY, [
            'serve',
            ...this.#common,
            '--public-origin',
            this.origin,
            '--listen',
            `127.0.0.1:${this.port}`,
            '--internal-listen',
            '127.0.0.1:0',
            '--ready-file',
            ready,
            ...this.more,
        ]);
        await until('the node', () => existsSync(ready) || this.#node.exitCode !== null);
        if (this.#node.exitCode !== null) throw new Error(readFileSync(this.#path('node.log'), 'utf8'));
    }

    pauseRedis() {
        this.#redis.kill('SIGSTOP');
    }

    resumeRedis() {
        this.#redis.kill('SIGCONT');
    }

    async #end(child) {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const gone = new Promise((resolve) => {
            child.once('exit', resolve);
        });

        child.kill('SIGCONT');
        child.kill('SIGTERM');
        await gone;
    }

    async stop() {
        for (const child of [...this.#children].reverse()) await this.#end(child);
        rmSync(this.#folder, {recursive: true, force: true});
    }

    // Another user of the account, each with codes of his own.
    person(account = this.account) {
        this.#people += 1;
        const email = `ada${this.#people}@example.org`;
        const user = this.#run(
            'user',
            'create',
            '--account',
            account,
            '--email',
            email,
            '--password-file',
            this.#path('password'),
        );

        return new Person(email, user.totp_uri);
    }

    redis(...words) {
        return execFileSync('redis-cli', ['-s', this.#path('redis.sock'), ...words], {encoding: 'utf8'}).trim();
    }

    redisMany(commands) {
        execFileSync('redis-cli', ['-s', this.#path('redis.sock')], {
            input: `${commands.join('\n')}\n`,
            stdio: ['pipe', 'ignore', 'inherit'],
        });
    }

    // As if each session had come to its end.
    endSessions() {
        this.redis(
            'EVAL',
            "for _, key in ipairs(redis.call('KEYS', 'chatelaine:session:*')) do redis.call('DEL', key) end",
            '0',
        );
    }

    forgetThrottles() {
        this.redis(
            'EVAL',
            "for _, key in ipairs(redis.call('KEYS', 'chatelaine:throttle:*')) do redis.call('DEL', key) end",
            '0',
        );
    }

    // Users of accounts where nothing has happened yet.
    newcomers(count) {
        return Array.from({length: count}, () =>
            this.person(this.#run('account', 'create', '--name', 'Southern Clinic').id),
        );
    }

    async api(method, path, {bearer, headers = {}, json} = {}) {
        const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
            method,
            headers: {
                ...headers,
                ...(bearer && {Authorization: `Bearer ${bearer}`}),
                ...(json && {'Content-Type': 'application/json'}),
            },
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

    // The session of a person outside any browser: for what has to be there before a page is opened.
    async signIn(person) {
        const login = await this.api('POST', '/v1/auth/login', {
            json: {email: person.email, password: PASSWORD, totp: await person.freshCode()},
        });
        let cookie = login.headers.get('set-cookie').split(';')[0];
        const csrf = login.json.csrf_token;
        const send = (method, path, json) =>
            this.api(method, path, {json, headers: {'Cookie': cookie, 'X-CSRF-Token': csrf}});
        const stepUp = async () => {
            const answer = await send('POST', '/v1/console/step_up', {
                password: PASSWORD,
                totp: await person.freshCode(),
            });

            cookie = answer.headers.get('set-cookie').split(';')[0];
        };

        // It is valid for five minutes.
        let doneUntil = 0;
        const stepUpUnlessDone = async () => {
            if (Date.now() > doneUntil) {
                await stepUp();
                doneUntil = Date.now() + 240000;
            }
        };

        return {send, stepUp, stepUpUnlessDone};
    }
}
