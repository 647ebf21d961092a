// Pictures of every page and state: light and dark, wide and narrow. node screenshots.js FOLDER [PART OF A NAME]
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';

import {PASSWORD} from '../support/deployment.js';
import {confirmStepUp, launch, openContext, settled, signIn} from './browser.js';
import {Deployment} from './deployment.js';
import {seed} from './seed.js';

const [folder, only = ''] = process.argv.slice(2);
const VARIANTS = [
    ['wide', 'light'],
    ['wide', 'dark'],
    ['narrow', 'light'],
    ['narrow', 'dark'],
];

function camera(page, variant) {
    return async (name) => {
        await settled(page).catch(() => {});
        await page.screenshot({path: join(folder, `${name}-${variant}.png`)});
    };
}

async function takeSignIn(page, shoot) {
    await page.goto('/console/');
    await page.getByLabel('Email').waitFor();
    await shoot('sign-in');
    await page.getByRole('button', {name: 'Sign in'}).click();
    await shoot('sign-in-empty-fields');
    await page.getByLabel('Email').fill('nobody@example.org');
    await page.getByLabel('Password', {exact: true}).fill('not the right password');
    await page.getByLabel('One-time code').fill('000000');
    await page.getByRole('button', {name: 'Sign in'}).click();
    await page.getByText('Email, password or code is wrong').waitFor();
    await shoot('sign-in-wrong');
    await page.route('**/v1/auth/login', (route) =>
        route.fulfill({status: 429, headers: {'Retry-After': '95'}, json: {error: {code: 'rate_limited'}}}),
    );
    await page.getByLabel('One-time code').fill('000000');
    await page.getByRole('button', {name: 'Sign in'}).click();
    await page.getByText('Too many attempts').waitFor();
    await shoot('sign-in-throttled');
    await page.unroute('**/v1/auth/login');
    await page.route('**/v1/console/session', (route) => route.abort());
    await page.goto('/console/');
    await page.getByText('No connection').waitFor();
    await shoot('no-connection');
    await page.unroute('**/v1/console/session');
}

async function takeDocs(page, shoot) {
    for (const [name, path] of [
        ['docs', '/docs'],
        ['docs-operation', '/docs#create_api_key'],
        ['docs-errors', '/docs/errors#insufficient_scope'],
    ]) {
        await page.goto(path);
        await page.locator('#search input').waitFor();
        await shoot(name);
    }
    await page.getByRole('combobox').fill('revoke');
    await shoot('docs-search');
}

async function takeNew(page, shoot, {newcomer}) {
    await signIn(page, newcomer);
    await page.getByText('No API keys yet').waitFor();
    await shoot('keys-empty');
    for (const name of ['devices', 'usage']) {
        await page.goto(`/console/${name}`);
        await page.locator('.empty').waitFor();
        await shoot(`${name}-empty`);
    }
}

async function takeKeys(page, shoot) {
    await page.goto('/console/');
    await page.locator('.spark').first().waitFor();
    await shoot('keys');
    await page.getByRole('searchbox').fill('lab');
    await page.waitForTimeout(400);
    await shoot('keys-search');
    await page.getByRole('searchbox').fill('nothing like it');
    await page.getByText('Nothing matches').waitFor();
    await shoot('keys-none-match');
    await page.getByRole('button', {name: 'Clear search'}).click();
    await page.getByRole('button', {name: 'Revoked', exact: true}).click();
    await page.waitForTimeout(200);
    await shoot('keys-revoked');
    await page.getByRole('button', {name: 'Active', exact: true}).click();
    await page.getByRole('link', {name: 'Billing export', exact: true}).click();
    await page.locator('.chart').waitFor();
    await shoot('key');
    for (const [name, button] of [
        ['key-rename', 'Rename…'],
        ['key-replace', 'Replace…'],
        ['key-schedule', 'Revoke at…'],
    ]) {
        await page.getByRole('button', {name: button}).click();
        await page.getByRole('dialog').waitFor();
        await shoot(name);
        await page.keyboard.press('Escape');
    }
    await page.route('**/scheduled_revocation', (route) =>
        route.fulfill({json: {revoke_at: new Date(Date.now() + 5 * 86400000).toISOString(), revoked_at: null}}),
    );
    await page.reload();
    await page.locator('.chart').waitFor();
    await shoot('key-scheduled');
    await page.unroute('**/scheduled_revocation');
    await page.goBack();
    await page.locator('.use-total').first().waitFor();
    await page.context().setOffline(true);
    await page.getByText('You are offline').waitFor();
    await shoot('offline');
    await page.context().setOffline(false);
    await page.route('**/v1/console/api_keys?*', (route) =>
        route.fulfill({
            status: 503,
            headers: {'Retry-After': '8'},
            json: {error: {code: 'store_unavailable', message: 'The store did not answer.'}},
        }),
    );
    await page.goto('/console/');
    await page.getByText('temporarily unavailable').waitFor();
    await shoot('store-away');
    await page.unroute('**/v1/console/api_keys?*');
    await page.route('**/v1/console/api_keys?*', async (route) => {
        await page.waitForTimeout(1200);
        await route.abort().catch(() => {});
    });
    await page.goto('/console/');
    await page.locator('.skeleton').waitFor();
    await page.screenshot({path: join(folder, `keys-loading-${shoot.variant}.png`)});
    await page.unroute('**/v1/console/api_keys?*');
}

