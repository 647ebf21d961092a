// What fits into which window, and how much is loaded.
import assert from 'node:assert/strict';
import {describe, test} from 'node:test';

import {PATIENCE_MS, until} from '../support/deployment.js';
import {openContext, settled, signIn} from './browser.js';
import {browse, browser, deployment, someKeys} from './scene.js';

// A name is what a key is revoked by.
for (const scheme of ['light', 'dark'])
    browse(
        `the names of keys can be read at every width, ${scheme}`,
        async (page, {person}) => {
            await someKeys(
                ['Nightly audit export to the archive of the regional health authority', 'live'],
                ['Short', 'test'],
            );
            await signIn(page, person);
            await page.locator('.use-total').last().waitFor({state: 'attached'});
            for (const width of [721, 761, 768, 800, 880, 901, 960, 1024, 1100, 1152, 1200, 1280, 1440, 1920]) {
                await page.setViewportSize({width, height: 860});
                const names = await page
                    .locator('.row-name')
                    .evaluateAll((all) =>
                        all.map((name) => [name.textContent, name.scrollWidth > name.clientWidth, name.clientWidth]),
                    );

                assert.ok(names.length >= 2);
                for (const [name, isCut, shown] of names)
                    assert.ok(!isCut || shown >= 160, `${width} px: ${shown} px of ${name}`);
                for (const cell of await page.locator('.keys tbody th').all())
                    assert.ok((await cell.boundingBox()).width >= 160, `${width} px`);
                assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px`);
            }
        },
        {scheme},
    );

browse(
    'nothing is wider than the narrowest screen',
    async (page, {person}) => {
        await someKeys(['A'.repeat(200), 'test'], ['Wide '.repeat(40).trim(), 'live']);
        await signIn(page, person);
        for (const path of ['', 'devices', 'usage', 'activity', 'people', 'account', 'system', 'activate']) {
            await page.goto(`/console/${path}`);
            await settled(page);
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320, path);
        }
        await page.goto('/console/');
        await page.getByRole('link', {name: 'A'.repeat(200), exact: true}).click();
        await page.locator('.chart').waitFor();
        await settled(page);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320, 'a key');
    },
    {size: 'narrow'},
);

// Pairs of things to click, or to write in, of which one lies over another, in what can be seen.
const overlaps = (page) =>
    page.evaluate(() => {
        const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [role=button]')];
        const boxes = all
            .filter((each) => each.checkVisibility({visibilityProperty: true, opacityProperty: true}))
            .map((each) => ({each, box: each.getBoundingClientRect()}))
            .filter(({box}) => box.width > 1 && box.height > 1);
        const name = (each) => `${each.tagName} ${each.id} ${(each.textContent || each.ariaLabel || each.name || '').trim().slice(0, 40)}`;
        const found = [];

        for (const [i, {each, box}] of boxes.entries())
            for (const {each: other, box: under} of boxes.slice(i + 1)) {
                const isPart = each.contains(other) || other.contains(each);
                const width = Math.min(box.right, under.right) - Math.max(box.left, under.left);
                const height = Math.min(box.bottom, under.bottom) - Math.max(box.top, under.top);

                if (!isPart && width > 1 && height > 1) found.push(`${name(each)} | ${name(other)}`);
            }
        return found;
    });

const PAGES = ['', 'devices', 'usage', 'activity', 'people', 'account', 'system', 'activate'];

browse('nothing to click lies over another thing, at six widths, and at twice the size of text', async (page, {person}) => {
    await someKeys(['Ward 3 dashboard, which has a long name', 'live'], ['Short', 'test']);
    await signIn(page, person);
    for (const path of PAGES) {
        await page.goto(`/console/${path}`);
        await settled(page);
        // Twice the text in a window of twice the size, because the script's size does not reach media queries.
        for (const [width, text] of [320, 390, 768, 1024, 1280, 1920].map((each) => [each, '100%']).concat([[2560, '200%']])) {
            const what = `/console/${path}, ${width} px, text ${text}`;

            await page.setViewportSize({width, height: 860});
            await page.evaluate((size) => (document.documentElement.style.fontSize = size), text);
            assert.deepEqual(await overlaps(page), [], what);
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what}: too wide`);
        }
        const heights = await page.evaluate(() =>
            ['100%', '200%'].map((size) => {
                document.documentElement.style.fontSize = size;
                return parseFloat(getComputedStyle(document.querySelector('h1, h2')).fontSize);
            }),
        );
        assert.equal(heights[1], 2 * heights[0], `${path}: its heading does not grow`);
    }
});

