// The activity page, in Chromium: filters, single events, exports.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {describe} from 'node:test';

import {until} from '../support/deployment.js';
import {settled, signIn} from './browser.js';
import {browse, deployment, judge, row, someKeys} from './scene.js';

const EVENTS = '**/v1/console/audit_events*';
const AT = {created_at: '2026-01-02T03:04:05.678Z', ip: '192.0.2.1', request_id: 'req_1'};
const ADA = {actor: `usr_${'a'.repeat(26)}`, actor_name: 'ada@example.org'};

// Answers with these events, and notes what was asked for.
async function withEvents(page, events) {
    const asked = [];

    await page.route(EVENTS, (route) => {
        asked.push({
            ...Object.fromEntries(new URL(route.request().url()).searchParams),
            accept: route.request().headers().accept,
        });
        return route.fulfill({json: {data: events, has_more: false}});
    });
    return asked;
}

const queryOf = ({limit, accept, ...query}) => query;

describe('filters', () => {
    browse('are the server’s, stand in the address, and go again', async (page, {person}) => {
        const {
            made: [key, , twin, impostor],
        } = await someKeys(
            ['Followed key', 'test'],
            ['Twin key', 'test'],
            ['twin KEY', 'test'],
            ['eve@example.org', 'test'],
        );
        const eve = {actor: `usr_${'e'.repeat(26)}`, actor_name: 'eve@example.org'};
        const asked = await withEvents(page, [{id: 'evt_1', type: 'session.created', ...eve, ...AT}]);
        const options = page.getByRole('option');
        const last = async (query) =>
            await until(JSON.stringify(query), () => {
                try {
                    assert.deepEqual(queryOf(asked.at(-1)), query);
                    return true;
                } catch {
                    return false;
                }
            });

        await signIn(page, person, '/console/activity');
        await row(page, 'Signed in').waitFor();
        assert.deepEqual(queryOf(asked[0]), {});
        await page.getByLabel('Type', {exact: true}).focus();
        await page.getByLabel('Type', {exact: true}).selectOption('api_key.revoked');
        await last({type: 'api_key.revoked'});
        assert.equal(await page.evaluate(() => document.activeElement.tagName), 'SELECT'); // where it was
        // A key has the email of a person as its name: nothing is chosen for whoever types it, and the person comes first.
        const who = page.getByLabel('Who', {exact: true});
        await who.fill('Eve@Example.org');
        await who.press('Enter');
        await page.getByText('2 match “Eve@Example.org”. Choose one from the list.').waitFor();
        assert.deepEqual(await options.locator('.thing-kind').allTextContents(), ['Person ', 'API key ']);
        assert.deepEqual(await options.locator('.thing-id').allTextContents(), [eve.actor, impostor.id]);
        await options.last().getByText(`…${impostor.last4}`).waitFor();
        await who.press('ArrowDown');
        await judge(page, 'things to choose from');
        await who.press('Enter');
        await last({type: 'api_key.revoked', actor: eve.actor});
        assert.equal(await who.inputValue(), 'eve@example.org');
        await page.locator('.thing-field > .hint').first().getByText('Person', {exact: true}).waitFor();
        await page.getByLabel('About', {exact: true}).fill('followed KEY');
        await page.getByLabel('About', {exact: true}).press('Enter');
        await last({type: 'api_key.revoked', actor: eve.actor, target: key.id});
        await page.getByLabel('Address', {exact: true}).fill(' 192.0.2.0/24 ');
        await page.getByLabel('Address', {exact: true}).press('Enter');
        await page.getByLabel('From', {exact: true}).fill('2026-01-01');
        await page.getByLabel('Until', {exact: true}).fill('2026-01-31');
        const all = {
            type: 'api_key.revoked',
            actor: eve.actor,
            target: key.id,
            ip: '192.0.2.0/24',
            since: '2026-01-01T00:00:00.000Z',
            until: '2026-02-01T00:00:00.000Z', // not included
        };
        await last(all);
        await page.reload();
        await row(page, 'Signed in').waitFor();
        await last(all);
        assert.equal(await page.getByLabel('From', {exact: true}).inputValue(), '2026-01-01');
        assert.equal(await page.getByLabel('Address', {exact: true}).inputValue(), '192.0.2.0/24');

        // Nobody and nothing of this name: said at the field, and nothing is asked.
        const count = asked.length;
        await page.getByLabel('About', {exact: true}).fill('no such thing');
        await page.getByLabel('About', {exact: true}).press('Enter');
        await page.getByText('Nobody and nothing here is called “no such thing”').waitFor();
        assert.equal(asked.length, count);
        await page.getByRole('button', {name: 'Clear filters'}).click();
        await last({});
        assert.equal(new URL(page.url()).search, '');
        await page.getByLabel('Who', {exact: true}).fill('Operator, command line');
        await page.getByLabel('Who', {exact: true}).press('Enter');
        await last({actor: 'operator'});
        await page.getByLabel('About', {exact: true}).fill('twin');
        await page.getByText('2 match', {exact: true}).waitFor();
        await options.filter({hasText: twin.id}).click();
        await last({actor: 'operator', target: twin.id});
        await page.locator('.thing-field > .hint').last().getByText(`API key …${twin.last4}`).waitFor();
    });

    browse('that match nothing say so', async (page, {person}) => {
        await withEvents(page, []);
        await signIn(page, person, '/console/activity?type=account.closed');
        await page.getByText('No entry matches these filters.').waitFor();
    });

    browse('of a computer in another zone count its own days', async (page, {person}) => {
        const asked = await withEvents(page, [{id: 'evt_1', type: 'session.created', ...ADA, ...AT}]);

        await signIn(page, person, '/console/activity?since=2026-07-01&until=2026-07-01');
        await page.getByRole('columnheader', {name: 'When (GMT-3)'}).waitFor();
        assert.equal(asked.at(-1).since, '2026-07-01T03:00:00.000Z');
        assert.equal(asked.at(-1).until, '2026-07-02T03:00:00.000Z');
        await row(page, 'Signed in').getByText('2 Jan 2026, 00:04:05').waitFor();
    }, {timezoneId: 'America/Sao_Paulo'});
});

