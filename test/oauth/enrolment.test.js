// The device flow as a client drives it that was written by others: it knows the standards, and nothing of us.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {setTimeout as wait} from 'node:timers/promises';
import * as oauth from 'oauth4webapi';

import {PATIENCE_MS} from '../support/deployment.js';
import {Stage} from './stage.js';

const INSECURE = {[oauth.allowInsecureRequests]: true};
const CLIENT = {client_id: 'desktop-agent'};

const stage = new Stage();
let server;

before(
    async () => {
        await stage.raise();
        server = await discover(stage.origin);
    },
    {timeout: 2 * PATIENCE_MS},
);
after(() => stage.strike());

async function discover(origin) {
    const issuer = new URL(origin);
    const response = await oauth.discoveryRequest(issuer, {algorithm: 'oauth2', ...INSECURE});

    return oauth.processDiscoveryResponse(issuer, response);
}

async function begin(parameters = {}, client = CLIENT) {
    const response = await oauth.deviceAuthorizationRequest(server, client, oauth.None(), parameters, INSECURE);

    assert.equal(response.headers.get('cache-control'), 'no-store');
    return oauth.processDeviceAuthorizationResponse(server, client, response);
}

async function poll(codes, client = CLIENT, as = server) {
    const response = await oauth.deviceCodeGrantRequest(as, client, oauth.None(), codes.device_code, INSECURE);

    assert.equal(response.headers.get('cache-control'), 'no-store');
    return oauth.processDeviceCodeResponse(as, client, response);
}

function refusal(error, status = 400) {
    return (thrown) => {
        assert.ok(thrown instanceof oauth.ResponseBodyError, thrown);
        assert.equal(thrown.error, error);
        assert.equal(thrown.status, status);
        return true;
    };
}

async function upload(key, origin = stage.origin) {
    const response = await oauth.protectedResourceRequest(
        key,
        'POST',
        new URL('/v1/documents', origin),
        undefined,
        'a',
        INSECURE,
    );

    return response.status;
}

test('discovery', () => {
    assert.equal(server.issuer, stage.origin);
    assert.deepEqual(server.grant_types_supported, ['urn:ietf:params:oauth:grant-type:device_code']);
    assert.deepEqual(server.token_endpoint_auth_methods_supported, ['none']);
});

test('a device is enrolled, uses its key, and is locked out', async () => {
    const codes = await begin({scope: 'documents:write', device_name: 'Ward PC'});

    assert.match(codes.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    assert.equal(codes.verification_uri, `${stage.origin}/console/activate`);
    assert.equal(codes.verification_uri_complete, `${stage.origin}/console/activate?user_code=${codes.user_code}`);
    assert.equal(codes.expires_in, 600);
    assert.equal(codes.interval, 5);

    await assert.rejects(poll(codes), refusal('authorization_pending'));
    let hasty; // a poll that comes more than four seconds later, on a slow machine, is none too soon
    for (let tries = 0; tries < 5 && hasty?.error !== 'slow_down'; tries++)
        hasty = await poll(codes).catch((error) => error);
    assert.ok(refusal('slow_down')(hasty));
    await wait((codes.interval + 5) * 1000);
    await assert.rejects(poll(codes), refusal('authorization_pending'));

    const approval = await stage.decide(codes.user_code.toLowerCase().replace('-', ''), 'approve');
    assert.equal(approval.status, 200);
    assert.equal(approval.json.device_name, 'Ward PC');

    const token = await poll(codes);
    assert.match(token.access_token, /^svc_dk_/);
    assert.equal(token.token_type, 'bearer'); // as the client writes it
    assert.equal(token.scope, 'documents:write');
    assert.equal(token.expires_in, undefined);
    await assert.rejects(poll(codes), refusal('invalid_grant'));

    assert.equal(await upload(token.access_token), 201);
    assert.equal(stage.uploads.at(-1).checked['x-auth-kind'], 'device_key');
    const keys = await stage.session.send('GET', '/v1/console/device_keys?status=active');
    assert.equal(keys.json.data[0].name, 'Ward PC');
    assert.equal(keys.json.data[0].last4, token.access_token.slice(-4));

    const revoked = await stage.session.send('DELETE', `/v1/console/device_keys/${keys.json.data[0].id}`);
    assert.equal(revoked.status, 200);
    for (const origin of [stage.origin, stage.other]) {
        await assert.rejects(upload(token.access_token, origin), (thrown) => {
            assert.ok(thrown instanceof oauth.WWWAuthenticateChallengeError, thrown);
            assert.equal(thrown.cause[0].parameters.error, 'invalid_token');
            return true;
        });
    }
});

test('a denied device', async () => {
    const codes = await begin();

    assert.equal((await stage.decide(codes.user_code, 'deny')).status, 200);
    await assert.rejects(poll(codes), refusal('access_denied'));
    assert.equal((await stage.decide(codes.user_code, 'approve')).status, 404);
});

test('parallel claims at two nodes', async () => {
    const codes = await begin();
    const other = {...server, token_endpoint: `${stage.other}/v1/auth/token`};

    assert.equal((await stage.decide(codes.user_code, 'approve')).status, 200);
    const claims = await Promise.allSettled(
        Array.from({length: 20}, (_, i) => poll(codes, CLIENT, i % 2 ? other : server)),
    );
    assert.equal(claims.filter(({status}) => status === 'fulfilled').length, 1);
    for (const {reason} of claims.filter(({status}) => status === 'rejected')) {
        refusal('invalid_grant')(reason);
    }
});

test('what clients do wrong', async () => {
    const codes = await begin();

    await assert.rejects(begin({}, {client_id: 'unknown'}), refusal('invalid_client'));
    await assert.rejects(begin({scope: 'patients:read'}), refusal('invalid_scope'));
    await assert.rejects(begin({device_name: 'a\nb'}), refusal('invalid_request'));
    await assert.rejects(poll({device_code: 'A'.repeat(43)}), refusal('invalid_grant'));
    await assert.rejects(poll(codes, {client_id: 'unknown'}), refusal('invalid_client'));

    const response = await oauth.genericTokenEndpointRequest(
        server,
        CLIENT,
        oauth.None(),
        'client_credentials',
        {},
        INSECURE,
    );
    await assert.rejects(
        oauth.processGenericTokenEndpointResponse(server, CLIENT, response),
        refusal('unsupported_grant_type'),
    );
});
