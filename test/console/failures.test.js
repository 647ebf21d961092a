// What can go wrong between the page and the service.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {PASSWORD, until} from '../support/deployment.js';
import {askForTestKey, fillNewKey, fillSignIn, settled, signIn} from './browser.js';
import {browse, deployment, goBackTo, isInSight, row, someKeys} from './scene.js';

describe('a request', () => {
    browse('a key in the making is waited for, its secret stays until it is stored', async (page, {person}) => {
        const secret = 'svc_sk_test_000000000000000000000000000000000000aa';
        let answer;
        const asked = new Promise((resolve) => {
            answer = resolve;
        });

        await signIn(page, person);
        await page.getByRole('link', {name: 'Usage'}).click();
        await page.getByRole('link', {name: 'API keys', exact: true}).click();
        await fillNewKey(page, 'Slow');
        const sheet = page.getByRole('dialog');
        await page.route('**/v1/console/api_keys', async (route) => {
            await asked;
            await route.fulfill({status: 201, json: {id: 'key_x', name: 'Slow', mode: 'test', last4: '00aa', secret}});
        });
        await sheet.getByRole('button', {name: 'Create test key'}).click();
        await page.keyboard.press('Escape');
        await sheet.getByRole('button', {name: 'Close'}).click();
        await sheet.getByRole('button', {name: 'Cancel'}).dispatchEvent('click');
        await goBackTo(page, '/console/');
        answer();
        await page.getByText(secret).waitFor();
        await goBackTo(page, '/console/');
        await page.getByText('the secret cannot be shown again').waitFor();
        assert.ok(await page.getByText(secret).isVisible());
        const [question] = await Promise.all([page.waitForEvent('dialog'), page.close({runBeforeUnload: true})]);
        assert.equal(question.type(), 'beforeunload');
        await question.dismiss();
        await page.getByLabel('I have stored it').check();
        await goBackTo(page, '/console/usage');
        await sheet.waitFor({state: 'detached'});
    });

    browse('too many attempts count down, and the button holds', async (page, {person}) => {
        await page.goto('/console/');
        for (let i = 0; i < 5; i++)
            assert.equal(
                (
                    await deployment.api('POST', '/v1/auth/login', {
                        json: {email: person.email, password: 'not the right one', totp: '123456'},
                    })
                ).status,
                401,
            );
        await fillSignIn(page, person);
        await page.getByText(/You can try again in \d/).waitFor();
        assert.equal(await page.getByRole('button', {name: 'Sign in'}).getAttribute('aria-disabled'), 'true');
        await page.route('**/v1/auth/login', () => {}); // what is asked now stays at work
        await page.getByLabel('One-time code').press('Enter');
        assert.equal(await page.locator('form[data-working]').count(), 0);
        deployment.forgetThrottles();
    });

    browse('the step-up says when the next code comes, before anything is typed', async (page, {person}) => {
        const before = Math.floor(Date.now() / 30000);
        await signIn(page, person);
        await askForTestKey(page, 'x');
        const dialog = page.getByRole('dialog', {name: 'Confirm that it is you'});
        const told = dialog.getByText(/Its next one comes in \d+\u00a0s\.|Your app shows a new code now\./);

        await dialog.getByLabel('One-time code').waitFor();
        // The code's time may have ended before the dialog was there.
        if ((await told.count()) === 0) assert.notEqual(Math.floor(Date.now() / 30000), before);
        else assert.equal(await told.count(), 1);
        await dialog.getByRole('button', {name: 'Cancel'}).click();
    });

    browse('a code that was used is told apart, at the step-up', async (page, {person}) => {
        await signIn(page, person);
        await deployment.signIn(person); // with a code that comes early: the one that the app shows next is of no use
        await askForTestKey(page, 'x');
        const dialog = page.getByRole('dialog', {name: 'Confirm that it is you'});
        await dialog.getByLabel('Password', {exact: true}).fill(PASSWORD);
        await dialog.getByLabel('One-time code').fill(person.lastCode());
        const before = person.nextCodeInS();
        const answered = page.waitForResponse('**/v1/console/step_up');
        await dialog.getByRole('button', {name: 'Confirm'}).click();
        const told = Number((await answered).headers()['retry-after']);
        const used = dialog.getByText('This code was used before');
        const atFirst = await used.textContent();
        const shown = Number(atFirst.match(/(\d+)\u00a0s/)[1]);
        const after = person.nextCodeInS();
        assert.ok(told >= after && told <= Math.ceil(before), `${told} of ${before} to ${after} s`);
        assert.ok(shown >= after && shown <= told, `shown: ${shown} of ${told}, ${after} s left`);
        await until('the countdown to go on', async () => (await used.textContent()) !== atFirst);
        await dialog.getByRole('button', {name: 'Cancel'}).click();
        assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), 'x');
    });

    browse('a revocation that could not be confirmed is repeated', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Doubtful', 'test']);
        const dialog = page.getByRole('dialog');

        await signIn(page, person);
        await page.getByRole('button', {name: 'Revoke Doubtful'}).click();
        deployment.pauseRedis();
        try {
            await dialog.getByRole('button', {name: 'Revoke key'}).click();
            await dialog.getByText('repeating it is safe').waitFor();
        } finally {
            deployment.resumeRedis();
        }
        await until('the store to be back', async () => {
            await dialog.getByRole('button', {name: 'Revoke key'}).click();
            await page.locator('form[data-working]').waitFor({state: 'detached'});
            return await dialog.getByText('No node accepts this key any more.').isVisible();
        });
        const answer = await deployment.api('GET', '/v1/whoami', {bearer: key.secret});
        assert.equal(answer.json.error.code, 'api_key_revoked');
    });

    browse(
        'the answer of a creation is lost: the form stays, and says what became of the key',
        async (page, {person}) => {
            await signIn(page, person);
            await page.route('**/v1/console/api_keys', (route) => route.abort('connectionreset'));
            await askForTestKey(page, 'Lost');
            await page.getByText('nobody has its secret').waitFor();
            assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), 'Lost');
            await page.route('**/v1/console/api_keys', (route) =>
                route.fulfill({status: 201, contentType: 'application/json', body: '{"id":"key_'}),
            );
            await page.getByRole('button', {name: 'Create test key'}).click();
            await page.locator('form[data-working]').waitFor({state: 'detached'});
            await page.getByText('nobody has its secret').waitFor();
        },
    );

    for (const size of ['wide', 'narrow'])
        browse(
            `a creation that fails says so where it is seen, and a 503 is no missing answer, ${size}`,
            async (page, {person}) => {
                await signIn(page, person);
                await fillNewKey(page, 'Seen');
                for (const [answer, words] of [
                    [{status: 503, json: {error: {code: 'store_unavailable'}}}, /temporarily unavailable.*nobody has/],
                    [{status: 503, json: {error: {code: 'overloaded'}}}, /is overloaded right now/],
                    [null, /^No response arrived.*nobody has/],
                    [{status: 429, headers: {'Retry-After': '9'}}, /You can try again in/],
                ]) {
                    await page.locator('dialog').evaluate((dialog) => dialog.scrollTo(0, 0));
                    await page.unroute('**/v1/console/api_keys');
                    await page.route('**/v1/console/api_keys', (route) =>
                        answer ? route.fulfill(answer) : route.abort('connectionreset'),
                    );
                    await page.getByRole('button', {name: 'Create test key'}).click();
                    const problem = page.locator('.form-problem').filter({hasText: words});
                    await problem.waitFor();
                    assert.ok(await isInSight(problem), `${words}`);
                    assert.ok(await problem.evaluate((element) => element === document.activeElement), `${words}`);
                }
            },
            {size},
        );

    browse('signed in again in another tab: the token that changed is no obstacle', async (page, {context, person}) => {
        const {
            made: [key],
        } = await someKeys(['Two tabs', 'test']);
        const other = await context.newPage();

        await signIn(page, person);
        await page.getByRole('button', {name: 'Revoke Two tabs'}).waitFor(); // read while it had its session
        await context.clearCookies();
        await signIn(other, person);
        await page.bringToFront();
        await page.getByRole('button', {name: 'Revoke Two tabs'}).click();
        await page.getByRole('button', {name: 'Revoke key'}).click();
        await page.getByRole('dialog').getByText('No node accepts this key any more.').waitFor();
        const answer = await deployment.api('GET', '/v1/whoami', {bearer: key.secret});
        assert.equal(answer.json.error.code, 'api_key_revoked');
    });
});

