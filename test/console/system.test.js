// The system page, in Chromium: what the canary has found.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {signIn} from './browser.js';
import {browse, judge} from './scene.js';

const NODES = {asked: 3, refused: 3, accepted: 0, silent: 0};

const canary = (more) => ({
    interval_ms: 60000,
    runs: 1440,
    unfinished_runs: 0,
    last_run_at: new Date(Date.now() - 20000).toISOString(),
    effect_us: 817,
    nodes: NODES,
    violations: 0,
    last_violation_at: null,
    ...more,
});

async function openWith(page, person, more) {
    await page.route('**/v1/console/system', (route) => route.fulfill({json: {canary: canary(more)}}));
    await signIn(page, person, '/console/system');
    await page.locator('.canary').waitFor();
}

const CASES = {
    'all is well': [{}, '.good', /held on all 3 nodes\./],
    'a node did not answer': [{nodes: {...NODES, refused: 2, silent: 1}}, '.warn', /held on 2 nodes\. 1 node did not answer\./],
    'a violation now': [
        {nodes: {...NODES, refused: 2, accepted: 1}, violations: 1, last_violation_at: '2026-01-31T12:00:00.000Z'},
        '.error',
        /1 node accepted a revoked key in the last run\. Tell whoever runs this service\./,
    ],
    'a violation once': [{violations: 2, last_violation_at: '2026-01-31T12:00:00.000Z'}, '.warn', /once accepted/],
    'no run for long': [{last_run_at: new Date(Date.now() - 301000).toISOString()}, '.warn', /long ago/],
    'no run yet': [{last_run_at: null, nodes: {...NODES, asked: 0, refused: 0}}, '.info', /No run has finished yet/],
    'off': [{interval_ms: 0, last_run_at: null}, '.info', /turned off/],
};

describe('system', () => {
    for (const [name, [more, kind, says]] of Object.entries(CASES))
        browse(`says so: ${name}`, async (page, {person}) => {
            await openWith(page, person, more);
            assert.match(await page.locator(`.notice${kind}`).innerText(), says);
            assert.equal(await page.locator('.canary .notice').count(), 1);
        });

    browse('a computer whose clock is wrong: the last run is not long ago', async (page, {person}) => {
        await page.clock.install({time: Date.now() + 7200000});
        await openWith(page, person, {});
        await page.locator('.notice.good').waitFor();
        assert.equal(await page.locator('.canary .notice').count(), 1);
    });

    browse('shows the numbers of the last run', async (page, {person}) => {
        await openWith(page, person, {nodes: {asked: 3, refused: 2, accepted: 0, silent: 1}, unfinished_runs: 2});
        const facts = await page.locator('.canary .facts').innerText();

        for (const words of ['0.8\u00a0ms', '3: 2 refused, 1 did not answer', '1,440, and 2 that could not be finished'])
            assert.ok(facts.includes(words), facts);
        await page.getByText('Every minute the service revokes a test key of its own').waitFor();
    });

    for (const [scheme, size] of [
        ['light', 'wide'],
        ['dark', 'narrow'],
    ])
        browse(
            `is found from My account, and accessible, ${scheme} and ${size}`,
            async (page, {person}) => {
                await signIn(page, person, '/console/account');
                await page.getByRole('link', {name: 'See the last measurement'}).click();
                await page.getByRole('heading', {name: 'System', level: 1}).waitFor();
                await page.locator('.canary').waitFor();
                await judge(page, '/system');
            },
            {scheme, size},
        );
});
