// The audit trail: filtered by the server, one event with everything that is known of it, and exported.
import {ACTIVITY} from './activity_texts.js';
import {replaceAddress, withState, words} from './address.js';
import {call, withQuery} from './api.js';
import {announce, h, newButton, show} from './dom.js';
import {eventsOver, eventTable} from './events.js';
import {typeOptions} from './events_texts.js';
import {saveFile} from './file.js';
import {field} from './form.js';
import {chooser, emptyState, loading, pageHead, pagerMore, skeletonRows, workingButton} from './parts.js';
import {thingBook} from './thing_book.js';
import {thingField} from './thing_field.js';
import {readTrail, TRAIL} from './trail.js';

const PAGE_PATH = '/console/activity';
const PAGE = 50;
const NAMES = ['type', 'actor', 'target', 'ip', 'since', 'until']; // in the address and for the server
const DATE = /^\d{4}-\d\d-\d\d$/;
const FILES = {
    'text/csv': {text: ACTIVITY.exportCsv, name: 'activity.csv'},
    'application/x-ndjson': {text: ACTIVITY.exportLines, name: 'activity.ndjson'},
    // Of all audit logs, whatever the filters are.
    'application/jose': {text: ACTIVITY.exportHeads, hint: ACTIVITY.headsHint, name: 'audit-heads.jwt', path: `${TRAIL}/heads`},
};

const stateOfAddress = () => Object.fromEntries(NAMES.map((name) => [name, words(name)]));
const isFiltered = (state) => NAMES.some((name) => state[name]);

function dayAfter(date) {
    const day = new Date(`${date}T00:00:00`);

    day.setDate(day.getDate() + 1);
    return day;
}

// The end is not included. Days are those of this computer's time zone, in which the times are shown.
function queryOf(state) {
    const {since, until} = state;

    return {
        ...state,
        since: DATE.test(since) ? new Date(`${since}T00:00:00`).toISOString() : '',
        until: DATE.test(until) ? dayAfter(until).toISOString() : '',
    };
}

function plainField({label, type, hint, value, change}) {
    const input = h('input', {type, value, placeholder: hint, autocomplete: 'off', spellcheck: 'false'});

    input.addEventListener('change', () => change(input.value.trim()));
    return field({label, input}).element;
}

// Returns {element, update()}: call when the state or the known names have changed.
function filterForm(state, book, change, clear) {
    const types = [['', ACTIVITY.anyType], ...typeOptions];
    const named = (name, texts) => thingField({...texts, book, value: state[name], change: change(name)});
    const actor = named('actor', {label: ACTIVITY.actor, hint: ACTIVITY.actorHint});
    const target = named('target', {label: ACTIVITY.target, hint: ACTIVITY.targetHint});
    const plain = (name) => ({value: state[name], change: change(name)});
    const type = chooser({label: ACTIVITY.type, value: state.type, change: change('type'), options: types});
    const clearButton = newButton('plain small clear', clear, ACTIVITY.clear);

    return {
        element: h(
            'search',
            {'class': 'event-filters', 'aria-label': ACTIVITY.filters},
            field({label: ACTIVITY.type, input: type}).element,
            actor.element,
            target.element,
            plainField({label: ACTIVITY.ip, type: 'text', hint: ACTIVITY.ipHint, ...plain('ip')}),
            plainField({label: ACTIVITY.since, type: 'date', ...plain('since')}),
            plainField({label: ACTIVITY.until, type: 'date', ...plain('until')}),
            clearButton,
        ),
        update(nextState) {
            actor.update(nextState.actor);
            target.update(nextState.target);
            clearButton.hidden = !isFiltered(nextState);
        },
    };
}

function exportButton(type, queryNow, problem) {
    const {text, hint, name, path} = FILES[type];
    const looks = {className: 'secondary', iconName: 'download', text, title: hint};

    return workingButton({...looks, workingText: ACTIVITY.exporting, problem}, async () => {
        saveFile(name, await call('GET', path ?? withQuery(TRAIL, queryNow()), undefined, type));
        announce(ACTIVITY.exported(name));
    });
}

export function activityPage() {
    const content = h('div', {class: 'list-space'});
    const filters = h('div');
    const problem = h('div', {role: 'alert'});
    const book = thingBook();
    let state = stateOfAddress();
    let form;
    let events = [];
    let hasMore = false;
    let next;
    const load = (after) => readTrail(queryOf(state), PAGE, after);
    const more = pagerMore(ACTIVITY.more, async () => {
        const shown = events;
        const page = await load(next);

        if (shown === events) take(page); // otherwise other filters were chosen meanwhile
    });
    const address = (event) => withState({...state, event}, PAGE_PATH);
    const over = eventsOver(address, () => events);

    function take(page) {
        events.push(...page.data);
        hasMore = page.hasMore;
        next = page.next;
        book.learn(page.data);
        form.update(state);
        draw();
    }
    function emptyList() {
        if (hasMore) return h('p', {class: 'hint'}, ACTIVITY.noneYet);
        return isFiltered(state)
            ? emptyState('search', ACTIVITY.emptyFilteredTitle, ACTIVITY.emptyFiltered)
            : emptyState('activity', ACTIVITY.emptyTitle, ACTIVITY.empty);
    }
    function draw() {
        show(
            content,
            events.length ? eventTable(events, over.open) : emptyList(),
            hasMore
                ? more
                : h('div', {class: 'pager'}, h('p', {class: 'hint'}, events.length ? ACTIVITY.end : '')),
        );
    }
    const loader = loading(content, {
        placeholder: () => skeletonRows(8),
        load: () => load(),
        draw: (page) => {
            events = [];
            take(page);
            over.show();
        },
    });
    const change = (name) => (value) => {
        if (state[name] === value) return;
        state = {...state, [name]: value};
        replaceAddress(address(''));
        form.update(state);
        loader.run();
    };
    function clear() {
        state = Object.fromEntries(NAMES.map((name) => [name, '']));
        replaceAddress(address(''));
        drawFilters();
        loader.run();
        filters.querySelector('select').focus();
    }
    function drawFilters() {
        form = filterForm(state, book, change, clear);
        form.update(state);
        show(filters, form.element);
    }
    // The user went back or forward within this page.
    function moved() {
        const asked = stateOfAddress();

        if (NAMES.every((name) => asked[name] === state[name])) {
            over.show();
            return;
        }
        state = asked;
        drawFilters();
        loader.run();
    }

    drawFilters();
    if (state.actor || state.target) book.read().then(() => form.update(state), () => {});
    loader.run();
    return {
        element: h(
            'div',
            null,
            pageHead(
                ACTIVITY.title,
                ACTIVITY.lead,
                Object.keys(FILES).map((type) => exportButton(type, () => queryOf(state), problem)),
            ),
            problem,
            filters,
            content,
        ),
        stop: loader.stop,
        moved,
    };
}
