// The console through a real browser, against the real program and a private Redis, with real one-time codes.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {describe, test} from 'node:test';

import {PASSWORD, PATIENCE_MS, until} from '../support/deployment.js';
import {confirmStepUp, fillSignIn, openContext, settled, signIn, signOut} from './browser.js';
import {browse, browser, deployment, forgetColleague, judge, keysOf, row, someKeys} from './scene.js';
import {claimDevice, enrolDevice} from './seed.js';

const MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

describe('a day', () => {
    browse('from the first sign-in to the last sign-out', async (page, {context}) => {
        const [person] = deployment.newcomers(1);

        await page.goto('/');
        await fillSignIn(page, person);
        await page.getByText('No API keys yet').waitFor();
        assert.equal(new URL(page.url()).pathname, '/console/');

        // The first key; the step-up is asked for in place, and the form is as it was.
        await page.getByRole('button', {name: 'Create key'}).first().click();
        const sheet = page.getByRole('dialog', {name: 'Create an API key'});
        await sheet.getByLabel('Name').fill('First integration');
        await sheet.getByRole('checkbox', {name: /patients:read/}).check();
        await sheet.getByRole('checkbox', {name: /usage:read/}).check();
        await sheet.getByRole('button', {name: 'Create test key'}).click();
        await confirmStepUp(page, person);
        await page.getByRole('heading', {name: 'Store the secret now'}).waitFor();
        const secret = await page.locator('.secret-text').textContent();
        assert.match(secret, /^svc_sk_test_[0-9A-Za-z]{38}$/);

        await page.getByRole('button', {name: 'Copy secret'}).click();
        await page.getByRole('button', {name: 'Copied'}).waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
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

    browse('an emergency: a live key in use, found by its name and revoked', async (page, {person}) => {
        const {
            made: [key],
        } = await someKeys(['Leaked  key', 'live'], ['Other key', 'live']); // two blanks look like one

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
        await page.getByRole('button', {name: 'Revoke Leaked key'}).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByText('This live key is in use').waitFor();
        assert.ok(await dialog.getByRole('button', {name: 'Revoke key'}).isDisabled());
        await page.keyboard.type('Leaked ke');
        assert.ok(await dialog.getByRole('button', {name: 'Revoke key'}).isDisabled());
        await page.keyboard.type('y');
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
        const {access_token: token} = await until2(() => claimDevice(deployment, codes));
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

// Where the way back is to lead.
async function goBackTo(page, path) {
    await page.evaluate(
        () =>
            new Promise((resolve) => {
                addEventListener('popstate', () => setTimeout(resolve), {once: true});
                history.back();
            }),
    );
    assert.equal(new URL(page.url()).pathname, path);
}

async function overlap(one, other) {
    const [a, b] = await Promise.all([one.boundingBox(), other.boundingBox()]);

    return a.y < b.y + b.height && b.y < a.y + a.height && a.x < b.x + b.width && b.x < a.x + a.width;
}

// Whole, within the window, and not below anything.
const isInSight = (locator) =>
    locator.evaluate((element) => {
        const {top, bottom, left, right} = element.getBoundingClientRect();
        const isTop = (x, y) => element.contains(document.elementFromPoint(x, y));

        return (
            top >= 0 &&
            bottom <= innerHeight &&
            [left + 9, (left + right) / 2, right - 9].every((x) => isTop(x, top + 3) && isTop(x, bottom - 3))
        );
    });

// A poll too early makes the device wait longer: ask until there is an answer.
async function until2(ask) {
    let answer;

    await until('the token', async () => {
        answer = await ask();
        return 'access_token' in answer;
    });
    return answer;
}

describe('what can go wrong', () => {
    browse('nothing typed is lost when the session ends meanwhile', async (page, {person}) => {
        await signIn(page, person);
        await page.getByRole('button', {name: 'Create key'}).first().click();
        const sheet = page.getByRole('dialog', {name: 'Create an API key'});
        await sheet.getByLabel('Name').fill('Typed with care');
        await sheet.getByRole('radio', {name: /Live/}).check();
        await sheet.getByRole('checkbox', {name: /exchanges:write/}).check();
        deployment.endSessions();
        forgetColleague();
        await sheet.getByRole('button', {name: 'Create live key'}).click();
        const again = page.getByRole('dialog', {name: 'Sign in again'});
        await again.waitFor();
        assert.ok(!(await page.locator('#root').isVisible()), 'what was shown is out of sight');
        assert.equal(await again.getByLabel('Email').inputValue(), person.email);
        await fillSignIn(again, person);
        await confirmStepUp(page, person);
        await page.getByRole('heading', {name: 'Store the secret now'}).waitFor();
        await page.getByLabel('I have stored it').check();
        await page.getByRole('button', {name: 'Done'}).click();
        await row(page, 'Typed with care').getByText('Live').waitFor();
    });

    browse('signed out in another tab', async (page, {context, person}) => {
        const other = await context.newPage();

        await signIn(page, person);
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('For nobody else');
        await other.goto('/console/');
        await signOut(other);
        await page.getByText('You were signed out in another tab').waitFor();
        assert.ok(!(await page.locator('#root').isVisible()));
        await page.getByRole('button', {name: 'Leave instead'}).click();
        await page.getByText('You are signed out.').waitFor();
        await fillSignIn(page, deployment.addPerson());
        await page.getByRole('button', {name: 'Create key'}).first().click();
        assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), '');
    });

    browse('a secret on the screen leaves the document when the session ends', async (page, {context, person}) => {
        const other = await context.newPage();
        const document = () => page.evaluate(() => globalThis.document.documentElement.outerHTML);

        await someKeys(['Listed before', 'test']);
        await signIn(page, person);
        await row(page, 'Listed before').waitFor();
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('Seen by passers-by');
        await page.getByRole('checkbox', {name: /patients:read/}).check();
        await page.getByRole('button', {name: 'Create test key'}).click();
        await confirmStepUp(page, person);
        const secret = await page.locator('.secret-text').textContent();
        await other.goto('/console/');
        await signOut(other);
        const again = page.getByRole('dialog', {name: 'Sign in again'});
        await again.waitFor();
        for (const word of [secret, 'Listed before', 'Seen by passers-by', 'patients:read'])
            assert.ok(!(await document()).includes(word), word);
        await fillSignIn(again, person);
        await page.getByRole('heading', {name: 'The secret is no longer shown'}).waitFor();
        assert.ok(!(await document()).includes(secret));
        await page.getByRole('button', {name: 'Close'}).last().click();
        await row(page, 'Listed before').waitFor();
        await row(page, 'Seen by passers-by').waitFor();
        await page.reload(); // asks nothing: there is no secret to lose
        await row(page, 'Seen by passers-by').waitFor();
    });

    browse('the password of a step-up leaves the document when the session ends', async (page, {context, person}) => {
        const other = await context.newPage();

        await signIn(page, person);
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('Kept');
        await page.getByRole('checkbox', {name: /patients:read/}).check();
        await page.getByRole('button', {name: 'Create test key'}).click();
        const dialog = page.getByRole('dialog', {name: 'Confirm that it is you'});
        await dialog.getByLabel('Password', {exact: true}).fill(PASSWORD);
        await other.goto('/console/');
        await signOut(other);
        await fillSignIn(page.getByRole('dialog', {name: 'Sign in again'}), person);
        assert.equal(await dialog.getByLabel('Password', {exact: true}).inputValue(), '');
        await dialog.getByRole('button', {name: 'Cancel'}).click();
        assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), 'Kept');
        await page.locator('form[data-working]').waitFor({state: 'detached'});
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({state: 'detached'});
        await page.getByRole('link', {name: 'Usage'}).click();
        await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
    });

    browse('the end of an idle session is told before, and can be put off', async (page, {person}) => {
        await page.route('**/v1/console/session', async (route) => {
            const response = await route.fetch();
            const json = response.ok()
                ? {...(await response.json()), idle_expires_at: new Date(Date.now() + 30000).toISOString()}
                : await response.json();

            await route.fulfill({response, json});
        });
        await page.clock.install();
        await signIn(page, person, '/console/account');
        await page.reload();
        await page.getByRole('heading', {name: 'My account'}).waitFor();
        await page.clock.pauseAt(Date.now() + 8000); // where time goes on, the last second would tell it too
        const bar = page.getByRole('region', {name: 'Your session is about to end'});
        await bar.waitFor();
        await page.clock.resume();
        await page.unroute('**/v1/console/session');
        await bar.getByRole('button', {name: 'Stay signed in'}).click();
        await bar.waitFor({state: 'detached'});
    });

    for (const size of ['wide', 'narrow'])
        browse(
            `the warning before the end covers no button, and typing puts the end off, ${size}`,
            async (page, {person}) => {
                let asked = 0;

                await page.route('**/v1/console/session', async (route) => {
                    const response = await route.fetch();
                    const json = await response.json();

                    asked += 1;
                    await route.fulfill({
                        response,
                        json: response.ok() ? {...json, idle_expires_at: new Date(Date.now() + 90000).toISOString()} : json,
                    });
                });
                await page.clock.install();
                await signIn(page, person);
                await page.reload();
                await page.getByRole('button', {name: 'Create key'}).first().click();
                const name = page.getByRole('textbox', {name: 'Name'});
                await name.fill('Nothing is asked for each key');
                const before = asked;
                await page.clock.fastForward(50000);
                const bar = page.getByRole('region', {name: 'Your session is about to end'});
                await bar.waitFor();
                for (const button of ['Create test key', 'Cancel', 'Stay signed in'])
                    assert.ok(await isInSight(page.getByRole('button', {name: button})), button);
                assert.equal(asked, before);
                await name.press('x');
                await bar.waitFor({state: 'detached'});
                assert.equal(asked, before + 1);
                await page.keyboard.press('Escape');
                await page.clock.fastForward(50000);
                await bar.waitFor();
                await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
                for (const button of await page.locator('main button').all())
                    assert.ok(!(await overlap(button, bar)), await button.textContent());
            },
            {size},
        );

    browse('a session that has ended before it could be put off', async (page, {person}) => {
        await page.route('**/v1/console/session', async (route) => {
            const response = await route.fetch();
            const json = await response.json();

            await route.fulfill({
                response,
                json: response.ok() ? {...json, idle_expires_at: new Date(Date.now() + 30000).toISOString()} : json,
            });
        });
        await page.clock.install();
        await signIn(page, person);
        await page.reload();
        await page.getByRole('heading', {name: 'API keys', exact: true}).waitFor();
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('Kept');
        await page.clock.fastForward(8000);
        deployment.endSessions();
        forgetColleague();
        await page.getByRole('button', {name: 'Stay signed in'}).click();
        await fillSignIn(page.getByRole('dialog', {name: 'Sign in again'}), person);
        assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), 'Kept');
    });

    browse('a session that ends while the step-up is asked for', async (page, {person}) => {
        await signIn(page, person);
        await page.getByRole('link', {name: 'Usage'}).click();
        await page.getByRole('link', {name: 'API keys', exact: true}).click();
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('Patience');
        await page.getByRole('checkbox', {name: /patients:read/}).check();
        await page.getByRole('button', {name: 'Create test key'}).click();
        const dialog = page.getByRole('dialog', {name: 'Confirm that it is you'});
        await dialog.getByLabel('Password', {exact: true}).fill(PASSWORD);
        await dialog.getByLabel('One-time code').fill('000000');
        deployment.endSessions();
        forgetColleague();
        await dialog.getByRole('button', {name: 'Confirm'}).click();
        const again = page.getByRole('dialog', {name: 'Sign in again'});
        await again.waitFor();
        await goBackTo(page, '/console/');
        await fillSignIn(again, person);
        await dialog.getByText('Password or code is wrong').waitFor();
        await confirmStepUp(page, person);
        await page.getByRole('heading', {name: 'Store the secret now'}).waitFor();
    });

    browse('somebody else signs in instead: nothing is shown to him, or done in his name', async (page, {person}) => {
        const [other] = deployment.newcomers(1);
        let posts = 0;

        await signIn(page, person);
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('Not his');
        await page.getByRole('checkbox', {name: /patients:read/}).check();
        page.on('request', (request) => {
            posts += request.method() === 'POST' && request.url().endsWith('/api_keys') ? 1 : 0;
        });
        deployment.endSessions();
        forgetColleague();
        await page.getByRole('button', {name: 'Create test key'}).click();
        await fillSignIn(page.getByRole('dialog', {name: 'Sign in again'}), other);
        await page.getByText('No API keys yet').waitFor();
        await page.getByRole('button', {name: 'Create key'}).first().click();
        assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), '');
        assert.equal(posts, 1);
    });

    browse('a cookie of somebody else: what was clicked is not done in his name', async (page, {context, person}) => {
        const {
            made: [key],
            session,
        } = await someKeys(['Of the first', 'test']);
        const [other] = deployment.newcomers(1);
        const elsewhere = await openContext(browser, deployment);
        let deletions = 0;

        await signIn(page, person);
        await page.getByRole('button', {name: 'Revoke Of the first'}).click();
        await signIn(await elsewhere.context.newPage(), other);
        await context.addCookies(await elsewhere.context.cookies());
        await elsewhere.context.close();
        page.on('request', (request) => {
            deletions += request.method() === 'DELETE' ? 1 : 0;
        });
        await page.getByRole('button', {name: 'Revoke key'}).click();
        await page.getByText('No API keys yet').waitFor();
        assert.equal(deletions, 1);
        assert.ok((await keysOf(session, '&status=active')).some(({id}) => id === key.id));
    });

    browse('a key in the making is waited for, its secret stays until it is stored', async (page, {person}) => {
        const secret = 'svc_sk_test_000000000000000000000000000000000000aa';
        let answer;
        const asked = new Promise((resolve) => {
            answer = resolve;
        });

        await signIn(page, person);
        await page.getByRole('link', {name: 'Usage'}).click();
        await page.getByRole('link', {name: 'API keys', exact: true}).click();
        await page.getByRole('button', {name: 'Create key'}).first().click();
        const sheet = page.getByRole('dialog');
        await sheet.getByLabel('Name').fill('Slow');
        await sheet.getByRole('checkbox', {name: /patients:read/}).check();
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

    browse('a code that was used is told apart, at the step-up', async (page, {person}) => {
        await signIn(page, person);
        await deployment.signIn(person); // with a code that comes early: the one that the app shows next is of no use
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('x');
        await page.getByRole('checkbox', {name: /patients:read/}).check();
        await page.getByRole('button', {name: 'Create test key'}).click();
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
            await page.getByRole('button', {name: 'Create key'}).first().click();
            await page.getByRole('textbox', {name: 'Name'}).fill('Lost');
            await page.getByRole('checkbox', {name: /patients:read/}).check();
            await page.route('**/v1/console/api_keys', (route) => route.abort('connectionreset'));
            await page.getByRole('button', {name: 'Create test key'}).click();
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
                await page.getByRole('button', {name: 'Create key'}).first().click();
                await page.getByRole('textbox', {name: 'Name'}).fill('Seen');
                await page.getByRole('checkbox', {name: /patients:read/}).check();
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

    browse('signed in anew in another tab: the token that changed is no obstacle', async (page, {context, person}) => {
        const {
            made: [key],
        } = await someKeys(['Two tabs', 'test']);
        const other = await context.newPage();

        await signIn(page, person);
        await context.clearCookies();
        await signIn(other, person);
        await page.bringToFront();
        await page.getByRole('button', {name: 'Revoke Two tabs'}).click();
        await page.getByRole('button', {name: 'Revoke key'}).click();
        await page.getByRole('dialog').getByText('No node accepts this key any more.').waitFor();
        const answer = await deployment.api('GET', '/v1/whoami', {bearer: key.secret});
        assert.equal(answer.json.error.code, 'api_key_revoked');
    });

    browse('back from elsewhere, signed out meanwhile: nothing is shown', async (page, {context, person}) => {
        await someKeys(['Confidential', 'test']);
        const other = await context.newPage();

        await signIn(page, person);
        await row(page, 'Confidential').waitFor();
        // Playwright's browser keeps no page that was left: as if it did.
        const transition = (type) =>
            page.evaluate((name) => {
                setTimeout(() => dispatchEvent(new PageTransitionEvent(name, {persisted: true})));
            }, type);
        await transition('pagehide');
        await row(page, 'Confidential').waitFor({state: 'hidden'});
        await Promise.all([page.waitForEvent('load'), transition('pageshow')]);
        await row(page, 'Confidential').waitFor();
        await page.goto('/openapi.json');
        await other.goto('/console/');
        await signOut(other);
        await other.getByText('You are signed out.').waitFor();
        await page.goBack();
        await page.getByRole('button', {name: 'Sign in'}).waitFor();
        assert.ok(!(await page.content()).includes('Confidential'));
    });

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

    browse('a page whose script is gone, after an upgrade: the document is loaded anew', async (page, {person}) => {
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

describe('attacks', () => {
    browse('markup in names and in the audit trail stays text', async (page, {person}) => {
        await someKeys([MARKUP, 'test']);
        deployment.redis(
            'XADD',
            `chatelaine:acct:${deployment.account}:audit`,
            '*',
            'type',
            `x.${MARKUP}`,
            'actor',
            MARKUP,
            'target',
            MARKUP,
            'ip',
            MARKUP,
            'request_id',
            MARKUP,
        );
        const codes = await enrolDevice(deployment, MARKUP);

        await signIn(page, person);
        await row(page, '<script>').first().waitFor();
        await page.getByRole('link', {name: MARKUP, exact: true}).click();
        await page.getByRole('heading', {name: MARKUP}).waitFor();
        await settled(page);
        await page.goBack();
        await page.getByRole('button', {name: `Revoke ${MARKUP}`}).click();
        await page.getByRole('dialog').getByText('<script>').waitFor();
        await page.keyboard.press('Escape');
        await page.goto('/console/activity');
        await page.getByText('onerror=').first().waitFor();
        await page.getByRole('button', {name: 'Details: Event x.'}).click();
        await page.getByRole('dialog').getByText('onerror=').first().waitFor();
        await page.goto(`/console/activate?user_code=${codes.user_code}`);
        await page.getByRole('button', {name: 'Continue'}).click();
        await page.getByText('<script>').first().waitFor();
        await page.goto(`/console/activate?user_code=${encodeURIComponent(MARKUP)}`);
        await page.getByLabel('Code shown on the device').waitFor();
        assert.equal(await page.locator('img').count(), 0);
        assert.notEqual(await page.title(), 'owned');
    });

    // Another port of the same host is another origin, and the same site: SameSite alone does not hold it off.
    browse(
        'a page of another origin can neither frame it, nor change or read anything',
        async (page, {context, person}) => {
            const {
                made: [key],
                session,
            } = await someKeys(['Stays', 'test']);
            const before = (await keysOf(session)).length;
            const evil = await context.newPage();
            const target = deployment.origin;
            const statuses = [];
            const server = createServer((request, response) =>
                response.setHeader('Content-Type', 'text/html').end(`<title>evil</title>
            <iframe name="frame" src="${target}/console/"></iframe>
            <form id="form" method="post" enctype="text/plain" action="${target}/v1/console/api_keys" target="sink">
            <input name='{"name":"forged","mode":"test","x":"' value='"}'></form><iframe name="sink"></iframe>`),
            );

            await new Promise((resolve) => {
                server.listen(0, '127.0.0.1', resolve);
            });
            await signIn(page, person);
            evil.on('response', (response) => {
                if (response.url().startsWith(target) && response.request().method() !== 'GET')
                    statuses.push(response.status());
            });
            await evil.goto(`http://localhost:${server.address().port}/`);
            await until('the frame to be refused', () =>
                evil.frame({name: 'frame'})?.url().startsWith('chrome-error:'),
            );
            const answers = await evil.evaluate(
                async ([at, id]) => {
                    const attempt = async (path, options) => {
                        try {
                            return (await fetch(at + path, {credentials: 'include', ...options})).status;
                        } catch {
                            return 'refused';
                        }
                    };

                    document.getElementById('form').submit();
                    return [
                        await attempt('/v1/console/session'),
                        await attempt('/v1/console/api_keys', {
                            method: 'POST',
                            body: '{"name":"forged","mode":"test"}',
                            headers: {'Content-Type': 'application/json'},
                        }),
                        await attempt(`/v1/console/api_keys/${id}`, {method: 'DELETE'}),
                        await attempt('/v1/auth/logout', {method: 'POST', mode: 'no-cors'}),
                    ];
                },
                [target, key.id],
            );

            assert.ok(
                answers.every((answer) => answer === 'refused' || answer === 0),
                `${answers}`,
            );
            await until('an attempt to arrive', () => statuses.length > 0);
            assert.ok(
                statuses.every((status) => status >= 401 && status < 500),
                `${statuses}`,
            );
            assert.equal((await keysOf(session)).length, before);
            assert.ok((await keysOf(session, '&status=active')).some(({id}) => id === key.id));
            await evil.close();
            server.close();
            await page.reload();
            await row(page, 'Stays').waitFor(); // still signed in
        },
        {allowed: /X-Frame-Options|frame-ancestors|CORS|chrome-error|Refused to display/},
    );

    browse('no parameter and no path leads elsewhere', async (page, {person}) => {
        await signIn(
            page,
            person,
            '/console/?return_to=https://evil.example&next=//evil.example&url=javascript:alert(1)',
        );
        assert.equal(new URL(page.url()).origin, deployment.origin);
        for (const path of [
            '/console//evil.example/',
            '/console/%2f%2fevil.example',
            '/console/\\evil.example',
            '//evil.example/console/',
        ]) {
            const answer = await fetch(`${deployment.url}${path}`, {redirect: 'manual'}).catch(() => null);

            assert.ok(!answer?.headers.get('location') || answer.headers.get('location') === '/console/', path);
        }
    });

    test('without JavaScript every page says so, kindly', async () => {
        const {context} = await openContext(browser, deployment, {javaScriptEnabled: false});
        const page = await context.newPage();

        for (const path of ['', 'devices', 'activate?user_code=BCDF-GHJK', 'activity', 'usage', 'people', 'account']) {
            await page.goto(`/console/${path}`);
            await page.getByRole('heading', {name: 'The console needs JavaScript'}).waitFor();
        }
        await context.close();
    });
});

describe('the keyboard alone', () => {
    browse('signs in, creates a key and revokes it', async (page, {person}) => {
        const press = async (...keys) => {
            for (const key of keys) await page.keyboard.press(key);
        };

        await page.goto('/console/');
        await page.getByLabel('Email').waitFor();
        await page.keyboard.type(person.email);
        await press('Tab', 'Tab');
        await page.keyboard.type(PASSWORD);
        await press('Tab');
        await page.keyboard.type(await person.freshCode());
        await press('Enter');
        await page.getByRole('heading', {name: 'API keys', exact: true}).waitFor();
        assert.equal(await focused(page), 'API keys');
        await press('Tab', 'Enter'); // Create key
        await page.getByRole('dialog').waitFor();
        await page.keyboard.type('By keyboard');
        await press('Tab', 'Tab', 'Space', 'Enter'); // over the mode to the first scope
        const dialog = page.getByRole('dialog', {name: 'Confirm that it is you'});
        await dialog.waitFor();
        await page.keyboard.type(PASSWORD);
        await press('Tab');
        await page.keyboard.type(await person.freshCode());
        await press('Enter');
        await page.getByRole('heading', {name: 'Store the secret now'}).waitFor();
        await page.getByLabel('I have stored it').focus();
        await press('Space', 'Tab', 'Enter');
        await row(page, 'By keyboard').waitFor();
        assert.equal(await focused(page), 'Create key');
        await page.getByRole('button', {name: 'Revoke By keyboard'}).focus();
        await press('Enter');
        await page.getByRole('dialog', {name: 'Revoke this key?'}).waitFor();
        await press('Enter');
        await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
        assert.equal(await focused(page), 'Close');
        await press('Enter');
        await row(page, 'By keyboard').getByText('Revoked').waitFor();
    });

    browse('is not caught: Escape closes, the skip link skips', async (page, {person}) => {
        await signIn(page, person);
        await settled(page);
        await page.reload();
        await settled(page);
        await page.keyboard.press('Tab');
        assert.equal(await focused(page), 'Skip to the content');
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('dialog').waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({state: 'detached'});
        assert.equal(await focused(page), 'Create key');
    });
});

const focused = (page) => page.evaluate(() => document.activeElement.textContent.trim());

for (const [scheme, size] of [
    ['light', 'wide'],
    ['dark', 'narrow'],
]) {
    describe(`accessible, ${scheme} and ${size}`, () => {
        browse(
            'signing in',
            async (page) => {
                await page.goto('/console/');
                await page.getByLabel('Email').waitFor();
                await judge(page, 'sign in');
                await page.getByRole('button', {name: 'Sign in'}).click();
                await judge(page, 'sign in, fields missing');
            },
            {scheme, size},
        );

        browse(
            'an account where nothing has happened',
            async (page) => {
                await signIn(page, deployment.newcomers(1)[0]);
                for (const path of ['', 'devices', 'usage', 'activate', 'people', 'account', 'activity', 'nowhere']) {
                    await page.goto(`/console/${path}`);
                    await page.locator('h1, h2').first().waitFor();
                    await judge(page, `empty /${path}`);
                }
            },
            {scheme, size},
        );

        browse(
            'an account at work',
            async (page, {person}) => {
                const {
                    made: [, key],
                } = await someKeys([`Idle ${scheme} ${size}`, 'test'], [`Busy ${scheme} ${size}`, 'live']);
                const codes = await enrolDevice(deployment, 'Front office');

                await deployment.api('GET', '/v1/whoami', {bearer: key.secret});
                await signIn(page, person);
                for (const path of ['', 'devices', 'usage', 'activity', 'people', 'account']) {
                    await page.goto(`/console/${path}`);
                    await page.locator('h1').waitFor();
                    await judge(page, `/${path}`);
                }
                await page.goto(`/console/activate?user_code=${codes.user_code}`);
                await page.getByRole('button', {name: 'Continue'}).click();
                await page.getByText('Approve this device?').waitFor();
                await judge(page, 'a device waits');
                await page.goto('/console/');
                await page.getByRole('link', {name: `Busy ${scheme} ${size}`, exact: true}).click();
                await page.locator('.chart').waitFor();
                await judge(page, 'a key');
                await page.locator('.chart').focus();
                await page.keyboard.press('ArrowLeft');
                await judge(page, 'a key, one day');
                await page.goBack();
                await page.getByRole('button', {name: `Revoke Idle ${scheme} ${size}`}).click();
                await judge(page, 'revoke');
                await page.getByRole('button', {name: 'Revoke key'}).click();
                await page.getByRole('dialog', {name: 'Revoked, everywhere'}).waitFor();
                await judge(page, 'revoked');
                await page.getByRole('button', {name: 'Close'}).last().click();
                await page.getByRole('button', {name: 'Create key'}).first().click();
                await judge(page, 'create');
                await page.getByRole('button', {name: 'Create test key'}).click();
                await judge(page, 'create, fields missing');
                await page.getByRole('textbox', {name: 'Name'}).fill(`Made ${scheme} ${size}`);
                await page.getByRole('radio', {name: /Live/}).check();
                await page.getByLabel('Give this key every scope').check();
                await judge(page, 'create, live, every scope');
                await page.getByRole('button', {name: 'Create live key'}).click();
                await page.getByRole('dialog', {name: 'Confirm that it is you'}).waitFor();
                await confirmStepUp(page, person);
                await page.getByRole('heading', {name: 'Store the secret now'}).waitFor();
                await judge(page, 'secret');
                await page.getByLabel('I have stored it').check();
                await page.getByRole('button', {name: 'Done'}).click();
            },
            {scheme, size},
        );
    });
}

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
        for (const path of ['', 'devices', 'usage', 'activity', 'people', 'account', 'activate']) {
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

browse('usage by key adds up to that of the period', async (page, {person}) => {
    const {
        made: [old, busy, rare],
    } = await someKeys(['Of last month', 'live'], ['Busy now', 'live'], ['Rarely used', 'test']);
    const account = deployment.account;
    const dateOf = (daysAgo) => new Date(Date.now() - daysAgo * 86400000).toISOString().slice(0, 10);
    const use = (key, daysAgo, requests) => [
        `HINCRBY chatelaine:acct:${account}:usage:${dateOf(daysAgo)} ${key.id} ${requests}`,
        `HINCRBY chatelaine:acct:${account}:usage ${dateOf(daysAgo)}:${key.mode} ${requests}`,
        `ZINCRBY chatelaine:acct:${account}:usage_keys ${requests} ${key.id}`,
    ];

    deployment.redisMany([
        ...use(old, 20, 70000),
        ...use(busy, 3, 50000),
        ...use(rare, 2, 40),
        `HINCRBY chatelaine:acct:${account}:usage ${dateOf(1)}:live 25`, // of a key that is not among the most used
    ]);
    await signIn(page, person, '/console/usage?days=7');
    const section = page.locator('.by-key');
    await section.getByText('Busy now').waitFor();
    assert.equal(await section.getByText('Of last month').count(), 0);
    const numberOf = async (locator) => Number((await locator.textContent()).replaceAll(',', ''));
    let sum = 0;
    for (const number of await section.locator('.share-cell .number').all()) sum += await numberOf(number);
    const tiles = page.locator('.tile-value');
    assert.equal(sum, (await numberOf(tiles.nth(0))) + (await numberOf(tiles.nth(1))));
    await section.getByRole('row', {name: /Other keys/}).waitFor();
    await page.getByRole('button', {name: '30 days'}).click();
    await section.getByText('Of last month').waitFor();
});

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
        for (const path of ['', 'usage', 'activity', 'devices', 'people', 'account', 'activate']) {
            await page.goto(`/console/${path}`);
            await settled(page);
            await page.waitForLoadState('networkidle');
            assert.equal(await page.evaluate(() => globalThis.shift), 0, path);
        }
    });
});
