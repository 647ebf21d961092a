// Links to join or to reset, recovering, and passwords that somebody else has set: what can go wrong.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {PASSWORD, until} from '../support/deployment.js';
import {NEW_PASSWORD, accept, asOwner, idOf, invite, newPassword, openLink, postOf, scan} from './acts.js';
import {confirmStepUp, fillSignIn, settled, signIn, signOut} from './browser.js';
import {browse, deployment, judge, row} from './scene.js';

describe('links', () => {
    browse('opening one changes nothing, and its secret is nowhere to be read', async (page) => {
        const invitation = await invite();
        const secret = invitation.path.split('#')[1];
        const referers = [];

        // A mail scanner opens it, more than once.
        for (let i = 0; i < 3; i++) assert.equal((await deployment.api('GET', '/console/join')).status, 200);
        page.on('request', (request) => {
            const {referer = ''} = request.headers();

            if (referer.includes(secret) || request.url().includes(`?${secret}`)) referers.push(request.url());
        });
        await page.goto(invitation.path);
        await page.getByRole('heading', {name: 'Join Köln Clinic'}).waitFor();
        assert.equal(page.url(), `${deployment.origin}/console/join`);
        assert.equal(await page.evaluate(() => location.href + JSON.stringify(history.state)), `${page.url()}null`);
        assert.ok(!(await page.content()).includes(secret));
        assert.deepEqual(referers, []);

        // Loaded again, the page has no secret any more; the link still works.
        await page.reload();
        await page.getByRole('heading', {name: 'Open your link again'}).waitFor();
        await page.goto(invitation.path);
        await page.getByRole('heading', {name: 'Join Köln Clinic'}).waitFor();
        assert.ok(!deployment.log().includes(secret), 'the link is in a log');
    });

    browse('used, withdrawn, expired, mangled: one answer, and a way on', async (page) => {
        const used = await invite();
        const withdrawn = await invite();
        const dead = async (path) => {
            await page.goto('/console/');
            await page.goto(path);
            await page.getByRole('heading', {name: 'This link does not work'}).waitFor();
            assert.equal(page.url(), `${deployment.origin}/console/join`);
        };

        await accept(used);
        await dead(used.path);
        assert.ok((await (await asOwner()).send('DELETE', `/v1/console/invitations/${withdrawn.id}`)).status < 300);
        await dead(withdrawn.path);
        await dead('/console/join#x');
        await dead(`/console/join#${'a'.repeat(43)}`);
        await dead(`/console/join#${'%3Cimg%20src=x%3E'.repeat(400)}`);
        await page.getByRole('link', {name: 'Go to sign-in'}).click();
        await page.getByRole('button', {name: 'Sign in'}).waitFor();
    });

    browse('two people with one link: the second is told, when it is too late', async (page) => {
        const invitation = await invite();

        await openLink(page, invitation.path);
        const late = await scan(page, invitation.email);
        const first = await accept(invitation);
        await newPassword(page).fill(PASSWORD);
        await page.getByLabel('Code shown by the app').fill(await late.freshCode());
        await page.getByRole('button', {name: 'Join'}).click();
        await page.getByRole('heading', {name: 'This link does not work'}).waitFor();
        await signIn(page, first);
    });

    browse('only the browser that continued last goes on, and who opens a link sees that others have', async (page) => {
        const invitation = await invite();
        const code = invitation.path.split('#')[1];

        await openLink(page, invitation.path);
        const early = await scan(page, invitation.email);
        assert.equal((await postOf('/v1/auth/join/start', {code})).status, 200);
        await newPassword(page).fill(PASSWORD);
        await page.getByLabel('Code shown by the app').fill(await early.freshCode());
        await page.getByRole('button', {name: 'Join'}).click();
        await page.getByText('This page is no longer the one that goes on').waitFor();
        await page.goto('/console/');
        await page.goto(invitation.path);
        await page.getByText('This link was opened before').waitFor();
        await page.getByRole('listitem').filter({hasText: 'on Linux, from 127.0.0.1'}).waitFor();
        await page.getByRole('button', {name: 'Continue'}).click();
        const person = await scan(page, invitation.email);
        await newPassword(page).fill(PASSWORD);
        await page.getByLabel('Code shown by the app').fill(await person.freshCode());
        await page.getByRole('button', {name: 'Join'}).click();
        await page.getByRole('heading', {name: 'Welcome to Köln Clinic'}).waitFor();
    });

    browse('one link after another in the same tab', async (page) => {
        const [first, second] = [await invite(), await invite()];

        await page.goto(first.path);
        await page.getByText(first.email).waitFor();
        await page.evaluate((path) => location.assign(path), second.path);
        await page.getByText(second.email).waitFor();
        assert.equal(page.url(), `${deployment.origin}/console/join`);
    });

    browse('mistakes while joining are told at their fields', async (page) => {
        const invitation = await invite('auditor');

        await openLink(page, invitation.path);
        const person = await scan(page, invitation.email);
        const join = page.getByRole('button', {name: 'Join'});
        await join.click();
        await page.getByText('Choose a password.').waitFor();
        await page.getByText('Enter the six digits').waitFor();
        await newPassword(page).fill('too short');
        await join.click();
        await page.getByText('9 characters so far').waitFor();
        assert.equal(await newPassword(page).getAttribute('aria-invalid'), 'true');
        await newPassword(page).fill(`${invitation.email.split('@')[0]} and more of it`);
        await page.getByLabel('Code shown by the app').fill('000000');
        await join.click();
        await page.getByText('It contains your email address').waitFor();
        await newPassword(page).fill('passwordpassword');
        await join.click();
        await page.locator('.field-error', {hasText: /common|guess/i}).waitFor();
        await newPassword(page).fill(PASSWORD);
        for (const says of ['wrong or has expired', 'Check your phone’s clock']) {
            await page.getByLabel('Code shown by the app').fill('000000');
            await join.click();
            await page.locator('.field-error', {hasText: says}).waitFor();
            assert.equal(await page.getByLabel('Code shown by the app').inputValue(), '');
        }
        await page.getByLabel('Code shown by the app').fill(await person.freshCode());
        await page.keyboard.press('Enter');
        await page.getByRole('heading', {name: 'Welcome to Köln Clinic'}).waitFor();
    });

    browse('somebody else is signed in in this browser', async (page, {context}) => {
        const other = deployment.addPerson();
        const invitation = await invite();

        await signIn(page, other);
        const second = await context.newPage();
        await second.goto(invitation.path);
        await second.getByText(`You are signed in as ${other.email}`).waitFor();
        await second.getByRole('button', {name: 'Continue'}).click();
        const person = await scan(second, invitation.email);
        await newPassword(second).fill(PASSWORD);
        await second.getByLabel('Code shown by the app').fill(await person.freshCode());
        await second.getByRole('button', {name: 'Join'}).click();
        await second.getByRole('heading', {name: 'Welcome to Köln Clinic'}).waitFor();
        // The first tab shows nothing of the first person any more.
        await page.getByRole('button', {name: `Account of ${invitation.email}`}).waitFor();
        assert.ok(!(await page.content()).includes(other.email));
    });

    browse('a reset: the old ways in end when the link is made', async (page) => {
        const person = deployment.addPerson({role: 'developer'});
        const boss = deployment.addPerson();

        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: person.email, exact: true}).click();
        await page.getByRole('button', {name: 'Reset access'}).click();
        await page.getByRole('dialog', {name: 'Reset password'}).getByRole('button', {name: 'Reset access'}).click();
        await confirmStepUp(page, boss);
        await page.getByRole('heading', {name: 'Send them this link'}).waitFor();
        const link = await page.locator('.secret-text').textContent();
        await page.getByRole('button', {name: 'Copy link'}).click();
        await page.locator('#announcer').getByText('Copied').waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), link);
        await page.getByRole('button', {name: 'Done'}).click();
        await page.locator('.secret-text').waitFor({state: 'detached'});
        assert.ok(!(await page.content()).includes(link.split('#')[1]));
        await page.keyboard.press('Escape');
        await row(page, person.email).getByText('Link pending').waitFor();

        await signOut(page);
        await fillSignIn(page, person);
        await page.getByText('Email, password or code is wrong').waitFor();
        await page.goto(link);
        await page.getByRole('heading', {name: 'Reset your access'}).waitFor();
        await page.getByRole('button', {name: 'Continue'}).click();
        const renewed = await scan(page, person.email);
        await newPassword(page).fill(NEW_PASSWORD);
        await page.getByLabel('Code shown by the app').fill(await renewed.freshCode());
        await page.getByRole('button', {name: 'Save and sign in'}).click();
        await page.getByText('This browser').waitFor();
    });
});

