// The list of keys and a key's own page, in Chromium.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {until} from '../support/deployment.js';
import {askForTestKey, changeAnswers, confirmStepUp, passTime, settled, signIn} from './browser.js';
import {addUse, browse, deployment, focused, judge, row, someKeys} from './scene.js';
import {enrolDevice} from './seed.js';

// Of the contract, each with one request.
const REASONS = {revoked: 1, insufficient_scope: 1, mode_not_permitted: 1, account_suspended: 1};
const SCOPES = [
    ...['exchanges:read', 'exchanges:write', 'patients:read', 'patients:write', 'webhooks:manage', 'keys:manage'],
    ...['audit:read', 'team:manage', 'org:manage', 'usage:read', 'documents:write', 'sandbox:manage'],
];
const REVOKE_PATH = '/v1/console/api_keys/revoke';
const NO_KEY = `key_${'0'.repeat(26)}`;
const namesShown = (page) => page.locator('.row-name').allTextContents();

describe('the list', () => {
    browse('sorted by use, requests and name, and narrowed to a scope', async (page, {person}) => {
        const {
            made: [rare, busy],
        } = await someKeys(
            ['Sorted c', 'test', ['usage:read']],
            ['Sorted a', 'test', ['patients:read', 'patients:write']],
            ['Sorted b', 'test', ['patients:read']],
        );

        addUse(rare, 3, 5);
        addUse(busy, 4, 700);
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: rare.secret})).status, 200);
        await signIn(page, person, '/console/?search=sorted');
        const shows = (...letters) =>
            until(`${letters}`, async () => (await namesShown(page)).join() === letters.map((x) => `Sorted ${x}`).join());
        await shows('b', 'a', 'c');
        await page.getByLabel('Sort', {exact: true}).selectOption('name');
        await shows('a', 'b', 'c');
        await page.getByLabel('Sort', {exact: true}).selectOption('requests');
        await shows('a', 'c', 'b');
        await until('the use to be recorded', async () => {
            await page.goto('/console/?search=sorted&sort=used');
            await settled(page);
            return (await namesShown(page))[0] === 'Sorted c';
        });
        await page.getByLabel('Sort', {exact: true}).selectOption('unused');
        await shows('b', 'a', 'c');
        await page.getByLabel('Scope', {exact: true}).selectOption('patients:write');
        await shows('a');
        await page.getByLabel('Scope', {exact: true}).selectOption('every');
        await page.getByText('Nothing matches').waitFor();
        await page.getByRole('button', {name: 'Clear search and filters'}).click();
        await row(page, 'Sorted c').waitFor();
    });

    browse('tells who made a key, by email, also of somebody who was removed', async (page, {person}) => {
        const grace = deployment.addPerson({role: 'developer'});
        const session = await deployment.signIn(grace);
        const key = {name: 'Of a colleague', mode: 'test', scopes: ['patients:read']};

        await session.stepUp();
        const {json} = await session.send('POST', '/v1/console/api_keys', key);
        await signIn(page, person);
        await row(page, 'Of a colleague').getByText(grace.email).waitFor();
        await askForTestKey(page, 'Of my own');
        await confirmStepUp(page, person);
        await page.getByLabel('I have stored it').check();
        await page.getByRole('button', {name: 'Done'}).click();
        await row(page, 'Of my own').getByText(person.email).waitFor();
        await row(page, 'Of my own').locator('.tag').getByText('You').waitFor();
        const {session: boss} = await someKeys();
        const gone = `/v1/console/users/${json.created_by}`;
        assert.equal((await boss.send('DELETE', `${gone}?revoke_keys=false`)).status, 200);
        assert.equal((await boss.send('GET', gone)).status, 404);
        await page.reload();
        await row(page, 'Of a colleague').getByText(grace.email).waitFor();
        await page.goto(`/console/keys/${json.id}`);
        await page.locator('.facts').getByText(grace.email).waitFor();
        // Without an answer, or when the trail has forgotten: an id alone, and the list stands.
        await page.route('**/v1/console/audit_events?*', (route) => route.fulfill({json: {data: [], has_more: false}}));
        await page.goto('/console/');
        await row(page, 'Of a colleague').getByText(json.created_by.slice(0, 8)).waitFor();
    });

    browse('shows what others changed meanwhile, when somebody comes back to it', async (page, {person}) => {
        await someKeys(['Before', 'test']);
        await page.clock.install();
        await signIn(page, person);
        await row(page, 'Before').waitFor();
        await someKeys(['Made meanwhile', 'test']);
        const comeBack = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
        await page.evaluate(() => document.activeElement.blur());
        await comeBack();
        await passTime(page, 0);
        assert.equal(await row(page, 'Made meanwhile').count(), 0); // it was read just now
        await passTime(page, 61000);
        await comeBack();
        await row(page, 'Made meanwhile').waitFor();
    });

    browse('times in words go on by themselves', async (page, {person}) => {
        // The server's clock stays behind when this one jumps: an answer that comes later would set it back.
        await changeAnswers(page, '**/v1/console/**', (response) => {
            const {date: _, ...headers} = response.headers();

            return {headers};
        });
        await page.clock.install();
        await someKeys(['Getting older', 'test']);
        await signIn(page, person);
        const created = row(page, 'Getting older').locator('[data-label="Created"] time');
        await created.waitFor();
        await page.clock.fastForward(5 * 60000);
        await until('the words', async () => /^[5-9] minutes ago$/.test(await created.textContent()));
    });
});

