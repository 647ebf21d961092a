// The texts of a key whose revocation is scheduled, because it is replaced or for another reason.
import {say} from './dom.js';
import {plural} from './texts.js';

export const END = {
    title: 'Scheduled revocation',
    will: (time, ahead) => `Will be revoked at ${time}, ${ahead}.`,
    lastUsed: 'Last used ',
    neverUsed: 'It has never been used.',
    replaced: (time) => `Replaced at ${time}.`,
    replacedBy: 'Replaced by ',
    replacedAt: (time) => ` at ${time}.`,
    successorUsed: 'The new key was last used ',
    successorUnused: 'The new key has not been used yet.',
    successorRevoked: 'The new key is revoked, so nothing replaces this one: replace it again, or keep it.',
    used: () => 'It is still in use: something has used it since it was replaced.',
    waiting: (time) => `Nothing has used it since ${time}. Wait longer: something may use it rarely.`,
    silent: (time) => `Nothing has used it since ${time}: you can revoke it now.`,
    again: 'Check again',
    change: 'Change…',
    keep: 'Keep it…',
    revoke: 'Revoke now',
};

export const REPLACE = {
    button: 'Replace…',
    title: 'Replace this key',
    text:
        'This creates a new key with the same mode and scopes, and shows its secret once. The old key keeps working ' +
        'for the overlap, so that you can move your integrations, and is then revoked.',
    name: 'Name of the new key',
    overlap: 'Overlap',
    overlaps: {0: 'None: until the new key is used', 3600: '1 hour', 86400: '1 day', 604800: '7 days', 2592000: '30 days'},
    until: (time) => `The old key works until ${time}.`,
    sooner: (time) => `The old key works until ${time}: its revocation was scheduled before, and that is sooner.`,
    atOnce:
        'The old key stops working, everywhere, as soon as the new one is used, and in a minute at the latest. An integration ' +
        'that still uses it then is refused until it has the new key.',
    submit: {test: 'Replace test key', live: 'Replace live key'},
    submitAtOnce: 'Replace and revoke soon',
    working: 'Replacing…',
    oldUntil: (time) => `It replaces the old key, which works until ${time}. The old key’s page shows when nothing uses it any more.`,
    oldSoon: 'It replaces the old key, which works until this one is used, and for a minute at most.',
    made: (name) => say`The key ${name} was created.`,
    unanswered:
        'No response arrived. The old key works at least until the overlap ends. Try again: that is safe. A new key that ' +
        'nobody has used is then revoked.',
    unconfirmed:
        'The service is temporarily unavailable. The old key works at least until the overlap ends. Try again: that is ' +
        'safe. A new key that nobody has used is then revoked.',
};

export const SCHEDULE = {
    button: 'Revoke at…',
    title: 'Schedule the revocation',
    titleChange: 'Change the revocation',
    text: 'At this time the key stops working, everywhere, and for good. Until then you can change your mind.',
    time: 'Revoke at',
    zone: (name) => `In your time zone, ${name}.`,
    preview: (time, ahead) => `That is ${time}, ${ahead}.`,
    missing: 'Choose a day and a time.',
    past: 'Choose a time in the future.',
    far: (days) => `Choose a time within ${days} ${plural(days, 'day', 'days')}.`,
    soonerOnly: 'Your role allows only an earlier time than before.',
    submit: 'Schedule',
    submitChange: 'Change',
    working: 'Scheduling…',
    unanswered: 'No response arrived: the revocation may or may not be scheduled. Try again: repeating it is safe.',
    unconfirmed: 'The service could not confirm it: the revocation may or may not be scheduled. Try again: repeating it is safe.',
};

export const KEEP = {
    title: 'Keep this key?',
    text: (time) => `It will not be revoked at ${time}: it works until somebody revokes it.`,
    replaced: 'Its replacement stays valid, too.',
    submit: 'Keep key',
    working: 'Withdrawing…',
    done: 'The key is kept: no revocation is scheduled.',
    unanswered: 'No response arrived: the key may still be revoked. Try again: repeating it is safe.',
    unconfirmed: 'The service could not confirm it: the key may still be revoked. Try again: repeating it is safe.',
};
