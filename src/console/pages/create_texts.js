// The texts of creating a key.
import {say} from './dom.js';

export const CREATE = {
    title: 'Create an API key',
    name: 'Name',
    nameHint: 'Where will it be used? “Billing export”, “Lab gateway, Ward 3”.',
    mode: 'Mode',
    testText: 'Works on test data only. Not billed.',
    liveText: 'Works on real patients’ records. Billed.',
    liveNotice:
        'This key will reach real patients’ records. Give it as few scopes as possible, and store it where only the integration can read it.',
    permanent: 'The mode can never be changed.',
    scopes: 'Scopes',
    scopesHint: 'What the key may do. Choose as few as possible: scopes cannot be changed later.',
    scopesMissing: 'Choose at least one scope.',
    scopesCount: (n) => `${n} chosen`,
    ownersOnly: 'Only owners can create keys that manage people or the organisation.',
    powerful: 'Powerful: only for administrators’ tools.',
    allTitle: 'Every scope',
    allText:
        'Whoever holds this key can do everything that this account can: read and change records, create more keys, change the team. ' +
        'Hardly any integration needs that.',
    all: 'Give this key every scope',
    submitTest: 'Create test key',
    submitLive: 'Create live key',
    working: 'Creating…',
    unanswered: 'No response arrived. If a key was created, nobody has its secret, and it is being revoked. Try again.',
    unconfirmed:
        'The service is temporarily unavailable. If a key was created, nobody has its secret, and it is being ' +
        'revoked. Try again in a few seconds.',
    created: (name) => say`The key ${name} was created.`,
};

// Where a decoy differs.
export const DECOY = {
    title: 'Create a decoy',
    text:
        'A decoy looks like a key, but no node ever accepts it: it is revoked from the start. Put its secret where a ' +
        'thief would look, such as an old configuration file. As soon as somebody uses it, Activity shows the address.',
    nameHint: 'Where will you put it? “Old backup script”, “Wiki page of Ward 3”.',
    testText: 'Looks like a key for test data.',
    liveText: 'Looks like a key for real patients’ records.',
    submitTest: 'Create decoy',
    doneText: 'It is shown only this once. Do not try it out: every use is reported. The list has it among the revoked keys.',
    created: (name) => say`The decoy ${name} was created.`,
};
