// Introspection as a server of resources does it that was written by others, plain and signed.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import * as jose from 'jose';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';

import {PATIENCE_MS} from '../support/deployment.js';
import {Stage} from './stage.js';

const INSECURE = {[oauth.allowInsecureRequests]: true};
const CLIENT = {client_id: 'records'};
const SIGNED = {...CLIENT, introspection_signed_response_alg: 'EdDSA'};

const stage = new Stage();
let server, key;

before(
    async () => {
        await stage.raise();
        server = await discover();
        key = (await stage.session.send('POST', '/v1/console/api_keys', {name: 'n', mode: 'test', scopes: ['usage:read']})).json;
    },
    {timeout: 2 * PATIENCE_MS},
);
after(() => stage.strike());

// The document of the internal listener, whose issuer is the public origin.
async function discover() {
    const response = await fetch(`${stage.internal}/.well-known/oauth-authorization-server`);

    return oauth.processDiscoveryResponse(new URL(stage.origin), response);
}

async function introspect(token, client = CLIENT) {
    const response = await oauth.introspectionRequest(server, client, oauth.None(), token, INSECURE);

    assert.equal(response.headers.get('cache-control'), 'no-store');
    return {response, answer: await oauth.processIntrospectionResponse(server, client, response)};
}

test('the document says where, and only to those who can', async () => {
    assert.equal(server.introspection_endpoint, `${stage.internal}/check/introspect`);
    assert.equal(server.revocation_endpoint, `${stage.origin}/v1/auth/revoke`);
    assert.equal(server.jwks_uri, `${stage.internal}/.well-known/jwks.json`);
    assert.deepEqual(server.introspection_endpoint_auth_methods_supported, ['none']);
    const open = await (await fetch(`${stage.origin}/.well-known/oauth-authorization-server`)).json();
    assert.equal(open.introspection_endpoint, undefined);
    assert.equal(open.jwks_uri, `${stage.origin}/.well-known/jwks.json`);
    assert.equal(open.revocation_endpoint, server.revocation_endpoint);
});

test('a good key, plain and signed', async () => {
    for (const client of [CLIENT, SIGNED]) {
        const {response, answer} = await introspect(key.secret, client);

        assert.equal(answer.active, true);
        assert.equal(answer.client_id, key.id);
        assert.equal(answer.scope, 'usage:read');
        assert.equal(answer.iss, stage.origin);
        assert.equal(answer.mode, 'test');
        assert.equal(answer.iat, Math.floor(Date.parse(key.created_at) / 1000));
        assert.match(response.headers.get('content-type'), client === SIGNED ? /introspection\+jwt$/ : /json$/);
        if (client === SIGNED) await oauth.validateApplicationLevelSignature(server, response, INSECURE);
    }
});

test('a signed answer by jose', async () => {
    const response = await fetch(server.introspection_endpoint, {
        method: 'POST',
        headers: {accept: 'application/token-introspection+jwt'},
        body: new URLSearchParams({token: key.secret, client_id: 'records'}),
    });
    const jwks = jose.createRemoteJWKSet(new URL(server.jwks_uri));
    const {payload} = await jose.jwtVerify(await response.text(), jwks, {
        issuer: stage.origin,
        audience: 'records',
        algorithms: ['EdDSA'],
        typ: 'token-introspection+jwt',
    });

    assert.equal(payload.token_introspection.active, true);
});

test('a good key, by openid-client', async () => {
    const config = new openid.Configuration(server, 'records', undefined, openid.None());

    openid.allowInsecureRequests(config);
    const answer = await openid.tokenIntrospection(config, key.secret);

    assert.equal(answer.active, true);
    assert.equal(answer.client_id, key.id);
    assert.equal((await openid.tokenIntrospection(config, 'x')).active, false);
});

test('a revoked key is not active, signed or not', async () => {
    await stage.session.send('DELETE', `/v1/console/api_keys/${key.id}`);
    for (const client of [CLIENT, SIGNED]) {
        const {answer} = await introspect(key.secret, client);

        assert.equal(answer.active, false);
        assert.equal(answer.client_id, undefined);
    }
});
