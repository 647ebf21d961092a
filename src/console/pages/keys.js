// The list of API keys. This is the first page, because it is needed in an emergency.
import {choice, pushAddress, replaceAddress, withState, words as wordsOf} from './address.js';
import {Refusal} from './api.js';
import {spark} from './chart.js';
import {serverNow} from './clock.js';
import {openDialog} from './dialog.js';
import {announce, foreign, h, icon, newButton, show} from './dom.js';
import {foot} from './form.js';
import {count, timeElement} from './format.js';
import {matches, needsUse, ORDER_NAMES, READ_MAX, readKeys, readUse, sorted, sum} from './keybook.js';
import {makerElement} from './names.js';
import {
    chooser,
    emptyState,
    explain,
    listTable,
    loading,
    modeBadge,
    pageHead,
    revokeCell,
    segments,
    skeletonRows,
} from './parts.js';
import {mayAs} from './permissions.js';
import {keySelection} from './selection.js';
import {SCOPE_GROUPS, TEXTS} from './texts.js';

const PATH = '/console/';
const ALL = 'all'; // in the address
const PAGE = 25;
const COUNTED_MAX = 500; // keys are read up to this number only to say how many there are
const SEARCH_PAUSE_MS = 180;
const STALE_MS = 60000;
const SCOPES = SCOPE_GROUPS.flatMap((group) => group.scopes.map(([name]) => name));
const EVERY_SCOPE = 'every';

let listAddress = PATH;

// The list as it was last seen.
export const addressOfList = () => listAddress;

// The table

function useText(use) {
    const total = sum(use);

    return total ? TEXTS.keys.requests(total, count(total)) : TEXTS.keys.noRequests;
}

function scopeCell(key) {
    if (key.scopes.length === SCOPES.length) return h('span', {class: 'chip strong'}, TEXTS.keys.allScopes);
    return h('span', {class: 'scopes-text', title: key.scopes.join(', ')}, key.scopes.join(', '));
}

function useCell(use) {
    if (!use) return h('span', {class: 'spark-space'});
    if (sum(use) === 0) return h('span', {'class': 'use-total', 'aria-label': useText(use), 'role': 'img'}, count(0));
    return [spark(use, useText(use)), h('span', {'class': 'use-total', 'aria-hidden': 'true'}, count(sum(use)))];
}

function createdCell(key) {
    return [
        timeElement(key.created_at),
        key.created_by ? h('span', {class: 'maker'}, TEXTS.keys.by, makerElement(key.created_by)) : null,
    ];
}

// outcome: of a request that revoked many, for a key that it did not find active. The response does not say since when.
const isActive = (key) => !key.revoked_at && !key.outcome;

function actionCell(key, revoked) {
    if (key.outcome) return h('span', {class: 'revoked-note'}, TEXTS.keys.outcomes[key.outcome]);
    return revokeCell(key, () => revokeOne(key, revoked));
}

// selection: null if nothing on this page can be selected.
function keyRow(key, useOf, selection) {
    const {columns} = TEXTS.keys;
    const row = h('tr', {'data-id': key.id});
    const usage = h('td', {'class': 'use-cell', 'data-label': columns.requests});
    const link = {class: 'row-name', href: `/console/keys/${key.id}`, title: foreign(key.name)};
    const redraw = (record) => {
        Object.assign(key, record);
        selection?.drop(key);
        draw();
    };

    function draw() {
        row.classList.toggle('is-revoked', !isActive(key));
        show(usage, useCell(useOf(key.id)));
        show(
            row,
            selection && h('td', {class: 'select-cell'}, isActive(key) ? selection.box(key) : null),
            h('th', {scope: 'row'}, h('a', link, foreign(key.name)), h('span', {class: 'mono faint last4'}, `…${key.last4}`)),
            h('td', {'data-label': columns.mode}, modeBadge(key.mode)),
            h('td', {'class': 'scopes-cell', 'data-label': columns.scopes}, scopeCell(key)),
            h('td', {'class': 'created-cell', 'data-label': columns.created}, h('div', null, createdCell(key))),
            h('td', {'data-label': columns.lastUsed}, timeElement(key.last_used_at)),
            usage,
            h('td', {class: 'action-cell'}, actionCell(key, redraw)),
        );
    }
    draw();
    return {row, key, redraw, drawUse: () => show(usage, useCell(useOf(key.id)))};
}

function keyTable(rows, selects) {
    const {select, ...others} = TEXTS.keys.columns;

    return selects
        ? listTable('keys selects', TEXTS.keys.table, {select, ...others}, rows)
        : listTable('keys', TEXTS.keys.table, others, rows);
}

function emptyList(state, create, clear) {
    if (state.text.trim() || state.mode || state.scope)
        return emptyState(
            'search',
            TEXTS.keys.emptyFilteredTitle,
            TEXTS.keys.emptyFiltered,
            newButton('secondary', clear, TEXTS.keys.clear),
        );
    if (state.status === 'revoked')
        return emptyState('ban', TEXTS.keys.emptyRevokedTitle, TEXTS.keys.emptyRevoked);
    return emptyState('key', TEXTS.keys.emptyTitle, create ? TEXTS.keys.empty : TEXTS.keys.emptyReader, create && create());
}

