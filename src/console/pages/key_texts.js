// The texts of a key's own page.
import {say} from './dom.js';
import {plural} from './texts.js';

export const KEY = {
    title: (last4) => `API key …${last4}`,
    back: 'API keys',
    active: 'Active',
    revoked: 'Revoked',
    period: 'Period',
    periods: {7: '7 days', 30: '30 days', 90: '90 days'},
    requests: 'Requests',
    chartLabel: (chart, days, n) => `${chart} over ${days} days: ${n} accepted. Use the arrow keys to read single days.`,
    summary: (n, total, refusedText) =>
        `${total} accepted ${plural(n, 'request', 'requests')}${refusedText ? `, ${refusedText} refused` : ''}`,
    details: 'Details',
    refusedTitle: 'Refused requests',
    refusedNote: (days) => `In the last ${days} days, by reason.`,
    refusedNone: (days) => `No request with this key was refused in the last ${days} days.`,
    refusedColumns: {reason: 'Reason', count: 'Requests', last: 'Last time'},
    reasons: {
        revoked: ['Revoked', 'The key was used after it had been revoked.'],
        insufficient_scope: ['Scope missing', 'The key does not have the scope that the route needs.'],
        mode_not_permitted: ['Wrong mode', 'A test key tried to create a live key or to manage people.'],
        account_suspended: ['Account suspended', 'The account was suspended.'],
    },
    noLast: 'Not recorded',
    knocked: (n, text) =>
        n === 1
            ? 'This revoked key was used once since. The request was refused: somebody still has the key.'
            : `This revoked key was used ${text} times since. The requests were refused: somebody still has the key.`,
    quiet: 'This key has not been used since it was revoked.',
    certificate: 'Certificate',
    certificateNote: 'A signed statement of when the last node stopped accepting this key.',
    lastKnock: (time, ip) => `Last at ${time}${ip ? ` from ${ip}` : ''}.`,
    activity: 'Recent activity',
    activityNone: 'No activity of this key is recorded.',
    activityAll: 'All about this key',
    activityBy: 'All done with this key',
    usageLink: 'Usage of this key',
};

export const RENAME = {
    button: 'Rename…',
    title: 'Rename this key',
    name: 'New name',
    text: 'The secret, the scopes and everything that is checked stay the same. The activity keeps both names.',
    submit: 'Rename',
    working: 'Renaming…',
    done: (name) => say`The key is called ${name}.`,
    unanswered: 'No response arrived: the key may have either name. Try again: repeating it is safe.',
    unconfirmed: 'The service could not confirm it: the key may have either name. Try again: repeating it is safe.',
};