describe('recovering', () => {
    browse('wrong codes are throttled as sign-ins are, and nothing tells which part was wrong', async (page) => {
        const person = deployment.addPerson();

        await page.goto('/console/');
        await page.getByRole('link', {name: 'Lost your phone?'}).click();
        await page.getByRole('heading', {name: 'Lost your phone?'}).waitFor();
        const next = page.getByRole('button', {name: 'Continue'});
        await next.click();
        await page.getByText('Enter one of your recovery codes.').waitFor();
        for (const email of [person.email, 'nobody@example.org']) {
            await page.getByLabel('Email').fill(email);
            await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
            await page.getByLabel('Recovery code').fill('k7m2-9xqp-4t8w-c3fd');
            await next.click();
            await page.getByText('Email, password or recovery code is wrong').waitFor();
        }
        await page.getByLabel('Email').fill(person.email);
        await until('the throttle', async () => {
            await next.click();
            await settled(page);
            return await page.getByText('You can try again in').isVisible();
        });
        deployment.forgetThrottles();
    });
});

browse('a recovery that takes too long changes nothing, and the code still works', async (page, {person}) => {
    const session = await deployment.signIn(person);

    await session.stepUp();
    const {json} = await session.send('POST', '/v1/console/recovery_codes');
    const begin = async () => {
        await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
        await page.getByLabel('Recovery code').fill(json.recovery_codes[0]);
        await page.getByRole('button', {name: 'Continue'}).click();
        await page.locator('.totp-secret').waitFor();
        return await scan(page, person.email);
    };
    const confirm = async (renewed) => {
        await page.getByLabel('Code shown by the app').fill(await renewed.freshCode());
        await page.getByRole('button', {name: 'Confirm'}).click();
    };

    await page.goto('/console/recover');
    await page.getByLabel('Email').fill(person.email);
    const late = await begin();
    deployment.redis('DEL', `chatelaine:user:${await idOf(person)}:new_totp`);
    await confirm(late);
    await page.getByText('This took too long').waitFor();
    await confirm(await begin());
    await page.getByText('Your new authenticator is set up.').waitFor();
});

