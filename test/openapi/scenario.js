// A day of people, integrations and agents, with every mistake that they can make: the steps, as asked through a
// Conversation.
import assert from 'node:assert/strict';

import {PASSWORD, Person, until} from '../support/deployment.js';
import {send} from './requests.js';

export const ORIGIN = 'https://console.test';

const JSON_TYPE = {'Content-Type': 'application/json'};

const post = (path, value, headers = {}) => ({
    method: 'POST',
    path,
    headers: {...JSON_TYPE, ...headers},
    body: typeof value === 'string' ? value : JSON.stringify(value),
});
const bearer = (key) => ({Authorization: `Bearer ${key.secret ?? key}`});
const get = (path, headers) => ({path, headers});
const remove = (path, headers) => ({method: 'DELETE', path, headers});

/** A signed-in browser. */
class Browser {
    constructor(answer) {
        this.csrf = answer.json.csrf_token;
        this.take(answer);
    }

    take(answer) {
        this.cookie = answer.headers['set-cookie'][0].split(';')[0];
    }

    get reading() {
        return {Cookie: this.cookie};
    }

    get changing() {
        return {'Cookie': this.cookie, 'X-CSRF-Token': this.csrf, 'Origin': ORIGIN};
    }
}

const login = (value, headers) => post('/v1/auth/login', value, headers);
const stepUp = (browser, value) => post('/v1/console/step_up', value, browser.changing);

async function signIn(talk, person) {
    const factors = {email: person.email, password: PASSWORD, totp: await person.freshCode()};
    return new Browser(await talk.right('signing in', login(factors, {Origin: ORIGIN}), 200));
}

async function mistakesAtTheDoor(talk, person) {
    const given = {email: person.email, password: PASSWORD, totp: person.lastCode()};

    await talk.right('the same code again', login(given), 401, 'invalid_login');
    await talk.right('a wrong password', login({...given, password: 'not this one, sorry'}), 401, 'invalid_login');
    await talk.right('a foreign origin', login(given, {Origin: 'https://elsewhere.test'}), 403, 'csrf_failed');
    await talk.wrong('no code', login({email: given.email, password: PASSWORD}), 400, 'parameter_missing');
    await talk.wrong('a code of letters', login({...given, totp: 'abcdef'}), 400, 'parameter_invalid');
    await talk.wrong('a code that is a number', login({...given, totp: 123456}), 400, 'parameter_invalid');
    await talk.wrong('no email', login({...given, email: 'ada'}), 400, 'parameter_invalid');
    await talk.wrong('a member too many', login({...given, remember_me: true}), 400, 'parameter_unknown');
    await talk.wrongDirectly('half an object', login('{"email":'), 400, 'invalid_json');
}

async function mistakesAtStepUp(talk, person, browser) {
    const used = {password: PASSWORD, totp: person.lastCode()};

    await talk.right('a used code', stepUp(browser, used), 401, 'totp_already_used');
    await talk.right('the session', get('/v1/console/session', browser.reading), 200);
    await talk.right(
        'a foreign origin',
        {...stepUp(browser, used), headers: {...JSON_TYPE, ...browser.changing, Origin: 'null'}},
        403,
        'csrf_failed',
    );
    await talk.right(
        'another CSRF token',
        {...stepUp(browser, used), headers: {...JSON_TYPE, ...browser.changing, 'X-CSRF-Token': 'x'.repeat(43)}},
        403,
        'csrf_failed',
    );
    await talk.right(
        'a bearer token too',
        {...stepUp(browser, used), headers: {...JSON_TYPE, ...browser.changing, ...bearer('x')}},
        401,
        'bearer_not_accepted',
    );
    await talk.wrong('no password', stepUp(browser, {totp: used.totp}), 400, 'parameter_missing');
    const wrong = stepUp(browser, {password: 'a guess, and another', totp: '123456'});
    await untilThrottled(talk, 'guesses at a step-up', wrong, 401, 'invalid_login');
}

/** The same again until it is too much; before that it gets the given answer. */
async function untilThrottled(talk, title, request, status, code, limit = [429, 'rate_limited']) {
    for (let tries = 0; tries < 60; tries++) {
        const {isSecond} = await talk.either(title, request, [status, code], limit);
        if (isSecond) return;
    }
    talk.faults.push(`${title}: never throttled`);
}

async function keysInTheConsole(talk, browser) {
    const create = (value, headers = browser.changing) => post('/v1/console/api_keys', value, headers);
    const page = (query) => get(`/v1/console/api_keys${query}`, browser.reading);

    const all = await talk.right('a live key with every scope', create({name: 'Ward dashboard', mode: 'live'}), 201);
    const test = await talk.right(
        'a test key',
        create({name: '😀'.repeat(200), mode: 'test', scopes: ['usage:read', 'keys:manage', 'usage:read']}),
        201,
    );
    await talk.right('a decoy', create({name: 'Backup server', mode: 'live', decoy: true}), 201);
    await talk.wrong('a decoy of sorts', create({name: 'x', mode: 'live', decoy: 'yes'}), 400, 'parameter_invalid');
    await talk.wrong('a name too long', create({name: '😀'.repeat(201), mode: 'test'}), 400, 'parameter_invalid');
    await talk.wrong('a mode that is none', create({name: 'x', mode: 'Live'}), 400, 'parameter_invalid');
    await talk.wrong('no scope', create({name: 'x', mode: 'test', scopes: []}), 400, 'parameter_invalid');
    await talk.wrong(
        'a misspelt member',
        create({name: 'x', mode: 'test', scopse: ['usage:read']}),
        400,
        'parameter_unknown',
    );
    await talk.wrongDirectly('more behind the object', create('{"name":"x","mode":"test"} {}'), 400, 'invalid_json');
    await talk.right('the list', page(''), 200);
    await talk.right('filtered', page('?mode=live&status=active&limit=100'), 200);
    await talk.right('none', page('?status=revoked'), 200);
    await talk.wrong('a limit too high', page('?limit=101'), 400, 'parameter_invalid');
    await talk.wrongDirectly('a parameter twice', page('?limit=1&limit=2'), 400, 'parameter_invalid');
    await talk.right('one', get(`/v1/console/api_keys/${test.json.id}`, browser.reading), 200);
    await talk.right(
        'none of that id',
        get(`/v1/console/api_keys/${test.json.id.slice(0, -4)}0000`, browser.reading),
        404,
        'api_key_not_found',
    );
    await talk.right('what is no id', remove('/v1/console/api_keys/x', browser.changing), 404, 'api_key_not_found');
    await talk.right(
        'a key beside the session',
        get('/v1/console/api_keys', {...browser.reading, ...bearer(all.json)}),
        401,
        'bearer_not_accepted',
    );
    return {all: all.json, test: test.json};
}

/** Walks the pages of one entry each, forth and back. */
async function walkPages(talk, key) {
    const ids = [];
    for (let more = true, after = ''; more; after = `&starting_after=${ids.at(-1)}`) {
        const {json} = await talk.right('a page', get(`/v1/api_keys?limit=1${after}`, bearer(key)), 200);
        ids.push(...json.data.map((one) => one.id));
        more = json.has_more && ids.length < 20;
    }
    const back = await talk.right(
        'the page before',
        get(`/v1/api_keys?limit=2&ending_before=${ids[2]}`, bearer(key)),
        200,
    );
    if (String(back.json.data.map((one) => one.id)) !== String(ids.slice(0, 2)))
        talk.faults.push(`pages: forth ${ids}, back ${back.body}`);
    await talk.other(
        'both ways at once',
        get(`/v1/api_keys?starting_after=${ids[0]}&ending_before=${ids[0]}`, bearer(key)),
        400,
        'parameter_invalid',
    );
    await talk.wrong(
        'an id of another kind',
        get('/v1/api_keys?starting_after=usr_00000000000000000000000000', bearer(key)),
        400,
        'parameter_invalid',
    );
}

