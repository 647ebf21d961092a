// What the tests of this folder need: a development node (its Redis, account and user), a second node behind a small
// gateway that stands at the public origin, and a person who has signed in. The gateway asks the node's check interface
// about uploads and passes everything else on.
import {execFileSync, spawn} from 'node:child_process';
import {once} from 'node:events';
import {existsSync, mkdtempSync, openSync, readFileSync, rmSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as wait} from 'node:timers/promises';

const BINARY = process.env.CHATELAINE_BINARY;
const STARTS_WITHIN_MS = 30000;

async function serve(folder, name, args) {
    const ready = join(folder, `${name}.ready`);
    const child = spawn(BINARY, [...args, '--listen', '127.0.0.1:0', '--internal-listen', '127.0.0.1:0',
        '--ready-file', ready], {stdio: ['ignore', 'ignore', openSync(join(folder, `${name}.log`), 'w')]});
    process.on('exit', () => child.kill('SIGKILL'));

    for (let waited = 0; !existsSync(ready); waited += 20) {
        if (child.exitCode !== null || waited > STARTS_WITHIN_MS) {
            console.error(readFileSync(join(folder, `${name}.log`), 'utf8'));
            process.exit(1);
        }
        await wait(20);
    }
    return {child, ...JSON.parse(readFileSync(ready, 'utf8'))};
}

async function stop(node) {
    const ended = once(node.child, 'exit');

    node.child.kill('SIGTERM');
    const [code] = await ended;
    if (code !== 0) {
        throw new Error(`a node ended with ${code}`);
    }
}

function forward(request, response, address, path, headers, answered) {
    const [host, port] = address.split(':');
    const onward = http.request({host, port, path, method: request.method, headers}, answered);

    onward.on('error', () => response.writeHead(502).end());
    return onward;
}

// The uploads that were let through: {headers, bytes}.
function makeGateway(addresses, uploads) {
    return http.createServer((request, response) => {
        if (request.url !== '/v1/documents') {
            request.pipe(forward(request, response, addresses.public, request.url, request.headers, (answer) => {
                response.writeHead(answer.statusCode, answer.headers);
                answer.pipe(response);
            }));
            return;
        }
        const asked = {'authorization': request.headers.authorization ?? '', 'x-original-method': request.method,
            'x-original-uri': request.url};
        http.get(`http://${addresses.internal}/check/auth-request`, {headers: asked}, async (verdict) => {
            verdict.resume();
            const pieces = [];
            for await (const piece of request) {
                pieces.push(piece);
            }
            if (verdict.statusCode === 200) {
                uploads.push({headers: request.headers, checked: verdict.headers, bytes: Buffer.concat(pieces)});
            }
            const challenge = verdict.headers['www-authenticate'];
            response.writeHead(verdict.statusCode === 200 ? 201 : verdict.statusCode,
                challenge ? {'www-authenticate': challenge} : {}).end('{}');
        });
    });
}

export async function raise() {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-oauth-'));
    const home = join(folder, 'dev');
    const addresses = {}, uploads = [];
    const gateway = makeGateway(addresses, uploads).listen(0, '127.0.0.1');

    await once(gateway, 'listening');
    const origin = `http://127.0.0.1:${gateway.address().port}`;
    const dev = await serve(folder, 'dev', ['dev', '--dir', home]);
    const node = await serve(folder, 'node', ['serve', '--redis', `unix:${home}/redis.sock`, '--master-key-file',
        `${home}/master.key`, '--public-origin', origin]);
    addresses.public = node.listen;
    addresses.internal = node.internal_listen;

    return {
        folder, origin, uploads,
        // Another node of the same deployment.
        other: `http://${dev.listen}`,
        person: await signIn(origin, home),
        async strike() {
            gateway.close();
            gateway.closeAllConnections?.();
            await stop(node);
            await stop(dev);
            rmSync(folder, {recursive: true});
        },
    };
}

function totp(home, ...more) {
    return execFileSync(BINARY, ['totp', ...more, `${home}/totp.uri`], {encoding: 'utf8'}).trim();
}

// call(): a request of the console, with the session's cookie and CSRF token.
async function signIn(origin, home) {
    const {email, password} = JSON.parse(readFileSync(`${home}/credentials.json`, 'utf8'));
    let cookie = '', csrf = '';

    async function call(method, path, body) {
        const headers = {cookie, 'x-csrf-token': csrf, ...(body && {'content-type': 'application/json'})};
        const response = await fetch(origin + path, {method, headers, body: body && JSON.stringify(body)});
        const text = await response.text();

        cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
        return {status: response.status, body: text ? JSON.parse(text) : null};
    }

    const login = await call('POST', '/v1/auth/login', {email, password, totp: totp(home)});
    csrf = login.body.csrf_token;
    const stepUp = await call('POST', '/v1/console/step_up', {password, totp: totp(home, '--next')});
    if (login.status !== 200 || stepUp.status !== 200) {
        throw new Error(`signing in: ${login.status}, ${stepUp.status}`);
    }
    return {
        call,
        decide: (userCode, verdict) => call('POST', `/v1/console/device_enrolments/${userCode}/${verdict}`),
    };
}
