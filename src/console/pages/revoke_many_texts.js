// Texts of the dialog that revokes several keys.
import {plural} from './texts.js';

export const MANY = {
    title: (n) => `Revoke ${n} ${plural(n, 'key', 'keys')}?`,
    text:
        'These keys stop working at once, everywhere, and for good. This cannot be undone: an integration that ' +
        'still uses one needs a new key.',
    inUse: (n) =>
        `${n} live ${plural(n, 'key is', 'keys are')} in use. Requests that use ${plural(n, 'it', 'them')} will ` +
        'be refused from the moment you confirm.',
    typeLabel: (n) => `Type ${n} to confirm`,
    submit: (n) => `Revoke ${n} ${plural(n, 'key', 'keys')}`,
    done: (n) => `No node accepts ${plural(n, 'this key', `these ${n} keys`)} any more.`,
    noneTitle: 'No key was revoked',
    none: 'The service found none of these keys.',
    revoked: (n) => `Revoked: ${n}`,
    before: (n) => `Already revoked: ${n}`,
    unknown: (n) => `Not found: ${n}`,
    unconfirmed:
        'The service could not confirm the revocation: any of these keys may still be accepted. ' +
        'Try again: repeating it is safe.',
    unanswered: 'No response arrived: any of these keys may still be accepted. Try again: repeating it is safe.',
};
