// Lists: paged, searched, and kept in the address.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {signIn} from './browser.js';
import {browse, deployment, row, someKeys} from './scene.js';

describe('keys', () => {
    browse('more keys than a page holds: walked through, and searched in all', async (page, {person}) => {
        const {made} = await someKeys(
            ...Array.from({length: 30}, (_, i) => [`Many ${String(i + 1).padStart(2, '0')}`, 'test']),
        );
        await signIn(page, person);
        await row(page, 'Many 30').waitFor();
        assert.equal(await page.locator('tbody tr').count(), 25);
        assert.ok(await page.getByRole('button', {name: 'Previous'}).isDisabled());
        await page.getByRole('button', {name: 'Next'}).click();
        await row(page, 'Many 05').waitFor();
        await page.getByRole('button', {name: 'Previous'}).click();
        await row(page, 'Many 30').waitFor();
        await page.getByRole('searchbox').fill('many 01');
        await page.getByText('1–1 of 1 key', {exact: true}).waitFor();
        await row(page, 'Many 01').waitFor();
        assert.equal(await page.locator('tbody tr').count(), 1);
        for (const word of [made[1].id, made[1].last4]) {
            await page.getByRole('searchbox').fill(word);
            await row(page, 'Many 01').waitFor({state: 'detached'});
            await row(page, 'Many 02').waitFor();
            await page.getByRole('searchbox').fill('many 01');
            await row(page, 'Many 01').waitFor();
        }
        await page.getByRole('button', {name: 'Live', exact: true}).click();
        await page.getByText('Nothing matches').waitFor();
    });

    browse('the address tells what is shown: after a reload, and on the way back', async (page, {person}) => {
        const {made} = await someKeys(
            ...Array.from({length: 27}, (_, i) => [`Addressed ${String(i + 1).padStart(2, '0')}`, 'live']),
        );
        const key = `/console/keys/${made[4].id}`;
        const title = page.getByRole('heading', {name: 'Addressed 05', exact: true});

        await signIn(page, person);
        await page.getByRole('link', {name: 'Usage'}).click();
        await page.getByRole('button', {name: '90 days'}).click();
        await page.reload();
        await page.getByRole('button', {name: '90 days', pressed: true}).waitFor();
        await page.getByRole('link', {name: 'API keys', exact: true}).click();

        // Search, filters and order.
        await page.getByRole('searchbox').fill('addressed 05');
        await page.getByRole('button', {name: 'Live', exact: true}).click();
        await page.getByLabel('Scope', {exact: true}).selectOption('patients:read');
        await page.getByLabel('Sort', {exact: true}).selectOption('name');
        const list = '/console/?search=addressed+05&mode=live&scope=patients%3Aread&sort=name';
        await page.waitForURL(`**${list}`);
        await row(page, 'Addressed 05').waitFor();
        await page.reload();
        await row(page, 'Addressed 05').waitFor();
        assert.equal(await page.locator('tbody tr').count(), 1);
        assert.equal(await page.getByRole('searchbox').inputValue(), 'addressed 05');
        assert.equal(await page.getByLabel('Scope', {exact: true}).inputValue(), 'patients:read');
        assert.equal(await page.getByLabel('Sort', {exact: true}).inputValue(), 'name');

        // A key's page: left by the way back, opened by the way forward, by a reload and by a link.
        await page.getByRole('link', {name: 'Addressed 05', exact: true}).click();
        await title.waitFor();
        assert.equal(new URL(page.url()).pathname, key);
        await page.goBack();
        await row(page, 'Addressed 05').waitFor();
        await page.waitForURL(`**${list}`);
        await page.goForward();
        await title.waitFor();
        await page.reload();
        await title.waitFor();
        await page.getByRole('button', {name: '7 days'}).click();
        await page.waitForURL(`**${key}?days=7`);
        await page.reload();
        await page.getByRole('button', {name: '7 days', pressed: true}).waitFor();
        await page.goBack();
        await row(page, 'Addressed 05').waitFor();
        await page.getByRole('link', {name: 'Addressed 05', exact: true}).click();
        await page.getByRole('navigation', {name: 'API keys'}).getByRole('link').click();
        await page.waitForURL(`**${list}`); // as it was left
        await row(page, 'Addressed 05').waitFor();

        // A key that there is not.
        const answer = await page.goto(`/console/keys/key_${'0'.repeat(26)}`);
        assert.equal(answer.status(), 200);
        await page.getByText('It no longer exists').waitFor();
        assert.equal((await fetch(`${deployment.url}/console/keys/key_x/y`)).status, 404);
        assert.equal((await fetch(`${deployment.url}/console/keys/dev_x`)).status, 404);

        // Pages of the list.
        await page.goto('/console/');
        await row(page, 'Addressed 27').waitFor();
        await page.getByRole('button', {name: 'Next'}).click();
        await row(page, 'Addressed 27').waitFor({state: 'detached'});
        await row(page, 'Addressed 01').waitFor();
        await page.reload();
        await row(page, 'Addressed 01').waitFor();
        await page.goBack();
        await row(page, 'Addressed 27').waitFor();
    });

    browse('a search says how many it finds, and where it stopped looking', async (page, {person}) => {
        const keyOf = (i) => ({
            id: `key_${i}`,
            name: `Ward ${i}`,
            mode: 'test',
            last4: 'abcd',
            scopes: ['patients:read'],
            created_at: '2026-01-01T00:00:00Z',
        });
        let last = 150;

        await page.route('**/v1/console/api_keys?*', (route) => {
            const after = new URL(route.request().url()).searchParams.get('starting_after');
            const first = after ? Number(after.slice('key_'.length)) + 1 : 0;
            const count = Math.min(100, last - first);

            return route.fulfill({
                json: {data: Array.from({length: count}, (_, i) => keyOf(first + i)), has_more: first + count < last},
            });
        });
        await signIn(page, person);
        await page.getByText('1–25 of 150 keys').waitFor();
        await page.getByRole('searchbox').fill('ward 14');
        await page.getByText('1–12 of 12 keys').waitFor();
        assert.equal(await page.locator('tbody tr').count(), 12);
        last = 5000;
        await page.goto('/console/');
        await page.getByText('1–25 of more than 500 keys').waitFor();
        await page.getByRole('searchbox').fill('ward 4999');
        await page.getByText('Only the newest 2,000 keys were searched.').waitFor();
        await page.getByText('Nothing matches').waitFor();
    });

    browse('every scope that there is has its words', async (page, {person}) => {
        const {session} = await someKeys();
        const {json: key} = await session.send('POST', '/v1/console/api_keys', {name: 'Master', mode: 'test'});

        await signIn(page, person);
        await row(page, 'Master').getByText('All scopes').waitFor();
        await page.getByRole('link', {name: 'Master', exact: true}).click();
        await page.locator('.scope-list').waitFor();
        assert.deepEqual((await page.locator('.scope-list code').allTextContents()).sort(), [...key.scopes].sort());
    });
});

