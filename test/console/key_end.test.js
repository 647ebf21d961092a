// Keys that will be revoked at a known time: because they are replaced, or because somebody said when. In Chromium.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {until} from '../support/deployment.js';
import {changeAnswers, confirmStepUp, settled, signIn} from './browser.js';
import {browse, deployment, focused, judge, someKeys} from './scene.js';

const DAY_MS = 86400000;
const pathOf = ({id}) => `/v1/console/api_keys/${id}`;
const pageOf = ({id}) => `/console/keys/${id}`;
const whoami = async ({secret}) => await deployment.api('GET', '/v1/whoami', {bearer: secret});
const statusOf = async (key) => (await whoami(key)).status;
const button = (page, name) => page.getByRole('button', {name, exact: true});
const panel = (page) => page.getByRole('region', {name: 'Scheduled revocation'});
const endOf = async (session, key) => (await session.send('GET', `${pathOf(key)}/scheduled_revocation`)).json;
const inputTime = (ms) => new Date(ms).toISOString().slice(0, 16);

// Ends what shows the new key's secret.
async function store(page) {
    await page.getByLabel('I have stored it').check();
    await button(page, 'Done').click();
    await page.locator('.secret-text').waitFor({state: 'detached'}); // until then the page asks whoever leaves it
}

// As if both had been so long ago: the last use of the key, and its replacement. Returns these times, which may change.
async function backdate(page, key, usedMs, replacedMs) {
    const ago = {usedMs, replacedMs};
    const earlier = (iso, ms) => iso && new Date(Date.parse(iso) - ms).toISOString();

    await changeAnswers(page, `**${pathOf(key)}`, async (response) => {
        const json = await response.json();

        return {json: {...json, last_used_at: earlier(json.last_used_at, ago.usedMs)}};
    });
    await changeAnswers(page, '**/v1/console/audit_events?*', async (response) => {
        const json = await response.json();

        for (const event of json.data) event.created_at = earlier(event.created_at, ago.replacedMs);
        return {json};
    });
    return ago;
}