describe('keys that are revoked together', () => {
    const bar = (page) => page.getByRole('group', {name: 'Selected keys'});
    const all = (page) => page.getByRole('checkbox', {name: 'Select all shown'});
    const boxOf = (page, name) => page.getByRole('checkbox', {name: `Select ${name}`, exact: true});
    const statusOf = async ({secret}) => (await deployment.api('GET', '/v1/whoami', {bearer: secret})).status;
    const linesOf = (dialog) => dialog.locator('.key-line strong').allTextContents();

    browse('with one request, after a dialog that names them', async (page, {person}) => {
        const {made} = await someKeys(['Together a', 'test'], ['Together b', 'test'], ['Together c', 'test']);
        const sent = [];

        page.on('request', (request) => {
            if (request.method() !== 'GET' && request.url().includes('/api_keys')) sent.push(request);
        });
        await signIn(page, person, '/console/?search=together&sort=name');
        await all(page).check();
        await bar(page).getByRole('button', {name: 'Revoke 3 keys…'}).waitFor();
        await boxOf(page, 'Together b').uncheck();
        assert.equal(await all(page).evaluate((box) => box.indeterminate), true);
        await bar(page).getByRole('button', {name: 'Revoke 2 keys…'}).click();
        const dialog = page.getByRole('dialog', {name: 'Revoke 2 keys?'});
        await dialog.waitFor();
        assert.deepEqual(await linesOf(dialog), ['Together a', 'Together c']);
        assert.deepEqual(await Promise.all(made.map(statusOf)), [200, 200, 200]);
        await dialog.getByRole('button', {name: 'Revoke 2 keys'}).click();
        const done = page.getByRole('dialog', {name: 'Revoked, everywhere'});
        await done.getByText('No node accepts these 2 keys any more.').waitFor();
        assert.deepEqual(await Promise.all(made.map(statusOf)), [401, 200, 401]);
        await done.getByRole('heading', {name: 'Revoked: 2'}).waitFor();
        assert.equal(await done.getByRole('heading', {name: /^(Already revoked|Not found)/}).count(), 0);
        assert.match(await page.locator('#announcer').textContent(), /any more\. Revoked: 2$/);
        await done.getByRole('button', {name: 'Close'}).last().click();
        assert.equal(sent.length, 1);
        assert.deepEqual(sent[0].postDataJSON().ids.toSorted(), [made[0].id, made[2].id].toSorted());

        // The list tells.
        for (const name of ['Together a', 'Together c']) {
            await row(page, name).getByText('Revoked just now').waitFor();
            assert.equal(await row(page, name).getByRole('checkbox').count(), 0);
            assert.equal(await row(page, name).getByRole('button').count(), 0);
        }
        assert.equal(await bar(page).getByRole('button').count(), 0);
        assert.equal(await all(page).isChecked(), false);
        await boxOf(page, 'Together b').check();
        assert.equal(await all(page).isChecked(), true);
        await page.reload();
        await row(page, 'Together b').waitFor();
        assert.deepEqual(await namesShown(page), ['Together b']);
    });

    browse('stay selected as long as they are shown', async (page, {person}) => {
        await someKeys(['Chosen alpha', 'test'], ['Chosen beta', 'live'], ['Chosen gamma', 'live']);
        const search = page.getByRole('searchbox');
        const shows = (...names) =>
            until(`${names}`, async () => (await namesShown(page)).join() === names.map((x) => `Chosen ${x}`).join());
        const offers = (words) => until(words, async () => (await bar(page).getByRole('button').allTextContents())[0] === words);

        await signIn(page, person, '/console/?search=chosen&sort=name');
        await all(page).check();
        await offers('Revoke 3 keys…');
        await page.getByRole('button', {name: 'Live', exact: true}).click();
        await shows('beta', 'gamma');
        await offers('Revoke 2 keys…');
        await search.fill('chosen gamma');
        await shows('gamma');
        await offers('Revoke 1 key…');
        await search.fill('chosen');
        await page.getByRole('button', {name: 'All', exact: true}).first().click();
        await shows('alpha', 'beta', 'gamma');
        await offers('Revoke 1 key…');
        assert.deepEqual(
            await Promise.all(['Chosen alpha', 'Chosen beta', 'Chosen gamma'].map((name) => boxOf(page, name).isChecked())),
            [false, false, true],
        );
        await bar(page).getByRole('button', {name: 'Clear selection'}).click();
        assert.equal(await bar(page).getByRole('button').count(), 0);
        assert.equal(await boxOf(page, 'Chosen gamma').isChecked(), false);
        assert.ok(await all(page).evaluate((box) => box === document.activeElement));
    });

    browse('tells which others had revoked, and which were not found', async (page, {person}) => {
        const {made, session} = await someKeys(['Of three a', 'test'], ['Of three b', 'test'], ['Of three c', 'test']);
        const [, before, unknown] = made.map(({id}) => id);

        await signIn(page, person, '/console/?search=of+three&sort=name');
        await all(page).check();
        assert.equal((await session.send('DELETE', `/v1/console/api_keys/${before}`)).status, 200);
        // The service is asked for a key that it does not have, in place of the third.
        await changeAnswers(
            page,
            `**${REVOKE_PATH}`,
            async (response) => ({body: (await response.text()).replace(NO_KEY, unknown)}),
            (request) => ({postData: request.postData().replace(unknown, NO_KEY)}),
        );
        await page.getByRole('button', {name: 'Revoke 3 keys…'}).click();
        await page.getByRole('button', {name: 'Revoke 3 keys', exact: true}).click();
        const done = page.getByRole('dialog', {name: 'Revoked, everywhere'});
        await done.getByText('No node accepts these 2 keys any more.').waitFor();
        assert.deepEqual(await done.locator('h3').allTextContents(), ['Revoked: 1', 'Already revoked: 1', 'Not found: 1']);
        assert.deepEqual(await linesOf(done), ['Of three a', 'Of three b', 'Of three c']);
        await done.getByRole('button', {name: 'Close'}).last().click();
        await row(page, 'Of three a').getByText('Revoked just now').waitFor();
        await row(page, 'Of three b').getByText('Already revoked').waitFor();
        await row(page, 'Of three c').getByText('Not found').waitFor();
        await bar(page).waitFor({state: 'hidden'});
        assert.equal(await page.locator('.keys').getByRole('checkbox').count(), 0);
    });

    browse('are none, if none is found', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Gone meanwhile', 'test']);

        await signIn(page, person, '/console/?search=gone+meanwhile');
        await boxOf(page, 'Gone meanwhile').check();
        await page.route(`**${REVOKE_PATH}`, (route) =>
            route.fulfill({json: {revoked: [], already_revoked: [], not_found: [key.id]}}),
        );
        await page.getByRole('button', {name: 'Revoke 1 key…'}).click();
        await page.getByRole('button', {name: 'Revoke 1 key', exact: true}).click();
        await page.getByRole('dialog', {name: 'No key was revoked'}).getByText('The service found none of these keys.').waitFor();
        assert.equal(await page.getByText('No node accepts').count(), 0);
    });

    browse('in use: after their number is typed; again, if the service promises nothing', async (page, {person}) => {
        const {made} = await someKeys(['In use a', 'live'], ['In use b', 'live']);

        assert.equal(await statusOf(made[0]), 200);
        await signIn(page, person, '/console/?search=in+use');
        await until('the use to be recorded', async () => {
            await page.reload();
            await settled(page);
            return (await row(page, 'In use a').locator('[data-label="Last used"] time').count()) === 1;
        });
        await all(page).check();
        await page.getByRole('button', {name: 'Revoke 2 keys…'}).click();
        const dialog = page.getByRole('dialog', {name: 'Revoke 2 keys?'});
        const submit = dialog.getByRole('button', {name: 'Revoke 2 keys', exact: true});
        await dialog.getByText('1 live key is in use.').waitFor();
        assert.equal(await submit.isDisabled(), true);
        await dialog.getByLabel('Type 2 to confirm').fill('3');
        assert.equal(await submit.isDisabled(), true);
        await dialog.getByText('Character 1 is 3. It should be 2.').waitFor();
        await dialog.getByLabel('Type 2 to confirm').fill('2');
        await page.route(`**${REVOKE_PATH}`, (route) => route.fulfill({status: 503, json: {}}), {times: 1});
        await submit.click();
        await dialog.getByRole('alert').getByText('any of these keys may still be accepted').waitFor();
        assert.equal(await page.getByText('No node accepts').count(), 0);
        assert.deepEqual(await Promise.all(made.map(statusOf)), [200, 200]);
        await page.route(`**${REVOKE_PATH}`, (route) => route.abort(), {times: 1});
        await dialog.getByRole('button', {name: 'Try again'}).click();
        await dialog.getByRole('alert').getByText('No response arrived').waitFor();
        await dialog.getByRole('button', {name: 'Try again'}).click();
        const done = page.getByRole('dialog', {name: 'Revoked, everywhere'});
        await done.getByText('No node accepts these 2 keys any more.').waitFor();
        assert.deepEqual(await Promise.all(made.map(statusOf)), [401, 401]);
    });

    for (const [role, selects] of [
        ['responder', true],
        ['auditor', false],
    ])
        browse(`are selected by people who may revoke: ${role}`, async (page) => {
            const {made} = await someKeys([`Seen by the ${role}`, 'test']);

            await signIn(page, deployment.addPerson({role}), `/console/?search=seen+by+the+${role}`);
            await row(page, `Seen by the ${role}`).waitFor();
            assert.equal(await page.getByRole('checkbox').count(), selects ? 2 : 0);
            assert.equal(await page.getByRole('columnheader', {name: 'Select'}).count(), selects ? 1 : 0);
            if (!selects) return;
            await all(page).check();
            await page.getByRole('button', {name: 'Revoke 1 key…'}).click();
            await page.getByRole('button', {name: 'Revoke 1 key', exact: true}).click();
            await page.getByRole('dialog').getByText('No node accepts this key any more.').waitFor();
            assert.equal(await statusOf(made[0]), 401);
        });

    for (const [scheme, size] of [
        ['light', 'wide'],
        ['dark', 'narrow'],
    ])
        browse(
            `by keyboard, and accessible, ${scheme} and ${size}`,
            async (page, {person}) => {
                const names = Array.from({length: 24}, (_, i) => `Typed ${size} ${String(i + 1).padStart(2, '0')}`);
                const said = () => page.locator('#announcer').textContent();
                const press = async (...keys) => {
                    for (const key of keys) await page.keyboard.press(key);
                };

                await someKeys(...names.map((name) => [name, 'test']));
                await signIn(page, person, `/console/?search=typed+${size}&sort=name`);
                await boxOf(page, names[0]).focus();
                await press('Space', 'Tab', 'Tab', 'Tab', 'Space'); // the box, then the name and its button
                assert.ok(await boxOf(page, names[1]).isChecked());
                assert.equal(await said(), '2 keys selected');
                await judge(page, 'two are selected');
                await all(page).focus();
                await press('Space');
                assert.equal(await said(), '24 keys selected');
                await judge(page, 'all are selected');
                await press('Tab', 'Enter');
                const dialog = page.getByRole('dialog', {name: 'Revoke 24 keys?'});
                await dialog.waitFor();
                await judge(page, 'many keys to revoke');
                assert.deepEqual(await linesOf(dialog), names);
                await press('Escape');
                await dialog.waitFor({state: 'detached'});
                assert.equal(await focused(page), 'Revoke 24 keys…');
                await press('Enter');
                await dialog.waitFor();
                await press('Enter');
                await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
                await judge(page, 'many keys were revoked');
                assert.equal(await focused(page), 'Close');
                const {width} = page.viewportSize();
                assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
                await press('Enter');
                await row(page, names[0]).getByText('Revoked just now').waitFor();
                await judge(page, 'a list of revoked keys');
            },
            {scheme, size},
        );
});