async function keysOfIntegrations(talk, {all, test}) {
    const create = (value, key) => post('/v1/api_keys', value, bearer(key));

    for (const key of [all, test]) await talk.right('who am I', get('/v1/whoami', bearer(key)), 200);
    const narrow = await talk.right(
        'a key that reads',
        create({name: 'Reads', mode: 'live', scopes: ['patients:read']}, all),
        201,
    );
    const lister = await talk.right(
        'a key that lists',
        create({name: 'Lists', mode: 'live', scopes: ['keys:manage']}, all),
        201,
    );
    await talk.right('more than it holds', create({name: 'x', mode: 'live'}, lister.json), 403, 'scope_not_grantable');
    await talk.right(
        'live from test',
        create({name: 'x', mode: 'live', scopes: ['keys:manage']}, test),
        403,
        'mode_not_permitted',
    );
    await talk.right('live keys of a test key', get(`/v1/api_keys/${all.id}`, bearer(test)), 404, 'api_key_not_found');
    await talk.right('its own', get(`/v1/api_keys/${test.id}`, bearer(test)), 200);
    await talk.wrong('no name', create({mode: 'test'}, all), 400, 'parameter_missing');
    await talk.wrong('a control character', create({name: 'a\u0007b', mode: 'test'}, all), 400, 'parameter_invalid');
    await talk.wrong(
        'a scope that is none',
        create({name: 'x', mode: 'test', scopes: ['patients:delete']}, all),
        400,
        'parameter_invalid',
    );
    await walkPages(talk, all);
    return {narrow: narrow.json, lister: lister.json};
}

async function refusedCredentials(talk, browser, {all, narrow}) {
    const whoami = (headers) => get('/v1/whoami', headers);

    await talk.wrong('a session', whoami(browser.reading), 401, 'session_not_accepted');
    await talk.right('garbage', whoami(bearer('svc_sk_live_x')), 401, 'invalid_api_key');
    await talk.wrongDirectly('no token', whoami({Authorization: 'Bearer'}), 400, 'bad_request');
    const gone = await talk.right('revoking', remove(`/v1/api_keys/${narrow.id}`, bearer(all)), 200);
    const again = await talk.right('revoking again', remove(`/v1/api_keys/${narrow.id}`, bearer(all)), 200);
    await talk.right('its certificate', get(`/v1/api_keys/${narrow.id}/revocation`, bearer(all)), 200);
    await talk.right('with these keys', get('/.well-known/jwks.json'), 200);
    if (gone.json.revoked_at !== again.json.revoked_at) talk.faults.push('revoked_at has changed');
    await talk.right('a revoked key', whoami(bearer(narrow)), 401, 'api_key_revoked');
    await talk.right('the revoked ones', get('/v1/api_keys?status=revoked', bearer(all)), 200);
    await talk.right('in the console', remove(`/v1/console/api_keys/${narrow.id}`, browser.changing), 200);
    await talk.right('there too', get(`/v1/console/api_keys/${narrow.id}/revocation`, browser.reading), 200);
    const active = get(`/v1/api_keys/${all.id}/revocation`, bearer(all));
    await talk.right('of an active key', active, 404, 'api_key_not_found');
}

async function lists(talk, browser, {all, test}) {
    const make = async (name) =>
        (await talk.right(name, post('/v1/api_keys', {name, mode: 'live'}, bearer(all)), 201)).json.id;
    const ids = [await make('one of a list'), await make('another one')];
    const revoke = (value, key) => post('/v1/api_keys/revoke', value, bearer(key));
    const byUser = (value, headers) => post('/v1/console/api_keys/revoke', value, headers);

    await talk.right('a list', revoke({ids}, all), 200);
    await talk.right('a list again, and unknown ones', revoke({ids: [...ids, `${ids[0].slice(0, -4)}0000`]}, all), 200);
    await talk.right('live keys, by a test key', revoke({ids}, test), 200);
    await talk.right('a list in the console', byUser({ids}, browser.changing), 200);
    await talk.wrong('an empty list', revoke({ids: []}, all), 400, 'parameter_invalid');
    await talk.wrong('no list', revoke({}, all), 400, 'parameter_missing');
    await talk.wrong('what is no id', byUser({ids: ['x']}, browser.changing), 400, 'parameter_invalid');
    await talk.wrong('without CSRF', byUser({ids}, browser.reading), 403, 'csrf_failed');
}

const patch = (path, value, headers) => ({...post(path, value, headers), method: 'PATCH'});

async function renames(talk, browser, {all, test}) {
    const made = await talk.right('one to rename', post('/v1/api_keys', {name: 'old', mode: 'live'}, bearer(all)), 201);
    const path = `/v1/api_keys/${made.json.id}`;
    const inConsole = `/v1/console/api_keys/${made.json.id}`;

    await talk.right('a new name', patch(path, {name: 'new'}, bearer(all)), 200);
    await talk.right('the same again', patch(path, {name: 'new'}, bearer(all)), 200);
    await talk.right('a live key, by a test key', patch(path, {name: 'mine'}, bearer(test)), 404, 'api_key_not_found');
    await talk.right('by a person', patch(inConsole, {name: 'newer'}, browser.changing), 200);
    await talk.wrong('no name', patch(path, {}, bearer(all)), 400, 'parameter_missing');
    await talk.wrong('an empty name', patch(path, {name: ''}, bearer(all)), 400, 'parameter_invalid');
    await talk.wrong('more than a name', patch(path, {name: 'x', mode: 'live'}, bearer(all)), 400, 'parameter_unknown');
    await talk.right('its end', remove(path, bearer(all)), 200);
    await talk.right('a name for one that is revoked', patch(path, {name: 'leaked'}, bearer(all)), 200);
}

const put = (path, value, headers) => ({...post(path, value, headers), method: 'PUT'});
const at = (days) => ({revoke_at: new Date(Date.now() + days * 86400e3).toISOString()});

