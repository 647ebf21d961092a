// What events say, in plain sentences.
import {foreign, say} from './dom.js';
import {exactTime} from './format.js';
import {roleName} from './roles.js';
import {plural} from './texts.js';

const times = (n) => `${n} ${plural(n, 'time', 'times')}`;

const inWords = (role) => roleName(role).toLowerCase();
const REASONS = {
    revoked: 'revoked',
    api_key_revoked: 'revoked',
    device_key_revoked: 'revoked',
    insufficient_scope: 'scope missing',
    mode_not_permitted: 'wrong mode',
    account_suspended: 'account suspended',
    holder: 'Its secret was sent to be revoked',
    decoy: 'Created as a decoy',
    scheduled: 'Its time had come',
    replaced: 'The key that replaces it was used',
    not_accepted: 'Nobody had used it, and another key took its place',
    not_delivered: 'The secret of the new key did not arrive',
};

export const reasonWords = (reason) => (Object.hasOwn(REASONS, reason) ? REASONS[reason] : foreign(reason));

const inRole = ({role}) => (role ? ` as ${inWords(role)}` : '');

// In the order in which the list of types shows them. Each sentence gets the target's name, the event's further data and
// its count. Its subject is the actor, who is told beside it.
const GROUPS = {
    'API keys': {
        'api_key.created': ['Key created', (t) => ['Created the API key ', t]],
        'api_key.revoked': ['Key revoked', (t) => ['Revoked the API key ', t]],
        'api_key.revocation_scheduled': [
            'Revocation scheduled',
            (t, data) => ['Scheduled the revocation of the API key ', t, data.revoke_at ? `, ${exactTime(data.revoke_at)}` : ''],
        ],
        'api_key.revocation_withdrawn': [
            'Revocation withdrawn',
            (t) => ['Withdrew the scheduled revocation of the API key ', t],
        ],
        'api_key.renamed': [
            'Key renamed',
            (t, {from, to}) => ['Renamed the API key ', t, ...(from && to ? say`, from ${from} to ${to}` : [])],
        ],
        'api_key.used_after_revocation': [
            'Revoked key used',
            (t, data, n) => ['Refused requests with the revoked API key ', t, n > 1 ? `, ${times(n)}` : ''],
        ],
        'requests.refused': [
            'Requests refused',
            (t, data, n) => [
                n > 1 ? `Refused ${n} requests with the key ` : 'Refused a request with the key ',
                t,
                ...(data.reason ? [': ', reasonWords(data.reason)] : []),
            ],
        ],
    },
    'Devices': {
        'device_key.created': ['Device added', (t) => ['Added the device ', t]],
        'device_key.revoked': ['Device revoked', (t) => ['Revoked the device ', t]],
        'device.approved': ['Device approved', (t) => ['Approved the device ', t]],
        'device.denied': ['Device denied', (t) => ['Denied the device ', t]],
    },
    'Sign-in': {
        'session.created': ['Signed in', () => ['Signed in']],
        'session.ended': ['Signed out', () => ['Signed out']],
        'session.step_up': ['Identity confirmed', () => ['Confirmed password and code']],
        'login.failed': [
            'Sign-in failed',
            (t, data, n) => ['Failed sign-in as ', t, n > 1 ? `, ${times(n)}` : ''],
        ],
        'step_up.failed': ['Confirmation failed', () => ['Failed to confirm password and code']],
        'browser.new': ['New browser', () => ['Signed in with a new browser']],
    },
    'People': {
        'user.created': ['Person added', (t, data) => ['Added the user ', t, inRole(data)]],
        'user.invited': ['Person invited', (t, data) => ['Invited ', t, inRole(data)]],
        'link.opened': ['Link opened', (t, {browser}) => ['Opened the link for ', t, ...(browser ? say`, with ${browser}` : [])]],
        'user.joined': ['Person joined', (t) => ['Joined as ', t]],
        'user.role_changed': [
            'Role changed',
            (t, {to}) => ['Changed the role of ', t, to ? ` to ${inWords(to)}` : ''],
        ],
        'user.disabled': ['Person disabled', (t) => ['Disabled ', t]],
        'user.enabled': ['Person enabled', (t) => ['Enabled ', t]],
        'user.removed': ['Person removed', (t) => ['Removed ', t]],
        'user.reset': ['Access reset', (t) => ['Reset password and authenticator of ', t]],
        'user.password_reset': ['Password reset', (t) => ['Reset the password of ', t]],
        'user.totp_reset': ['Authenticator reset', (t) => ['Reset the authenticator of ', t]],
        'user.password_changed': ['Password changed', () => ['Changed the password']],
        'user.totp_changed': ['Authenticator changed', () => ['Set up a new authenticator']],
        'user.recovery_codes_made': ['Recovery codes made', () => ['Made new recovery codes']],
        'user.recovery_used': ['Recovery code used', () => ['Used a recovery code']],
        'user.locked': ['Person locked', (t) => ['Locked ', t, ' after 100 wrong codes with the right password']],
        'user.unlocked': ['Person unlocked', (t) => ['Unlocked ', t]],
    },
    'Account and service': {
        'account.suspended': ['Account suspended', () => ['Suspended the account: its keys and sessions are refused']],
        'account.resumed': ['Account resumed', () => ['Resumed the account: its keys and sessions work again']],
        'account.closed': ['Account closed', () => ['Closed the account for good']],
        'store.durability_asserted': [
            'Durability asserted',
            () => ['Asserted that the store keeps what it was given'],
        ],
        'store.upgraded': ['Store upgraded', () => ['Upgraded the store']],
        'store.lease_lowered': ['Longest lease lowered', () => ['Lowered the longest lease that revocations wait for']],
        'store.time_settled': ['Time settled', () => ['Made the clock of Redis the time of scheduled revocations']],
        'master_key.rotated': ['Master key rotated', () => ['Rotated the master key']],
    },
};

