// A person's whole life in the console, with real one-time codes: invited, joined, made a key, lost the phone, recovered,
// was promoted, was removed. The nodes' audit logs record it, and reveal any change to them.
import assert from 'node:assert/strict';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join as joinPath} from 'node:path';
import {after, before, test} from 'node:test';

import {ask, PASSWORD, PATIENCE_MS, Session, until} from '../support/deployment.js';
import {Deployment} from './deployment.js';
import {BROWSER, launch, Visitor} from './visitor.js';

const EMAIL = 'grace@example.org';
// In the order in which it happens.
const STORY = [
    'user.invited',
    'user.joined',
    'api_key.created',
    'user.recovery_used',
    'user.role_changed',
    'user.removed',
    'api_key.revoked',
];
const folder = mkdtempSync(joinPath(tmpdir(), 'chatelaine-audit-'));
const auditLogs = [0, 1, 2].map((i) => joinPath(folder, `node${i}.log`));

let deployment;
let browser;

before(async () => {
    deployment = await Deployment.start({others: 2, auditLogs});
    browser = await launch();
});

after(async () => {
    await browser?.close();
    await deployment?.stop();
    rmSync(folder, {recursive: true});
});

// An integration that uses the key all the time, at every node. Returns how to stop it; then it says at which time each
// request began and how it ended.
function integrate(secret) {
    const headers = {Authorization: `Bearer ${secret}`};
    const requests = [];
    let goesOn = true;
    const loops = deployment.nodes.map(async ({url}) => {
        while (goesOn) {
            const begun = performance.now();

            requests.push({begun, status: (await ask(url, 'GET', '/v1/whoami', {headers})).status});
        }
    });

    return async () => {
        goesOn = false;
        await Promise.all(loops);
        return requests;
    };
}

async function invite(owner, ada) {
    await owner.goto('/console/people');
    await owner.press('Invite');
    await owner.fill('dialog input[name="email"]', EMAIL);
    await owner.click('dialog input[value="developer"]');
    await owner.pressInDialog('Create invitation');
    await owner.reaches('Send them this link', ada);
    const link = await owner.read('.secret-text');
    await owner.closeDialog('Done');
    await owner.says('Pending invitations');
    return link;
}

// Reads the secret as somebody does who cannot scan.
async function scan(visitor) {
    const secret = (await visitor.read('.totp-secret')).replaceAll(' ', '');

    return deployment.personOf(EMAIL, `otpauth://totp/x?secret=${secret}`);
}

async function join(visitor, link) {
    await visitor.page.goto(link);
    await visitor.says(`Join Köln Clinic`);
    await visitor.says(EMAIL);
    await visitor.says('Developer');
    assert.equal(visitor.page.url(), `${deployment.origin}/console/join`);
    await visitor.press('Continue');
    const grace = await scan(visitor);
    await visitor.read('.qr');
    await visitor.fill('input[name="new-password"]', PASSWORD);
    await visitor.fill('input[name="totp"]', await grace.freshCode());
    await visitor.press('Join');
    await visitor.says('Welcome to Köln Clinic');
    return grace;
}

async function takeRecoveryCodes(visitor, grace) {
    await visitor.press('Get new codes');
    await visitor.pressInDialog('Show new codes');
    await visitor.reaches('Keep these codes safe', grace);
    const code = await visitor.read('.recovery-codes li');
    await visitor.click('dialog input[name="stored"]');
    await visitor.closeDialog('Done');
    await visitor.says('10 of 10 left.');
    return code;
}

async function makeKey(visitor, grace) {
    await visitor.goto('/console/');
    await visitor.press('Create key');
    await visitor.fill('dialog input[name="key-name"]', 'Made by Grace');
    await visitor.click('dialog input[value="patients:read"]');
    await visitor.click('dialog.create button[type="submit"]');
    await visitor.reaches('Store the secret now', grace);
    const secret = await visitor.read('.secret-text');
    await visitor.click('dialog input[name="stored"]');
    await visitor.closeDialog('Done');
    return secret;
}

async function recover(visitor, code) {
    await visitor.press('Lost your phone?');
    await visitor.fill('input[name="email"]', EMAIL);
    await visitor.fill('input[name="password"]', PASSWORD);
    await visitor.fill('input[name="recovery-code"]', code);
    await visitor.press('Continue');
    const grace = await scan(visitor);
    await visitor.fill('input[name="totp"]', await grace.freshCode());
    await visitor.press('Confirm');
    await visitor.says('Your new authenticator is set up.');
    await visitor.fillSignIn(grace);
    await visitor.read('.menu-button');
    return grace;
}

async function openGrace(owner) {
    await owner.goto('/console/people');
    await owner.press(EMAIL);
    await owner.says('Reset access');
}

async function promote(owner, ada) {
    await openGrace(owner);
    await owner.pressInDialog('Change role');
    await owner.click('dialog:last-of-type input[value="owner"]');
    await owner.pressInDialog('Change role');
    await owner.reaches(EMAIL, ada);
    await until('the new role', async () => (await owner.read('.person-sheet dd')) === 'Owner');
}

async function remove(owner, ada) {
    await openGrace(owner);
    await owner.pressInDialog('Remove');
    await owner.says('1 active key goes back to them:');
    await owner.click('dialog:last-of-type input[value="all"]');
    await owner.pressInDialog('Remove person');
    await owner.reaches('Removed, everywhere', ada);
    return performance.now();
}