browse(
    'in forced colours the current page, modes and states can be told by more than colour',
    async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Forced colours', 'live'], ['Of another mode', 'test']);
        const style = (locator, name, pseudo) =>
            locator.evaluate((element, [of, part]) => getComputedStyle(element, part)[of], [name, pseudo]);

        await signIn(page, person);
        await row(page, 'Forced colours').waitFor();
        assert.equal(await style(page.locator('nav a[aria-current]'), 'outlineStyle'), 'solid');
        const [live, test] = await Promise.all(
            ['live', 'test'].map((mode) => style(page.locator(`.badge.${mode}`).first(), 'borderTopWidth', '::before')),
        );
        assert.notEqual(live, test);
        await page.goto(`/console/keys/${key.id}`);
        await page.locator('.chart .day').first().waitFor();
        assert.equal(await style(page.locator('.state'), 'borderTopStyle'), 'solid');
    },
    {forcedColors: 'active'},
);

describe('a decoy', () => {
    browse('is created revoked, and its use is shown with the address', async (page, {person}) => {
        await signIn(page, person);
        await page.getByRole('button', {name: 'Create a decoy'}).click();
        const dialog = page.getByRole('dialog', {name: 'Create a decoy'});
        await dialog.getByText('it is revoked from the start').waitFor();
        assert.equal(await dialog.getByRole('checkbox').count(), 0); // no scopes to choose
        await dialog.getByRole('button', {name: 'Create decoy'}).click();
        await dialog.getByText('Give the key a name').waitFor();
        await dialog.getByLabel('Name').fill('Old backup script');
        await judge(page);
        await dialog.getByRole('button', {name: 'Create decoy'}).click();
        await confirmStepUp(page, person);
        const secret = await page.locator('.secret-text').textContent();
        await page.getByText('Do not try it out').waitFor();
        assert.equal(await page.getByText('Try it', {exact: true}).count(), 0);
        assert.match(secret, /^svc_sk_live_/);
        await page.getByLabel('I have stored it').check();
        await page.getByRole('button', {name: 'Done'}).click();
        await page.locator('.secret-text').waitFor({state: 'detached'}); // until then it asks whoever leaves
        await page.goto('/console/?status=revoked');
        await row(page, 'Old backup script').getByText('Revoked').waitFor();
        assert.equal((await deployment.api('GET', '/v1/patients/7', {bearer: secret})).status, 401);
        await until('its use to be told', async () => {
            await page.goto('/console/activity?type=api_key.used_after_revocation');
            await settled(page);
            return await page.getByText('Refused requests with the revoked API key Old backup script').isVisible();
        });
        await page.getByText('Refused requests with the revoked API key Old backup script').click();
        await page.getByRole('dialog').getByText('GET /v1/patients', {exact: true}).waitFor();
        await page.getByRole('dialog').getByText('127.0.0.1').first().waitFor();
    });

    browse('its form and that of a key keep their words apart', async (page, {person}) => {
        await signIn(page, person);
        await page.getByRole('button', {name: 'Create a decoy'}).click();
        const dialog = page.getByRole('dialog', {name: 'Create a decoy'});
        await dialog.getByLabel('Name').fill('Half a decoy');
        await page.keyboard.press('Escape');
        await dialog.waitFor({state: 'hidden'});
        await askForTestKey(page, 'A key after all');
        await confirmStepUp(page, person);
        await page.getByLabel('I have stored it').check();
        await page.getByRole('button', {name: 'Done'}).click();
        await row(page, 'A key after all').getByRole('button', {name: 'Revoke'}).waitFor();
    });
});

