// My account, and that nothing of it stays when the session ends.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {describe} from 'node:test';

import {PASSWORD, until} from '../support/deployment.js';
import {NEW_PASSWORD, idOf, newEmail, newPassword, postOf, scan} from './acts.js';
import {confirmStepUp, fillSignIn, settled, signIn, signOut} from './browser.js';
import {browse, deployment} from './scene.js';

// Proves the old authenticator. Returns the dialog that shows the new one.
async function beginAuthenticator(page, person) {
    await page.getByRole('button', {name: 'Set up a new one'}).click();
    const proof = page.getByRole('dialog', {name: 'Set up a new authenticator'});
    await proof.getByLabel('Password', {exact: true}).fill(PASSWORD);
    await proof.getByLabel('One-time code').fill(await person.freshCode());
    await proof.getByRole('button', {name: 'Continue'}).click();
    const dialog = page.getByRole('dialog', {name: 'Scan and confirm'});
    await dialog.locator('.qr path').waitFor();
    return dialog;
}

describe('my account', () => {
    browse('a new password ends the other sessions', async (page) => {
        const person = deployment.addPerson();
        const other = await deployment.signIn(person);

        await signIn(page, person, '/console/account');
        await page.getByRole('row', {name: /This browser/}).waitFor();
        await page.getByRole('button', {name: 'Change password'}).click();
        const dialog = page.getByRole('dialog', {name: 'Change your password'});
        const change = dialog.getByRole('button', {name: 'Change password'});
        const fill = async (current, next, code) => {
            await dialog.getByRole('textbox', {name: 'Current password'}).fill(current);
            await newPassword(dialog).fill(next);
            await dialog.getByLabel('One-time code').fill(code);
            await change.click();
        };

        await change.click();
        await dialog.getByText('Enter your current password.').waitFor();
        await fill(PASSWORD, PASSWORD, '123456');
        await dialog.getByText('the password that you have now').waitFor();
        await fill('not the right one', NEW_PASSWORD, '000000');
        await dialog.getByText('Current password or code is wrong').waitFor();
        await fill(PASSWORD, 'passwordpassword', await person.freshCode());
        await dialog.locator('.field-error', {hasText: /common|guess/i}).waitFor();
        await fill(PASSWORD, NEW_PASSWORD, await person.freshCode());
        await page.getByText('All your other sessions have ended').first().waitFor();
        assert.equal((await other.send('GET', '/v1/console/session')).json.error.code, 'invalid_session');
        await page.getByText('You are signed in nowhere else.').waitFor();
    });

    browse('sessions: where, since when; one is ended, then all others', async (page) => {
        const person = deployment.addPerson();
        const others = [];

        for (let i = 0; i < 3; i++) others.push(await deployment.signIn(person));
        await signIn(page, person, '/console/account');
        await page.getByRole('row', {name: /Chrom.*This browser/}).waitFor();
        assert.equal(await page.locator('.sessions tbody tr').count(), 4);
        await page
            .locator('.sessions')
            .getByRole('button', {name: /^End the session/})
            .first()
            .click();
        await page.getByRole('button', {name: 'End session'}).click();
        await confirmStepUp(page, person);
        await until('one less', async () => (await page.locator('.sessions tbody tr').count()) === 3);
        const ended = async () => {
            const answers = await Promise.all(others.map((session) => session.send('GET', '/v1/console/session')));

            return answers.filter(({status}) => status === 401).length;
        };
        assert.equal(await ended(), 1);
        await page.getByRole('button', {name: 'End all others'}).click();
        await page.getByRole('dialog').getByRole('button', {name: 'End all others'}).click();
        await page.getByText('You are signed in nowhere else.').waitFor();
        assert.equal(await ended(), 3);
    });

    browse('a session at an unknown address', async (page) => {
        const session = {id: 'sess_1', created_at: '2026-01-01T00:00:00Z', last_seen_at: '2026-01-01T00:00:00Z'};

        await page.route('**/v1/console/sessions', (route) =>
            route.fulfill({json: {data: [{...session, ip: null, browser: 'Unknown browser', current: false}]}}),
        );
        await signIn(page, deployment.addPerson(), '/console/account');
        await page.getByRole('button', {name: 'End the session of Unknown browser', exact: true}).click();
        await page.getByRole('dialog').getByText('Unknown browser is signed out at once.', {exact: true}).waitFor();
    });

    browse('a new authenticator counts once it is confirmed', async (page) => {
        const person = deployment.addPerson();

        await signIn(page, person, '/console/account');
        const dialog = await beginAuthenticator(page, person);
        const renewed = await scan(page, person.email);
        await dialog.getByLabel('Code shown by the app').fill('000000');
        await dialog.getByRole('button', {name: 'Confirm'}).click();
        await dialog.getByText('wrong or has expired').waitFor();
        await dialog.getByLabel('Code shown by the app').fill(await renewed.freshCode());
        await dialog.getByRole('button', {name: 'Confirm'}).click();
        await page.getByRole('dialog', {name: 'The new authenticator is in use'}).waitFor();
        await page.getByRole('button', {name: 'Close'}).last().click();
        await signOut(page);
        await fillSignIn(page, renewed);
        await page.getByRole('navigation', {name: 'Console'}).waitFor();
    });

    browse('a new authenticator that is confirmed too late is forgotten', async (page, {person}) => {
        await signIn(page, person, '/console/account');
        const dialog = await beginAuthenticator(page, person);
        const renewed = await scan(page, person.email);
        deployment.redis('DEL', `chatelaine:user:${await idOf(person)}:new_totp`); // it has expired
        await dialog.getByLabel('Code shown by the app').fill(await renewed.freshCode());
        await dialog.getByRole('button', {name: 'Confirm'}).click();
        await page.getByRole('dialog', {name: 'Start again'}).getByText('Nothing was changed').waitFor();
        assert.equal(await page.locator('.totp-secret').count(), 0);
    });

    browse('recovery codes are shown once, and gone with the session', async (page, {context}) => {
        const person = deployment.addPerson();

        await signIn(page, person, '/console/account');
        await page.getByText('You have none.').waitFor();
        await page.getByRole('button', {name: 'Get new codes'}).click();
        await page.getByRole('button', {name: 'Show new codes'}).click();
        await confirmStepUp(page, person);
        await page.getByRole('heading', {name: 'Keep these codes safe'}).waitFor();
        const codes = await page.locator('.recovery-codes li').allTextContents();
        assert.equal(new Set(codes).size, 10);
        await page.getByRole('button', {name: 'Copy codes'}).click();
        await page.locator('#announcer').getByText('Copied').waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), codes.join('\n'));
        const [download] = await Promise.all([
            page.waitForEvent('download'),
            page.getByRole('button', {name: 'Download'}).click(),
        ]);
        const file = readFileSync(await download.path(), 'utf8');
        assert.ok(codes.every((code) => file.includes(code)) && file.includes(person.email));
        await page.keyboard.press('Escape');
        await page.getByText('the codes cannot be shown again').waitFor();
        assert.ok(await page.getByRole('button', {name: 'Done'}).isDisabled());

        // The session ends in another tab: nothing of the codes is left, for whoever comes now or signs in again.
        const isGone = async () => {
            const content = await page.content();

            return codes.every((code) => !content.includes(code));
        };
        const other = await context.newPage();
        await other.goto('/console/');
        await signOut(other);
        const again = page.getByRole('dialog', {name: 'Sign in again'});
        await again.waitFor();
        assert.ok(await isGone());
        await fillSignIn(again, person);
        await page.getByRole('heading', {name: 'The codes are no longer shown'}).waitFor();
        assert.ok(await isGone());
        await page.getByRole('button', {name: 'Close'}).last().click();
        await page.getByText('10 of 10 left.').waitFor();
    });

    browse('what happened meanwhile is told', async (page) => {
        const person = deployment.addPerson();

        await deployment.signIn(person);
        for (let i = 0; i < 2; i++)
            await postOf('/v1/auth/login', {email: person.email, password: 'not the right one', totp: '000000'});
        await signIn(page, person);
        const news = page.getByRole('region', {name: 'Since you last signed in'});
        await news.getByText('2 failed sign-ins as you.').waitFor();
        await news.getByRole('link', {name: 'My account'}).click();
        await page.getByText('2 failed sign-ins as you.').waitFor();
        await page.getByRole('link', {name: 'Usage'}).click();
        await news.getByRole('button', {name: 'Dismiss'}).click();
        await news.waitFor({state: 'detached'});
        await page.reload();
        await page.getByRole('heading', {name: 'Usage'}).waitFor();
        await settled(page);
        assert.equal(await news.count(), 0);
    });
});

