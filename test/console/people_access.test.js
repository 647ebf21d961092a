// What axe-core finds on the pages about people, and whether they fit narrow windows.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {PASSWORD} from '../support/deployment.js';
import {invite, newPassword, postOf} from './acts.js';
import {confirmStepUp, signIn} from './browser.js';
import {browse, deployment, judge} from './scene.js';

for (const [scheme, size, more] of [
    ['light', 'wide', {}],
    ['dark', 'narrow', {}],
    ['light', 'narrow', {forcedColors: 'active'}],
]) {
    const name = `${scheme} and ${size}${more.forcedColors ? ', forced colours' : ''}`;
    const options = {scheme, size, ...more};
    const fits = async (page, state) =>
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${state}: too wide`);
    const look = async (page, state) => {
        await judge(page, `${name}, ${state}`);
        await fits(page, state);
    };

    describe(`accessible, ${name}`, () => {
        browse(
            'people',
            async (page) => {
                const boss = deployment.addPerson();
                const person = deployment.addPerson({role: 'developer'});

                await invite('auditor');
                await signIn(page, boss, '/console/people');
                await page.getByText('Pending invitations').first().waitFor();
                await look(page, 'people');
                await page.getByRole('button', {name: 'Account of'}).click();
                await look(page, 'menu');
                await page.keyboard.press('Escape');
                await page.getByRole('button', {name: 'Invite'}).click();
                await page.getByRole('button', {name: 'Create invitation'}).click();
                await look(page, 'invite, email missing');
                await page
                    .getByLabel('Email')
                    .fill(`look${scheme}${size}${Object.keys(more)}@example.org`.toLowerCase());
                await page.getByRole('button', {name: 'Create invitation'}).click();
                await confirmStepUp(page, boss);
                await page.getByRole('heading', {name: 'Send them this link'}).waitFor();
                await look(page, 'link');
                await page.getByRole('button', {name: 'Done'}).click();
                await page.getByRole('dialog').waitFor({state: 'detached'});
                await page.getByRole('button', {name: person.email, exact: true}).click();
                await page.getByRole('dialog', {name: person.email}).getByText('None').waitFor();
                await look(page, 'person');
                await page.getByRole('button', {name: 'Change role'}).click();
                await look(page, 'role');
                await page.keyboard.press('Escape');
                await page.getByRole('dialog', {name: 'Change the role'}).waitFor({state: 'detached'});
                await page.getByRole('button', {name: 'Remove'}).click();
                await page.getByText('No active key goes back to them').waitFor();
                await look(page, 'remove');
                await page.getByRole('button', {name: 'Remove person'}).click();
                await page.getByRole('heading', {name: 'Removed, everywhere'}).waitFor();
                await look(page, 'removed');
            },
            options,
        );

        browse(
            'my account',
            async (page) => {
                const person = deployment.addPerson();

                await deployment.signIn(person);
                await postOf('/v1/auth/login', {email: person.email, password: 'not the right one', totp: '000000'});
                await signIn(page, person, '/console/account?welcome');
                await page.getByText('End all others').waitFor();
                await look(page, 'account');
                await page.getByRole('button', {name: 'Change password'}).click();
                await page.getByRole('dialog').getByRole('button', {name: 'Change password'}).click();
                await look(page, 'password, fields missing');
                await page.keyboard.press('Escape');
                await page.getByRole('button', {name: 'Set up a new one'}).click();
                await look(page, 'authenticator');
                await page.getByRole('dialog').getByLabel('Password', {exact: true}).fill(PASSWORD);
                await page
                    .getByRole('dialog')
                    .getByLabel('One-time code')
                    .fill(await person.freshCode());
                await page.getByRole('button', {name: 'Continue'}).click();
                await page.locator('.qr path').waitFor();
                await look(page, 'scan');
                await page.keyboard.press('Escape');
                await page.getByRole('dialog').waitFor({state: 'detached'});
                await page.getByRole('button', {name: 'Get new codes'}).click();
                await page.getByRole('button', {name: 'Show new codes'}).click();
                await confirmStepUp(page, person);
                await page.getByRole('heading', {name: 'Keep these codes safe'}).waitFor();
                await look(page, 'codes');
                await page.getByLabel('I have stored them').check();
                await page.getByRole('button', {name: 'Done'}).click();
            },
            options,
        );

        browse(
            'joining and recovering',
            async (page) => {
                await page.goto((await invite()).path);
                await page.getByRole('heading', {name: 'Join Köln Clinic'}).waitFor();
                await look(page, 'join');
                await page.getByRole('button', {name: 'Continue'}).click();
                await newPassword(page).waitFor();
                await look(page, 'join, continued');
                await page.getByRole('button', {name: 'Join'}).click();
                await look(page, 'join, fields missing');
                await page.goto('/console/join#none');
                await page.getByRole('heading', {name: 'This link does not work'}).waitFor();
                await look(page, 'dead link');
                await page.goto('/console/recover');
                await page.getByLabel('Recovery code').waitFor();
                await look(page, 'recover');
                await page.getByRole('button', {name: 'Continue'}).click();
                await look(page, 'recover, fields missing');
            },
            options,
        );
    });
}