describe('events', () => {
    // All types of the contract.
    const TYPES = [
        ['api_key.created', 'Created the API key Grace'],
        ['api_key.revoked', 'Revoked the API key Grace'],
        ['api_key.used_after_revocation', 'Refused requests with the revoked API key Grace'],
        ['requests.refused', 'Refused a request with the key Grace: scope missing'],
        ['device_key.created', 'Added the device Grace'],
        ['device_key.revoked', 'Revoked the device Grace'],
        ['device.approved', 'Approved the device Grace'],
        ['device.denied', 'Denied the device Grace'],
        ['session.created', 'Signed in'],
        ['session.ended', 'Signed out'],
        ['session.step_up', 'Confirmed password and code'],
        ['login.failed', 'Failed sign-in as Grace'],
        ['step_up.failed', 'Failed to confirm password and code'],
        ['browser.new', 'Signed in with a new browser'],
        ['user.created', 'Added the user Grace as auditor'],
        ['user.invited', 'Invited Grace as auditor'],
        ['link.opened', 'Opened the link for Grace'],
        ['user.joined', 'Joined as Grace'],
        ['user.role_changed', 'Changed the role of Grace to auditor'],
        ['user.disabled', 'Disabled Grace'],
        ['user.enabled', 'Enabled Grace'],
        ['user.removed', 'Removed Grace'],
        ['user.reset', 'Reset password and authenticator of Grace'],
        ['user.password_reset', 'Reset the password of Grace'],
        ['user.totp_reset', 'Reset the authenticator of Grace'],
        ['user.password_changed', 'Changed the password'],
        ['user.totp_changed', 'Set up a new authenticator'],
        ['user.recovery_codes_made', 'Made new recovery codes'],
        ['user.recovery_used', 'Used a recovery code'],
        ['user.locked', 'Locked Grace after 100 wrong codes with the right password'],
        ['user.unlocked', 'Unlocked Grace'],
        ['account.suspended', 'Suspended the account'],
        ['account.resumed', 'Resumed the account'],
        ['account.closed', 'Closed the account for good'],
        ['store.durability_asserted', 'Asserted that the store keeps what it was given'],
        ['store.upgraded', 'Upgraded the store'],
        ['store.lease_lowered', 'Lowered the longest lease that revocations wait for'],
        ['store.time_settled', 'Made the clock of Redis the time of scheduled revocations'],
        ['master_key.rotated', 'Rotated the master key'],
        ['constructor', 'Event constructor'], // of a later version
    ];

    browse('of every type are plain sentences, and can be filtered by it', async (page, {person}) => {
        await withEvents(
            page,
            TYPES.map(([type], i) => ({
                id: `evt_${i}`,
                type,
                ...ADA,
                ...AT,
                target: `usr_${'b'.repeat(26)}`,
                target_name: 'Grace',
                data: {role: 'auditor', to: 'auditor', reason: 'insufficient_scope'},
            })),
        );
        await signIn(page, person, '/console/activity');
        const rows = page.locator('tbody tr');
        await rows.first().waitFor();
        for (const [i, [type, words]] of TYPES.entries()) {
            assert.ok((await rows.nth(i).locator('.event-words').textContent()).startsWith(words), type);
            if (type !== 'constructor') assert.equal(await page.locator(`option[value="${type}"]`).count(), 1, type);
        }
        await row(page, 'Failed sign-in as Grace').getByText('Somebody, not signed in').waitFor();
        await page.getByRole('button', {name: 'Details: Disabled Grace'}).click();
        const open = page.getByRole('dialog').getByRole('link', {name: 'Open the person'});
        assert.equal(await open.getAttribute('href'), `/console/people?person=usr_${'b'.repeat(26)}`);
    });

    browse('one by one, with everything that is known, and back', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Told apart', 'live']);
        const ids = {id: 'evt_7', request_id: 'req_7'};
        const asked = await withEvents(page, [
            {id: 'evt_8', type: 'session.created', ...ADA, ...AT},
            {
                type: 'api_key.revoked',
                ...ADA,
                ...AT,
                ...ids,
                target: key.id,
                target_name: 'Told apart',
                target_kind: 'api_key',
                data: {reason: 'holder', weather: 'rain'},
            },
        ]);

        await signIn(page, person, '/console/activity');
        await page.getByRole('button', {name: 'Details: Revoked the API key Told apart'}).click();
        const drawer = page.getByRole('dialog', {name: 'Revoked the API key Told apart'});
        for (const text of ['2 Jan 2026, 03:04:05 UTC', AT.created_at, 'ada@example.org', ADA.actor, key.id, 'req_7', 'rain'])
            await drawer.getByText(text, {exact: true}).first().waitFor();
        assert.deepEqual(JSON.parse(await drawer.locator('pre').textContent()).data, {reason: 'holder', weather: 'rain'});
        await judge(page, 'an event');
        await page.goBack();
        await drawer.waitFor({state: 'detached'});
        assert.equal(new URL(page.url()).search, '');
        await page.goForward();
        await drawer.waitFor();
        await page.reload();
        await drawer.waitFor();
        await page.keyboard.press('Escape');
        await drawer.waitFor({state: 'detached'});
        await page.waitForURL('**/console/activity');

        // A click anywhere in the row opens it, too; its links lead on.
        await row(page, 'Revoked the API key').getByText('192.0.2.1').click();
        await drawer.getByRole('link', {name: 'More by the same'}).click();
        await until('the filter', () => asked.at(-1).actor === ADA.actor);
        await row(page, 'Revoked the API key').getByText('192.0.2.1').click();
        await drawer.getByRole('link', {name: 'More from this address'}).click();
        await until('the filter', () => asked.at(-1).ip === '192.0.2.1' && !asked.at(-1).actor);
        await row(page, 'Revoked the API key').getByRole('link', {name: 'Told apart'}).click();
        await page.getByRole('heading', {name: 'Told apart'}).waitFor();
        assert.equal(new URL(page.url()).pathname, `/console/keys/${key.id}`);
    });

    for (const [scheme, size] of [
        ['light', 'wide'],
        ['dark', 'narrow'],
    ])
        browse(
            `accessible, ${scheme} and ${size}`,
            async (page, {person}) => {
                await signIn(page, person, '/console/activity');
                await row(page, 'Signed in').first().waitFor();
                await judge(page, 'activity');
                await page.getByLabel('Who', {exact: true}).fill('the');
                await page.getByRole('option').filter({hasText: 'Somebody with the key'}).waitFor();
                await judge(page, 'activity, things to choose from');
                assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
                await page.getByLabel('Who', {exact: true}).fill('no such thing');
                await page.getByLabel('Who', {exact: true}).press('Enter');
                await page.getByText('Nobody and nothing here is called').waitFor();
                await judge(page, 'activity, nobody of this name');
                assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
            },
            {scheme, size},
        );
});

