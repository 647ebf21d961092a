// The page about people, by role; the account menu. The main way is in life.test.js.
import assert from 'node:assert/strict';
import {describe} from 'node:test';

import {until} from '../support/deployment.js';
import {asOwner, idOf} from './acts.js';
import {changeAnswers, confirmStepUp, settled, signIn} from './browser.js';
import {browse, deployment, focused, row} from './scene.js';

describe('people', () => {
    browse('invited and withdrawn, by keyboard', async (page) => {
        const boss = deployment.addPerson();
        const press = async (...keys) => {
            for (const key of keys) await page.keyboard.press(key);
        };

        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: 'Invite'}).focus();
        await press('Enter');
        await page.getByRole('dialog', {name: 'Invite a person'}).waitFor();
        await press('Enter');
        await page.getByText('Enter your email address.').waitFor();
        await page.keyboard.type('keyboard@example.org');
        await press('Tab', 'ArrowUp', 'ArrowUp', 'Enter'); // from developer to auditor
        await confirmStepUp(page, boss);
        await page.getByRole('heading', {name: 'Send them this link'}).waitFor();
        await until('the focus', async () => (await focused(page)) === 'Done');
        await press('Enter');
        await page.getByRole('dialog').waitFor({state: 'detached'});
        const invitation = row(page, 'keyboard@example.org');
        await invitation.getByText('Auditor').waitFor();
        await invitation.getByRole('button', {name: 'Withdraw'}).focus();
        await press('Enter');
        await page.getByRole('button', {name: 'Withdraw invitation'}).focus();
        await press('Enter');
        await invitation.waitFor({state: 'detached'});
        await until('the focus', async () => (await focused(page)) === 'People');
    });

    browse('an email that exists is told at its field, after the step-up', async (page) => {
        const boss = deployment.addPerson();

        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: 'Invite'}).click();
        await page.getByLabel('Email').fill(deployment.newcomers(1)[0].email);
        await page.getByRole('button', {name: 'Create invitation'}).click();
        await confirmStepUp(page, boss);
        await page.getByText('Someone with this email already exists').waitFor();
        assert.equal(await page.getByLabel('Email').getAttribute('aria-invalid'), 'true');
    });

    browse('disabled with keys kept: they are named, and loudly', async (page) => {
        const person = deployment.addPerson({role: 'developer'});
        const boss = deployment.addPerson();
        const session = await deployment.signIn(person);

        await session.stepUp();
        const key = {name: 'Ward 9 gateway', mode: 'test', scopes: ['patients:read', 'keys:manage']};
        const {json: made} = await session.send('POST', '/v1/console/api_keys', key);
        const child = {name: 'Made by the gateway', mode: 'test', scopes: ['patients:read']};
        const {json: grandchild} = await deployment.api('POST', '/v1/api_keys', {bearer: made.secret, json: child});
        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: person.email, exact: true}).click();
        const sheet = page.getByRole('dialog', {name: person.email});
        await sheet.getByRole('link', {name: 'Ward 9 gateway'}).waitFor();
        assert.equal(new URL(page.url()).search, `?person=${await idOf(person)}`);
        await sheet.getByRole('button', {name: 'Disable'}).click();
        const box = page.getByRole('dialog', {name: 'Disable this person?'});
        await box.getByText('2 active keys go back to them:').waitFor();
        await box.getByText('Made by the gateway').waitFor();
        assert.equal(await box.getByRole('radio', {name: /Revoke them all/}).isChecked(), true, 'is proposed');
        await box.getByRole('radio', {name: /Keep them working/}).check();
        await box.getByRole('button', {name: 'Disable person'}).click();
        await confirmStepUp(page, boss);
        const done = page.getByRole('dialog', {name: 'Disabled, everywhere'});
        await done.getByText('2 keys and devices are still active').waitFor();
        await done.getByRole('link', {name: 'Ward 9 gateway'}).waitFor();
        await done.getByRole('link', {name: 'Made by the gateway'}).waitFor();
        assert.equal((await session.send('GET', '/v1/console/session')).json.error.code, 'invalid_session');
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: made.secret})).status, 200);
        await done.getByRole('button', {name: 'Close'}).last().click();
        await sheet.getByText('Disabled').first().waitFor();

        // And enabled again.
        await sheet.getByRole('button', {name: 'Enable'}).click();
        await page.getByRole('button', {name: 'Enable person'}).click();
        await sheet.getByRole('button', {name: 'Disable'}).waitFor();

        // Another role, without the keys of their own making.
        await sheet.getByRole('button', {name: 'Change role'}).click();
        const role = page.getByRole('dialog', {name: 'Change the role'});
        await role.getByText('2 active keys go back to them:').waitFor();
        assert.equal(await role.getByRole('radio', {name: /Keep them working/}).isChecked(), true);
        await role.getByRole('radio', {name: /Auditor/}).check();
        await role.getByRole('radio', {name: /Revoke those of their own making/}).check();
        await role.getByRole('button', {name: 'Change role'}).click();
        const changed = page.getByRole('dialog', {name: 'Changed, everywhere'});
        await changed.getByText('1 key or device is still active').waitFor();
        await changed.getByRole('link', {name: 'Made by the gateway'}).waitFor();
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: made.secret})).status, 401);
        assert.equal((await deployment.api('GET', '/v1/whoami', {bearer: grandchild.secret})).status, 200);
        await changed.getByRole('button', {name: 'Close'}).last().click();
        await changed.waitFor({state: 'detached'});
        await page.waitForFunction(() => document.activeElement.closest('dialog.person-sheet')); // the focus is back
        await page.keyboard.press('Escape');
        await sheet.waitFor({state: 'detached'});
        await page.waitForURL((address) => address.search === '');
        await deployment.signIn(person);
    });

    browse('a person has an address; going back closes the sheet', async (page) => {
        const boss = deployment.addPerson();
        const person = deployment.addPerson({role: 'responder'});

        await signIn(page, boss, `/console/people?person=${await idOf(person)}`);
        await page.getByRole('dialog', {name: person.email}).waitFor();
        await page.reload();
        await page.getByRole('dialog', {name: person.email}).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({state: 'detached'});
        await page.getByRole('button', {name: person.email, exact: true}).click();
        await page.getByRole('dialog', {name: person.email}).waitFor();
        await page.goBack();
        await page.getByRole('dialog').waitFor({state: 'detached'});
        assert.equal(new URL(page.url()).pathname, '/console/people');
        await page.goto('/console/people?person=usr_01jd8vxq2r4s6t8v0w2x4y6z8a');
        await until('the unknown person to leave the address', async () => new URL(page.url()).search === '');
    });

    browse('one cannot end oneself; the last owner stays', async (page) => {
        const boss = deployment.addPerson();
        const person = deployment.addPerson({role: 'developer'});

        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: boss.email, exact: true}).click();
        await page.getByRole('dialog').getByText('This is you').waitFor();
        assert.equal(
            await page
                .getByRole('dialog')
                .getByRole('button', {name: /Remove|Disable|role/})
                .count(),
            0,
        );
        await page.keyboard.press('Escape');
        await page.route('**/role', (route) =>
            route.fulfill({status: 409, json: {error: {code: 'last_owner', message: 'x'}}}),
        );
        await page.getByRole('button', {name: person.email, exact: true}).click();
        await page.getByRole('button', {name: 'Change role'}).click();
        const box = page.getByRole('dialog', {name: 'Change the role'});
        await box.getByRole('button', {name: 'Change role'}).click();
        await box.getByText('Choose another').waitFor();
        await box.getByRole('radio', {name: /Auditor/}).check();
        await box.getByRole('button', {name: 'Change role'}).click();
        await box.getByText('at least one active owner').waitFor();
    });

    browse('the answer is lost, or the store: nothing is claimed', async (page) => {
        const boss = deployment.addPerson();
        const person = deployment.addPerson({role: 'developer'});
        const ends = [
            (route) => route.abort(),
            (route) => route.fulfill({status: 503, json: {error: {code: 'store_unavailable'}}}),
        ];

        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: person.email, exact: true}).click();
        await page.getByRole('button', {name: 'Remove'}).click();
        await page.getByRole('radio', {name: /Revoke them all/}).check();
        await page.route('**/v1/console/users/*?revoke_keys=all', (route) => ends.shift()(route));
        for (const says of ['it may or may not be done', 'could not confirm']) {
            await page.getByRole('button', {name: 'Remove person'}).click();
            await page.getByText(says).waitFor();
        }
    });

    for (const [role, offers] of [
        ['developer', {create: 1, addDevice: 1, revoke: 1}],
        ['responder', {create: 0, addDevice: 0, revoke: 1}],
        ['auditor', {create: 0, addDevice: 0, revoke: 0}],
    ])
        browse(`people of the role ${role} are offered what it may do, and nothing else`, async (page) => {
            const person = deployment.addPerson({role});
            const {json: key} = await (
                await asOwner()
            ).send('POST', '/v1/console/api_keys', {
                name: `For the ${role}`,
                mode: 'test',
                scopes: ['patients:read'],
            });

            await signIn(page, person);
            await row(page, key.name).waitFor();
            assert.equal(await page.getByRole('button', {name: 'Create key'}).count(), offers.create);
            assert.equal(
                await row(page, key.name)
                    .getByRole('button', {name: /^Revoke/})
                    .count(),
                offers.revoke,
            );
            await page.getByRole('link', {name: 'Devices'}).click();
            await page.getByRole('heading', {name: 'Devices', exact: true}).waitFor();
            await settled(page);
            assert.equal((await page.getByRole('link', {name: 'Add a device'}).count()) > 0, offers.addDevice > 0);
            await page.getByRole('link', {name: 'People'}).click();
            await row(page, person.email).getByText('You').waitFor();
            assert.equal(await page.getByRole('button', {name: 'Invite'}).count(), 0);
            await page.getByRole('button', {name: (await asOwner()).email, exact: true}).click();
            await page.getByText('Only owners can change people.').waitFor();
            assert.equal(
                await page
                    .getByRole('dialog')
                    .getByRole('button', {name: /Remove|Disable|role|Reset/})
                    .count(),
                0,
            );
        });

    browse('demoted while the page is open: the next act says so', async (page) => {
        const boss = deployment.addPerson();

        await signIn(page, boss, '/console/people');
        await page.getByRole('button', {name: 'Invite'}).click();
        await page.getByLabel('Email').fill('too-late@example.org');
        const path = `/v1/console/users/${await idOf(boss)}/role`;
        assert.equal((await (await asOwner()).send('POST', path, {role: 'auditor'})).status, 200);
        await page.getByRole('button', {name: 'Create invitation'}).click();
        await page.getByText('Your role does not allow this').waitFor();
    });
});