async function ends(talk, browser, {all, test}) {
    const make = async (name) =>
        (await talk.right(name, post('/v1/api_keys', {name, mode: 'live'}, bearer(all)), 201)).json;
    const key = await make('one that ends');
    const path = `/v1/api_keys/${key.id}/scheduled_revocation`;
    const inConsole = `/v1/console/api_keys/${key.id}/scheduled_revocation`;

    await talk.right('nothing is scheduled', get(path, bearer(all)), 200);
    await talk.right('nor withdrawn', remove(path, bearer(all)), 200);
    await talk.right('in two days', put(path, at(2), bearer(all)), 200);
    await talk.right('sooner', put(path, at(1), bearer(all)), 200);
    await talk.right('later, by a key', put(path, at(3), bearer(all)), 403, 'delay_not_permitted');
    await talk.right('never, by a key', remove(path, bearer(all)), 403, 'delay_not_permitted');
    await talk.right('a live key, by a test key', put(path, at(1), bearer(test)), 404, 'api_key_not_found');
    await talk.right('in the past', put(path, at(-1), bearer(all)), 400, 'parameter_invalid');
    await talk.wrong('no time', put(path, {revoke_at: 'soon'}, bearer(all)), 400, 'parameter_invalid');
    await talk.right('it is told', get(inConsole, browser.reading), 200);
    await talk.right('later, by a person', put(inConsole, at(3), browser.changing), 200);
    await talk.right('never, by a person', remove(inConsole, browser.changing), 200);
    const replace = (value, id, headers) => post(`/v1/api_keys/${id}/replacement`, value, headers);
    const next = await talk.right('a replacement', replace({overlap_seconds: 60}, key.id, bearer(all)), 201);
    await talk.right('one at once', replace({overlap_seconds: 0, name: 'Third'}, next.json.id, bearer(all)), 201);
    await talk.right('the end of the other one, now', remove(`/v1/api_keys/${next.json.id}`, bearer(all)), 200);
    await talk.right('of a revoked key', replace({overlap_seconds: 0}, next.json.id, bearer(all)), 409, 'already_revoked');
    await talk.wrong('too long', replace({overlap_seconds: 1e9}, key.id, bearer(all)), 400, 'parameter_invalid');
    const byPerson = post(`/v1/console/api_keys/${key.id}/replacement`, {overlap_seconds: 60}, browser.changing);
    await talk.right('in the console', byPerson, 201);
    await untilReplaced(talk, 'again and again', () => replace({overlap_seconds: 60}, key.id, bearer(all)));
    const revoked = `/v1/api_keys/${next.json.id}/scheduled_revocation`;
    const alsoInConsole = `/v1/console/api_keys/${next.json.id}`;
    await talk.right('when it is revoked', put(revoked, at(1), bearer(all)), 409, 'already_revoked');
    await talk.right('nor never', remove(revoked, bearer(all)), 409, 'already_revoked');
    const tooLate = put(`${alsoInConsole}/scheduled_revocation`, at(1), browser.changing);
    await talk.right('nor by a person', tooLate, 409, 'already_revoked');
    const never = remove(`${alsoInConsole}/scheduled_revocation`, browser.changing);
    await talk.right('nor never by a person', never, 409, 'already_revoked');
    const again = post(`${alsoInConsole}/replacement`, {overlap_seconds: 60}, browser.changing);
    await talk.right('nor replaced by a person', again, 409, 'already_revoked');
}

async function otherRoutes(talk, {all, lister}) {
    await talk.other('no such route', get('/v1/nothing', bearer(all)), 404, 'not_found');
    await talk.other('another backend', get('/v1/patients/42', bearer(all)), 404, 'not_found');
    await talk.other('without its scope', get('/v1/patients/42', bearer(lister)), 403, 'insufficient_scope');
    await talk.other('what no scope opens', get('/v1/documents', bearer(all)), 403, 'insufficient_scope');
    await talk.other('a method that it has not', post('/v1/usage', {}, bearer(all)), 405, 'method_not_allowed');
    await talk.other(
        'a method that ours has not',
        {method: 'PUT', path: '/v1/api_keys', headers: bearer(all)},
        405,
        'method_not_allowed',
    );
    await talk.other('HEAD', {method: 'HEAD', path: '/v1/whoami', headers: bearer(all)}, 200);
    await talk.other('a long target', get(`/v1/whoami?${'x'.repeat(8100)}`, bearer(all)), 414, 'uri_too_long');
    await talk.other(
        'a long head',
        get('/v1/whoami', {...bearer(all), 'X-Long': 'x'.repeat(17000)}),
        431,
        'headers_too_large',
    );
    await talk.other('a long body', post('/v1/api_keys', 'x'.repeat(70000), bearer(all)), 413, 'body_too_large');
    await talk.other(
        'an expectation',
        get('/v1/whoami', {...bearer(all), Expect: 'the best'}),
        417,
        'expectation_failed',
    );
    await talk.other(
        'a type where no body belongs',
        {method: 'DELETE', path: '/v1/api_keys/x', headers: {...bearer(all), 'Content-Type': 'text/plain'}, body: 'x'},
        415,
        'unsupported_media_type',
    );
    const whoami = get('/v1/whoami');
    await talk.bytes(
        'a method that nobody knows',
        whoami,
        'BREW /v1/whoami HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n',
        501,
        'not_implemented',
    );
    await talk.bytes(
        'another HTTP',
        whoami,
        'GET /v1/whoami HTTP/1.2\r\nHost: t\r\nConnection: close\r\n\r\n',
        505,
        'http_version_not_supported',
    );
}

const FIREFOX = {'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'};
const NEW_PASSWORD = 'seven herons read 9 maps';

async function newAuthenticator(talk, person, browser) {
    const begin = (value) => post('/v1/console/totp', value, browser.changing);
    const confirm = (totp) => post('/v1/console/totp/confirm', {totp}, browser.changing);

    await talk.right('a used code', begin({password: PASSWORD, totp: person.lastCode()}), 401, 'totp_already_used');
    await talk.wrong('half a code', begin({password: PASSWORD, totp: '12345'}), 400, 'parameter_invalid');
    await talk.right('none waits', confirm('123456'), 404, 'authenticator_not_found');
    const {json} = await talk.right(
        'a new authenticator',
        begin({password: PASSWORD, totp: await person.freshCode()}),
        200,
    );
    await talk.other('a code of the old one', confirm(person.lastCode()), 400, 'parameter_invalid');
    person.renew(json.totp_uri);
    await talk.right('a code of the new one', confirm(await person.freshCode()), 204);
    await talk.right('it counts already', confirm(person.lastCode()), 404, 'authenticator_not_found');
}

async function newPassword(talk, person, browser) {
    const change = (value) => post('/v1/console/password', value, browser.changing);
    const right = {current_password: PASSWORD, totp: '123456', new_password: NEW_PASSWORD};

    await talk.right('a wrong code', change(right), 401, 'invalid_login');
    await talk.other('an easy one', change({...right, new_password: 'Summer2026!!'}), 400, 'parameter_invalid');
    await talk.wrong('none', change({current_password: PASSWORD, totp: '123456'}), 400, 'parameter_missing');
    browser.take(await talk.right('a new password', change({...right, totp: await person.freshCode()}), 200));
}

async function ownSessions(talk, person, browser) {
    const list = () => get('/v1/console/sessions', browser.reading);

    const factors = {email: person.email, password: PASSWORD, totp: await person.freshCode()};
    await talk.right('from another browser', login(factors, FIREFOX), 200);
    await talk.right('which the first one is told', get('/v1/console/session', browser.reading), 200);
    const {json} = await talk.right('the sessions', list(), 200);
    const other = json.data.find((one) => !one.current);
    if (json.data.length !== 2 || other.browser !== 'Firefox on Linux') talk.faults.push(`sessions: ${json.data}`);
    const end = () => remove(`/v1/console/sessions/${other.id}`, browser.changing);
    const endAll = () => remove('/v1/console/sessions', browser.changing);
    await talk.right('ending one, unproven', end(), 403, 'step_up_required');
    await talk.right('ending all others, unproven', endAll(), 403, 'step_up_required');
    const proof = {password: PASSWORD, totp: await person.freshCode()};
    browser.take(await talk.right('stepping up', stepUp(browser, proof), 200));
    await talk.right('ending one', end(), 204);
    await talk.right('ending it again', end(), 404, 'session_not_found');
    await talk.right('ending all others', endAll(), 200);
}