browse('whoever was removed, or has not joined yet, is told by their email', async (page, {person}) => {
    const gone = {...ADA, ...AT, target: `usr_${'c'.repeat(26)}`, target_name: null, target_kind: 'user'};

    await withEvents(page, [
        {...gone, id: 'evt_2', type: 'user.removed', data: {email: 'eve@example.org', role: 'developer'}},
        {...gone, id: 'evt_1', type: 'user.invited', data: {email: 'eve@example.org', role: 'developer'}},
    ]);
    await signIn(page, person, '/console/activity');
    await row(page, 'Removed eve@example.org').waitFor();
    await row(page, 'Invited eve@example.org as developer').waitFor();
    assert.equal(await page.locator('.event-words a').count(), 0); // to no page
    await page.getByRole('button', {name: 'Details: Removed eve@example.org'}).click();
    const links = page.getByRole('dialog').locator('.event-links');
    await links.getByRole('link', {name: 'More about the same'}).waitFor();
    assert.equal(await links.getByRole('link', {name: 'Open the'}).count(), 0);
});

browse('no name makes a key look like a person, the command line or the service', async (page, {person}) => {
    const me = await deployment.signIn(person);
    const {json} = await me.send('GET', '/v1/console/session');
    const keyNames = ['You', person.email, 'Operator, command line', 'The service', 'Somebody with the key'];
    const keys = keyNames.map((name, i) => [`key_${String(i).repeat(26)}`, name, 'API key']);
    const others = [
        [json.user.id, person.email, 'Person'],
        ['operator', null, 'Command line', 'Operator, command line'],
        ['system', null, 'Service', 'The service'],
        [`dev_${'d'.repeat(26)}`, 'You', 'Device'],
    ];
    const actors = [...keys, ...others];

    await withEvents(
        page,
        actors.map(([actor, name], i) => ({...AT, id: `evt_${i}`, type: 'api_key.created', actor, actor_name: name, target: 'x'})),
    );
    await signIn(page, person, '/console/activity');
    await page.locator('tbody tr').nth(actors.length - 1).waitFor();
    for (const [i, [id, name, kind, words]] of actors.entries()) {
        const who = page.locator('tbody tr').nth(i).locator('[data-label="Who"]');

        assert.equal(await who.locator('.thing-kind').getAttribute('title'), kind, id);
        assert.equal(await who.locator('.thing-kind .icon').count(), 1);
        assert.deepEqual(await who.locator('bdi').allTextContents(), words ? [] : [name]);
        if (words) assert.equal(await who.locator('.wrap').textContent(), words);
        assert.equal(await who.locator('.tag').count(), id === json.user.id ? 1 : 0);
    }
    await page.locator('tbody tr').first().getByText('192.0.2.1').click();
    await page.getByRole('dialog').locator('.hint').getByText('API key', {exact: true}).waitFor();
}, {allowed: /^foreign text: outside of <bdi>: "(Operator, command line|The service)"$/}); // the console's own words

