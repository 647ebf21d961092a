// A browser that takes nothing amiss: every console error, uncaught exception and breach of the Content-Security-Policy
// on any page is kept, and tests fail by it.
import {createRequire} from 'node:module';

import {PASSWORD, PATIENCE_MS, until} from '../support/deployment.js';
import {FOREIGN_FIELDS, watchForeignText} from './foreign.js';

export const CHROMIUM = process.env.CHATELAINE_CHROMIUM ?? '/usr/bin/chromium-headless-shell';
export const FIREFOX = process.env.CHATELAINE_FIREFOX ?? '/usr/bin/firefox-esr';
const SIZES = {wide: {width: 1280, height: 860}, narrow: {width: 320, height: 720}};

// Loaded here, because run.js needs no browser; and by require, because import looks through all of it for names first.
export async function launch() {
    const {chromium} = createRequire(import.meta.url)('playwright-core');

    return await chromium.launch({
        executablePath: CHROMIUM,
        args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
    });
}

// What the browser itself writes for an answer that is no 2xx, or a connection that fails, and what no page can
// prevent.
const isNoise = (text) => text.startsWith('Failed to load resource:');

const asked = new WeakMap(); // by context: see watchRequests()

function watchRequests(context) {
    const open = new Set();
    let lastMs = Date.now();
    const changed = (change) => (request) => {
        open[change](request);
        lastMs = Date.now();
    };

    context.on('request', changed('add')).on('requestfinished', changed('delete')).on('requestfailed', changed('delete'));
    asked.set(context, {open, quietSince: () => lastMs});
}

// allowed: what else the browser may write, in a test that provokes it.
export async function openContext(
    browser,
    deployment,
    {size = 'wide', scheme = 'light', allowed = /^$/, ...more} = {},
) {
    const context = await browser.newContext({
        baseURL: deployment.origin,
        viewport: SIZES[size],
        colorScheme: scheme,
        locale: 'en-GB',
        timezoneId: 'UTC',
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
        ...more,
    });
    const complaints = [];

    watchRequests(context);
    context.setDefaultTimeout(PATIENCE_MS);
    context.on('console', (message) => {
        if (['error', 'warning'].includes(message.type()) && !isNoise(message.text()) && !allowed.test(message.text()))
            complaints.push(`${message.type()}: ${message.text()}`);
    });
    context.on('weberror', (error) => complaints.push(`exception: ${error.error().stack}`));
    await context.addInitScript(() => {
        addEventListener('securitypolicyviolation', (event) =>
            console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`),
        );
    });
    await context.addInitScript(watchForeignText, FOREIGN_FIELDS);
    return {context, complaints};
}

export async function fillSignIn(page, person) {
    await page.getByLabel('Email').fill(person.email);
    await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
    await page.getByLabel('One-time code').fill(await person.freshCode());
    await page.getByRole('button', {name: 'Sign in'}).click();
}

export async function signIn(page, person, path = '/console/') {
    await page.goto(path);
    await fillSignIn(page, person);
    await page.getByRole('navigation', {name: 'Console'}).waitFor();
}

export async function signOut(page) {
    await page.getByRole('button', {name: 'Account of'}).click();
    await page.getByRole('button', {name: 'Sign out'}).click();
}

export async function confirmStepUp(page, person) {
    const dialog = page.getByRole('dialog', {name: 'Confirm that it is you'});

    await dialog.getByLabel('Password', {exact: true}).fill(PASSWORD);
    await dialog.getByLabel('One-time code').fill(await person.freshCode());
    await dialog.getByRole('button', {name: 'Confirm'}).click();
}

// Opens the dialog for a new key and fills it in; a new key is a test key unless the user says otherwise.
export async function fillNewKey(page, name, scopes = ['patients:read']) {
    await page.getByRole('button', {name: 'Create key'}).first().click();
    const dialog = page.getByRole('dialog', {name: 'Create an API key'});

    await dialog.getByLabel('Name').fill(name);
    for (const scope of scopes) await dialog.getByRole('checkbox', {name: scope}).check();
}

// The service may ask for a step-up before it creates the key.
export async function askForTestKey(page, name, scopes) {
    await fillNewKey(page, name, scopes);
    await page.getByRole('button', {name: 'Create test key'}).click();
}

// Idle: nothing is loading any more.
export async function settled(page) {
    await page.waitForFunction(() => !document.querySelector('[aria-busy="true"], .skeleton, form[data-working]'));
    await page.evaluate(() => document.fonts.ready);
}

const QUIET_MS = 500; // as long as browsers' own "network idle"

// Nothing that was asked is unanswered. The page's clock may be moved only then: an answer counts as activity when it
// comes.
export async function quiet(page) {
    const {open, quietSince} = asked.get(page.context());

    await settled(page);
    await until('a quiet page', () => open.size === 0 && Date.now() - quietSince() >= QUIET_MS);
}

export async function passTime(page, ms) {
    await quiet(page);
    await page.clock.fastForward(ms);
}

// Gives the page, in place of each answer of the service, what changed() makes of it: options of Route.fulfill(). A
// request that cannot be made fails for the page, too: a route that is never answered would keep the page waiting.
export async function changeAnswers(page, url, changed, options) {
    await page.route(url, async (route) => {
        const response = await route.fetch({...options?.(route.request()), maxRetries: 3}).catch(() => undefined);

        if (response) await route.fulfill({response, ...(await changed(response, route.request()))});
        else await route.abort().catch(() => {}); // nor does a page that was left
    });
}

// Closes a context whose routes may still be asking: what they get then is nobody's error.
export async function closeContext(context) {
    const none = {behavior: 'ignoreErrors'};

    await Promise.all([context, ...context.pages()].map((routed) => routed.unrouteAll(none)));
    await context.close();
}
