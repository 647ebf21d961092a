// The scene of the tests in Chromium: a deployment, a browser, and a colleague who works in the same account.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {after, before, test} from 'node:test';

import {PATIENCE_MS} from '../support/deployment.js';
import {launch, openContext, settled} from './browser.js';
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

// A test with a browser of its own; it fails by any complaint of any page.
export function browse(name, run, options = {}) {
    test(name, {timeout: 4 * PATIENCE_MS}, async () => {
        const {context, complaints} = await openContext(browser, deployment, options);
        const page = await context.newPage();

        try {
            await run(page, {context, person: deployment.addPerson()});
            assert.deepEqual(complaints, []);
        } finally {
            await context.close();
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
    await page.evaluate(AXE);
    const {violations} = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ['violations']}));

    assert.deepEqual(
        violations.map(({id, nodes}) => `${state}: ${id} ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`),
        [],
    );
}