// The list where most windows are: half of a screen, a tablet, a laptop, a large screen.
async function takeWidths(page, shoot) {
    const before = page.viewportSize();

    if (before.width < 400) return;
    for (const width of [768, 960, 1024, 1440]) {
        await page.setViewportSize({width, height: 860});
        await page.goto('/console/');
        await page.locator('.use-total').first().waitFor();
        await shoot(`keys-${width}`);
    }
    await page.setViewportSize(before);
}

async function takeRevoke(page, shoot) {
    await page.goto('/console/');
    await page.getByRole('button', {name: 'Revoke Ward 3 tablets'}).click();
    await page.getByText('to confirm').first().waitFor();
    await shoot('revoke-live');
    await page.keyboard.press('Escape');
    await page.getByRole('button', {name: 'Revoke Sandbox', exact: true}).click();
    await page.getByRole('dialog').waitFor();
    await shoot('revoke');
    await page.route('**/v1/console/api_keys/key_*', async (route) => {
        const key = {
            id: route.request().url().split('/').at(-1),
            name: 'Sandbox',
            revoked_at: new Date().toISOString(),
        };

        await route.fulfill({json: key});
    });
    await page.getByRole('button', {name: 'Revoke key'}).click();
    await page.getByRole('heading', {name: 'Revoked, everywhere'}).waitFor();
    await shoot('revoked');
    await page.getByRole('button', {name: 'Close'}).last().click();
    await shoot('revoked-row');
    await page.unroute('**/v1/console/api_keys/key_*');
}

async function takeCreate(page, shoot) {
    await page.goto('/console/');
    await page.getByRole('button', {name: 'Create key'}).first().click();
    await shoot('create');
    await page.getByRole('button', {name: 'Create test key'}).click();
    await shoot('create-missing');
    await page.getByRole('textbox', {name: 'Name'}).fill('Radiology archive');
    await page.getByRole('radio', {name: /Live/}).check();
    await page.getByRole('checkbox', {name: /patients:read/}).check();
    await page.getByRole('checkbox', {name: /documents:write/}).check();
    await shoot('create-live');
    await page.locator('dialog').evaluate((dialog) => dialog.scrollTo(0, 99999));
    await shoot('create-live-end');
    await page.route('**/v1/console/api_keys', (route) =>
        route.fulfill({status: 403, json: {error: {code: 'step_up_required'}}}),
    );
    await page.getByRole('button', {name: 'Create live key'}).click();
    await page.getByRole('dialog', {name: 'Confirm that it is you'}).waitFor();
    await shoot('step-up');
    await page.route('**/v1/console/step_up', (route) =>
        route.fulfill({
            status: 401,
            headers: {'Retry-After': '17'},
            json: {error: {code: 'totp_already_used'}},
        }),
    );
    await page.getByRole('dialog', {name: 'Confirm that it is you'}).getByLabel('Password', {exact: true}).fill('x');
    await page.getByLabel('One-time code').fill('123456');
    await page.getByRole('button', {name: 'Confirm'}).click();
    await page.getByText('A new one comes').waitFor();
    await shoot('step-up-used-code');
    await page.unroute('**/v1/console/api_keys');
    await page.route('**/v1/console/api_keys', (route) =>
        route.fulfill({
            status: 201,
            json: {
                id: 'key_01kx',
                name: 'Radiology archive',
                mode: 'live',
                last4: 'aX3f',
                scopes: ['patients:read'],
                created_at: new Date().toISOString(),
                secret: 'svc_sk_live_T8nQ2vJ4mX0aLr6Zb1Ky9PwCe3HdUf5S0GaX3f',
            },
        }),
    );
    await page.unroute('**/v1/console/step_up');
    await page.route('**/v1/console/step_up', (route) =>
        route.fulfill({json: {step_up_expires_at: new Date(Date.now() + 300000).toISOString()}}),
    );
    await page.getByLabel('One-time code').fill('123456');
    await page.getByRole('button', {name: 'Confirm'}).click();
    await page.getByText('Store the secret now').waitFor();
    await shoot('secret');
    await page.keyboard.press('Escape');
    await page.getByText('first: the secret').waitFor();
    await shoot('secret-not-stored');
    await page.getByLabel('I have stored it').check();
    await page.getByRole('button', {name: 'Done'}).click();
    await page.unroute('**/v1/console/api_keys');
    await page.unroute('**/v1/console/step_up');
}