describe('signing in', () => {
    browse('the second wrong code points to the phone’s clock; no command of an operator is named', async (page) => {
        const person = deployment.addPerson();
        const clock = page.getByText('Check your phone’s clock');

        await page.goto('/console/');
        assert.ok(!(await page.locator('main').textContent()).includes('chatelaine user'));
        for (const count of [0, 1]) {
            await page.getByLabel('Email').fill(person.email);
            await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
            await page.getByLabel('One-time code').fill('000000');
            await page.getByRole('button', {name: 'Sign in'}).click();
            await until('the refusal', async () => (await page.getByLabel('One-time code').inputValue()) === '');
            await page.getByText('Email, password or code is wrong').waitFor();
            assert.equal(await clock.count(), count);
        }
    });

    browse('a suspended account is told', async (page) => {
        await page.route('**/v1/auth/login', (route) =>
            route.fulfill({status: 403, json: {error: {code: 'account_suspended', message: 'x'}}}),
        );
        await page.goto('/console/');
        await fillSignIn(page, deployment.addPerson());
        await page.getByText('Your account is suspended').waitFor();
    });
});

// Somebody with a password that an operator has set.
browse('a password that somebody else has set is changed first', async (page) => {
    const person = deployment.addPerson();

    let asked = 0; // for what would be refused

    deployment.redis('HSET', `chatelaine:user:${await idOf(person)}`, 'password_expired', '1');
    page.on('request', (request) => {
        asked += request.url().includes('/v1/console/users') ? 1 : 0;
    });
    await page.goto('/console/people');
    await fillSignIn(page, person);
    await page.getByRole('heading', {name: 'Choose your own password'}).waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0);
    assert.equal(asked, 0);
    await page.reload();
    await page.getByRole('heading', {name: 'Choose your own password'}).waitFor();
    await judge(page, 'password to be changed');
    await page.getByRole('textbox', {name: 'Current password'}).fill(PASSWORD);
    await newPassword(page).fill(NEW_PASSWORD);
    await page.getByLabel('One-time code').fill(await person.freshCode());
    await page.getByRole('button', {name: 'Change password'}).click();
    await page.getByRole('heading', {name: 'People', exact: true}).waitFor();
});

browse('a password that somebody else sets meanwhile', async (page, {person}) => {
    await signIn(page, person);
    await settled(page);
    deployment.redis('HSET', `chatelaine:user:${await idOf(person)}`, 'password_expired', '1');
    await page.getByRole('link', {name: 'People'}).click();
    await page.getByRole('heading', {name: 'Choose your own password'}).waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0);
});