describe('a session that ends leaves nothing in the document', () => {
    const endElsewhere = async (context) => {
        const other = await context.newPage();

        await other.goto('/console/');
        await signOut(other);
        await other.getByText('You are signed out.').waitFor();
        await other.close();
    };
    const left = (page) =>
        page.evaluate(
            () => document.documentElement.outerHTML + [...document.querySelectorAll('input')].map(({value}) => value),
        );

    // opens(): brings something secret onto the page and returns it. It is gone when the session ends, does not come back
    // with the same person, and nothing at all is left when they leave.
    const leavesNothing = (what, path, opens) =>
        browse(what, async (page, {context}) => {
            const person = deployment.addPerson();
            const again = page.getByRole('dialog', {name: 'Sign in again'});

            await signIn(page, person, path);
            const secrets = await opens(page, person);
            await endElsewhere(context);
            await again.waitFor();
            assert.equal(await page.locator('#root > *').count(), 0);
            assert.equal(await page.locator('dialog').count(), 1);
            for (const secret of secrets) assert.ok(!(await left(page)).includes(secret), what);
            await fillSignIn(again, person);
            await again.waitFor({state: 'detached'});
            for (const secret of secrets) assert.ok(!(await left(page)).includes(secret), `${what}, signed in again`);
            await endElsewhere(context);
            await page.getByRole('button', {name: 'Leave instead'}).click();
            await page.getByText('You are signed out.').waitFor();
            assert.equal(await page.locator('dialog').count(), 0);
            for (const secret of [...secrets, person.email]) assert.ok(!(await left(page)).includes(secret), what);
        });

    leavesNothing('an invitation link', '/console/people', async (page, person) => {
        const email = newEmail();

        await page.getByRole('button', {name: 'Invite'}).click();
        await page.getByLabel('Email').fill(email);
        await page.getByRole('button', {name: 'Create invitation'}).click();
        await confirmStepUp(page, person);
        return [(await page.locator('.secret-text').textContent()).split('#')[1]];
    });

    leavesNothing('a typed password', '/console/account', async (page) => {
        await page.getByRole('button', {name: 'Change password'}).click();
        await page.getByRole('textbox', {name: 'Current password'}).fill(PASSWORD);
        await page.getByRole('button', {name: 'Show new password'}).click();
        await newPassword(page).fill(NEW_PASSWORD);
        return [PASSWORD, NEW_PASSWORD];
    });

    leavesNothing('the secret of a new authenticator', '/console/account', async (page, person) => {
        await beginAuthenticator(page, person);
        const shown = await page.locator('.totp-secret').textContent();
        return [shown, shown.replaceAll(' ', ''), await page.locator('.qr path').getAttribute('d')];
    });
});
