// The scene of the tests in Chromium: a deployment, a browser, and a colleague who works in the same account.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {after, before, test} from 'node:test';

import {PATIENCE_MS} from '../support/deployment.js';
import {closeContext, launch, openContext, settled} from './browser.js';
import {Deployment} from './deployment.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export let deployment;
export let browser;
let colleague;

before(async () => {
    deployment = await Deployment.start();
    browser = await launch();
});

after(async () => {
    await browser?.close();
    await deployment?.stop();
});

// A test with a browser of its own; it fails by any complaint of any page. Its person is made if it asks for one.
export function browse(name, run, options = {}) {
    test(name, {timeout: 4 * PATIENCE_MS}, async () => {
        const {context, complaints} = await openContext(browser, deployment, options);
        const page = await context.newPage();
        const scene = {
            context,
            get person() {
                return deployment.addPerson();
            },
        };

        try {
            await run(page, scene);
            assert.deepEqual(complaints, []);
        } finally {
            await closeContext(context);
        }
    });
}

export const keysOf = async (session, query = '') =>
    (await session.send('GET', `/v1/console/api_keys?limit=100${query}`)).json.data;
export const row = (page, name) => page.getByRole('row').filter({hasText: name});

// Creates keys outside the browser, as somebody else of the same account.
export async function someKeys(...names) {
    const made = [];

    colleague ??= await deployment.signIn(deployment.addPerson());
    await colleague.stepUp();
    for (const [name, mode, scopes = ['patients:read']] of names)
        made.push((await colleague.send('POST', '/v1/console/api_keys', {name, mode, scopes})).json);
    return {session: colleague, made};
}

// Call when all sessions have ended.
export function forgetColleague() {
    colleague = undefined;
}

// Nothing of what axe-core finds: neither serious nor slight.
export async function judge(page, state) {
    await settled(page);
    if (await page.evaluate(() => !globalThis.axe)) await page.evaluate(AXE); // which is half a megabyte
    const {violations} = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ['violations']}));

    assert.deepEqual(
        violations.map(({id, nodes}) => `${state}: ${id} ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`),
        [],
    );
}

const DAY_MS = 86400000;

export const dateOf = (daysAgo) => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10);

// As if the key had been used that often on that day.
export function addUse(key, daysAgo, requests) {
    const {account} = deployment;

    deployment.redisMany([
        `HINCRBY chatelaine:acct:${account}:usage:${dateOf(daysAgo)} ${key.id} ${requests}`,
        `HINCRBY chatelaine:acct:${account}:usage ${dateOf(daysAgo)}:${key.mode} ${requests}`,
        `ZINCRBY chatelaine:acct:${account}:usage_keys ${requests} ${key.id}`,
    ]);
}

export const numberOf = async (locator) => Number((await locator.textContent()).replaceAll(',', ''));
export const focused = (page) => page.evaluate(() => document.activeElement.textContent.trim());

// Where the way back is to lead.
export async function goBackTo(page, path) {
    await page.evaluate(
        () =>
            new Promise((resolve) => {
                addEventListener('popstate', () => setTimeout(resolve), {once: true});
                history.back();
            }),
    );
    assert.equal(new URL(page.url()).pathname, path);
}

export async function overlap(one, other) {
    const [a, b] = await Promise.all([one.boundingBox(), other.boundingBox()]);

    return a.y < b.y + b.height && b.y < a.y + a.height && a.x < b.x + b.width && b.x < a.x + a.width;
}

// Whole, within the window, and not below anything.
export const isInSight = (locator) =>
    locator.evaluate((element) => {
        const {top, bottom, left, right} = element.getBoundingClientRect();
        const isTop = (x, y) => element.contains(document.elementFromPoint(x, y));

        return (
            top >= 0 &&
            bottom <= innerHeight &&
            [left + 9, (left + right) / 2, right - 9].every((x) => isTop(x, top + 3) && isTop(x, bottom - 3))
        );
    });