describe('a key’s own page', () => {
    browse('what it is, how it is used, and that it is revoked from here', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Its own page', 'live', ['patients:read', 'usage:read']]);

        addUse(key, 5, 300);
        addUse(key, 60, 4000);
        assert.equal((await deployment.api('GET', '/v1/exchanges', {bearer: key.secret})).status, 403);
        await signIn(page, person);
        await until('the refusal to be counted', async () => {
            await page.goto(`/console/keys/${key.id}`);
            await settled(page);
            return await page.getByText('1 refused').isVisible();
        });
        await page.getByRole('heading', {name: 'Its own page'}).waitFor();
        assert.equal(await page.title(), `API key …${key.last4} · Chatelaine`); // not the name: titles stay in histories
        assert.equal(await page.locator('nav a[aria-current]').textContent(), 'API keys');
        for (const text of ['Live', 'Active', `…${key.last4}`, key.id, 'patients:read', 'usage:read'])
            await page.locator('main').getByText(text, {exact: true}).first().waitFor();
        await page.getByText('300 accepted requests, 1 refused').waitFor();
        await row(page, 'Scope missing').getByText('1', {exact: true}).waitFor();
        await page.locator('.refused tr', {hasText: 'Scope missing'}).getByText('127.0.0.1').waitFor();
        assert.equal(await page.locator('.chart .day').count(), 30);
        await page.getByRole('button', {name: '90 days'}).click();
        await page.getByText('4,300 accepted requests, 1 refused').waitFor();
        assert.equal(await page.locator('.chart .day').count(), 90);

        // A single day, by pointer and by keyboard.
        const tip = page.locator('.tip');
        await page.locator('.chart .day').nth(84).hover();
        await tip.getByText('300').waitFor();
        await page.mouse.move(0, 0);
        await tip.waitFor({state: 'hidden'});
        await page.locator('.chart').focus();
        await page.keyboard.press('End');
        for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowLeft');
        await tip.getByText('300').waitFor();
        assert.match(await page.locator('#announcer').textContent(), /: 300 Requests$/);
        await page.keyboard.press('Escape');
        await tip.waitFor({state: 'hidden'});

        // Revoked here, and knocking: the page tells.
        await page.getByRole('button', {name: 'Revoke', exact: true}).click();
        await page.getByRole('dialog', {name: 'Revoke this key?'}).waitFor();
        const confirmation = page.getByLabel(/^Type the last four characters/);
        if (await confirmation.count()) await confirmation.fill(key.last4);
        await page.getByRole('button', {name: 'Revoke key'}).click();
        await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
        await page.getByRole('button', {name: 'Close'}).last().click();
        await page.getByText('This key has not been used since it was revoked.').waitFor();
        assert.equal(await page.getByRole('button', {name: 'Revoke', exact: true}).count(), 0);
        for (let i = 0; i < 3; i++)
            assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: key.secret})).status, 401);
        // The first of them is written at once, the others with the next flush. Notice and table are read apart.
        const counted = row(page, 'The key was used after it had been revoked.').getByText('3', {exact: true});
        await until('the refusals to be counted', async () => {
            await page.reload();
            await settled(page);
            return (
                (await page.getByText('This revoked key was used 3 times since.').isVisible()) &&
                (await counted.isVisible())
            );
        });
    });

    browse('going back to it from another key’s page shows it again', async (page, {person}) => {
        const {
            made: [one],
        } = await someKeys(['Here first', 'test'], ['There next', 'test']);

        await signIn(page, person, `/console/keys/${one.id}`);
        await page.getByRole('heading', {name: 'Here first'}).waitFor();
        await page.locator('.crumbs a').click();
        await page.getByRole('link', {name: 'There next', exact: true}).click();
        await page.getByRole('heading', {name: 'There next'}).waitFor();
        await page.evaluate(() => history.go(-2));
        await page.getByRole('heading', {name: 'Here first'}).waitFor();
        assert.equal(await page.title(), `API key …${one.last4} · Chatelaine`);
    });

    browse('when it was last refused, by reason, and from where', async (page, {person}) => {
        const {
            made: [key],
            session,
        } = await someKeys(['Knocking', 'live']);
        const refused = (reason, last, network) => ({
            id: `evt_${reason}_${last}`,
            type: 'requests.refused',
            target: key.id,
            target_kind: 'api_key',
            created_at: '2026-01-01T00:00:00.000Z',
            count: 2,
            data: {reason, last, first: last, network},
        });
        const events = [
            refused('insufficient_scope', '2026-02-03T10:00:00.000Z', '192.0.2.0/24'),
            refused('insufficient_scope', '2026-02-02T10:00:00.000Z', '198.51.100.0/24'),
            refused('api_key_revoked', '2026-02-04T11:00:00.000Z', '203.0.113.0/24'),
            refused('account_suspended', '2026-02-05T12:00:00.000Z', '203.0.113.0/24'),
        ];

        await session.send('DELETE', `/v1/console/api_keys/${key.id}`);
        await page.route('**/v1/console/audit_events?*', (route) => {
            const type = new URL(route.request().url()).searchParams.get('type');

            return route.fulfill({json: {data: events.filter((event) => !type || event.type === type), has_more: false}});
        });
        await changeAnswers(page, '**/v1/console/usage?*', async (response) => {
            const json = await response.json();

            Object.assign(json.keys[0], {refused: 6, refused_reasons: {...REASONS, revoked: 2, insufficient_scope: 2}});
            return {json};
        });
        await signIn(page, person, `/console/keys/${key.id}`);
        const missing = row(page, 'Scope missing');
        await missing.getByText('3 Feb 2026, 10:00:00').waitFor();
        await missing.getByText('192.0.2.0/24').waitFor();
        await row(page, 'Account suspended').getByText('5 Feb 2026, 12:00:00').waitFor();
        const counts = await page.locator('.refused tbody .number').allTextContents();
        assert.equal(
            counts.reduce((sum, text) => sum + Number(text), 0),
            6,
        );
        await page.getByText('Last at 4 Feb 2026, 11:00:00 UTC from 203.0.113.0/24.').waitFor();
        // An event of the list, with everything that is known of it, and back.
        await page.getByRole('button', {name: /^Details: Refused 2 requests/}).first().click();
        await page.getByRole('dialog').getByText('"network": "192.0.2.0/24"').waitFor();
        await page.goBack();
        await page.getByRole('dialog').waitFor({state: 'detached'});
        await page.getByRole('heading', {name: 'Knocking'}).waitFor();
    });

    for (const [scheme, size] of [
        ['light', 'wide'],
        ['dark', 'narrow'],
    ])
        browse(
            `accessible, ${scheme} and ${size}`,
            async (page, {person}) => {
                const {
                    made: [key],
                    session,
                } = await someKeys([`Judged ${scheme}`, 'live']);

                addUse(key, 1, 30);
                await session.send('DELETE', `/v1/console/api_keys/${key.id}`);
                assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: key.secret})).status, 401);
                await signIn(page, person, `/console/keys/${key.id}`);
                await page.locator('.chart').waitFor();
                await judge(page, 'a revoked key');
                await page.goto(`/console/keys/key_${'0'.repeat(26)}`);
                await page.getByText('It no longer exists').waitFor();
                await judge(page, 'no such key');
            },
            {scheme, size},
        );
});

