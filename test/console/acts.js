// What tests of people have in common: an owner, invitations, joining.
import assert from 'node:assert/strict';

import {PASSWORD} from '../support/deployment.js';
import {deployment} from './scene.js';

export const NEW_PASSWORD = 'violet anchors hum at 17';

let owner; // a session without a browser
let invited = 0;

// An owner's session with a step-up.
export async function asOwner() {
    owner ??= await deployment.signIn(deployment.addPerson());
    await owner.stepUp();
    return owner;
}

export function newEmail() {
    invited += 1;
    return `new${invited}@example.org`;
}

// Invites somebody outside the browser. path: of the link.
export async function invite(role = 'developer') {
    const email = newEmail();
    const {status, json} = await (await asOwner()).send('POST', '/v1/console/invitations', {email, role});

    assert.equal(status, 201);
    return {...json, email, path: new URL(json.url).pathname + new URL(json.url).hash};
}

export const postOf = async (path, json) => await deployment.api('POST', path, {json});

// Accepts an invitation outside the browser. Returns a Person.
export async function accept(invitation) {
    const code = invitation.path.split('#')[1];
    const started = await postOf('/v1/auth/join/start', {code});
    const Cookie = started.headers.get('set-cookie').split(';')[0];
    const person = deployment.personOf(invitation.email, started.json.totp_uri);
    const joined = await deployment.api('POST', '/v1/auth/join', {
        headers: {Cookie},
        json: {code, password: PASSWORD, totp: await person.freshCode()},
    });

    assert.equal(joined.status, 200);
    return person;
}

export async function idOf(person) {
    const {json} = await (await asOwner()).send('GET', '/v1/console/users?limit=100');

    return json.data.find(({email}) => email === person.email).id;
}

// Opens a link, and goes on with it.
export async function openLink(page, path) {
    await page.goto(path);
    await page.getByRole('button', {name: 'Continue'}).click();
    await newPassword(page).waitFor();
}

// As somebody does who cannot scan.
export async function scan(page, email) {
    const secret = (await page.locator('.totp-secret').textContent()).replaceAll(' ', '');

    return deployment.personOf(email, `otpauth://totp/x?secret=${secret}`);
}

export const newPassword = (page) => page.getByRole('textbox', {name: 'New password'});
