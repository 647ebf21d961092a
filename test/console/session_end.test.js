// Sessions that end while somebody works, and other people who sign in meanwhile.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {PASSWORD} from '../support/deployment.js';
import {
    askForTestKey,
    changeAnswers,
    confirmStepUp,
    fillNewKey,
    fillSignIn,
    openContext,
    passTime,
    quiet,
    signIn,
    signOut,
} from './browser.js';
import {browse, browser, deployment, forgetColleague, goBackTo, isInSight, keysOf, overlap, row, someKeys} from './scene.js';

// The page warns from 465 s after the last answer on, for two minutes, so that a busy machine has time.
const IDLE_MS = 600000;
const WARNED_MS = 470000;

async function endSoon(page, asked = () => {}) {
    await changeAnswers(page, '**/v1/console/session', async (response) => {
        const json = await response.json();
        const end = new Date(Date.now() + IDLE_MS).toISOString();

        asked();
        return {json: response.ok() ? {...json, idle_expires_at: end} : json};
    });
}

describe('a session that ends', () => {
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
        await other.evaluate(() => {
            const tabs = new BroadcastChannel('chatelaine-session');

            for (const said of [null, undefined, 1, 'ended', {}]) tabs.postMessage(said); // not by this console
        });
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
        await askForTestKey(page, 'Seen by passers-by');
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
        await askForTestKey(page, 'Kept');
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
        await endSoon(page);
        await page.clock.install();
        await signIn(page, person, '/console/account');
        await page.reload();
        await page.getByRole('heading', {name: 'My account'}).waitFor();
        await quiet(page);
        await page.clock.pauseAt(Date.now() + WARNED_MS); // if time went on, the last second would tell it too
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

                await endSoon(page, () => {
                    asked += 1;
                });
                await page.clock.install();
                await signIn(page, person);
                await page.reload();
                await page.getByRole('button', {name: 'Create key'}).first().click();
                const name = page.getByRole('textbox', {name: 'Name'});
                await name.fill('Nothing is asked for each key');
                const before = asked;
                await passTime(page, WARNED_MS);
                const bar = page.getByRole('region', {name: 'Your session is about to end'});
                await bar.waitFor();
                for (const button of ['Create test key', 'Cancel', 'Stay signed in'])
                    assert.ok(await isInSight(page.getByRole('button', {name: button})), button);
                assert.equal(asked, before);
                await name.press('x');
                await bar.waitFor({state: 'detached'});
                assert.equal(asked, before + 1);
                await page.keyboard.press('Escape');
                await passTime(page, WARNED_MS);
                await bar.waitFor();
                await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
                for (const button of await page.locator('main button:visible').all())
                    assert.ok(!(await overlap(button, bar)), await button.textContent());
            },
            {size},
        );

    browse('a session that has ended before it could be put off', async (page, {person}) => {
        await endSoon(page);
        await page.clock.install();
        await signIn(page, person);
        await page.reload();
        await page.getByRole('heading', {name: 'API keys', exact: true}).waitFor();
        await page.getByRole('button', {name: 'Create key'}).first().click();
        await page.getByRole('textbox', {name: 'Name'}).fill('Kept');
        await passTime(page, WARNED_MS);
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
        await askForTestKey(page, 'Patience');
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
});

describe('somebody else', () => {
    browse('somebody else signs in instead: nothing is shown to him, or done in his name', async (page, {person}) => {
        const [other] = deployment.newcomers(1);
        let posts = 0;

        await signIn(page, person);
        await fillNewKey(page, 'Not his');
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
});