describe('a key is replaced', () => {
    browse('from the button to the revoked old key, which is seen to go silent', async (page, {person}) => {
        const {
            made: [old],
            session,
        } = await someKeys(['Replaced', 'live', ['patients:read', 'usage:read']]);

        await signIn(page, person, pageOf(old));
        await button(page, 'Replace…').click();
        const dialog = page.getByRole('dialog', {name: 'Replace this key'});
        await dialog.getByText('The old key keeps working for the overlap').waitFor();
        assert.equal(await dialog.getByLabel('Name of the new key').inputValue(), 'Replaced');
        assert.equal(await dialog.getByLabel('Overlap').inputValue(), String(7 * 86400));
        await dialog.getByText('The old key works until').waitFor();
        await dialog.getByLabel('Name of the new key').fill(' ');
        await button(page, 'Replace live key').click();
        await dialog.getByText('Give the key a name').waitFor();
        await dialog.getByLabel('Name of the new key').fill('Its successor');
        await button(page, 'Replace live key').click();
        await confirmStepUp(page, person);
        const made = {secret: await page.locator('.secret-text').textContent()};
        await page.getByRole('dialog').getByText('It replaces the old key, which works until').waitFor();
        await page.keyboard.press('Escape');
        await page.getByText('Tick “I have stored it” first').waitFor();
        await store(page);
        const {json: successor} = await whoami(made);
        assert.deepEqual([successor.mode, successor.scopes], ['live', ['patients:read', 'usage:read']]);
        const {revoke_at: at} = await endOf(session, old);
        assert.ok(Math.abs(Date.parse(at) - Date.now() - 7 * DAY_MS) < DAY_MS / 2, at);

        await panel(page).getByText(/^Will be revoked at .* UTC, in 7 days\.$/).waitFor();
        await panel(page).getByText('It has never been used.').waitFor();
        await panel(page).getByText(/^Nothing has used it since .*\. Wait longer/).waitFor();
        await page.getByText('Scheduled the revocation of the API key Replaced').waitFor();
        assert.equal(await button(page, 'Revoke at…').count(), 0);
        assert.equal(await button(page, 'Revoke now').count(), 0);

        // Both are used.
        assert.equal(await statusOf(old), 200);
        await until('both uses to be told', async () => {
            await whoami(made); // on a slow machine, the last time is no longer just now
            await button(page, 'Check again').click();
            await settled(page);
            return (
                (await panel(page).getByText('It is still in use').isVisible()) &&
                (await panel(page).getByText('The new key was last used just now.').isVisible())
            );
        });
        assert.match(await page.locator('#announcer').textContent(), /^It is still in use/);
        assert.equal(await focused(page), 'Check again');
        assert.equal(await button(page, 'Revoke now').count(), 0);

        // Nobody has used the old one for two days.
        await backdate(page, old, 2 * DAY_MS, 3 * DAY_MS);
        await button(page, 'Check again').click();
        await panel(page).getByText(/^Nothing has used it since .*: you can revoke it now\.$/).waitFor();
        await button(page, 'Revoke now').click();
        await page.getByLabel(`Type the last four characters, ${old.last4}, to confirm`).fill(old.last4);
        await button(page, 'Revoke key').click();
        await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
        await button(page, 'Close').last().click();
        assert.deepEqual([await statusOf(old), await statusOf(made)], [401, 200]);
        assert.equal(await panel(page).count(), 0);
        assert.equal(await button(page, 'Replace…').count(), 0);
    });

    browse('silence counts from the last use, and as long as the overlap makes sense', async (page, {person}) => {
        const {
            made: [old],
            session,
        } = await someKeys(['Short overlap', 'test']);
        const {json: made} = await session.send('POST', `${pathOf(old)}/replacement`, {overlap_seconds: 3600, name: 'Soon alone'});

        const ago = await backdate(page, old, 0, 14 * 60000);
        await signIn(page, person, pageOf(old));
        await panel(page).getByText('Wait longer').waitFor();
        ago.replacedMs = 30 * 60000;
        await button(page, 'Check again').click();
        await panel(page).getByText('you can revoke it now').waitFor();
        // To the new key, and back.
        await panel(page).getByRole('link', {name: 'Soon alone'}).click();
        await page.getByRole('heading', {name: 'Soon alone'}).waitFor();
        assert.equal(new URL(page.url()).pathname, pageOf(made));
        assert.equal(await panel(page).count(), 0);
        await page.goBack();
        await panel(page).getByText('you can revoke it now').waitFor();
        await page.getByRole('button', {name: /^Details: Scheduled the revocation/}).click();
        const event = page.getByRole('dialog', {name: /^Scheduled the revocation/});
        assert.equal(await event.getByRole('link', {name: made.id}).getAttribute('href'), pageOf(made));
        await page.keyboard.press('Escape');
        await event.waitFor({state: 'detached'});
        // A replacement that is revoked replaces nothing.
        await session.send('DELETE', pathOf(made));
        await button(page, 'Check again').click();
        await panel(page).getByText('The new key is revoked, so nothing replaces this one').waitFor();
        assert.equal(await button(page, 'Revoke now').count(), 0);
    });

    browse('an answer that a revocation has overtaken is not shown', async (page, {person}) => {
        const {
            made: [old],
            session,
        } = await someKeys(['Overtaken', 'test']);
        const isReading = (request) => request.method() === 'GET' && request.url().endsWith(pathOf(old));
        let read, letGo;
        const wasRead = new Promise((resolve) => (read = resolve));
        const mayGo = new Promise((resolve) => (letGo = resolve));

        await session.send('POST', `${pathOf(old)}/replacement`, {overlap_seconds: 3600, name: 'Its successor'});
        await signIn(page, person, pageOf(old));
        await panel(page).getByText('Wait longer').waitFor();
        await changeAnswers(page, `**${pathOf(old)}`, async (_, request) => {
            if (!isReading(request)) return;
            read();
            await mayGo;
        });
        const late = page.waitForEvent('requestfinished', isReading);
        await button(page, 'Check again').click();
        await wasRead;
        await button(page, 'Revoke').click();
        await button(page, 'Revoke key').click();
        await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
        await button(page, 'Close').last().click();
        await page.getByText('This key has not been used since it was revoked.').waitFor();
        letGo();
        await late;
        await settled(page);
        assert.equal(await panel(page).count(), 0);
        assert.equal(await button(page, 'Revoke').count(), 0);
    });

    browse('without an overlap: the old key is revoked when the new one is used', async (page, {person}) => {
        const {
            made: [old],
            session,
        } = await someKeys(['At once', 'test']);

        await signIn(page, person, pageOf(old));
        await button(page, 'Replace…').click();
        await page.getByLabel('Overlap').selectOption('0');
        await page.getByRole('dialog').getByText('as soon as the new one is used').waitFor();
        assert.equal(await button(page, 'Replace test key').count(), 0);
        await button(page, 'Replace and revoke soon').click();
        await confirmStepUp(page, person);
        const secret = await page.locator('.secret-text').textContent();
        await page.getByRole('dialog').getByText('which works until this one is used').waitFor();
        await store(page);
        assert.deepEqual([await statusOf(old), await statusOf({secret})], [200, 200]);
        await until('the use of the new key to end the old one', async () => (await session.send('GET', pathOf(old))).json.revoked_at);
        await page.reload();
        await page.getByText('This key has not been used since it was revoked.').waitFor();
        assert.equal(await panel(page).count(), 0);
        assert.equal(await button(page, 'Replace…').count(), 0);
    });

    browse('what was scheduled sooner stays, and the dialog says so', async (page, {person}) => {
        const {
            made: [old],
            session,
        } = await someKeys(['Sooner', 'test']);
        const at = new Date(Date.now() + DAY_MS).toISOString();

        assert.equal((await session.send('PUT', `${pathOf(old)}/scheduled_revocation`, {revoke_at: at})).status, 200);
        await signIn(page, person, pageOf(old));
        await panel(page).getByText('Will be revoked at').waitFor();
        await button(page, 'Replace…').click();
        await page.getByText('its revocation was scheduled before, and that is sooner').waitFor();
        await page.getByLabel('Overlap').selectOption('3600');
        await page.getByText('that is sooner').waitFor({state: 'detached'});
        await page.getByLabel('Overlap').selectOption('604800');
        await button(page, 'Replace test key').click();
        await confirmStepUp(page, person);
        await store(page);
        assert.equal((await endOf(session, old)).revoke_at, at);
    });

    browse('when nobody knows whether it was, it says so', async (page, {person}) => {
        const {
            made: [old],
            session,
        } = await someKeys(['In doubt', 'test']);
        const path = `**${pathOf(old)}/replacement`;

        await signIn(page, person, pageOf(old));
        await button(page, 'Replace…').click();
        await page.route(path, (route) => route.fulfill({status: 503, json: {}}), {times: 1});
        await button(page, 'Replace test key').click();
        await page.getByRole('alert').getByText('temporarily unavailable').waitFor();
        await page.getByRole('alert').getByText('Try again: that is safe').waitFor();
        await page.route(path, (route) => route.abort(), {times: 1});
        await button(page, 'Replace test key').click();
        await page.getByRole('alert').getByText('No response arrived').waitFor();
        await session.send('DELETE', pathOf(old));
        await button(page, 'Replace test key').click();
        await confirmStepUp(page, person);
        await page.getByRole('alert').getByText('revoked').waitFor();
        assert.equal(await page.locator('.secret-text').count(), 0);
    });
});