async function lostAuthenticator(talk, person, browser) {
    const codes = '/v1/console/recovery_codes';
    const recover = (value) => post('/v1/auth/recover', {email: person.email, password: NEW_PASSWORD, ...value});
    const confirm = (value) => post('/v1/auth/recover/confirm', value);

    await talk.right('no codes yet', get(codes, browser.reading), 200);
    const made = await talk.right('ten codes', {method: 'POST', path: codes, headers: browser.changing}, 201);
    await talk.right('the codes left', get(codes, browser.reading), 200);
    const [code] = made.json.recovery_codes;
    await talk.right('a code of nobody', recover({recovery_code: '0000-0000-0000-0000'}), 401, 'invalid_login');
    await talk.other('no code', recover({recovery_code: 'x'}), 400, 'parameter_invalid');
    await talk.right(
        'a foreign origin',
        {...recover({recovery_code: code}), headers: {...JSON_TYPE, Origin: 'null'}},
        403,
        'csrf_failed',
    );
    const {json} = await talk.right('recovering', recover({recovery_code: code.toLowerCase().replaceAll('-', '')}), 200);
    person.renew(json.totp_uri);
    await talk.right(
        'a foreign origin',
        {...confirm({ticket: json.ticket, totp: '123456'}), headers: {...JSON_TYPE, Origin: 'null'}},
        403,
        'csrf_failed',
    );
    const ticket = {ticket: json.ticket, totp: await person.freshCode()};
    await talk.right('confirming', confirm(ticket), 204);
    await talk.right('confirming again', confirm(ticket), 404, 'authenticator_not_found');
    await talk.right('the session has ended', get('/v1/console/session', browser.reading), 401, 'invalid_session');
    await talk.right('the code was spent', recover({recovery_code: code}), 401, 'invalid_login');
}

/** The same counters for all that password and code prove, and those of sign-ins for recoveries. */
async function guesses(talk, person, browser) {
    const proof = {password: 'a guess, and another', totp: '123456'};
    const change = {current_password: proof.password, totp: proof.totp, new_password: PASSWORD};
    const recover = {email: person.email, password: proof.password, recovery_code: '0000-0000-0000-0000'};

    const password = post('/v1/console/password', change, browser.changing);
    await untilThrottled(talk, 'guesses at the old password', password, 401, 'invalid_login');
    await talk.right('and then', post('/v1/console/totp', proof, browser.changing), 429, 'rate_limited');
    await untilThrottled(talk, 'guesses at a recovery', post('/v1/auth/recover', recover), 401, 'invalid_login');
}

async function passwordOfSomebodyElse(talk, deployment, contract, browser, user) {
    const code = 'password_change_required';

    deployment.tellRedis('HSET', `chatelaine:user:${user}`, 'password_expired', '1');
    for (const name of contract.operations()) {
        const [method, template] = name.split(' ');
        const {operation, example} = contract.exampleOf(method, template);
        if (!contract.tells(operation, 403, code)) continue;
        const headers = {...example.headers, ...browser.changing};
        const request = {...example, method: method.toUpperCase(), headers};
        await talk.right(`${name} with a password of somebody else`, request, 403, code);
    }
    await talk.right('the session', get('/v1/console/session', browser.reading), 200);
}

/** Somebody looks after the own account. */
async function ownAccount(talk, deployment, contract) {
    const person = deployment.addPerson();
    const browser = await signIn(talk, person);
    const session = await talk.right('the session', get('/v1/console/session', browser.reading), 200);

    await ownSessions(talk, person, browser);
    await newAuthenticator(talk, person, browser);
    await newPassword(talk, person, browser);
    await lostAuthenticator(talk, person, browser);
    const factors = {email: person.email, password: NEW_PASSWORD, totp: await person.freshCode()};
    const again = new Browser(await talk.right('signing in again', login(factors), 200));
    await guesses(talk, person, again);
    await passwordOfSomebodyElse(talk, deployment, contract, again, session.json.user.id);
}

async function activity(talk, browser, {all, test}) {
    const events = (query) => get(`/v1/console/audit_events${query}`, browser.reading);
    const usage = (query) => get(`/v1/console/usage${query}`, browser.reading);

    await talk.right('what the canary has found', get('/v1/console/system', browser.reading), 200);

    const first = await talk.right('the newest event', events('?limit=1'), 200);
    await talk.right('those before it', events(`?limit=100&starting_after=${first.json.data[0].id}`), 200);
    await talk.right(
        'behind what is no event',
        events('?starting_after=evt_00000000000000000000000000'),
        400,
        'parameter_invalid',
    );
    await talk.right(
        'what an investigation asks',
        events('?type=api_key.&actor=operator&ip=192.0.2.0/24&since=2020-01-01T00:00:00Z&until=2030-01-01T00:00:00Z'),
        200,
    );
    await talk.wrong('what is no type', events('?type=No'), 400, 'parameter_invalid');
    await talk.right('the trail, with a key', get('/v1/audit?limit=2', bearer(all)), 200);
    await talk.right('without the scope', get('/v1/audit', bearer(test)), 403, 'insufficient_scope');
    await talk.right('where the logs end', get('/v1/audit/heads', bearer(all)), 200);
    await talk.right('not with every key', get('/v1/audit/heads', bearer(test)), 403, 'insufficient_scope');
    await talk.right('for people', get('/v1/console/audit_events/heads', browser.reading), 200);
    for (const type of ['text/csv', 'application/x-ndjson']) {
        await talk.direct('the trail as a file', get('/v1/audit', {...bearer(all), Accept: type}), 200);
        await talk.direct('for people', get('/v1/console/audit_events', {...browser.reading, Accept: type}), 200);
    }
    for (const [accept, type] of [
        ['text/csv, */*', 'text/csv'],
        ['application/jsonl', 'application/x-ndjson'],
        ['application/ndjson', 'application/x-ndjson'],
        ['application/x-jsonlines;q=0.9, application/json;q=0.5', 'application/x-ndjson'],
        ['text/html, */*;q=0.8', 'application/json'],
    ]) {
        const {headers} = await talk.direct(accept, get('/v1/audit', {...bearer(all), Accept: accept}), 200);

        assert.equal(headers['content-type'].split(';')[0], type, accept);
    }
    for (const accept of ['application/pdf', 'application/json;q=0'])
        await talk.direct(accept, get('/v1/audit', {...bearer(all), Accept: accept}), 406, 'not_acceptable');
    const paged = get('/v1/console/audit_events', {...browser.reading, Accept: 'text/html'});
    await talk.direct('a form that there is not', paged, 406, 'not_acceptable');
    const isCounted = async () =>
        (await talk.right('usage', usage(''), 200)).json.keys.some((one) => one.id === test.id);
    await until('uses are counted', isCounted);
    for (const group of ['day', 'mode', 'key']) {
        await talk.right(`usage by ${group}`, get(`/v1/usage?group_by=${group}&limit=2`, bearer(test)), 200);
        await talk.right('for people', usage(`?group_by=${group}&from=2026-01-01&to=2026-01-31`), 200);
    }
    await talk.wrong('by week', usage('?group_by=week'), 400, 'parameter_invalid');
    const isTold = async () =>
        (await talk.right('activity', events('?limit=100'), 200)).json.data.some(
            (one) => one.type === 'api_key.used_after_revocation' && one.count >= 1,
        );
    await until('the use of a revoked key is told', isTold);
    await talk.right('usage of a year', usage('?days=366'), 200);
    await talk.right('usage of two keys', usage(`?days=3&key_ids=${test.id},key_00000000000000000000000000`), 200);
    await talk.wrong('of more', usage('?days=367'), 400, 'parameter_invalid');
}