const FAMILIES = {
    'API keys': [['api_key.', 'All of API keys']],
    'Devices': [['device_key.', 'All of device keys']],
    'People': [['user.', 'All of people']],
};
const KINDS = Object.assign({}, ...Object.values(GROUPS));

export const typeName = (type) => (Object.hasOwn(KINDS, type) ? KINDS[type][0] : type);
// For a chooser. A type that ends with a dot stands for all that begin so.
export const typeOptions = Object.entries(GROUPS).map(([group, kinds]) => [
    group,
    [...(FAMILIES[group] ?? []), ...Object.entries(kinds).map(([type, [name]]) => [type, name])],
]);

// The parts of the sentence. target: the element or text that names it.
export const eventSentence = ({type, data, count}, target) =>
    Object.hasOwn(KINDS, type)
        ? KINDS[type][1](target, data ?? {}, count ?? 1).filter(Boolean)
        : say`Event ${type}`;

export const EVENTS = {
    columns: {what: 'What', who: 'Who', from: 'From', when: 'When', more: 'Details'},
    table: 'Activity',
    someone: 'Unknown',
    stranger: 'Somebody, not signed in',
    details: (words) => say`Details: ${words}`,
    time: 'Time',
    who: 'Who',
    about: 'About',
    from: 'Address',
    type: 'Type',
    count: 'How often',
    requestId: 'Request id',
    eventId: 'Event id',
    raw: 'Raw event',
    onlyWho: 'More by the same',
    onlyAbout: 'More about the same',
    onlyFrom: 'More from this address',
    keyPage: 'Open the key',
    personPage: 'Open the person',
    dataNames: {
        role: 'Role',
        from: 'Before',
        to: 'After',
        email: 'Email',
        invitation: 'Invitation',
        link_by: 'Link made by',
        same_address: 'From the address where the link was made',
        reason: 'Reason',
        revoke_at: 'Revoked at',
        replaced_by: 'Replaced by',
        replaces: 'Replaces',
        network: 'Network',
        first: 'First',
        last: 'Last',
        browser: 'Browser',
        route: 'Route',
        user_agent: 'Browser',
        sessions_ended: 'Sessions ended',
        keys_revoked: 'Keys revoked',
    },
};