describe('the service', () => {
    browse('the store is away, and back', async (page, {person}) => {
        await signIn(page, person);
        await settled(page);
        deployment.pauseRedis();
        try {
            await page.getByRole('link', {name: 'Activity'}).click();
            await page.getByText('The service is temporarily unavailable').waitFor();
            await page.getByText('Trying again in').waitFor();
        } finally {
            deployment.resumeRedis();
        }
        await row(page, 'Signed in').first().waitFor();
    });

    browse('a computer whose clock is wrong: what was just now is told as that', async (page, {person}) => {
        await page.clock.install({time: Date.now() + 7200000});
        await signIn(page, person);
        await page.getByRole('link', {name: 'Activity'}).click();
        await row(page, 'Signed in').first().getByText('just now').waitFor();
        await page.getByText('You will be signed out').waitFor({state: 'detached'});
    });

    browse('at another address than its own it says so before anything is typed', async (page, {person}) => {
        await page.goto(`${deployment.url}/console/usage?days=7`);
        await page.getByText('This is not the console’s own address').waitFor();
        assert.equal(await page.locator('input').count(), 0);
        await page.getByRole('link', {name: deployment.origin}).click();
        await fillSignIn(page, person);
        await page.getByRole('button', {name: '7 days', pressed: true}).waitFor();
    });

    browse('a page whose script is gone, after an upgrade: the document is loaded again', async (page, {person}) => {
        await signIn(page, person);
        await settled(page);
        await page.route('**/usage.js', (route) => route.fulfill({status: 404}));
        const loads = [];
        page.on('load', () => loads.push(page.url()));
        await page.getByRole('link', {name: 'Usage'}).click();
        await until('the document to be loaded again', () => loads.length > 0);
        assert.equal(new URL(loads[0]).pathname, '/console/usage');
        await page.getByText('The server could not be reached').waitFor(); // and no loop
        await page.unroute('**/usage.js');
        await page.reload();
        await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
        await page.getByRole('link', {name: 'Devices'}).click();
        await page.goBack();
        await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
    });

    browse('the script for creating a key cannot be had: said at once, and mended by another try', async (page, {person}) => {
        await signIn(page, person);
        await page.route('**/create.js', (route) => route.abort());
        await page.getByRole('button', {name: 'Create key'}).first().click();
        const dialog = page.getByRole('dialog', {name: 'Create key'});
        await dialog.getByText('The server could not be reached').waitFor();
        await page.unroute('**/create.js');
        await Promise.all([page.waitForEvent('load'), dialog.getByRole('button', {name: 'Try again'}).click()]);
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('dialog', {name: 'Create an API key'}).waitFor();
    });

    browse('offline, and back', async (page, {context, person}) => {
        await signIn(page, person);
        await settled(page);
        await context.setOffline(true);
        await page.getByText('You are offline').waitFor();
        await page.getByRole('link', {name: 'Usage'}).click();
        await page.getByText('The server could not be reached').waitFor();
        await context.setOffline(false);
        await page.getByText('You are offline').waitFor({state: 'detached'});
        await page
            .getByRole('heading', {name: 'Requests per day'})
            .or(page.getByText('No requests yet'))
            .first()
            .waitFor();
    });
});
