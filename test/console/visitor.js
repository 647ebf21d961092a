// Somebody at a browser of their own, Chromium or Firefox alike (WebDriver BiDi for the latter). run.js says which.
import puppeteer from 'puppeteer-core';

import {PASSWORD, PATIENCE_MS, until} from '../support/deployment.js';
import {CHROMIUM, FIREFOX} from './browser.js';

export const BROWSER = process.env.CHATELAINE_TEST_BROWSER ?? 'chromium';

const LAUNCH = {
    chromium: {browser: 'chrome', executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage']},
    firefox: {browser: 'firefox', executablePath: FIREFOX},
};
// What the browser itself writes for an answer that is no 2xx.
const isNoise = (text) => text.startsWith('Failed to load resource:');

export async function launch() {
    return await puppeteer.launch({headless: true, timeout: PATIENCE_MS, ...LAUNCH[BROWSER]});
}

export class Visitor {
    complaints = [];

    // With cookies of its own.
    static async open(browser, origin) {
        const visitor = new Visitor();

        visitor.origin = origin;
        visitor.context = await browser.createBrowserContext();
        visitor.page = await visitor.context.newPage();
        visitor.page.setDefaultTimeout(PATIENCE_MS);
        visitor.page.on('pageerror', (error) => visitor.complaints.push(String(error)));
        visitor.page.on('console', (message) => {
            if (message.type() === 'error' && !isNoise(message.text())) visitor.complaints.push(message.text());
        });
        return visitor;
    }

    // In front, because Firefox draws no frames for pages behind, and clicks wait for some. Says what was waited for, and
    // what the page showed instead.
    async #locate(selector, run) {
        try {
            await this.page.bringToFront();
            return await run(this.page.locator(selector));
        } catch (error) {
            const shown = await this.page.evaluate(() => document.body.innerText).catch(() => '');

            throw new Error(`${selector} at ${this.page.url()}: ${error.message}\n${shown}`, {cause: error});
        }
    }

    async goto(path) {
        await this.page.goto(`${this.origin}${path}`);
    }

    // The text of the element, once it is there.
    async read(selector) {
        const element = await this.#locate(selector, (found) => found.waitHandle());

        return await element.evaluate((node) => node.textContent);
    }

    async says(text) {
        const holds = `not(self::script) and contains(normalize-space(.), "${text}")`;

        await this.#locate(`::-p-xpath(//*[${holds}])`, (found) => found.wait());
    }

    async fill(selector, text) {
        await this.#locate(selector, (found) => found.fill(text));
    }

    async click(selector) {
        await this.#locate(selector, (found) => found.click());
    }

    // The button or link with this text, in the topmost dialog if there is one.
    async press(text, within = '') {
        const isNamed = `(self::button or self::a) and normalize-space(.)="${text}"`;

        await this.click(`::-p-xpath(${within}//*[${isNamed}])`);
    }

    async pressInDialog(text) {
        await this.press(text, '(//dialog)[last()]');
    }

    // Presses a button that closes the topmost dialog, and waits for its close event. That fires a task later; until then,
    // a page that shows a secret asks before it lets anyone leave.
    async closeDialog(text) {
        const count = () => this.page.evaluate(() => document.querySelectorAll('dialog').length);
        const before = await count();

        await this.pressInDialog(text);
        await until(`the end of a dialog at ${this.page.url()}`, async () => (await count()) < before);
    }

    async signIn(person, path = '/console/') {
        await this.goto(path);
        await this.fillSignIn(person);
        await this.read('.menu-button');
    }

    async fillSignIn(person) {
        await this.fill('input[name="email"]', person.email);
        await this.fill('input[name="password"]', PASSWORD);
        await this.fill('input[name="totp"]', await person.freshCode());
        await this.press('Sign in');
    }

    async signOut() {
        await this.click('.menu-button');
        await this.press('Sign out');
        await this.says('You are signed out.');
    }

    async #confirmStepUp(person) {
        await this.fill('dialog:last-of-type input[name="password"]', PASSWORD);
        await this.fill('dialog:last-of-type input[name="totp"]', await person.freshCode());
        await this.pressInDialog('Confirm');
    }

    // Waits until the topmost dialog has this title ('' if there is none). Confirms password and code when asked.
    async reaches(title, person) {
        const step = 'Confirm that it is you';

        await until(`"${title}"`, async () => {
            const now = await this.page.evaluate(
                () => [...document.querySelectorAll('dialog[open] h2')].at(-1)?.textContent ?? '',
            );

            if (now === step && !this.isConfirming) {
                this.isConfirming = true;
                await this.#confirmStepUp(person);
            }
            if (now !== step) this.isConfirming = false;
            return now === title;
        });
    }

    // Asked by the page itself, with its cookie. Returns {status, json}.
    async ask(path) {
        return await this.page.evaluate(async (address) => {
            const response = await fetch(address);

            return {status: response.status, json: await response.json()};
        }, path);
    }
}