describe('the real trail', () => {
    browse('who revoked this key, who tried to sign in, and all of it as a file', async (page, {person}) => {
        const victim = deployment.addPerson();
        const {
            made: [key, other],
            session,
        } = await someKeys(['Revoked by whom', 'live'], ['Another, kept', 'live']);
        const json = {email: victim.email, password: 'not the right one', totp: '123456'};

        assert.equal((await deployment.api('POST', '/v1/auth/login', {json})).status, 401);
        await session.send('DELETE', `/v1/console/api_keys/${key.id}`);
        await signIn(page, person, '/console/activity');
        await row(page, 'Revoked the API key Revoked by whom').waitFor();
        await row(page, 'Created the API key Another, kept').waitFor();
        await page.getByLabel('Type', {exact: true}).selectOption('api_key.');
        await row(page, 'Signed in').first().waitFor({state: 'detached'});
        await page.getByLabel('About', {exact: true}).fill('Revoked by whom');
        await page.getByLabel('About', {exact: true}).press('Enter');
        await row(page, other.name).waitFor({state: 'detached'});
        await row(page, 'Created the API key Revoked by whom').waitFor(); // no row is there while they are read
        assert.deepEqual(
            (await page.locator('.event-words').allTextContents()).sort(),
            ['Created the API key Revoked by whom', 'Revoked the API key Revoked by whom'],
        );
        for (const [name, read] of [
            ['Export NDJSON', (text) => text.trim().split('\n').map((line) => JSON.parse(line).type)],
            ['Export CSV', (text) => text.trim().split('\r\n').slice(1).map((line) => /api_key\.\w+/.exec(line)[0])],
        ]) {
            const [download] = await Promise.all([
                page.waitForEvent('download'),
                page.getByRole('button', {name}).click(),
            ]);

            assert.deepEqual(read(readFileSync(await download.path(), 'utf8')).sort(), ['api_key.created', 'api_key.revoked']);
        }
        await page.getByRole('button', {name: 'Clear filters'}).click();
        await page.getByLabel('Type', {exact: true}).selectOption('login.failed');
        await row(page, `Failed sign-in as ${victim.email}`).getByText('Somebody, not signed in').waitFor();
        await page.getByLabel('Address', {exact: true}).fill('192.0.2.0/24');
        await page.getByLabel('Address', {exact: true}).press('Enter');
        await page.getByText('No entry matches these filters.').waitFor();
        await page.getByLabel('Address', {exact: true}).fill('127.0.0.0/8');
        await page.getByLabel('Address', {exact: true}).press('Enter');
        await row(page, `Failed sign-in as ${victim.email}`).waitFor();
        await page.getByLabel('Until', {exact: true}).fill('2026-01-01');
        await page.getByText('No entry matches these filters.').waitFor();

        // The key's own page has the same, and leads here.
        await page.goto(`/console/keys/${key.id}`);
        await row(page, 'Revoked the API key Revoked by whom').waitFor();
        await page.getByRole('link', {name: 'All about this key'}).click();
        await row(page, 'Created the API key Revoked by whom').waitFor();
        await until('the name of the key', async () => {
            return (await page.getByLabel('About', {exact: true}).inputValue()) === 'Revoked by whom';
        });
        await page.getByLabel('Address', {exact: true}).fill('no address');
        await page.getByLabel('Address', {exact: true}).press('Enter');
        await page.getByText('This did not work').waitFor();
    });
});

