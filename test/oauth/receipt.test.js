// The receipt of a revocation, judged by programs that know the standards and nothing of us: jose, and openssl.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {promisify} from 'node:util';
import * as jose from 'jose';

import {PATIENCE_MS} from '../support/deployment.js';
import {Stage} from './stage.js';

const run = promisify(execFile);
// The head of a public key of Ed25519 in DER (RFC 8410).
const DER_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

const stage = new Stage();
let folder;
let jwks;
let receipt;
let key;

before(
    async () => {
        folder = await mkdtemp(path.join(os.tmpdir(), 'receipt-'));
        await stage.raise(['--lease-ms', '10s']); // so long may a node stand still that is not waited for
        await stage.untilLeases();
        const made = await stage.session.send('POST', '/v1/console/api_keys', {name: 'Lost laptop', mode: 'live'});
        key = made.json;
        await stage.session.send('DELETE', `/v1/console/api_keys/${key.id}`);
        const answer = await stage.session.send('GET', `/v1/console/api_keys/${key.id}/revocation`);
        assert.equal(answer.status, 200);
        receipt = answer.text;
        jwks = await (await fetch(`${stage.origin}/.well-known/jwks.json`)).json();
    },
    {timeout: 2 * PATIENCE_MS},
);
after(async () => {
    await stage.strike();
    await rm(folder, {recursive: true, force: true});
});

const verify = (jws) =>
    jose.jwtVerify(jws, jose.createLocalJWKSet(jwks), {
        issuer: stage.origin,
        subject: key.id,
        algorithms: ['EdDSA'],
        typ: 'revocation+jwt',
    });

// Whether openssl finds the signature right.
async function opensslAccepts(signed, signature) {
    const [used] = jwks.keys;
    const file = (name) => path.join(folder, name);

    await writeFile(file('key.der'), Buffer.concat([DER_HEAD, Buffer.from(used.x, 'base64url')]));
    await writeFile(file('signed'), signed);
    await writeFile(file('signature'), signature);
    return run('openssl', [
        ...['pkeyutl', '-verify', '-rawin', '-pubin', '-keyform', 'DER', '-inkey', file('key.der')],
        ...['-in', file('signed'), '-sigfile', file('signature')],
    ]).then(
        () => true,
        () => false,
    );
}

test('jose verifies signed heads of audit logs, and takes neither for the other', async () => {
    const {status, text} = await stage.session.send('GET', '/v1/console/audit_events/heads');
    const as = (typ) => jose.jwtVerify(text, jose.createLocalJWKSet(jwks), {issuer: stage.origin, algorithms: ['EdDSA'], typ});

    assert.equal(status, 200);
    const {payload} = await as('audit-heads+jwt');
    assert.deepEqual(payload.heads, []); // these nodes write no log
    assert.equal(Buffer.from(payload.jti, 'base64url').length, 16);
    assert.ok(Math.abs(payload.iat - Date.now() / 1000) < 60);
    assert.match(payload.store, /^[0-9a-f]{32}$/);
    await assert.rejects(as('revocation+jwt'));
});

test('jose verifies it', async () => {
    const {payload, protectedHeader} = await verify(receipt);
    const [used] = jwks.keys;

    assert.equal(protectedHeader.kid, used.kid);
    assert.equal(used.kid, await jose.calculateJwkThumbprint(used));
    assert.equal(payload.nodes, 2);
    assert.equal(payload.waited_for, 0);
    assert.ok(payload.effective_at >= payload.revoked_at);
    assert.match(payload.event, /^evt_/);
    assert.ok(Number.isInteger(payload.iat));
});

test('openssl verifies it', async () => {
    const [header, payload, signature] = receipt.split('.');

    assert.ok(await opensslAccepts(`${header}.${payload}`, Buffer.from(signature, 'base64url')));
    assert.ok(!(await opensslAccepts(`${header}.${payload}.`, Buffer.from(signature, 'base64url'))));
});

test('jose refuses it after any change of a bit in payload or signature', async () => {
    const [header, ...parts] = receipt.split('.');

    for (const [which, part] of parts.entries()) {
        const bytes = Buffer.from(part, 'base64url');

        for (let bit = 0; bit < 8 * bytes.length; bit++) {
            const changed = Buffer.from(bytes);
            changed[bit >> 3] ^= 1 << (bit & 7);
            const all = parts.map((other, at) => (at === which ? changed.toString('base64url') : other));

            await assert.rejects(verify([header, ...all].join('.')), `bit ${bit} of part ${which + 2}`);
        }
    }
});