describe('the account menu', () => {
    browse('a node of an older version says no role: it knows only owners', async (page, {person}) => {
        await changeAnswers(page, '**/v1/console/session', async (response) => {
            const json = await response.json();

            delete json.user?.role;
            return {json};
        });
        await signIn(page, person);
        await page.reload(); // the answer to the sign-in is not the one that was changed
        await page.getByRole('button', {name: 'Account of'}).click();
        await page.getByText('Owner · Köln Clinic').waitFor();
        await page.getByRole('button', {name: 'Create key'}).first().waitFor();
    });

    browse('opens and closes by keyboard, and by a click beside it', async (page) => {
        const person = deployment.addPerson({role: 'responder'});

        await signIn(page, person);
        const button = page.getByRole('button', {name: `Account of ${person.email}`});
        await button.focus();
        await page.keyboard.press('Enter');
        await page.getByText('Responder · Köln Clinic').waitFor();
        assert.equal(await button.getAttribute('aria-expanded'), 'true');
        await page.keyboard.press('Tab');
        assert.equal(await focused(page), 'My account');
        await page.keyboard.press('Escape');
        assert.equal(await button.getAttribute('aria-expanded'), 'false');
        assert.ok(await button.evaluate((element) => element === document.activeElement));
        await page.keyboard.press('Enter');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        assert.equal(await button.getAttribute('aria-expanded'), 'false');
        await button.click();
        await page.mouse.click(700, 500);
        assert.equal(await button.getAttribute('aria-expanded'), 'false');
        await button.click();
        await page.getByRole('link', {name: 'My account'}).click();
        await page.getByRole('heading', {name: 'My account'}).waitFor();
        assert.equal(await button.getAttribute('aria-expanded'), 'false');
    });
});
