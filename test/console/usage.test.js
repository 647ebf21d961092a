// The usage page, in Chromium: numbers that add up, by day and by key, and as files.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {describe} from 'node:test';

import {until} from '../support/deployment.js';
import {settled, signIn} from './browser.js';
import {addUse, browse, dateOf, deployment, judge, numberOf, row, someKeys} from './scene.js';

const tile = (page, name) => numberOf(page.locator('.tile', {hasText: name}).locator('.tile-value'));

async function fileOf(page, name) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name, exact: true}).click()]);

    return readFileSync(await download.path(), 'utf8').trim().split('\r\n');
}

describe('usage', () => {
    browse('is no formula of a spreadsheet in files, whatever names say', async (page) => {
        const table = readFileSync(join(process.env.CHATELAINE_SOURCE, 'test/support/csv_cells.def'), 'utf8');
        const cells = [...table.matchAll(/^CELL\((.*)\)$/gm)].map(([, pair]) => JSON.parse(`[${pair}]`));

        assert.ok(cells.length > 20);
        await page.goto('/console/');
        const printed = await page.evaluate(async (values) => {
            const {csvOf} = await import(document.querySelector('script[type="module"]').src.replace('app.js', 'file.js'));

            return await Promise.all(values.map((value) => csvOf([[value]]).text()));
        }, cells.map(([cell]) => cell));
        assert.deepEqual(printed, cells.map(([, expected]) => `${expected}\r\n`));
    });

    browse('adds up: in total, by day, by key, refused ones too, and in the files', async (page, {person}) => {
        const {
            made: [live, test, formula],
        } = await someKeys(['Adds up, live', 'live'], ['Adds up, test', 'test'], ['=1+1', 'test']);

        addUse(live, 2, 1200);
        addUse(test, 4, 90);
        addUse(formula, 4, 3);
        addUse(live, 200, 50000);
        await deployment.api('GET', '/v1/exchanges', {bearer: live.secret});
        await deployment.api('GET', '/v1/exchanges', {bearer: test.secret});
        await signIn(page, person);
        await until('the refusals to be counted', async () => {
            await page.goto('/console/usage?days=7');
            await settled(page);
            return (await tile(page, 'Refused requests')) >= 2;
        });
        const keys = page.locator('.usage-keys tbody tr');
        const sums = {requests: 0, refused: 0};
        for (const line of await keys.all()) {
            sums.requests += await numberOf(line.locator('.share-cell .number'));
            sums.refused += await numberOf(line.locator('.refused-cell'));
        }
        assert.equal(sums.requests, (await tile(page, 'Live requests')) + (await tile(page, 'Test requests')));
        assert.equal(sums.refused, await tile(page, 'Refused requests'));

        await page.getByText('Show the numbers as a table').click();
        const foot = page.locator('.numbers tfoot td');
        for (const [i, name] of ['Live requests', 'Test requests', 'Refused requests'].entries())
            assert.equal(await numberOf(foot.nth(i)), await tile(page, name), name);

        const days = await fileOf(page, 'Export CSV');
        assert.equal(days[0], 'date,live,test,refused');
        assert.equal(days.length, 8);
        for (const [i, name] of ['Live requests', 'Test requests', 'Refused requests'].entries())
            assert.equal(
                days.slice(1).reduce((sum, line) => sum + Number(line.split(',')[i + 1]), 0),
                await tile(page, name),
            );
        const byKey = await fileOf(page, 'Export CSV by key');
        assert.ok(byKey.includes(`${live.id},"Adds up, live",live,1200,1`), byKey.join('\n'));
        assert.ok(byKey.includes(`${formula.id},'=1+1,test,3,0`), byKey.join('\n')); // no formula for a spreadsheet
        await page.getByRole('button', {name: '1 year'}).click();
        await row(page, 'Adds up, live').getByText('51,200').waitFor();
    });

    browse('of a single key, by a click on it, and back', async (page, {person}) => {
        const {
            made: [key, other],
        } = await someKeys(['Looked at alone', 'test'], ['Another one', 'live']);

        addUse(key, 1, 77);
        addUse(other, 1, 1000);
        await signIn(page, person, '/console/usage?days=7');
        await page.getByRole('link', {name: 'Looked at alone'}).click();
        await page.getByText('Only Looked at alone').waitFor();
        assert.equal(await tile(page, 'Test requests'), 77);
        assert.equal(await page.locator('.tile', {hasText: 'Live requests'}).count(), 0);
        assert.equal(await page.locator('.chart .day').count(), 7);
        await page.getByRole('button', {name: '30 days'}).click();
        await page.waitForURL(`**/console/usage?key=${key.id}`);
        await page.reload();
        await page.getByText('Only Looked at alone').waitFor();
        assert.equal(await page.locator('.chart .day').count(), 30);
        await page.goBack();
        await row(page, 'Another one').waitFor();
        await page.goForward();
        await page.getByRole('link', {name: 'Open the key'}).click();
        await page.getByRole('heading', {name: 'Looked at alone'}).waitFor();
        await page.goBack();
        await page.getByRole('link', {name: 'Show all keys'}).click();
        await row(page, 'Another one').waitFor();
    });

    browse('of this month, compared with as many days before', async (page, {person}) => {
        await page.route('**/v1/console/usage?*', (route) => {
            const days = Number(new URL(route.request().url()).searchParams.get('days'));
            const data = Array.from({length: days}, (_, i) => ({
                date: dateOf(days - 1 - i),
                mode: 'live',
                requests: i < days / 2 ? 100 : 150,
                refused: 0,
            }));

            return route.fulfill({json: {data, keys: []}});
        });
        await signIn(page, person, '/console/usage?days=month');
        const days = new Date().getUTCDate();
        await page.getByText(`50 % more than in the ${days} days before`).waitFor();
        assert.equal(await tile(page, 'Live requests'), 150 * days);
        assert.equal(await page.locator('.chart .day').count(), days);
        await page.getByRole('button', {name: 'This month', pressed: true}).waitFor();
    });

    for (const [scheme, size] of [
        ['light', 'wide'],
        ['dark', 'narrow'],
    ])
        browse(
            `shows single days, accessible, ${scheme} and ${size}`,
            async (page, {person}) => {
                const {
                    made: [key],
                } = await someKeys([`Busy, ${scheme}`, 'live']);

                addUse(key, 0, 4321);
                await signIn(page, person, '/console/usage?days=7');
                await page.locator('.chart').waitFor();
                const tip = page.locator('.tip');
                await page.locator('.chart .day').last().hover();
                await tip.getByText('live').waitFor();
                const [frame, box] = await Promise.all([page.locator('.chart').boundingBox(), tip.boundingBox()]);
                assert.ok(box.x >= frame.x && box.x + box.width <= frame.x + frame.width);
                await page.locator('.chart').focus();
                await page.keyboard.press('Home');
                assert.match(await page.locator('#announcer').textContent(), /: \d+ live, \d+ test, \d+ refused$/);
                await page.getByText('Show the numbers as a table').click();
                await judge(page, 'usage');
                await page.goto(`/console/usage?key=${key.id}`);
                await page.getByText(`Only Busy, ${scheme}`).waitFor();
                await judge(page, 'usage of a key');
                assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
            },
            {scheme, size},
        );
});

browse('usage by key adds up to that of the period', async (page, {person}) => {
    const {
        made: [old, busy, rare],
    } = await someKeys(['Of last month', 'live'], ['Busy now', 'live'], ['Rarely used', 'test']);

    addUse(old, 20, 70000);
    addUse(busy, 3, 50000);
    addUse(rare, 2, 40);
    // Of a key that is not among the most used.
    deployment.redis('HINCRBY', `chatelaine:acct:${deployment.account}:usage`, `${dateOf(1)}:live`, '25');
    await signIn(page, person, '/console/usage?days=7');
    const section = page.locator('.by-key');
    await section.getByText('Busy now').waitFor();
    assert.equal(await section.getByText('Of last month').count(), 0);
    let sum = 0;
    for (const number of await section.locator('.share-cell .number').all()) sum += await numberOf(number);
    const tiles = page.locator('.tile-value');
    assert.equal(sum, (await numberOf(tiles.nth(0))) + (await numberOf(tiles.nth(1))));
    await section.getByRole('row', {name: /Other keys/}).waitFor();
    await page.getByRole('button', {name: '30 days'}).click();
    await section.getByText('Of last month').waitFor();
});
