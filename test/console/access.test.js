// What axe-core finds on every page, in both colour schemes and sizes.
import {describe} from 'node:test';

import {confirmStepUp, signIn} from './browser.js';
import {browse, deployment, judge, someKeys} from './scene.js';
import {enrolDevice} from './seed.js';

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
                for (const path of ['', 'devices', 'usage', 'activate', 'people', 'account', 'system', 'activity', 'nowhere']) {
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
