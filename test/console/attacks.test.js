// Attacks, and what works without a mouse.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {describe, test} from 'node:test';

import {PASSWORD, until} from '../support/deployment.js';
import {changeAnswers, openContext, settled, signIn} from './browser.js';
import {FOREIGN_FIELDS} from './foreign.js';
import {browse, browser, deployment, focused, keysOf, row, someKeys} from './scene.js';
import {enrolDevice} from './seed.js';

const MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

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

    // Ends an isolate and begins an override, as names of earlier versions may. Each page and dialog is looked at by
    // foreign.js; here, the words after the name are where they belong.
    browse('text that turns its direction turns nothing of the page', async (page, {person}) => {
        const TURNING = '\u2069\u202e\u2067 drawkcab';
        const turn = (value, name) => {
            if (typeof value === 'string') return FOREIGN_FIELDS.includes(name) ? value + TURNING : value;
            if (Array.isArray(value)) return value.map((each) => turn(each, name));
            if (value === null || typeof value !== 'object') return value;
            return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, turn(each, key)]));
        };
        const {
            made: [key],
        } = await someKeys(['Turned key', 'live']);

        await changeAnswers(page, '**/v1/console/**', async (response) => {
            const type = response.headers()['content-type'] ?? '';

            return type.startsWith('application/json') ? {json: turn(await response.json(), '')} : {};
        });
        await signIn(page, person, '/console/people');
        const names = page.locator('tbody .row-name');

        await names.filter({hasText: person.email}).waitFor();
        await names.filter({hasNotText: person.email}).first().click();
        await page.getByRole('button', {name: 'Remove', exact: true}).click();
        const words = page.getByRole('dialog', {name: 'Remove this person?'}).getByText('can no longer sign in');
        const lefts = await words.evaluate((element) => {
            const text = [...element.childNodes].find((node) => node.data?.includes('can no longer'));
            const start = text.data.indexOf('can');

            return [0, 1, 2].map((at) => {
                const range = document.createRange();

                range.setStart(text, start + at);
                range.setEnd(text, start + at + 1);
                return range.getBoundingClientRect().left;
            });
        });
        assert.deepEqual([...lefts].sort((a, b) => a - b), lefts);
        await page.goto('/console/?search=turned');
        await page.getByRole('button', {name: 'Revoke Turned key'}).click();
        await page.getByRole('dialog').getByText('Turned key').first().waitFor();
        for (const path of [`/console/keys/${key.id}`, '/console/account', '/console/usage', '/console/devices']) {
            await page.goto(path);
            await settled(page);
        }
        await page.goto('/console/activity');
        await page.getByRole('button', {name: 'Details: Created the API key Turned key'}).click();
        await page.getByRole('dialog').locator('pre').getByText('\\u202e').waitFor();
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