describe('activity', () => {
    browse('a failed sign-in is nobody’s deed, and is told of whom it was tried', async (page, {person}) => {
        const victim = deployment.addPerson();
        const json = {email: victim.email, password: 'not the right one', totp: '123456'};
        const at = {created_at: '2026-01-01T00:00:00Z', ip: '192.0.2.1'};
        const people = {actor: 'usr_1', actor_name: 'ada@example.org'};

        assert.equal((await deployment.api('POST', '/v1/auth/login', {json})).status, 401);
        await signIn(page, person, '/console/activity');
        await row(page, `Failed sign-in as ${victim.email}`).getByText('Somebody, not signed in').waitFor();

        // Of both forms, and of types that nodes of other versions write.
        await page.route('**/v1/console/audit_events?*', (route) =>
            route.fulfill({
                json: {
                    data: [
                        {id: '9', type: 'login.failed', ...people, ...at},
                        {id: '8', type: 'login.failed', target: 'usr_2', target_name: 'eve@example.org', target_kind: 'user', ...at},
                        {id: '7', type: 'step_up.failed', ...people, ...at},
                        {id: '6', type: 'device.approved', target: 'Front desk', target_kind: 'device', ...people, ...at},
                        {id: '5', type: 'api_key.used_after_revocation', actor: 'system', target: 'key_1', target_name: 'Old', ...at},
                        {id: '4', type: 'of.tomorrow', ...at},
                    ],
                    has_more: false,
                },
            }),
        );
        await page.reload();
        for (const [words, who] of [
            ['Failed sign-in as ada@example.org', 'Somebody, not signed in'],
            ['Failed sign-in as eve@example.org', 'Somebody, not signed in'],
            ['Failed to confirm password and code', 'ada@example.org'],
            ['Approved the device Front desk', 'ada@example.org'],
            ['Refused requests with the revoked API key Old', 'Somebody with the key'],
            ['Event of.tomorrow', 'Unknown'],
        ])
            await row(page, words).getByText(who).last().waitFor();
    });

    browse('older entries come once, however often they are asked for', async (page, {person}) => {
        const eventOf = (id) => ({id, type: 'session.created', created_at: '2026-01-01T00:00:00Z'});
        let answer;
        const asked = new Promise((resolve) => {
            answer = resolve;
        });

        await signIn(page, person);
        await page.route('**/v1/console/audit_events?*', async (route) => {
            const isFirst = !new URL(route.request().url()).searchParams.has('starting_after');

            if (!isFirst) await asked;
            await route.fulfill({
                json: {data: isFirst ? [eventOf('2'), eventOf('1')] : [eventOf('0')], has_more: isFirst},
            });
        });
        await page.getByRole('link', {name: 'Activity'}).click();
        const more = page.getByRole('button', {name: 'Show older entries'});
        await more.click();
        await page.locator('.pager button').dispatchEvent('click');
        answer();
        await page.getByText('No older entries.').waitFor();
        await page.waitForLoadState('networkidle');
        assert.equal(await page.locator('tbody tr').count(), 3);
    });
});