/** What the document says of every operation alike: asked of each, with the examples that it gives. */
async function everyRoute(talk, contract, {browser, early, auditor, all, narrow}) {
    for (const name of contract.operations()) {
        const [method, template] = name.split(' ');
        const {operation, example} = contract.exampleOf(method, template);
        const ways = Object.keys(operation.security[0] ?? {});
        const isKey = ways.includes('api_key');
        const changes = ways.includes('csrf');
        const credential = isKey ? bearer(all) : ways.length ? (changes ? browser.changing : browser.reading) : {};
        const codeOf = (code) => (operation.responses[415]?.$ref?.endsWith('/OAuthNotForm') ? 'invalid_request' : code);
        const ask = (headers, more = {}) => ({
            ...example,
            method: method.toUpperCase(),
            ...more,
            headers: {...example.headers, ...headers, ...more.headers},
        });

        if (ways.length)
            await talk.wrong(
                `${name} without a credential`,
                ask({}),
                401,
                isKey ? 'missing_credentials' : 'invalid_session',
            );
        if (operation.security[0]?.api_key?.length)
            await talk.right(`${name} without the scope`, ask(bearer(narrow)), 403, 'insufficient_scope');
        if (changes) await talk.wrong(`${name} without a CSRF token`, ask(browser.reading), 403, 'csrf_failed');
        if (!isKey && contract.tells(operation, 403, 'role_not_permitted'))
            await talk.right(`${name} as an auditor`, ask(auditor.changing), 403, 'role_not_permitted');
        // A time needs one only if a sooner one stands.
        if (contract.tells(operation, 403, 'step_up_required') && operation.operationId !== 'console_schedule_revocation')
            await talk.right(`${name} without a step-up`, ask(early.changing), 403, 'step_up_required');
        if (operation.responses[400]) {
            await talk.wrong(
                `${name} with a parameter too many`,
                ask(credential, {path: `${example.path}?no_such=1`}),
                400,
                codeOf('parameter_unknown'),
            );
            await talk.other(
                `${name} with what is no UTF-8`,
                ask(credential, {path: `${example.path}?no_such=%FF`}),
                400,
                codeOf('parameter_invalid'),
            );
            await talk.other(
                `${name} with half a credential`,
                ask({...credential, Authorization: 'Bearer'}),
                400,
                codeOf('bad_request'),
            );
        }
        if (example.body)
            await talk.wrong(
                `${name} with another type`,
                ask(credential, {headers: {'Content-Type': 'text/plain'}}),
                415,
                codeOf('unsupported_media_type'),
            );
        if (operation.responses[404]) await talk.right(`${name} of what is not there`, ask(credential), 404);
        if (changes)
            await talk.right(
                `${name} with another CSRF token`,
                ask({...credential, 'X-CSRF-Token': 'x'.repeat(43)}),
                403,
                'csrf_failed',
            );
    }
}

const form = (path, values, headers = {}) => ({
    method: 'POST',
    path,
    headers: {'Content-Type': 'application/x-www-form-urlencoded', ...headers},
    body: new URLSearchParams(values).toString(),
});
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const begin = (values, headers) => form('/v1/auth/device_authorization', values, headers);
const claim = (code, more = {}) =>
    form('/v1/auth/token', {grant_type: GRANT, device_code: code, client_id: 'desktop-agent', ...more});

async function mistakesOfAgents(talk, code) {
    await talk.wrong('no client', begin({scope: 'documents:write'}), 400, 'invalid_request');
    await talk.right('an unknown client', begin({client_id: 'nobody'}), 400, 'invalid_client');
    await talk.wrong(
        'another scope',
        begin({client_id: 'desktop-agent', scope: 'patients:read'}),
        400,
        'invalid_scope',
    );
    await talk.wrongDirectly(
        'a parameter twice',
        {...begin({}), body: 'client_id=desktop-agent&client_id=desktop-agent'},
        400,
        'invalid_request',
    );
    await talk.right(
        'a foreign origin',
        begin({client_id: 'desktop-agent'}, {Origin: 'https://elsewhere.test'}),
        403,
        'invalid_request',
    );
    await talk.wrong('another grant', claim(code, {grant_type: 'password'}), 400, 'unsupported_grant_type');
    await talk.wrong(
        'no device code',
        form('/v1/auth/token', {grant_type: GRANT, client_id: 'desktop-agent'}),
        400,
        'invalid_request',
    );
    await talk.right('an unknown client', claim(code, {client_id: 'nobody'}), 400, 'invalid_client');
    await talk.right('an unknown code', claim('A'.repeat(43)), 400, 'invalid_grant');
    await talk.direct('a long one', claim('A'.repeat(5000)), 413, 'invalid_request');
    const long = {...begin({client_id: 'desktop-agent'}).headers, 'X-Long': 'x'.repeat(17000)};
    await talk.direct('a long head', {...begin({client_id: 'desktop-agent'}), headers: long}, 431);
    await talk.right(
        'a foreign origin',
        {...claim(code), headers: {...claim(code).headers, Origin: 'https://elsewhere.test'}},
        403,
        'invalid_request',
    );
}

const revoke = (values, headers) => form('/v1/auth/revoke', values, headers);

const NOBODYS = 'svc_sk_live_000000000000000000000000000000001Z5csm'; // the checksum is right

async function revocationsBySecret(talk, all) {
    const {secret} = (
        await talk.right('a key', post('/v1/api_keys', {name: 'Found', mode: 'test'}, bearer(all)), 201)
    ).json;
    await talk.wrong('no token', revoke({token_type_hint: 'access_token'}), 400, 'invalid_request');
    await talk.right('what is no secret', revoke({token: 'something'}), 200);
    await talk.right('by its secret', revoke({token: secret, token_type_hint: 'access_token'}), 200);
    await talk.right('again, in a line', revoke({token: `curl -H 'X-API-Key: ${secret}' https://x`}), 200);
    const named = post('/v1/api_keys', {name: secret, mode: 'test'}, bearer(all));
    await talk.right('as a name', named, 400, 'secret_in_text');
    await talk.wrong('in a query', get(`/v1/api_keys?${secret}=1`, bearer(all)), 400, 'secret_in_text');
    await talk.right('as a hint', revoke({token: 'a', token_type_hint: secret}), 400, 'invalid_request');
    await talk.right('cut', revoke({token: secret.slice(0, 40)}), 400, 'parameter_invalid');
    const leaking = {'X-Request-Id': secret};
    await talk.right('as a request id', get('/v1/whoami', {...bearer(all), ...leaking}), 400, 'secret_in_text');
    await talk.right('while revoking', revoke({token: 'a'}, leaking), 400, 'secret_in_text');
    await talk.right('while enrolling', begin({client_id: 'desktop-agent'}, leaking), 400, 'invalid_request');
    const polling = claim('A'.repeat(43));
    const leakingPoll = {...polling, headers: {...polling.headers, ...leaking}};
    await talk.right('while polling', leakingPoll, 400, 'invalid_request');
    await talk.right('it is refused', get('/v1/whoami', bearer(secret)), 401, 'api_key_revoked');
    await talk.wrongDirectly('twice', {...revoke({}), body: 'token=a&token=b'}, 400, 'invalid_request');
    await talk.right('a page elsewhere', revoke({token: secret}, {Origin: 'https://elsewhere.test'}), 403, 'csrf_failed');
    await untilThrottled(talk, 'guesses', revoke({token: NOBODYS}), 200);
}

