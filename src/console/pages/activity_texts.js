// The texts of the activity page.
import {say} from './dom.js';
import {plural} from './texts.js';

export const ACTIVITY = {
    title: 'Activity',
    lead: 'Who did what, from where. Nobody can change entries.',
    filters: 'Filters',
    type: 'Type',
    anyType: 'Every type',
    actor: 'Who',
    actorHint: 'Email, key or id',
    target: 'About',
    targetHint: 'Key, email or id',
    ip: 'Address',
    ipHint: 'For example 192.0.2.7',
    since: 'From',
    until: 'Until',
    clear: 'Clear filters',
    nobody: (text) =>
        say`Nobody and nothing here is called “${text}”. Try an id, or open the key and follow its activity.`,
    several: (n, text) => say`${n} match “${text}”. Choose one from the list.`,
    matches: (n, shown) => `${n} ${plural(n, 'matches', 'match')}${n > shown ? `, the first ${shown} are shown` : ''}`,
    choices: (label) => `${label}: what matches`,
    notRead: 'The names could not be read. Try again, or enter an id.',
    exportCsv: 'Export CSV',
    exportLines: 'Export NDJSON',
    exportHeads: 'Signed heads',
    headsHint: 'Where the audit logs end now, signed. Keep it: nobody can change the logs later without it showing.',
    exporting: 'Exporting…',
    exported: (name) => `${name} was downloaded.`,
    more: 'Show older entries',
    end: 'No older entries.',
    noneYet: 'Nothing found in the newest entries. Older ones may still match.',
    emptyTitle: 'No activity yet',
    empty: 'Sign-ins, created and revoked keys and added devices will be listed here.',
    emptyFilteredTitle: 'Nothing matches',
    emptyFiltered: 'No entry matches these filters.',
};
