// The texts about what happened to one's sign-in meanwhile. The frame needs them with each page.
import {say} from './dom.js';
import {plural} from './texts.js';

export const NOTICES = {
    title: 'Since you last signed in',
    dismiss: 'Dismiss',
    failed: (n) => `${n} failed ${plural(n, 'sign-in', 'sign-ins')} as you.`,
    newBrowser: (browser, ip) =>
        ip ? say`A sign-in from a new browser: ${browser}, at ${ip},` : say`A sign-in from a new browser: ${browser},`,
    recovered: 'A recovery code was used to set up a new authenticator,',
    attacked:
        'After thirty wrong attempts within an hour, sign-in was closed to browsers that you had not used before. Last time:',
    whatToDo: 'If any of this was not you, change your password and end your other sessions under',
    whatToDoHere: 'If any of this was not you, change your password, end your other sessions, and tell an owner.',
    account: 'My account',
    tell: 'and tell an owner.',
};