async function enrolOne(talk, browser) {
    const codes = (
        await talk.right(
            'a device',
            begin({client_id: 'desktop-agent', scope: 'documents:write', device_name: 'Reception PC'}),
            200,
        )
    ).json;
    const enrolment = `/v1/console/device_enrolments/${codes.user_code}`;
    const decide = (verb) => ({method: 'POST', path: `${enrolment}/${verb}`, headers: browser.changing});
    await talk.right('not yet', claim(codes.device_code), 400, 'authorization_pending');
    await talk.right('too soon', claim(codes.device_code), 400, 'slow_down');
    await mistakesOfAgents(talk, codes.device_code);
    await talk.right('what it is', get(enrolment, browser.reading), 200);
    await talk.right(
        'as people type it',
        get(`/v1/console/device_enrolments/${codes.user_code.toLowerCase().replace('-', '')}`, browser.reading),
        200,
    );
    await talk.right('letting it in', decide('approve'), 200);
    const {json} = await talk.right('its key', claim(codes.device_code), 200);
    await talk.right('a second time', claim(codes.device_code), 400, 'invalid_grant');
    return json.access_token;
}

async function refuseOne(talk, browser) {
    const codes = (await talk.right('a device without a name', begin({client_id: 'desktop-agent'}), 200)).json;
    const decide = (verb) => ({
        method: 'POST',
        path: `/v1/console/device_enrolments/${codes.user_code}/${verb}`,
        headers: browser.changing,
    });
    await talk.right('not letting it in', decide('deny'), 200);
    await talk.right('what it hears', claim(codes.device_code), 400, 'access_denied');
    await talk.right('too late', decide('approve'), 404, 'enrolment_not_found');
}

async function oneDeviceTooMany(talk, browser) {
    const codes = (await talk.right('one more', begin({client_id: 'desktop-agent'}), 200)).json;
    const path = `/v1/console/device_enrolments/${codes.user_code}/approve`;
    const approve = {method: 'POST', path, headers: browser.changing};
    await talk.right('more than there may be', approve, 409, 'key_limit_reached');
}

async function devices(talk, browser) {
    const list = (query) => get(`/v1/console/device_keys${query}`, browser.reading);

    await talk.right('discovery', get('/.well-known/oauth-authorization-server'), 200);
    const key = await enrolOne(talk, browser);
    await refuseOne(talk, browser);
    await talk.right('a device key asks who it is', get('/v1/whoami', bearer(key)), 403, 'insufficient_scope');
    await talk.other('it uploads', post('/v1/documents', {}, bearer(key)), 404, 'not_found');
    const {json} = await talk.right('the devices', list('?status=active'), 200);
    const {id} = json.data[0];
    await talk.right('those behind it', list(`?limit=1&starting_after=${id}`), 200);
    await talk.right('those before it', list(`?ending_before=${id}`), 200);
    await oneDeviceTooMany(talk, browser);
    await talk.wrong('a mode, which devices have not', list('?mode=live'), 400, 'parameter_unknown');
    await talk.right('locking it out', remove(`/v1/console/device_keys/${id}`, browser.changing), 200);
    await talk.right('its certificate', get(`/v1/console/device_keys/${id}/revocation`, browser.reading), 200);
    await talk.right('a revoked device key', get('/v1/whoami', bearer(key)), 401, 'device_key_revoked');
    return id;
}

/** Creates, and revokes again where it says so, until the answer is that one. */
async function createUntil(talk, title, path, headers, mode, again, code) {
    for (let tries = 0; tries < 200; tries++) {
        const request = post(path, {name: `Key ${tries}`, mode, scopes: ['keys:manage']}, headers);
        const {answer} = await talk.either(title, request, [201], [code === 'rate_limited' ? 429 : 409, code]);
        if (answer.status !== 201) return;
        if (again) await talk.right('and away with it', remove(`${path}/${answer.json.id}`, headers), 200);
    }
    talk.faults.push(`${title}: no limit`);
}

/** Replacements may exceed the limit, up to twice. */
async function replaceUntil(talk, title, makeRequest) {
    for (let tries = 0; tries < 200; tries++) {
        const {answer} = await talk.either(title, await makeRequest(), [201], [409, 'key_limit_reached']);
        if (answer.status !== 201) return;
    }
    talk.faults.push(`${title}: no limit`);
}

/** Its first use is noted behind the answer. Until then a repeated request makes another one. */
async function untilReplaced(talk, title, makeRequest) {
    for (let tries = 0; tries < 200; tries++) {
        const {answer} = await talk.either(title, makeRequest(), [201], [409, 'already_replaced']);
        if (answer.status !== 201) return;
        await talk.right('the new key is used', get('/v1/whoami', bearer(answer.json)), 200);
    }
    talk.faults.push(`${title}: never in use`);
}

/** Refused because of what was created in the last minute. If that has gone by, it is created again. */
async function isLimited(talk, title, create, makeRequest) {
    for (let tries = 0; tries < 5; tries++) {
        const request = await makeRequest();
        const done = request.method === 'POST' ? 201 : 200;
        const {answer} = await talk.either(title, request, [done], [429, 'rate_limited']);
        if (answer.status === 429) return;
        await create();
    }
    talk.faults.push(`${title}: no limit`);
}

async function tooManyKeys(talk, browser, {all, lister, test}) {
    const asPerson = ['/v1/console/api_keys', browser.changing];
    const asKey = (key) => ['/v1/api_keys', bearer(key)];
    const replaceOne = async (path, mode, headers) => {
        const {json} = await talk.right('one of them', get(`${path}?mode=${mode}&status=active&limit=1`, headers), 200);
        return post(`${path}/${json.data[0].id}/replacement`, {overlap_seconds: 60}, headers);
    };

    await createUntil(talk, 'keys without end', ...asKey(lister), 'live', true, 'rate_limited');
    await createUntil(talk, 'test keys that stay', ...asKey(test), 'test', false, 'key_limit_reached');
    await replaceUntil(talk, 'and replacements', () => replaceOne('/v1/api_keys', 'test', bearer(test)));
    await createUntil(talk, 'test keys of a person', ...asPerson, 'test', false, 'key_limit_reached');
    const more = {email: 'more@example.org', role: 'auditor'};
    const ending = await talk.right('one that will end', post(asPerson[0], {name: 'Ends', mode: 'live'}, asPerson[1]), 201);
    const endOf = (path) => `${path}/${ending.json.id}/scheduled_revocation`;
    const asAnother = () => createUntil(talk, 'keys of another', ...asKey(all), 'live', true, 'rate_limited');
    await asAnother();
    await isLimited(talk, 'nor people', asAnother, () => post('/v1/team/invitations', more, bearer(all)));
    await isLimited(talk, 'nor a replacement', asAnother, () => replaceOne('/v1/api_keys', 'live', bearer(all)));
    await talk.right('though its end, once', put(endOf('/v1/api_keys'), at(2), bearer(all)), 200);
    let names = 0;
    const renameOne = (path, headers) => patch(`${path}/${ending.json.id}`, {name: `Name ${++names}`}, headers);
    await isLimited(talk, 'nor a name', asAnother, () => renameOne('/v1/api_keys', bearer(all)));
    await isLimited(talk, 'but not again', asAnother, () => put(endOf('/v1/api_keys'), at(1), bearer(all)));
    const person = () => createUntil(talk, 'live keys of a person', ...asPerson, 'live', true, 'rate_limited');
    await person();
    await isLimited(talk, 'nor people', person, () => post('/v1/console/invitations', more, browser.changing));
    await isLimited(talk, 'nor a replacement', person, () => replaceOne(asPerson[0], 'live', browser.changing));
    await isLimited(talk, 'nor a name', person, () => renameOne(...asPerson));
    await isLimited(talk, 'nor another end', person, () => put(endOf(asPerson[0]), at(1), browser.changing));
    await isLimited(talk, 'nor none', person, () => remove(endOf(asPerson[0]), browser.changing));
}