async function takeRest(page, shoot) {
    await page.goto('/console/usage');
    await page.locator('.chart').waitFor();
    await shoot('usage');
    await page.locator('.chart .day').nth(2).hover();
    await shoot('usage-day');
    await page.getByText('Show the numbers').click();
    await page.locator('.by-key').scrollIntoViewIfNeeded();
    await shoot('usage-table');
    await page.goto('/console/activity');
    await page.locator('.list').waitFor();
    await shoot('activity');
    await page
        .getByRole('button', {name: /^Details/})
        .first()
        .click();
    await page.getByRole('dialog').waitFor();
    await shoot('activity-event');
    await page.goBack();
    await page.goto('/console/nowhere');
    await page.locator('.empty').waitFor();
    await shoot('missing');
}

async function takeDevices(page, shoot, {enrol}) {
    await page.goto('/console/devices');
    await page.locator('.list').waitFor();
    await shoot('devices');
    await page.goto('/console/activate');
    await page.locator('.card').waitFor();
    await shoot('activate');
    await page.getByLabel('Code shown').fill('BBBBBBBB');
    await page.getByRole('button', {name: 'Continue'}).click();
    await page.getByText('No device is waiting').waitFor();
    await shoot('activate-unknown');
    await page.goto(`/console/activate?user_code=${await enrol()}`);
    await page.getByRole('button', {name: 'Continue'}).click();
    await page.getByText('Approve this device?').waitFor();
    await shoot('activate-confirm');
    await page.route('**/approve', (route) => route.fulfill({json: {status: 'approved'}}));
    await page.getByRole('button', {name: 'Approve'}).click();
    await page.getByText('Device approved').waitFor();
    await shoot('activate-done');
    await page.unroute('**/approve');
}

async function takePeople(page, shoot, {session}) {
    await session.stepUp();
    await session.send('POST', '/v1/console/invitations', {email: `${shoot.variant}@example.org`, role: 'auditor'});
    await page.goto('/console/people');
    await page.getByText('Pending invitations').first().waitFor();
    await shoot('people');
    await page.getByRole('button', {name: 'Account of'}).click();
    await shoot('account-menu');
    await page.keyboard.press('Escape');
    await page.getByRole('button', {name: 'ada1@example.org'}).click();
    await page.getByRole('dialog').getByText('Reset access').waitFor();
    await shoot('person');
    await page.getByRole('button', {name: 'Remove'}).click();
    await page.getByText('back to them').waitFor();
    await shoot('person-remove');
    await page.route('**/v1/console/users/*?revoke_keys=none', (route) =>
        route.fulfill({json: {sessions_ended: 2, keys_revoked: [], keys_kept: ['key_01kx', 'key_01ky']}}),
    );
    await page.getByRole('radio', {name: /Keep them/}).check();
    await page.getByRole('button', {name: 'Remove person'}).click();
    await page.getByText('are still active').waitFor();
    await shoot('person-removed');
    await page.unroute('**/v1/console/users/*?revoke_keys=none');
    await page.goto('/console/people');
    await page.getByRole('button', {name: 'Invite'}).click();
    await shoot('invite');
    await page.route('**/v1/console/invitations', (route) =>
        route.fulfill({
            status: 201,
            json: {
                email: 'grace@example.org',
                url: `https://keys.example.org/console/join#${'Tq7'.repeat(14)}x`,
                expires_at: new Date(Date.now() + 259200000).toISOString(),
            },
        }),
    );
    await page.getByLabel('Email').fill('grace@example.org');
    await page.getByRole('button', {name: 'Create invitation'}).click();
    await page.getByRole('heading', {name: 'Send them this link'}).waitFor();
    await shoot('invited');
    await page.unroute('**/v1/console/invitations');
}