// range: which keys are shown, of how many.
function pager(page, range, turn) {
    const {previous, next} = TEXTS.keys;
    const hasPages = page.number > 1 || page.hasMore;
    const turner = (text, isEnabled, by, ...content) =>
        hasPages && newButton('secondary small', () => turn(by), content, {'disabled': !isEnabled, 'aria-label': text});

    return h(
        'nav',
        {'class': 'pager', 'aria-label': TEXTS.keys.table},
        range,
        turner(previous, page.number > 1, -1, icon('newer'), previous),
        turner(next, page.hasMore, 1, next, icon('older')),
    );
}

// The search and the filters

function searchBox(search) {
    const input = h('input', {
        'type': 'search',
        'aria-label': TEXTS.keys.search,
        'placeholder': TEXTS.keys.searchShort,
        'autocomplete': 'off',
        'spellcheck': 'false',
        'aria-keyshortcuts': '/',
    });
    let timer = 0;

    input.addEventListener('input', () => {
        clearTimeout(timer);
        timer = setTimeout(search, SEARCH_PAUSE_MS);
    });
    return {
        input,
        element: h(
            'div',
            {class: 'search'},
            icon('search'),
            input,
            h('kbd', {'aria-hidden': 'true'}, TEXTS.keys.shortcut),
        ),
    };
}

function filterControls(state, change) {
    const {keys} = TEXTS;
    const modes = [
        ['', TEXTS.all],
        ['live', TEXTS.live],
        ['test', TEXTS.test],
    ];
    const states = [
        ['active', keys.active],
        ['revoked', keys.revoked],
        ['', keys.any],
    ];
    const scopes = [['', keys.anyScope], [EVERY_SCOPE, keys.allScopes], ...SCOPES.map((name) => [name, name])];
    const orders = ['', ...ORDER_NAMES].map((name) => [name, keys.orders[name]]);

    return [
        segments({label: keys.mode, value: state.mode, change: change('mode'), options: modes}),
        segments({label: keys.status, value: state.status, change: change('status'), options: states}),
        chooser({label: keys.scope, value: state.scope, change: change('scope'), options: scopes}),
        chooser({label: keys.order, value: state.order, change: change('order'), options: orders}),
    ];
}

// The state of the list according to the address.
function stateOfAddress() {
    const status = choice('status', ['revoked', ALL], 'active');

    return {
        mode: choice('mode', ['live', 'test'], ''),
        status: status === ALL ? '' : status,
        scope: choice('scope', [EVERY_SCOPE, ...SCOPES], ''),
        order: choice('sort', ORDER_NAMES, ''),
        text: wordsOf('search'),
        page: Math.max(1, Math.trunc(Number(wordsOf('page'))) || 1),
    };
}

function addressOf({mode, status, scope, order, text, page}) {
    const shownStatus = status || ALL;

    return withState(
        {
            search: text,
            mode,
            status: shownStatus === 'active' ? '' : shownStatus,
            scope,
            sort: order,
            page: page > 1 ? page : '',
        },
        PATH,
    );
}

const hasScope = (key, scope) =>
    scope === '' || (scope === EVERY_SCOPE ? key.scopes.length === SCOPES.length : key.scopes.includes(scope));

// Reads what the page needs. Plain pages need only the keys up to their last; a search or an order needs all.
async function readPage(book, use, state) {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const isPlain = words.length === 0 && !state.scope && !state.order;
    const end = state.page * PAGE;

    await book.upTo(isPlain ? Math.min(end + 1, READ_MAX) : READ_MAX);
    const found = isPlain ? book.rows : book.rows.filter((key) => matches(key, words) && hasScope(key, state.scope));
    if (needsUse(state.order)) await readUse(found, use);
    const ordered = sorted(found, state.order, use);
    const number = Math.max(1, Math.min(state.page, Math.ceil(ordered.length / PAGE)));

    return {
        data: ordered.slice((number - 1) * PAGE, number * PAGE),
        number,
        hasMore: ordered.length > number * PAGE,
        total: ordered.length,
        isPlain,
        isSearch: words.length > 0,
    };
}

// What is loaded on demand; nothing if that fails. Then only loading the page again helps.
export async function loaded(script, title) {
    try {
        return await script;
    } catch {
        const reload = newButton('primary', () => location.reload(), TEXTS.retry);

        openDialog({title, content: [explain(new Refusal('offline')), foot(null, reload)]});
        return null;
    }
}

async function createKey(created, isDecoy) {
    (await loaded(import('./create.js'), TEXTS.keys.create))?.openCreate(created, isDecoy);
}

async function revokeOne(key, revoked) {
    (await loaded(import('./revoke.js'), TEXTS.keys.revoke))?.revokeKey(key, revoked);
}