const SLOW_DOWN = [400, 'slow_down'];

async function tooMuch(talk, browser) {
    const code = 'BCDF-GHJK';
    const guess = (verb) => ({
        method: verb ? 'POST' : 'GET',
        path: `/v1/console/device_enrolments/${code}${verb}`,
        headers: verb ? browser.changing : browser.reading,
    });

    for (const verb of ['', '/approve', '/deny'])
        await untilThrottled(talk, 'guesses at user codes', guess(verb), 404, 'enrolment_not_found');
    await untilThrottled(talk, 'guesses at device codes', claim('A'.repeat(43)), 400, 'invalid_grant', SLOW_DOWN);
    await untilThrottled(talk, 'devices without end', begin({client_id: 'desktop-agent'}), 200, undefined, SLOW_DOWN);
    await untilThrottled(
        talk,
        'guesses at passwords',
        login({email: 'nobody@example.org', password: 'a guess, and another', totp: '123456'}),
        401,
        'invalid_login',
    );
}

/** Every operation that takes a credential, and a sign-in. */
async function suspendedAccount(talk, deployment, contract, {browser, all}, person) {
    const code = 'account_suspended';

    deployment.changeAccount('suspend');
    for (const name of contract.operations()) {
        const [method, template] = name.split(' ');
        const {operation, example} = contract.exampleOf(method, template);
        const ways = Object.keys(operation.security[0] ?? {});
        const headers = {...example.headers, ...(ways.includes('api_key') ? bearer(all) : browser.changing)};
        const request = {...example, method: method.toUpperCase(), headers};
        if (ways.length) await talk.right(`${name} of a suspended account`, request, 403, code);
    }
    const factors = {email: person.email, password: PASSWORD, totp: await person.freshCode()};
    await talk.right('signing in to it', login(factors, {Origin: ORIGIN}), 403, code);
    deployment.changeAccount('resume');
    await talk.right('resumed', get('/v1/whoami', bearer(all)), 200);
}

async function storeAway(talk, deployment, browser) {
    deployment.pauseRedis();
    await talk.right('no store', get('/v1/console/session', browser.reading), 503, 'store_unavailable');
    await talk.right('no device', begin({client_id: 'desktop-agent'}), 503, 'temporarily_unavailable');
    const [{url, internalUrl}] = deployment.nodes;
    await until('the node is not ready', async () => (await send(url, get('/readyz'))).status === 503);
    await talk.right('a node that is not ready', get('/readyz'), 503);
    await talk.right('it runs all the same', get('/livez'), 200);
    deployment.resumeRedis();
    await until('the store is back', async () => (await send(internalUrl, get('/readyz'))).status === 200);
    // A node is ready by its lease; the connection for changes may be down a moment longer.
    const change = {method: 'DELETE', path: '/v1/console/sessions', headers: browser.changing};
    await until('changes are stored', async () => (await send(url, change)).status === 200);
}

/** Keys that manage people, and may not. */
async function team(talk, browser, {all, owner, member}) {
    const made = await talk.right(
        'a test key for the team',
        post('/v1/console/api_keys', {name: 'HR trial', mode: 'test', scopes: ['team:manage']}, browser.changing),
        201,
    );
    const trial = bearer(made.json);
    const invite = (role, key) => post('/v1/team/invitations', {email: 'hr@example.org', role}, key);

    await talk.right('the team', get('/v1/team?limit=2', bearer(all)), 200);
    await talk.right('for no test key', get('/v1/team', trial), 403, 'mode_not_permitted');
    await talk.right('an auditor by key', invite('auditor', bearer(all)), 201);
    const {json: narrow} = await talk.right(
        'a key for the team alone',
        post('/v1/console/api_keys', {name: 'HR', mode: 'live', scopes: ['team:manage']}, browser.changing),
        201,
    );
    await talk.right('nobody worth more', invite('auditor', bearer(narrow)), 403, 'scope_not_grantable');
    await talk.right('no owner by key', invite('owner', bearer(all)), 403, 'role_not_permitted');
    await talk.right('by no test key', invite('auditor', trial), 403, 'mode_not_permitted');
    const {json: known} = await talk.right('whom it knows', get('/v1/team', bearer(all)), 200);
    const taken = {email: known.data[0].email, role: 'auditor'};
    await talk.right('who is there', post('/v1/team/invitations', taken, bearer(all)), 409, 'user_exists');
    await talk.right('removed by key', remove(`/v1/team/${member}`, bearer(all)), 200);
    await talk.right('not an owner', remove(`/v1/team/${owner}`, bearer(all)), 403, 'role_not_permitted');
    await talk.right('not by a test key', remove(`/v1/team/${owner}`, trial), 403, 'mode_not_permitted');
}