async function takeAccount(page, shoot, {person}) {
    await page.goto('/console/account');
    await page.getByText('This browser').waitFor();
    await shoot('account');
    await page.getByRole('button', {name: 'Change password'}).click();
    await shoot('account-password');
    await page.keyboard.press('Escape');
    await page.getByRole('button', {name: 'Set up a new one'}).click();
    await page.getByRole('dialog').getByLabel('Password', {exact: true}).fill(PASSWORD);
    await page
        .getByRole('dialog')
        .getByLabel('One-time code')
        .fill(await person.freshCode());
    await page.getByRole('button', {name: 'Continue'}).click();
    await page.locator('.qr').waitFor();
    await shoot('account-authenticator');
    await page.keyboard.press('Escape');
    await page.getByRole('button', {name: 'Get new codes'}).click();
    await page.getByRole('button', {name: 'Show new codes'}).click();
    await confirmStepUp(page, person);
    await page.getByRole('heading', {name: 'Keep these codes safe'}).waitFor();
    await shoot('account-codes');
    await page.getByLabel('I have stored them').check();
    await page.getByRole('button', {name: 'Done'}).click();
}

async function takeOutside(page, shoot, {session}) {
    const invitation = {email: `join-${shoot.variant}@example.org`, role: 'developer'};

    await session.stepUp();
    const {json} = await session.send('POST', '/v1/console/invitations', invitation);

    await page.goto(json.url);
    await page.getByRole('button', {name: 'Continue'}).waitFor();
    await shoot('join');
    await page.getByRole('button', {name: 'Continue'}).click();
    await page.locator('.qr').waitFor();
    await shoot('join-continued');
    await page.goto('/console/join#none');
    await page.getByRole('heading', {name: 'This link does not work'}).waitFor();
    await shoot('join-dead-link');
    await page.goto('/console/recover');
    await page.getByLabel('Recovery code').waitFor();
    await shoot('recover');
}

async function takeEnd(page, shoot) {
    await page.goto('/console/');
    await page.locator('.list').waitFor();
    await page.route('**/v1/console/session', async (route) => {
        const answer = await route.fetch();
        const json = await answer.json();

        await route.fulfill({
            response: answer,
            json: {...json, idle_expires_at: new Date(Date.now() + 16000 + 15500).toISOString()},
        });
    });
    await page.clock.install();
    await page.goto('/console/account');
    await page.clock.fastForward(13000);
    await page.getByText('you will be signed out').last().waitFor();
    await shoot('session-about-to-end');
    await page.unroute('**/v1/console/session');
    await page.clock.fastForward(60000);
    await page.getByRole('dialog', {name: 'Sign in again'}).waitFor();
    await shoot('session-ended');
}

const PARTS = [
    takeSignIn,
    takeDocs,
    takeOutside,
    takeNew,
    takeKeys,
    takeWidths,
    takeRevoke,
    takeCreate,
    takeRest,
    takeDevices,
    takePeople,
    takeAccount,
    takeEnd,
];

async function main() {
    mkdirSync(folder, {recursive: true});
    const deployment = await Deployment.start();
    const browser = await launch();

    try {
        const scene = await seed(deployment);

        for (const [size, scheme] of VARIANTS) {
            const variant = `${size}-${scheme}`;
            const {context, complaints} = await openContext(browser, deployment, {size, scheme});
            const page = await context.newPage();
            const shoot = camera(page, variant);

            shoot.variant = variant;
            const cast = {...scene, deployment, person: scene.people.pop(), newcomer: scene.newcomers.pop()};
            for (const part of PARTS.filter(({name}) => name.toLowerCase().includes(only.toLowerCase()))) {
                if (![takeSignIn, takeDocs, takeOutside, takeNew].includes(part) && !cast.isIn) {
                    await context.clearCookies();
                    await signIn(page, cast.person);
                    cast.isIn = true;
                }
                await part(page, shoot, cast).catch((error) => {
                    console.error(`${part.name} ${variant}: ${error.message}`);
                    process.exitCode = 1;
                });
                console.log(`${part.name} ${variant}`);
            }
            for (const complaint of complaints) console.error(complaint);
            await context.close();
        }
    } finally {
        await browser.close();
        await deployment.stop();
    }
}

await main();
