// The console in Firefox, by WebDriver BiDi: the main path alone; what Chromium shows is not looked at once more.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import puppeteer from 'puppeteer-core';

import {PASSWORD, PATIENCE_MS} from '../support/deployment.js';
import {FIREFOX} from './browser.js';
import {Deployment} from './deployment.js';

let deployment;
let browser;

before(async () => {
    deployment = await Deployment.start();
    browser = await puppeteer.launch({browser: 'firefox', executablePath: FIREFOX, headless: true, timeout: PATIENCE_MS});
});

after(async () => {
    await browser?.close();
    await deployment?.stop();
});

test('signs in, creates a key, schedules its revocation, shows it in the list, revokes it, signs out', {timeout: 4 * PATIENCE_MS}, async () => {
    const [person] = deployment.newcomers(1);
    const page = await browser.newPage();
    const complaints = [];
    const says = (text) => page.locator(`::-p-text(${text})`).wait();
    const click = (selector) => page.locator(selector).click();
    const fill = (selector, text) => page.locator(selector).fill(text);

    page.setDefaultTimeout(PATIENCE_MS);
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    await page.goto(`${deployment.origin}/console/`);
    await fill('input[name="email"]', person.email);
    await fill('input[name="password"]', PASSWORD);
    await fill('input[name="totp"]', await person.freshCode());
    await click('button[type="submit"]');
    await says('No API keys yet');

    await click('.page-actions button');
    await fill('dialog input[name="key-name"]', 'From Firefox');
    await click('dialog input[value="patients:read"]');
    await click('dialog.create button[type="submit"]');
    await fill('dialog.box input[name="password"]', PASSWORD);
    await fill('dialog.box input[name="totp"]', await person.freshCode());
    await click('dialog.box button[type="submit"]');
    const shown = await page.locator('.secret-text').waitHandle();
    const secret = await shown.evaluate((element) => element.textContent);
    assert.match(secret, /^svc_sk_test_[0-9A-Za-z]{38}$/);
    assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: secret})).status, 200);
    await click('dialog input[name="stored"]');
    await click('dialog .form-foot button.primary');

    await click('tbody .row-name');
    await says('Recent activity');
    await says(`…${secret.slice(-4)}`);
    assert.match(page.url(), /\/console\/keys\/key_/);
    await page.locator('.page-actions ::-p-text(Revoke at…)').click();
    await fill('dialog input[name="revoke-at"]', `${new Date().getUTCFullYear() + 1}-01-15T12:30`);
    await click('dialog button[type="submit"]');
    await says(`Will be revoked at 15 Jan ${new Date().getUTCFullYear() + 1}, 12:30:00`);
    await page.waitForFunction(() => !document.querySelector('dialog'));
    await page.goBack();
    await page.waitForFunction(() => !document.querySelector('dialog'));
    await click('button[aria-label="Revoke From Firefox"]');
    await click('dialog button[type="submit"]');
    await says('No node accepts this key any more.');
    assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: secret})).json.error.code, 'api_key_revoked');
    await click('dialog .form-foot button');

    // What happened, one event with all that is known, and the numbers of a day.
    await click('a[data-page="activity"]');
    await says('Revoked the API key');
    await click('.events .action-cell button');
    await says('Raw event');
    await page.goBack();
    await page.waitForFunction(() => !document.querySelector('dialog'));
    await click('a[data-page="usage"]');
    await page.locator('.chart').wait();
    await page.focus('.chart');
    await page.keyboard.press('End');
    await page.waitForFunction(() => /1\s*$/.test(document.querySelector('.tip-row:nth-child(3)')?.textContent));

    await click('.menu-button');
    await click('.menu-panel button.menu-row');
    await says('You are signed out.');
    assert.deepEqual(complaints, []);
});
