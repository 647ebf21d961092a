// What the pages are tested against. The node is served at http://localhost:PORT: to browsers that is a secure context,
// so that they keep the cookie.
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';

import {ask, Deployment as Basis, freePort, Person, Session} from '../support/deployment.js';

export class Deployment extends Basis {
    // others: how many nodes there are besides the one that browsers use.
    // auditLogs: for each node, where it writes its audit log, or undefined.
    static async start({others = 0, auditLogs = []} = {}) {
        const port = freePort();
        const origin = `http://localhost:${port}`;
        const nodes = Array.from({length: 1 + others}, (_, i) => ({
            origin,
            port: i === 0 ? port : 0,
            more: auditLogs[i] && ['--audit-log', auditLogs[i]],
        }));

        return Object.assign(await super.start(nodes), {origin, url: `http://127.0.0.1:${port}`});
    }

    redis(...words) {
        return execFileSync('redis-cli', ['-s', this.redisSocket, ...words], {encoding: 'utf8'}).trim();
    }

    redisMany(commands) {
        execFileSync('redis-cli', ['-s', this.redisSocket], {
            input: `${commands.join('\n')}\n`,
            stdio: ['pipe', 'ignore', 'inherit'],
        });
    }

    // Of the node that browsers use.
    log() {
        return readFileSync(join(this.folder, 'node0.log'), 'utf8');
    }

    #forget(pattern) {
        const script = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end";

        this.redis('EVAL', script, '0', pattern);
    }

    // As if each session had come to its end.
    endSessions() {
        this.#forget('chatelaine:session:*');
    }

    forgetThrottles() {
        this.#forget('chatelaine:throttle:*');
    }

    // Tests need more codes than the clock gives out.
    personOf(email, totpUri) {
        const script =
            "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do " +
            "if redis.call('TYPE', key).ok == 'hash' then redis.call('HDEL', key, 'totp_step') end end";

        return new Person(email, totpUri, () => this.redis('EVAL', script, '0', 'chatelaine:user:*'));
    }

    // Users of accounts where nothing has happened yet.
    newcomers(count) {
        return Array.from({length: count}, () => this.addPerson({account: this.addAccount('Southern Clinic')}));
    }

    async api(method, path, {bearer, headers, json} = {}) {
        return await ask(this.url, method, path, {
            headers: bearer ? {...headers, Authorization: `Bearer ${bearer}`} : headers,
            json,
        });
    }

    // For what has to be there before a page is opened.
    async signIn(person) {
        return await Session.open(this.url, person);
    }
}