for (const size of ['wide', 'narrow'])
    browse(
        `the chart is whole, with its axis and its last day, ${size}`,
        async (page, {person}) => {
            await page.route('**/v1/console/usage?*', (route) => {
                const count = Number(new URL(route.request().url()).searchParams.get('days'));
                const dateOf = (i) => new Date(Date.UTC(2026, 10, 24 - count + i + 1)).toISOString().slice(0, 10);

                return route.fulfill({
                    json: {
                        data: Array.from({length: count}, (_, i) => ({date: dateOf(i), mode: 'live', requests: 1000})),
                        keys: [],
                    },
                });
            });
            await signIn(page, person, '/console/usage');
            for (const [period, bars] of [
                ['7 days', [7, 7]],
                ['30 days', [30, 5]],
                ['90 days', [90, 13]],
                ['1 year', [365, 14]],
            ]) {
                await page.getByRole('button', {name: period}).click();
                await until('the chart', async () => {
                    return (await page.locator('.chart .day').count()) === bars[size === 'wide' ? 0 : 1];
                });
                const frame = await page.locator('.chart svg').boundingBox();
                assert.ok(frame.x >= 0 && frame.x + frame.width <= page.viewportSize().width, period);
                const labels = await page.locator('.chart .tick').all();
                for (const label of labels) {
                    const {x, y, width, height} = await label.boundingBox();
                    const words = `${period}: ${await label.textContent()}`;

                    assert.ok(x >= frame.x - 1 && x + width <= frame.x + frame.width + 1, words);
                    assert.ok(y >= frame.y - 1 && y + height <= frame.y + frame.height + 1, words);
                    assert.ok(height >= 10, `${words}, ${height} px high`);
                }
                assert.equal(await labels.at(-1).textContent(), '24 Nov');
                const boxes = await Promise.all(labels.map((label) => label.boundingBox()));
                const onAxis = boxes.filter(({y}) => y > frame.y + frame.height - 30 && y > boxes[0].y);
                for (const [i, box] of onAxis.slice(1).entries())
                    assert.ok(onAxis[i].x + onAxis[i].width < box.x, `${period}: labels run into each other`);
            }
            await page.setViewportSize({width: size === 'wide' ? 400 : 1280, height: 800});
            await until('another form', async () => (await page.locator('.chart .day').count()) === (size === 'wide' ? 14 : 365));
        },
        {size},
    );

describe('weight', () => {
    const watchShifts = (context) =>
        context.addInitScript(() => {
            globalThis.shift = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries()) globalThis.shift += entry.value;
            }).observe({type: 'layout-shift', buffered: true});
        });

    test('the first page is light, and its files come once', {timeout: 4 * PATIENCE_MS}, async (t) => {
        const {context, complaints} = await openContext(browser, deployment);
        const page = await context.newPage();
        const client = await context.newCDPSession(page);
        let bytes = 0;

        await client.send('Network.enable');
        client.on('Network.loadingFinished', ({encodedDataLength}) => {
            bytes += encodedDataLength;
        });
        await signIn(page, deployment.newcomers(1)[0]);
        await settled(page);
        t.diagnostic(`signed in, all that was loaded: ${bytes} bytes`);
        assert.ok(bytes < 60000, `${bytes} bytes`);
        bytes = 0;
        await page.reload();
        await page.getByText('No API keys yet').waitFor();
        const {domInteractive, responseStart} = await page.evaluate(() =>
            performance.getEntriesByType('navigation')[0].toJSON(),
        );
        t.diagnostic(
            `loaded again: ${bytes} bytes, interactive ${Math.round(domInteractive - responseStart)} ms after its first byte`,
        );
        assert.ok(bytes < 5000, `${bytes} bytes`);
        assert.deepEqual(complaints, []);
        await context.close();
    });

    browse('nothing moves while it loads', async (page, {context, person}) => {
        await someKeys(['a', 'test'], ['b', 'live']);
        await watchShifts(context);
        await signIn(page, person);
        for (const path of ['', 'usage', 'activity', 'devices', 'people', 'account', 'system', 'activate']) {
            await page.goto(`/console/${path}`);
            await settled(page);
            await page.waitForLoadState('networkidle');
            assert.equal(await page.evaluate(() => globalThis.shift), 0, path);
        }
    });
});