describe('what a role may not do is not offered', () => {
    const offers = {
        auditor: {create: false, revoke: false, approve: false, deny: false},
        responder: {create: false, revoke: true, approve: false, deny: true},
        developer: {create: true, revoke: true, approve: true, deny: true},
        owner: {create: true, revoke: true, approve: true, deny: true},
    };

    for (const [role, {create, revoke, approve, deny}] of Object.entries(offers))
        browse(role, async (page) => {
            const person = deployment.addPerson({role});
            const {
                made: [key],
            } = await someKeys([`For the ${role}`, 'test']);
            const codes = await enrolDevice(deployment, 'Front office');
            const isThere = async (name, exact = true) =>
                (await page.getByRole('button', {name, exact}).or(page.getByRole('link', {name, exact})).count()) > 0;

            await signIn(page, person);
            await row(page, `For the ${role}`).waitFor();
            assert.equal(await isThere('Create key'), create);
            assert.equal(await isThere(`Revoke For the ${role}`), revoke);
            await page.getByRole('searchbox').fill('there is none of it');
            await page.getByText('Nothing matches').waitFor();
            await page.goto(`/console/keys/${key.id}`);
            await page.getByRole('heading', {name: `For the ${role}`}).waitFor();
            assert.equal(await isThere('Revoke'), revoke);
            await page.goto('/console/devices');
            await page.getByRole('heading', {name: 'Devices', exact: true}).waitFor();
            await settled(page);
            assert.equal(await isThere('Add a device'), approve);
            await page.goto(`/console/activate?user_code=${codes.user_code}`);
            await page.getByRole('button', {name: 'Continue'}).click();
            await page.getByText('Approve this device?').waitFor();
            assert.equal(await isThere('Approve'), approve);
            assert.equal(await isThere('Deny'), deny);
            await judge(page, `${role}, a device waits`);
        });

    // The form offers exactly what the service grants.
    for (const role of ['developer', 'owner'])
        browse(`scopes of keys by a ${role}`, async (page) => {
            const person = deployment.addPerson({role});
            const session = await deployment.signIn(person);
            const {
                made: [key],
            } = await someKeys([`Of a stronger role than ${role}`, 'test', ['team:manage']]);

            await session.stepUp();
            await signIn(page, person);
            await page.getByRole('button', {name: 'Create key'}).first().click();
            const dialog = page.getByRole('dialog', {name: 'Create an API key'});

            await dialog.waitFor();
            const scopes = await dialog.locator('input[name="scopes"]').evaluateAll((all) => all.map(({value}) => value));
            const granted = [];
            for (const scope of SCOPES) {
                const json = {name: scope, mode: 'test', scopes: [scope]};
                const {status} = await session.send('POST', '/v1/console/api_keys', json);

                if (status === 201) granted.push(scope);
            }
            assert.deepEqual(scopes.sort(), granted.sort());
            assert.equal(await dialog.getByLabel('Give this key every scope').count(), role === 'owner' ? 1 : 0);
            await judge(page, `${role} creates a key`);
            await page.goto(`/console/keys/${key.id}`);
            await page.getByRole('button', {name: 'Revoke', exact: true}).waitFor();
            assert.equal(await page.getByRole('button', {name: 'Replace'}).count(), role === 'owner' ? 1 : 0);
        });

    browse('a role of tomorrow is offered nothing', async (page, {person}) => {
        await someKeys(['For nobody', 'test']);
        await changeAnswers(page, '**/v1/console/session', async (response) => {
            const json = await response.json();

            return {json: json.user ? {...json, user: {...json.user, role: 'intern'}} : json};
        });
        await signIn(page, person);
        await page.reload(); // the answer to the sign-in is not the one that was changed
        await row(page, 'For nobody').waitFor();
        assert.equal(await page.getByRole('button', {name: 'Create key'}).count(), 0);
        assert.equal(await page.getByRole('button', {name: 'Revoke For nobody'}).count(), 0);
    });
});

