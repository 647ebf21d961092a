// The audit trail, in plain words.
import {ACTIVITY} from './activity_texts.js';
import {choice, replaceAddress, withState} from './address.js';
import {call, withQuery} from './api.js';
import {h, icon, show} from './dom.js';
import {timeElement} from './format.js';
import {emptyState, loading, pageHead, pagerMore, segments, skeletonRows} from './parts.js';
import {currentSession} from './session.js';
import {TEXTS} from './texts.js';

const PATH = '/v1/console/audit_events';
const PAGE = 50;

// Actors without an id: operators on the command line, and the service itself.
const NAMED_ACTORS = {operator: ACTIVITY.operator, system: ACTIVITY.system};
// Done by an unknown person to the named user. Older entries name that user as the actor.
const STRANGERS = new Set(['login.failed']);
const KINDS = {
    keys: (type) => type.startsWith('api_key.'),
    devices: (type) => type.startsWith('device'),
    people: (type) => /^(session|login|step_up|user)\./.test(type),
    all: () => true,
};
const ICONS = [
    ['api_key', 'key'],
    ['device', 'device'],
    ['session.step_up', 'shield'],
    ['login.failed', 'warn'],
    ['step_up.failed', 'warn'],
    ['', 'person'],
];

function targetName(event) {
    const isOld = STRANGERS.has(event.type) && !event.target;
    const id = isOld ? event.actor : event.target;
    const name = isOld ? event.actor_name : event.target_name;

    return h('strong', {class: 'wrap', title: id ?? ''}, name || id || TEXTS.unknown);
}

function sentence(event) {
    const words = ACTIVITY.kinds[event.type];

    return words ? words(targetName(event)) : ACTIVITY.other(event.type);
}

function actorName(event) {
    if (STRANGERS.has(event.type)) return h('span', {class: 'faint'}, ACTIVITY.stranger);
    if (!event.actor || event.actor in NAMED_ACTORS)
        return h('span', {class: 'faint'}, NAMED_ACTORS[event.actor] ?? ACTIVITY.someone);
    if (event.actor === currentSession()?.user.id)
        return h('span', {title: currentSession().user.email}, ACTIVITY.you);
    return h('span', {class: 'wrap', title: event.actor}, event.actor_name || event.actor);
}

function eventRow(event) {
    const [, iconName] = ICONS.find(([start]) => event.type.startsWith(start));
    const isGrave = /revoked|revocation|denied|failed|reset|locked/.test(event.type);

    return h(
        'tr',
        null,
        h(
            'th',
            {scope: 'row'},
            h(
                'span',
                {class: 'event'},
                h('span', {class: `event-mark${isGrave ? ' grave' : ''}`}, icon(iconName)),
                h('span', {class: 'event-words'}, sentence(event)),
            ),
        ),
        h('td', {'data-label': ACTIVITY.columns.who}, actorName(event)),
        h('td', {'data-label': ACTIVITY.columns.from, 'class': 'mono'}, event.ip || '–'),
        h(
            'td',
            {
                'data-label': ACTIVITY.columns.when,
                'title': event.request_id ? `${ACTIVITY.requestId} ${event.request_id}` : null,
            },
            timeElement(event.created_at),
        ),
    );
}

function eventTable(events) {
    const heads = Object.entries(ACTIVITY.columns).map(([name, text]) =>
        h('th', {scope: 'col', class: `column-${name}`}, text),
    );

    return h(
        'table',
        {class: 'list events'},
        h('caption', {class: 'unseen'}, ACTIVITY.table),
        h('thead', null, h('tr', null, heads)),
        h('tbody', null, events.map(eventRow)),
    );
}

export function activityPage() {
    const content = h('div', {class: 'list-space'});
    const state = {filter: choice('show', Object.keys(KINDS), 'all'), events: [], hasMore: false};
    const load = (after) => call('GET', withQuery(PATH, {limit: PAGE, starting_after: after}));
    const more = pagerMore(ACTIVITY.more, async () => take(await load(state.events.at(-1).id)));

    function take(page) {
        state.events.push(...page.data);
        state.hasMore = page.has_more;
        draw();
    }
    function draw() {
        const events = state.events.filter((event) => KINDS[state.filter](event.type));
        const isFiltered = state.events.length > 0;

        show(
            content,
            events.length
                ? eventTable(events)
                : emptyState(
                      'activity',
                      isFiltered ? TEXTS.keys.emptyFilteredTitle : ACTIVITY.emptyTitle,
                      isFiltered ? ACTIVITY.emptyFiltered : ACTIVITY.empty,
                  ),
            state.hasMore
                ? more
                : h('div', {class: 'pager'}, h('p', {class: 'hint'}, events.length ? ACTIVITY.end : '')),
        );
    }
    const loader = loading(content, {
        placeholder: () => skeletonRows(8),
        load: () => load(),
        draw: (page) => {
            state.events = [];
            take(page);
        },
    });
    const filter = segments({
        label: ACTIVITY.filter,
        options: Object.entries(ACTIVITY.filters),
        value: state.filter,
        change: (value) => {
            state.filter = value;
            replaceAddress(withState({show: value === 'all' ? '' : value}));
            if (!content.hasAttribute('aria-busy')) draw();
        },
    });

    loader.run();
    return {
        element: h(
            'div',
            null,
            pageHead(ACTIVITY.title, ACTIVITY.lead),
            h('div', {class: 'filters'}, filter),
            content,
        ),
        stop: loader.stop,
    };
}