describe('a revocation is scheduled', () => {
    browse(
        'in the time zone of the browser, changed, and withdrawn',
        async (page, {person}) => {
            const {
                made: [key],
                session,
            } = await someKeys(['For a project', 'test']);
            const dialog = page.getByRole('dialog');
            const time = dialog.getByLabel('Revoke at');
            const tries = async (value, words) => {
                await time.fill(value);
                await button(dialog, 'Schedule').click();
                await dialog.getByText(words).waitFor();
            };
            const year = new Date().getUTCFullYear() + 1;

            await signIn(page, person, pageOf(key));
            await button(page, 'Revoke at…').click();
            await dialog.getByText('In your time zone, America/St_Johns.').waitFor();
            await tries('', 'Choose a day and a time.');
            await tries('2020-01-01T00:00', 'Choose a time in the future.');
            await tries(`${year + 2}-01-01T00:00`, 'Choose a time within 400 days.');
            assert.deepEqual(await endOf(session, key), {id: key.id, revoke_at: null, revoked_at: null});
            await time.fill(`${year}-01-15T12:30`);
            await dialog.getByText(new RegExp(`^That is 15 Jan ${year}, 12:30:00 GMT-3:30, in `)).waitFor();
            await button(dialog, 'Schedule').click(); // sooner than never: without a step-up
            await panel(page).getByText(`Will be revoked at 15 Jan ${year}, 12:30:00 GMT-3:30`).waitFor();
            assert.match(await page.locator('#announcer').textContent(), /^Will be revoked at 15 Jan/);
            assert.equal((await endOf(session, key)).revoke_at, `${year}-01-15T16:00:00.000Z`);
            assert.equal(await panel(page).getByText('since').count(), 0); // nothing was replaced
            await page.getByText(/^Scheduled the revocation of the API key For a project/).waitFor();

            await button(page, 'Change…').click();
            await page.getByRole('dialog', {name: 'Change the revocation'}).waitFor();
            assert.equal(await time.inputValue(), `${year}-01-15T12:30`);
            await time.fill(`${year}-01-20T12:30`);
            await button(dialog, 'Change').click();
            await confirmStepUp(page, person);
            await panel(page).getByText(`Will be revoked at 20 Jan ${year}`).waitFor();
            assert.equal((await endOf(session, key)).revoke_at, `${year}-01-20T16:00:00.000Z`);

            await button(page, 'Keep it…').click();
            await dialog.getByText(`It will not be revoked at 20 Jan ${year}`).waitFor();
            await page.route('**/scheduled_revocation', (route) => route.abort(), {times: 1});
            await button(dialog, 'Keep key').click();
            await dialog.getByText('the key may still be revoked').waitFor();
            await button(dialog, 'Keep key').click();
            await panel(page).waitFor({state: 'detached'});
            await button(page, 'Revoke at…').waitFor();
            assert.equal((await endOf(session, key)).revoke_at, null);
            await page.getByText('Withdrew the scheduled revocation of the API key For a project').waitFor();
        },
        {timezoneId: 'America/St_Johns'},
    );

    browse('once its time has come, the page shows a revoked key', async (page, {person}) => {
        const {
            made: [key],
            session,
        } = await someKeys(['Due', 'test']);
        const at = new Date(Date.now() + 20000).toISOString();

        assert.equal((await session.send('PUT', `${pathOf(key)}/scheduled_revocation`, {revoke_at: at})).status, 200);
        await signIn(page, person, pageOf(key));
        await page.getByRole('heading', {name: 'Due'}).waitFor();
        await until('its time', async () => (await statusOf(key)) === 401);
        const again = button(page, 'Check again');
        if (await again.count()) await again.click();
        else await page.reload();
        await page.locator('.state.ended').waitFor();
        assert.equal(await panel(page).count(), 0);
    });

    browse('a node that knows of no schedules shows the key all the same', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Older node', 'test']);

        await page.route('**/scheduled_revocation', (route) =>
            route.fulfill({status: 404, json: {error: {code: 'not_found'}}}),
        );
        await signIn(page, person, pageOf(key));
        await page.getByRole('heading', {name: 'Older node'}).waitFor();
        await button(page, 'Revoke').waitFor();
        assert.equal(await panel(page).count(), 0);
    });

    for (const [scheme, size] of [
        ['light', 'wide'],
        ['dark', 'narrow'],
    ])
        browse(
            `by keyboard, and accessible, ${scheme} and ${size}`,
            async (page, {person}) => {
                const {
                    made: [key],
                } = await someKeys([`By keyboard, ${size}`, 'live']);
                const press = async (...keys) => {
                    for (const each of keys) await page.keyboard.press(each);
                };
                const fits = async () =>
                    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= page.viewportSize().width);

                await signIn(page, person, pageOf(key));
                await button(page, 'Replace…').focus();
                await press('Enter');
                await page.getByRole('dialog', {name: 'Replace this key'}).waitFor();
                await judge(page, 'to be replaced');
                await page.getByLabel('Overlap').focus();
                await press('Home'); // none
                await button(page, 'Replace and revoke soon').waitFor();
                await judge(page, 'to be replaced at once');
                await press('Escape');
                await page.getByRole('dialog').waitFor({state: 'detached'});
                assert.equal(await focused(page), 'Replace…');

                await press('Tab', 'Enter');
                await page.getByRole('dialog', {name: 'Schedule the revocation'}).waitFor();
                assert.equal(await page.evaluate(() => document.activeElement.name), 'revoke-at');
                await judge(page, 'to be scheduled');
                await press('Enter'); // in a week
                await panel(page).getByText('in 7 days').waitFor();
                await judge(page, 'scheduled');
                await fits();
                await button(page, 'Keep it…').focus();
                await press('Enter');
                await page.getByRole('dialog', {name: 'Keep this key?'}).waitFor();
                await judge(page, 'to be kept');
                await press('Escape');
                assert.equal(await focused(page), 'Keep it…');

                await button(page, 'Replace…').focus();
                await press('Enter');
                await page.getByLabel('Name of the new key').focus();
                await page.getByLabel('Name of the new key').fill(`Successor ${'that has a long name '.repeat(6)}`);
                await press('Enter');
                await confirmStepUp(page, person);
                await page.locator('.secret-text').waitFor();
                await judge(page, 'replaced, the secret');
                await page.getByLabel('I have stored it').focus();
                await press('Space', 'Tab', 'Enter');
                await panel(page).getByRole('link', {name: /^Successor/}).waitFor();
                await judge(page, 'replaced');
                await fits();
            },
            {scheme, size},
        );
});