describe('a key is renamed', () => {
    browse('from the page to the trail, by keyboard, and the new name is found', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Old name', 'live', ['patients:read']]);

        await signIn(page, person, `/console/keys/${key.id}`);
        await page.getByRole('button', {name: 'Rename…'}).press('Enter');
        const dialog = page.getByRole('dialog', {name: 'Rename this key'});
        await dialog.waitFor();
        await judge(page, 'renaming a key');
        const name = dialog.getByLabel('New name');
        assert.equal(await name.inputValue(), 'Old name');
        assert.ok(await name.evaluate((input) => input === document.activeElement));
        await name.fill(' ');
        await page.keyboard.press('Enter');
        await dialog.getByText('Give the key a name').waitFor();
        // The service refuses what the page lets pass: a name of whoever acts without one.
        await name.fill('operator');
        await page.keyboard.press('Enter');
        await dialog.getByText('nor what the trail calls those who act without a name').waitFor();
        await name.fill('Brand new');
        await page.keyboard.press('Enter');
        await dialog.waitFor({state: 'detached'});
        await page.getByRole('heading', {name: 'Brand new', level: 1}).waitFor();
        assert.equal(await page.locator('#announcer').textContent(), 'The key is called Brand new.');
        assert.equal(await focused(page), 'Brand new');
        await page.getByText('Renamed the API key Brand new, from Old name to Brand new').waitFor();
        await page.goto('/console/?search=brand');
        await row(page, 'Brand new').waitFor();
        await page.goto('/console/?search=old+name');
        await page.getByText('Nothing matches').waitFor();
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: key.secret})).status, 200);
    });

    browse('also a revoked one; when no answer comes, the page says what is uncertain', async (page, {person}) => {
        const {
            made: [key],
            session,
        } = await someKeys(['Leaky', 'test']);

        await session.send('DELETE', `/v1/console/api_keys/${key.id}`);
        await signIn(page, person, `/console/keys/${key.id}`);
        await page.getByRole('button', {name: 'Rename…'}).click();
        const dialog = page.getByRole('dialog', {name: 'Rename this key'});
        await dialog.getByLabel('New name').fill('Leaked in November');
        // It is done, and the answer is lost.
        const path = `**/v1/console/api_keys/${key.id}`;
        await page.route(path, async (route) => {
            if (route.request().method() !== 'PATCH') return await route.fallback();
            await route.fetch();
            return await route.abort();
        });
        await dialog.getByRole('button', {name: 'Rename', exact: true}).click();
        await dialog.getByText('the key may have either name').waitFor();
        await page.unroute(path);
        await dialog.getByRole('button', {name: 'Rename', exact: true}).click();
        await dialog.waitFor({state: 'detached'});
        await page.getByRole('heading', {name: 'Leaked in November', level: 1}).waitFor();
        await page.getByText('Renamed the API key').first().waitFor();
        assert.equal(await page.getByText('Renamed the API key').count(), 1);
        await page.locator('.state.ended').waitFor();
    });

    browse('by nobody whose role may not', async (page) => {
        const {
            made: [key],
        } = await someKeys(['Kept name', 'test']);

        await signIn(page, deployment.addPerson({role: 'responder'}), `/console/keys/${key.id}`);
        await page.getByRole('heading', {name: 'Kept name', level: 1}).waitFor();
        assert.equal(await page.getByRole('button', {name: 'Rename…'}).count(), 0);
    });
});