describe('exports', () => {
    browse('hold what the filters let through', async (page, {person}) => {
        const files = {'text/csv': 'id,type\r\nevt_1,session.created\r\n', 'application/x-ndjson': '{"id":"evt_1"}\n'};
        const asked = [];

        await page.route(EVENTS, (route) => {
            const {accept} = route.request().headers();

            asked.push({accept, search: new URL(route.request().url()).search});
            return accept in files
                ? route.fulfill({contentType: `${accept}; charset=utf-8`, body: files[accept]})
                : route.fulfill({json: {data: [{id: 'evt_1', type: 'session.created', ...ADA, ...AT}], has_more: false}});
        });
        await signIn(page, person, '/console/activity?type=session.created&since=2026-01-01');
        await row(page, 'Signed in').waitFor();
        for (const [name, file, type] of [
            ['Export CSV', 'activity.csv', 'text/csv'],
            ['Export NDJSON', 'activity.ndjson', 'application/x-ndjson'],
        ]) {
            const [download] = await Promise.all([
                page.waitForEvent('download'),
                page.getByRole('button', {name}).click(),
            ]);

            assert.equal(download.suggestedFilename(), file);
            assert.equal(readFileSync(await download.path(), 'utf8'), files[type]);
            assert.deepEqual(asked.at(-1), {
                accept: type,
                search: '?type=session.created&since=2026-01-01T00%3A00%3A00.000Z',
            });
        }
    });

    browse('of signed heads are a JWS, whatever the filters', async (page, {person}) => {
        await signIn(page, person, '/console/activity?type=session.created');
        await settled(page);
        const [download] = await Promise.all([
            page.waitForEvent('download'),
            page.getByRole('button', {name: 'Signed heads'}).click(),
        ]);

        assert.equal(download.suggestedFilename(), 'audit-heads.jwt');
        const [header, claims] = readFileSync(await download.path(), 'utf8')
            .split('.')
            .map((part) => Buffer.from(part, 'base64url').toString());
        assert.equal(JSON.parse(header).typ, 'audit-heads+jwt');
        assert.ok(Array.isArray(JSON.parse(claims).heads));
    });

    browse('that fail say so, and are no file', async (page, {person}) => {
        let downloads = 0;

        page.on('download', () => {
            downloads += 1;
        });
        await signIn(page, person, '/console/activity');
        await settled(page);
        await page.route(EVENTS, (route) =>
            route.fulfill({status: 503, headers: {'Retry-After': '1'}, json: {error: {code: 'store_unavailable'}}}),
        );
        await page.getByRole('button', {name: 'Export CSV'}).click();
        await page.getByText('Nothing is lost').waitFor();
        await page.unroute(EVENTS);
        await page.route(EVENTS, (route) => route.fulfill({contentType: 'text/html', body: '<p>A proxy’s page'}));
        await page.getByRole('button', {name: 'Export NDJSON'}).click();
        await page.getByText('Nothing is lost').waitFor({state: 'detached'});
        await page.getByRole('alert').getByText('The server sent no file.').waitFor();
        assert.equal(downloads, 0);
    });
});