async function people(talk, browser, all) {
    const users = (query) => get(`/v1/console/users${query}`, browser.reading);
    const change = (id, verb, value) => post(`/v1/console/users/${id}/${verb}`, value ?? '', browser.changing);
    const bare = (id, verb) => ({method: 'POST', path: `/v1/console/users/${id}/${verb}`, headers: browser.changing});
    const invite = (value) => post('/v1/console/invitations', value, browser.changing);
    const open = (code, headers = {}) => post('/v1/auth/join/begin', {code}, headers);
    const start = (code, headers = {}) => post('/v1/auth/join/start', {code}, headers);
    const codeIn = (answer) => answer.json.url.split('#')[1];

    const page = (await talk.right('people', users('?limit=100'), 200)).json.data;
    await talk.right('the next of them', users(`?limit=1&starting_after=${page[0].id}`), 200);
    const developer = page.find((one) => one.role === 'developer');
    const owner = page.find((one) => one.role === 'owner' && one.status === 'active');
    await talk.right('one', users(`/${developer.id}`), 200);
    await talk.right('to a responder', change(developer.id, 'role', {role: 'responder'}), 200);
    const asAuditor = {role: 'auditor', revoke_keys: 'all'};
    await talk.right('to an auditor without keys', change(developer.id, 'role', asAuditor), 200);
    await talk.wrong('with some keys', change(developer.id, 'role', {...asAuditor, revoke_keys: 'some'}), 400, 'parameter_invalid');
    await talk.wrong('to a king', change(developer.id, 'role', {role: 'king'}), 400, 'parameter_invalid');
    await talk.right('disabled', change(developer.id, 'disable', {}), 200);
    await talk.right('disabled, with own keys', change(developer.id, 'disable', {revoke_keys: 'made'}), 200);
    await talk.right('disabled, with keys', change(developer.id, 'disable', {revoke_keys: true}), 200);
    await talk.right('enabled', bare(developer.id, 'enable'), 200);
    await talk.wrong('perhaps', change(developer.id, 'disable', {revoke_keys: 'yes'}), 400, 'parameter_invalid');
    const {json: session} = await talk.right('who am I', get('/v1/console/session', browser.reading), 200);
    for (const other of page.filter((one) => one.role === 'owner' && one.id !== session.user.id))
        await talk.right('no owner any more', change(other.id, 'role', {role: 'auditor'}), 200);
    const self = session.user.id;
    await talk.right('the last owner steps back', change(self, 'role', {role: 'auditor'}), 409, 'last_owner');
    await talk.right('is disabled', change(self, 'disable', {}), 409, 'last_owner');
    await talk.right('is reset', bare(self, 'reset'), 409, 'last_owner');
    await talk.right('is removed', remove(`/v1/console/users/${self}`, browser.changing), 409, 'last_owner');
    talk.faults.push(...(owner ? [] : ['no owner is listed']));

    const invited = await talk.right('an invitation', invite({email: 'new@example.org', role: 'developer'}), 201);
    await talk.right('a user exists', invite({email: owner.email, role: 'auditor'}), 409, 'user_exists');
    await talk.wrong('no email', invite({email: 'nobody', role: 'auditor'}), 400, 'parameter_invalid');
    const {json: more} = await talk.right('another', invite({email: 'other@example.org', role: 'responder'}), 201);
    await talk.right('the limit', invite({email: 'third@example.org', role: 'auditor'}), 409, 'user_limit_reached');
    await talk.right('those pending', get('/v1/console/invitations?limit=1', browser.reading), 200);
    await talk.right(
        'behind the newest',
        get(`/v1/console/invitations?starting_after=${more.id}`, browser.reading),
        200,
    );
    await talk.right('withdrawn', remove(`/v1/console/invitations/${more.id}`, browser.changing), 204);
    const offer = (await talk.right('what it offers', open(codeIn(invited)), 200)).json;
    await talk.right('from elsewhere', open('x', {Origin: 'https://elsewhere.test'}), 403, 'csrf_failed');
    await talk.right('no link', open('A'.repeat(43)), 404, 'link_not_found');
    await talk.right('and who has seen it', open(codeIn(invited)), 200);
    let Cookie = '';
    const join = (value, headers = {}) => post('/v1/auth/join', {code: codeIn(invited), ...value}, {Cookie, ...headers});
    await talk.right('not started', join({password: PASSWORD, totp: '000000'}), 409, 'link_not_started');
    await talk.right('starting with no link', start('A'.repeat(43)), 404, 'link_not_found');
    await talk.right('from elsewhere', start('x', {Origin: 'https://elsewhere.test'}), 403, 'csrf_failed');
    const started = await talk.right('starting', start(codeIn(invited)), 200);
    Cookie = started.headers['set-cookie'][0].split(';')[0];
    await talk.right('a wrong code', join({password: PASSWORD, totp: '000000'}), 401, 'invalid_login');
    await talk.other('a weak password', join({password: 'password1234', totp: '000000'}), 400, 'parameter_invalid');
    await talk.right(
        'from elsewhere',
        join({password: PASSWORD, totp: '000000'}, {Origin: 'https://elsewhere.test'}),
        403,
        'csrf_failed',
    );
    const grace = new Person(offer.email, started.json.totp_uri);
    const factors = {password: PASSWORD, totp: await grace.freshCode()};
    const arrival = await talk.right('joining', join(factors), 200);
    const {json: joined} = arrival;
    const newcomer = new Browser(arrival);
    newcomer.take(
        await talk.right('stepping up', stepUp(newcomer, {password: PASSWORD, totp: await grace.freshCode()}), 200),
    );
    const theirs = (scopes) => post('/v1/console/api_keys', {name: 'Of Grace', mode: 'test', scopes}, newcomer.changing);
    await talk.right('a key of theirs', theirs(['keys:manage']), 201);
    await talk.right('a key that is stronger', theirs(undefined), 403, 'scope_not_grantable');
    await talk.right('disabled, without the key', change(joined.user.id, 'disable', {revoke_keys: false}), 200);
    await talk.right('and enabled', bare(joined.user.id, 'enable'), 200);
    await talk.right('joining again', join(factors), 404, 'link_not_found');
    const reset = await talk.right('a reset', bare(joined.user.id, 'reset'), 200);
    await talk.right('people, one of them reset', users(''), 200);
    await talk.right('what the reset offers', open(codeIn(reset)), 200);
    await talk.right(
        'removed, with keys',
        remove(`/v1/console/users/${joined.user.id}?revoke_keys=true`, browser.changing),
        200,
    );
    await talk.right('gone', users(`/${joined.user.id}`), 404, 'user_not_found');
    await talk.right('gone already', remove(`/v1/console/users/${joined.user.id}?revoke_keys=made`, browser.changing), 200);
    await team(talk, browser, {all, owner: self, member: developer.id});
    await talk.right('what became of it', get('/v1/console/audit_events?limit=100', browser.reading), 200);
    await untilThrottled(talk, 'codes are guessed', open('A'.repeat(43)), 404, 'link_not_found');
    await talk.right('then nobody joins', join(factors), 429, 'rate_limited');
    await talk.right('and nobody starts', start('A'.repeat(43)), 429, 'rate_limited');
}

async function signOut(talk, browser) {
    await talk.right('signing out', {method: 'POST', path: '/v1/auth/logout', headers: browser.changing}, 204);
    await talk.right('a session that has ended', get('/v1/console/session', browser.reading), 401, 'invalid_session');
}

/** The document itself, byte by byte: past Prism, which writes JSON anew. */
async function theDocument(talk, file) {
    const {headers, body} = await talk.direct('the document', get('/openapi.json'), 200);
    if (body !== file) talk.faults.push('GET /openapi.json is not the file');
    await talk.direct('the same again', get('/openapi.json', {'If-None-Match': headers.etag}), 304);
    const packed = await talk.direct('compressed', get('/openapi.json', {'Accept-Encoding': 'gzip'}), 200);
    if (packed.headers['content-encoding'] !== 'gzip' || packed.body !== file)
        talk.faults.push('GET /openapi.json, compressed, is not the file');
}

async function theProbes(talk) {
    for (const path of ['/livez', '/readyz']) {
        await talk.right(`${path} of a node that is well`, get(path), 200);
        await talk.other(`only the head of ${path}`, {method: 'HEAD', path}, 200);
        await talk.other(`writing to ${path}`, {method: 'POST', path}, 405, 'method_not_allowed');
    }
}

/** Returns what is needed to ask again later. */
export async function play(talk, deployment, contract, file) {
    const ada = deployment.addPerson();
    const bob = deployment.addPerson();
    const browser = await signIn(talk, ada);
    await mistakesAtTheDoor(talk, ada);
    const early = await signIn(talk, bob);
    await mistakesAtStepUp(talk, bob, early);
    browser.take(
        await talk.right('stepping up', stepUp(browser, {password: PASSWORD, totp: await ada.freshCode()}), 200),
    );
    await talk.right('the session, stepped up', get('/v1/console/session', browser.reading), 200);
    const {all, test} = await keysInTheConsole(talk, browser);
    const {narrow, lister} = await keysOfIntegrations(talk, {all, test});
    await lists(talk, browser, {all, test});
    await renames(talk, browser, {all, test});
    await ends(talk, browser, {all, test});
    for (const role of ['developer', 'responder']) await signIn(talk, deployment.addPerson({role}));
    const auditor = await signIn(talk, deployment.addPerson({role: 'auditor'}));
    await everyRoute(talk, contract, {browser, early, auditor, all, narrow});
    await refusedCredentials(talk, browser, {all, narrow});
    await revocationsBySecret(talk, all);
    await otherRoutes(talk, {all, lister});
    await devices(talk, browser);
    await ownAccount(talk, deployment, contract);
    await activity(talk, browser, {all, test});
    await people(talk, browser, all);
    await theDocument(talk, file);
    await theProbes(talk);
    await suspendedAccount(talk, deployment, contract, {browser, all}, bob);
    await tooManyKeys(talk, browser, {all, lister, test});
    await tooMuch(talk, browser);
    return {browser, key: all};
}

export async function finish(talk, deployment, {browser}) {
    await storeAway(talk, deployment, browser);
    await signOut(talk, browser);
}