describe('what a role may not do is not offered', () => {
    const offers = {
        auditor: {replace: false, change: false, keep: false},
        responder: {replace: false, change: true, keep: false},
        developer: {replace: true, change: true, keep: true},
        owner: {replace: true, change: true, keep: true},
    };

    for (const [role, {replace, change: sooner, keep}] of Object.entries(offers))
        browse(role, async (page) => {
            const {
                made: [key],
                session,
            } = await someKeys([`Scheduled for the ${role}`, 'test']);
            const isThere = async (name) => (await button(page, name).count()) > 0;
            const at = Math.floor(Date.now() / DAY_MS + 10) * DAY_MS;

            await signIn(page, deployment.addPerson({role}), pageOf(key));
            await page.getByRole('heading', {name: `Scheduled for the ${role}`}).waitFor();
            assert.deepEqual([await isThere('Replace…'), await isThere('Revoke at…')], [replace, sooner]);
            await session.send('PUT', `${pathOf(key)}/scheduled_revocation`, {revoke_at: new Date(at).toISOString()});
            await page.reload();
            await panel(page).waitFor();
            assert.deepEqual([await isThere('Replace…'), await isThere('Revoke at…')], [replace, false]);
            assert.deepEqual([await isThere('Change…'), await isThere('Keep it…')], [sooner, keep]);
            assert.ok(await isThere('Check again'));
            if (!sooner || keep) return;
            // Sooner, but not later.
            const dialog = page.getByRole('dialog');
            await button(page, 'Change…').click();
            await dialog.getByLabel('Revoke at').fill(inputTime(at + DAY_MS));
            await button(dialog, 'Change').click();
            await dialog.getByText('Your role allows only an earlier time than before.').waitFor();
            await dialog.getByLabel('Revoke at').fill(inputTime(at - DAY_MS));
            await button(dialog, 'Change').click();
            await dialog.waitFor({state: 'detached'});
            assert.equal(Date.parse((await endOf(session, key)).revoke_at), at - DAY_MS);
        });
});