async function revokeMany(keys, revoked) {
    (await loaded(import('./revoke_many.js'), TEXTS.keys.revoke))?.revokeKeys(keys, revoked);
}

// The page

export function keysPage() {
    const state = stateOfAddress();
    const content = h('div', {class: 'list-space'});
    const box = searchBox(() => change('text')(box.input.value));
    const create = (isDecoy) => () => createKey(() => renew(), isDecoy);
    const createButton = () => newButton('primary', create(false), [icon('plus'), TEXTS.keys.create]);
    const decoyButton = () => newButton('secondary', create(true), TEXTS.keys.createDecoy);
    const offersCreate = mayAs('developer');
    const use = new Map();
    let book = readKeys(state);
    let readMs = Date.now();
    let rows = [];

    // In place, as when one key is revoked: whoever did it sees what happened to each.
    function revokedMany({revoked, already_revoked: before, not_found: unknown}) {
        const changes = new Map([
            ...revoked.map((id) => [id, {revoked_at: new Date(serverNow()).toISOString()}]),
            ...before.map((id) => [id, {outcome: 'before'}]),
            ...unknown.map((id) => [id, {outcome: 'unknown'}]),
        ]);

        for (const {key, redraw} of rows) if (changes.has(key.id)) redraw(changes.get(key.id));
    }
    const selection = keySelection((keys) => revokeMany(keys, revokedMany));

    function rangeText(page) {
        const first = (page.number - 1) * PAGE + 1;
        const total = page.isPlain ? book.rows.length : page.total;

        return TEXTS.keys.range(
            count(first),
            count(first + page.data.length - 1),
            total,
            count(total),
            page.isPlain && !book.isWhole,
        );
    }
    function draw(page) {
        const range = h('p', {class: 'hint'}, page.data.length ? rangeText(page) : '');
        const selects = mayAs('responder') && page.data.some(isActive);

        selection.begin(page.data);
        const drawn = page.data.map((key) => keyRow(key, (id) => use.get(id), selects ? selection : null));

        rows = drawn;
        show(
            content,
            selects && selection.element,
            drawn.length
                ? keyTable(
                      drawn.map(({row}) => row),
                      selects,
                  )
                : emptyList(state, offersCreate ? createButton : null, clear),
            !page.isPlain && !book.isWhole
                ? h('p', {class: 'hint'}, TEXTS.keys.searchCut(count(book.rows.length)))
                : null,
            drawn.length ? pager(page, range, turn) : null,
        );
        if (page.isSearch) announce(TEXTS.keys.found(page.total));
        // The list is usable without the figures and the total, so a failure here is ignored.
        const ifShown = (update) => () => rows === drawn && update();
        readUse(page.data, use).then(
            ifShown(() => drawn.forEach(({drawUse}) => drawUse())),
            () => {},
        );
        if (page.isPlain && drawn.length)
            book.upTo(COUNTED_MAX).then(
                ifShown(() => show(range, rangeText(page))),
                () => {},
            );
    }
    const loader = loading(content, {
        placeholder: () => skeletonRows(6),
        draw,
        load: () => readPage(book, use, state),
    });
    // setAddress: replaceAddress or pushAddress, unless the change came from there.
    function setState(changes, setAddress) {
        Object.assign(state, changes);
        listAddress = addressOf(state);
        setAddress?.(listAddress);
    }
    // Reads everything again.
    function renew() {
        book = readKeys(state);
        readMs = Date.now();
        use.clear();
        return loader.run();
    }
    const change = (name) => (value) => {
        setState({[name]: value, page: 1}, replaceAddress);
        if (name === 'mode' || name === 'status') renew();
        else loader.run();
    };
    function turn(by) {
        setState({page: state.page + by}, pushAddress);
        loader.run();
        scrollTo(0, 0);
    }
    function clear() {
        setState({mode: '', status: 'active', scope: '', text: '', page: 1}, replaceAddress);
        drawFilters();
        renew();
    }

    const filters = h('div', {class: 'filters'});
    function drawFilters() {
        box.input.value = state.text;
        show(filters, box.element, filterControls(state, change));
    }
    // The user went back or forward within this page.
    function moved() {
        setState(stateOfAddress());
        drawFilters();
        renew();
    }
    // Somebody came back to this window: shows what others changed meanwhile, and stays as it is if that fails.
    async function refresh() {
        const next = readKeys(state);
        const before = rows;

        if (Date.now() - readMs < STALE_MS) return;
        readMs = Date.now();
        try {
            use.clear();
            const page = await readPage(next, use, state);

            if (rows !== before || content.contains(document.activeElement)) return;
            book = next;
            draw(page);
        } catch {
            // What is shown stays.
        }
    }

    drawFilters();
    setState({});
    loader.run();
    return {
        element: h(
            'div',
            null,
            pageHead(TEXTS.keys.title, TEXTS.keys.lead, ...(offersCreate ? [createButton(), decoyButton()] : [])),
            filters,
            content,
        ),
        stop: loader.stop,
        shortcut: () => box.input.focus(),
        moved,
        refresh,
    };
}