// The audit log of the node that browsers use, as a list of lines; and what is found if it is these instead.
const linesOf = (log) => readFileSync(log, 'utf8').trimEnd().split('\n');

function verifyWith(lines) {
    const falsified = joinPath(folder, 'falsified.log');
    const [, ...others] = auditLogs;

    writeFileSync(falsified, `${lines.join('\n')}\n`);
    const {status, findings} = deployment.verifyAudit(falsified, ...others);
    return {status, wrong: findings.filter(({wrong}) => wrong).map(({kind, seq}) => ({kind, seq}))};
}

function checkAuditLogs() {
    const types = auditLogs.flatMap(linesOf).map((line) => JSON.parse(line).type);
    const {status, chains, findings} = deployment.verifyAudit(...auditLogs);

    for (const type of STORY) assert.ok(types.includes(type), `${type} is in no log`);
    assert.deepEqual(
        findings.filter(({wrong}) => wrong),
        [],
    );
    assert.equal(status, 0);
    assert.ok(chains.every(({whole, ended}) => whole && ended));

    const lines = linesOf(auditLogs[0]);
    const at = lines.findIndex((line) => line.includes('"user.removed"'));
    const {seq} = JSON.parse(lines[at]);
    const changed = lines.with(at, lines[at].replace(EMAIL, EMAIL.replace('grace', 'gracf')));
    assert.notEqual(changed[at], lines[at]);
    assert.deepEqual(verifyWith(changed), {status: 1, wrong: [{kind: 'changed', seq}]});
    assert.deepEqual(verifyWith(lines.toSpliced(at, 1)), {status: 1, wrong: [{kind: 'missing', seq}]});
    const last = lines.findLastIndex((line) => !JSON.parse(line).type.startsWith('log.'));
    for (const end of [at, last]) {
        const cut = verifyWith(lines.slice(0, end));
        assert.equal(cut.status, 1);
        assert.deepEqual([...new Set(cut.wrong.map(({kind}) => kind))], ['cut']);
    }
    assert.deepEqual(verifyWith(lines), {status: 0, wrong: []});
}

test(`a person's life, in ${BROWSER}`, {timeout: 10 * PATIENCE_MS}, async () => {
    const ada = deployment.addPerson();
    const owner = await Visitor.open(browser, deployment.origin);
    const visitor = await Visitor.open(browser, deployment.origin);
    const mine = (path) => visitor.ask(path);

    await owner.signIn(ada);
    const link = await invite(owner, ada);
    let grace = await join(visitor, link);
    const code = await takeRecoveryCodes(visitor, grace);
    const secret = await makeKey(visitor, grace);

    // The phone is lost; the recovery code works once.
    await visitor.signOut();
    grace = await recover(visitor, code);
    await visitor.goto('/console/account');
    await visitor.says('9 of 10 left.');

    // Promoted: without signing in again.
    assert.equal((await mine('/v1/console/session')).json.user.role, 'developer');
    await promote(owner, ada);
    assert.equal((await mine('/v1/console/session')).json.user.role, 'owner');
    await visitor.goto('/console/people');
    await visitor.press('Invite');

    // Removed, with the key, while an integration and sessions of hers run at other nodes.
    const sessions = [];
    for (const {url} of deployment.nodes.slice(1)) sessions.push(await Session.open(url, grace));
    const stop = integrate(secret);
    const removedMs = await remove(owner, ada);
    for (const session of sessions) {
        const answer = await session.send('GET', '/v1/console/session');
        assert.equal(answer.json.error?.code, 'invalid_session');
    }
    const refused = await mine('/v1/console/session');
    assert.equal(refused.json.error?.code, 'invalid_session');
    for (const {url} of deployment.nodes) {
        const answer = await ask(url, 'GET', '/v1/whoami', {headers: {Authorization: `Bearer ${secret}`}});
        assert.equal(answer.json.error?.code, 'api_key_revoked');
    }
    const requests = await stop();
    assert.ok(requests.filter(({begun, status}) => begun < removedMs && status === 200).length > 0);
    assert.deepEqual([...new Set(requests.filter(({begun}) => begun >= removedMs).map(({status}) => status))], [401]);
    const facts = await owner.read('dialog:last-of-type .facts');
    assert.match(facts, /Sessions ended3/);
    assert.match(facts, /1 key or device\..*Made by Grace/);
    assert.equal(await owner.page.$('dialog:last-of-type .notice.error'), null);
    await visitor.goto('/console/people');
    await visitor.says('Sign in');

    // The trail tells the story, newest first.
    const {json: trail} = await owner.ask('/v1/console/audit_events?limit=100');
    const story = trail.data.filter(({type}) => /^(user|api_key)\./.test(type)).map(({type}) => type);
    const seen = STORY.map((type) => story.lastIndexOf(type));
    assert.ok(
        seen.every((at) => at >= 0),
        `${STORY.filter((_, i) => seen[i] < 0)} not in ${story}`,
    );
    const order = seen.slice(0, 5);
    assert.deepEqual(
        order,
        [...order].sort((a, b) => b - a),
    );
    await owner.goto('/console/people');
    await owner.says(ada.email);
    assert.ok(!(await owner.page.content()).includes(EMAIL));
    assert.deepEqual([...owner.complaints, ...visitor.complaints], []);

    await browser.close();
    await deployment.stopNodes(); // each notes how far the logs of those that ended before it go
    checkAuditLogs();
});
