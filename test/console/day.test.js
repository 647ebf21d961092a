// Days at the console, against the real program and a private Redis, with real one-time codes.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {describe} from 'node:test';

import {until} from '../support/deployment.js';
import {askForTestKey, confirmStepUp, fillSignIn, settled, signIn, signOut} from './browser.js';
import {browse, deployment, row, someKeys} from './scene.js';
import {claimDevice, enrolDevice} from './seed.js';

// A poll too early makes the device wait longer: ask until there is an answer.
async function untilToken(ask) {
    let answer;

    await until('the token', async () => {
        answer = await ask();
        return 'access_token' in answer;
    });
    return answer;
}

describe('a day', () => {
    browse('from the first sign-in to the last sign-out', async (page, {context}) => {
        const [person] = deployment.newcomers(1);

        await page.goto('/');
        await fillSignIn(page, person);
        await page.getByText('No API keys yet').waitFor();
        assert.equal(new URL(page.url()).pathname, '/console/');

        // The first key; the step-up is asked for in place, and the form is as it was.
        await askForTestKey(page, 'First integration', ['patients:read', 'usage:read']);
        await confirmStepUp(page, person);
        await page.getByRole('heading', {name: 'Store the secret now'}).waitFor();
        const secret = await page.locator('.secret-text').textContent();
        assert.match(secret, /^svc_sk_test_[0-9A-Za-z]{38}$/);

        await page.getByRole('button', {name: 'Copy secret'}).click();
        await page.locator('#announcer').getByText('Copied').waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
        await page.getByText('The clipboard keeps it, and other programs can read it.').waitFor();
        await page.getByRole('button', {name: 'Clear the clipboard'}).click();
        await page.getByText('The clipboard is empty.').first().waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), '');
        const [download] = await Promise.all([
            page.waitForEvent('download'),
            page.getByRole('button', {name: 'Download .env'}).click(),
        ]);
        assert.equal(download.suggestedFilename(), 'first-integration.env');
        assert.equal(readFileSync(await download.path(), 'utf8'), `CHATELAINE_API_KEY=${secret}\n`);

        // It cannot be closed before it is said to be stored.
        await page.keyboard.press('Escape');
        await page.keyboard.press('Escape');
        await page.getByText('the secret cannot be shown again').waitFor();
        assert.ok(await page.getByRole('button', {name: 'Done'}).isDisabled());
        await page.getByLabel('I have stored it').check();
        await page.getByRole('button', {name: 'Done'}).click();
        await page.locator('.secret-text').waitFor({state: 'detached'}); // a dialog's close event comes a task later
        assert.ok(!(await page.content()).includes(secret));

        // It works, its use is seen and counted, not billed.
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: secret})).json.mode, 'test');
        await until('the use to be counted', async () => {
            await page.reload();
            await settled(page);
            return await row(page, 'First integration').locator('[data-label="Last used"]').getByText('just now').isVisible();
        });
        await row(page, 'First integration').getByRole('img', {name: '1 request in 30 days'}).waitFor();
        await page.getByRole('link', {name: 'Usage'}).click();
        const tile = page.locator('.tile', {hasText: 'Test requests'});
        await tile.getByText('not billed').waitFor();
        assert.equal(await tile.locator('.tile-value').textContent(), '1');

        // Revoked: from the moment the page says so, nothing accepts it.
        await page.getByRole('link', {name: 'API keys', exact: true}).click();
        await page.getByRole('button', {name: 'Revoke First integration'}).click();
        await page.getByRole('dialog', {name: 'Revoke this key?'}).getByText('Last used').waitFor();
        await page.getByRole('button', {name: 'Revoke key'}).click();
        await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: secret})).json.error.code, 'api_key_revoked');
        await page.getByRole('button', {name: 'Close'}).last().click();
        await row(page, 'First integration').getByText('Revoked').waitFor();
        await page.reload();
        await page.getByText('No API keys yet').waitFor();
        await page.getByRole('button', {name: 'Revoked', exact: true}).click();
        await row(page, 'First integration').waitFor();

        // Who did what, in words.
        await page.getByRole('link', {name: 'Activity'}).click();
        await row(page, 'Revoked the API key First integration').getByText('You').waitFor();
        await row(page, 'Created the API key First integration').waitFor();
        await row(page, 'Confirmed password and code').waitFor();
        await row(page, 'Operator').getByText(`Added the user ${person.email}`).waitFor();

        // Signed out: the way back shows nothing.
        await signOut(page);
        await page.getByText('You are signed out.').waitFor();
        assert.deepEqual(
            (await context.cookies()).map(({name}) => name),
            ['__Host-browser'], // by which the browser is known again; it opens nothing
        );
        for (let i = 0; i < 3; i++) {
            await page.goBack();
            await page.getByRole('button', {name: 'Sign in'}).waitFor();
            assert.ok(!(await page.content()).includes('First integration'));
        }
    });

    browse('the certificate of a revocation, as a file', async (page, {person}) => {
        const {
            made: [key],
            session,
        } = await someKeys(['Certified key', 'live']);

        await signIn(page, person, `/console/keys/${key.id}`);
        await page.getByRole('heading', {name: 'Certified key'}).waitFor();
        assert.equal(await page.getByRole('button', {name: 'Certificate'}).count(), 0);
        await session.send('DELETE', `/v1/console/api_keys/${key.id}`);
        await page.reload();
        const button = page.getByRole('button', {name: 'Certificate'});
        const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);

        assert.equal(download.suggestedFilename(), `${key.id}.jws`);
        const [, claims] = readFileSync(await download.path(), 'utf8').split('.');
        const {sub, nodes} = JSON.parse(Buffer.from(claims, 'base64url'));
        assert.equal(sub, key.id);
        assert.ok(nodes >= 1);
    });

    browse('an emergency: a live key in use, found by its name and revoked', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Leaked cle\u0301', 'live'], ['Other key', 'live']); // keyboards write é as one character
        const wide = String.fromCharCode(key.last4.charCodeAt(0) + 0xfee0); // as some keyboards write it
        const other = key.last4[2].toLowerCase() === 'x' ? 'y' : 'x';

        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: key.secret})).status, 200);
        await signIn(page, person);
        await until(
            'the use to be flushed',
            () => deployment.redis('HGET', `chatelaine:acct:${deployment.account}:key_uses`, key.id) !== '',
        );
        await page.reload();
        await settled(page);
        await page.keyboard.press('/');
        await page.keyboard.type('leaked');
        await row(page, 'Other key').waitFor({state: 'detached'});
        await page.getByRole('button', {name: 'Revoke Leaked cle\u0301'}).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByText('This live key is in use').waitFor();
        const confirmation = dialog.getByLabel(`Type the last four characters, ${key.last4}, to confirm`);
        const submit = dialog.getByRole('button', {name: 'Revoke key'});
        for (const [typed, reason] of [
            ['', ''],
            [key.last4.slice(0, 2), '2 of 4 characters so far.'],
            [`${key.last4.slice(0, 2)}${other}`, `Character 3 is ${other}. It should be ${key.last4[2]}.`],
            [`${key.last4}0`, `Only ${key.last4}: remove what follows it.`],
        ]) {
            await confirmation.fill(typed);
            await confirmation.dispatchEvent('change');
            assert.ok(await submit.isDisabled(), typed);
            assert.equal(await dialog.locator('.field-error').textContent(), reason);
        }
        await confirmation.fill(`${wide}${key.last4.slice(1).toUpperCase()} `);
        await page.keyboard.press('Enter');
        await dialog.getByText('No node accepts this key any more.').waitFor();
        assert.equal(
            (await deployment.api('GET', '/v1/whoami', {bearer: key.secret})).json.error.code,
            'api_key_revoked',
        );
    });

    browse('a desktop agent is let in by its code, used, and revoked', async (page, {person}) => {
        const codes = await enrolDevice(deployment, 'Reception desk');

        await signIn(
            page,
            person,
            new URL(codes.verification_uri_complete).pathname + new URL(codes.verification_uri_complete).search,
        );
        assert.equal(await page.getByLabel('Code shown on the device').inputValue(), codes.user_code);
        await page.getByRole('button', {name: 'Continue'}).click();
        await page.getByText('Approve this device?').waitFor();
        await page.getByText('Reception desk').waitFor();
        assert.equal((await claimDevice(deployment, codes)).error, 'authorization_pending');
        await page.getByRole('button', {name: 'Approve'}).click();
        await confirmStepUp(page, person);
        await page.getByText('Device approved').waitFor();
        const {access_token: token} = await untilToken(() => claimDevice(deployment, codes));
        assert.match(token, /^svc_dk_/);
        await page.getByRole('link', {name: 'Go to the devices'}).click();
        await page.getByRole('button', {name: 'Revoke Reception desk'}).click();
        await page.getByRole('button', {name: 'Revoke device'}).click();
        await page.getByRole('dialog').getByText('No node accepts this device’s key any more.').waitFor();
        assert.equal(
            (await deployment.api('GET', '/v1/whoami', {bearer: token})).json.error.code,
            'device_key_revoked',
        );
    });

    browse('a device that nobody expects is refused, and a code that is none is told', async (page, {person}) => {
        const codes = await enrolDevice(deployment, 'Unknown laptop');

        await signIn(page, person, '/console/activate');
        await page.getByLabel('Code shown on the device').fill('BBBB-BBBB');
        await page.getByRole('button', {name: 'Continue'}).click();
        await page.getByText('No device is waiting with this code').waitFor();
        await page.getByLabel('Code shown on the device').fill('');
        await page
            .getByLabel('Code shown on the device')
            .pressSequentially(codes.user_code.toLowerCase().replace('-', ''));
        assert.equal(await page.getByLabel('Code shown on the device').inputValue(), codes.user_code);
        await page.keyboard.press('Enter');
        await page.getByRole('button', {name: 'Deny'}).click();
        await page.getByText('The device gets no key.').waitFor();
        assert.equal((await claimDevice(deployment, codes)).error, 'access_denied');
    });
});
