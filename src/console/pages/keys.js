// The list of API keys, a key's details, and revoking. This is the first page, because it is needed in an emergency.
import {
    choice,
    currentAddress,
    leaveOver,
    pushAddress,
    replaceAddress,
    withState,
    words as wordsOf,
} from './address.js';
import {call, withQuery} from './api.js';
import {spark} from './chart.js';
import {serverNow} from './clock.js';
import {openCreate} from './create.js';
import {openDialog} from './dialog.js';
import {announce, h, icon, show} from './dom.js';
import {field, foot, notice, workingForm} from './form.js';
import {clockTimeExact, count, exactTime, timeElement, timeInWords} from './format.js';
import {copyButton, emptyState, explain, facts, loading, modeBadge, pageHead, segments, skeletonRows} from './parts.js';
import {SCOPE_GROUPS, TEXTS} from './texts.js';

const PATH = '/v1/console/api_keys';
const PAGE_PATH = '/console/';
const KEY_PATH = '/console/keys/';
const ID = /^key_[0-9a-z]{26}$/;
const ALL = 'all'; // in the address
const PAGE = 25;
const BULK = 100;
const SEARCHED_MAX = 2000;
const SEARCH_PAUSE_MS = 180;
const SPARK_DAYS = 30;
const IN_USE_MS = 30 * 86400000;
const SCOPE_COUNT = SCOPE_GROUPS.flatMap((group) => group.scopes).length;

// Revoking

const isInUse = (key) =>
    key.mode === 'live' && key.last_used_at && serverNow() - Date.parse(key.last_used_at) < IN_USE_MS;

function keyLine(key) {
    return h(
        'div',
        {class: 'key-line'},
        h('strong', {class: 'wrap'}, key.name),
        key.mode ? modeBadge(key.mode) : null,
        h('span', {class: 'mono faint'}, `…${key.last4}`),
    );
}

function explainRevoke(refusal) {
    const texts = {away: TEXTS.revoke.unconfirmed, offline: TEXTS.revoke.unanswered};

    return [refusal.kind in texts ? notice('warn', h('p', null, texts[refusal.kind])) : explain(refusal)];
}

// The name as displayed: browsers show a run of blanks as one.
const readable = (name) => name.trim().replace(/\s+/g, ' ');

function nameConfirmation(key) {
    const confirmation = field({
        label: TEXTS.revoke.typeLabel(key.name),
        isLabelHidden: true,
        input: h('input', {
            type: 'text',
            autocomplete: 'off',
            spellcheck: 'false',
            autofocus: true,
        }),
    });

    confirmation.element.prepend(
        h(
            'p',
            {'class': 'type-name', 'aria-hidden': 'true'},
            h('span', null, TEXTS.revoke.typeName('')[0]),
            h('strong', {class: 'wrap'}, key.name),
            h('span', null, TEXTS.revoke.typeName('')[2]),
        ),
    );
    return confirmation;
}

// The second argument holds the texts and the path for this kind of key. revoked() gets the updated record.
export function openRevoke(key, {path, title, text, submitText, doneTitle, doneText, next}, revoked) {
    const confirmation = isInUse(key) ? nameConfirmation(key) : null;
    const lastUse = h(
        'p',
        {class: 'last-use'},
        key.last_used_at
            ? [
                  TEXTS.revoke.lastUsed(timeInWords(key.last_used_at)),
                  h('span', {class: 'faint'}, ` · ${exactTime(key.last_used_at)}`),
              ]
            : TEXTS.revoke.neverUsed,
    );
    const form = workingForm({
        fields: [
            keyLine(key),
            lastUse,
            h('p', null, text),
            confirmation ? notice('warn', TEXTS.revoke.inUse) : null,
            confirmation?.element,
        ],
        submitText,
        workingText: TEXTS.revoke.working,
        buttonClass: 'danger',
        cancel: () => dialog.close(),
        submit: async () => {
            const record = await call('DELETE', `${path}/${encodeURIComponent(key.id)}`);

            showRevoked(dialog, key, record, {doneTitle, doneText, next});
            revoked(record);
        },
        explain: explainRevoke,
    });
    const dialog = openDialog({title, content: form.element});

    if (confirmation) {
        const compare = () => {
            form.button.disabled = readable(confirmation.input.value) !== readable(key.name);
        };

        confirmation.input.addEventListener('input', compare);
        compare();
        confirmation.input.focus();
    } else {
        form.button.focus();
    }
}

function showRevoked(dialog, key, record, {doneTitle, doneText, next}) {
    const finish = h('button', {type: 'button', class: 'primary', onclick: () => dialog.close()}, TEXTS.close);

    dialog.replace(
        doneTitle,
        notice(
            'good',
            h('p', null, doneText),
            h('p', {class: 'faint'}, TEXTS.revoke.since(clockTimeExact(record.revoked_at))),
        ),
        keyLine(key),
        next ? h('p', null, next) : null,
        foot(null, finish),
    );
    announce(`${doneTitle}. ${doneText}`);
    finish.focus();
}

function revokeKey(key, revoked) {
    openRevoke(
        key,
        {
            path: PATH,
            title: TEXTS.revoke.title,
            text: TEXTS.revoke.text,
            submitText: TEXTS.revoke.submit,
            doneTitle: TEXTS.revoke.doneTitle,
            doneText: TEXTS.revoke.doneShort,
            next: TEXTS.revoke.next,
        },
        revoked,
    );
}

// Details

function scopeList(scopes) {
    const held = SCOPE_GROUPS.flatMap((group) => group.scopes).filter(([name]) => scopes.includes(name));

    return h(
        'ul',
        {class: 'scope-list'},
        held.map(([name, words]) => h('li', null, h('code', null, name), h('span', {class: 'faint'}, words))),
    );
}

// The user or key that created it, by name if known.
function makerOf({created_by: maker, created_by_name: name}) {
    if (!maker) return null;
    return typeof maker === 'object' ? maker.name || maker.id : name || maker;
}

function openDetails(key, use, {revoked, closed}) {
    const start = `svc_sk_${key.mode}_`;
    const revokeButton = key.revoked_at
        ? null
        : h(
              'button',
              {
                  type: 'button',
                  class: 'danger-quiet',
                  onclick: () => {
                      dialog.close();
                      revokeKey(key, revoked);
                  },
              },
              icon('ban'),
              TEXTS.keys.revoke,
          );
    const dialog = openDialog({
        title: TEXTS.detail.title,
        shape: 'sheet',
        closed,
        content: [
            h('div', {class: 'detail-name'}, h('strong', {class: 'wrap'}, key.name), modeBadge(key.mode)),
            facts([
                [TEXTS.detail.id, h('code', {class: 'wrap'}, key.id), copyButton(key.id, TEXTS.copy, 'plain small')],
                [
                    TEXTS.detail.secret,
                    h('code', null, TEXTS.detail.secretText(start, key.last4)),
                    h('p', {class: 'hint'}, TEXTS.detail.secretNote),
                ],
                [TEXTS.detail.created, exactTime(key.created_at)],
                makerOf(key) ? [TEXTS.detail.madeBy, h('span', {class: 'wrap'}, makerOf(key))] : null,
                [
                    TEXTS.detail.lastUsed,
                    key.last_used_at
                        ? [
                              timeInWords(key.last_used_at),
                              h('span', {class: 'faint'}, ` · ${exactTime(key.last_used_at)}`),
                          ]
                        : TEXTS.never,
                ],
                key.revoked_at ? [TEXTS.detail.revoked, exactTime(key.revoked_at)] : null,
                use
                    ? [
                          TEXTS.detail.use,
                          h('div', {class: 'detail-use'}, spark(use, useText(use)), h('span', null, useText(use))),
                      ]
                    : null,
                [TEXTS.detail.scopes, scopeList(key.scopes)],
            ]),
            foot(
                null,
                revokeButton,
                h('button', {type: 'button', class: 'secondary', onclick: () => dialog.close()}, TEXTS.close),
            ),
        ],
    });
}

// The table

const sum = (values) => values.reduce((total, value) => total + value, 0);

function useText(use) {
    const total = sum(use);

    return total ? TEXTS.keys.requests(total, count(total)) : TEXTS.keys.noRequests;
}

function scopeCell(key) {
    if (key.scopes.length === SCOPE_COUNT) return h('span', {class: 'chip strong'}, TEXTS.keys.allScopes);
    return h('span', {class: 'scopes-text', title: key.scopes.join(', ')}, key.scopes.join(', '));
}

function useCell(use) {
    if (!use) return h('span', {class: 'spark-space'});
    return [spark(use, useText(use)), h('span', {'class': 'use-total', 'aria-hidden': 'true'}, count(sum(use)))];
}

function actionCell(key, revoked) {
    if (key.revoked_at)
        return h(
            'span',
            {class: 'revoked-note', title: exactTime(key.revoked_at)},
            TEXTS.keys.revokedAt(timeInWords(key.revoked_at)),
        );
    return h(
        'button',
        {
            'type': 'button',
            'class': 'danger-quiet small',
            'aria-label': TEXTS.keys.revokeNamed(key.name),
            'onclick': () => revokeKey(key, revoked),
        },
        TEXTS.keys.revoke,
    );
}

function keyRow(key, useOf, open) {
    const row = h('tr', {'data-id': key.id});
    const usage = h('td', {'class': 'use-cell', 'data-label': TEXTS.keys.columns.requests});
    const redraw = (record) => {
        Object.assign(key, record);
        draw();
    };

    function draw() {
        row.classList.toggle('is-revoked', Boolean(key.revoked_at));
        show(usage, useCell(useOf(key.id)));
        show(
            row,
            h(
                'th',
                {scope: 'row'},
                h(
                    'button',
                    {
                        type: 'button',
                        class: 'row-name',
                        title: TEXTS.keys.details(key.name),
                        onclick: () => open(key.id),
                    },
                    key.name,
                ),
                h('span', {class: 'mono faint last4'}, `…${key.last4}`),
            ),
            h('td', {'data-label': TEXTS.keys.columns.mode}, modeBadge(key.mode)),
            h('td', {'class': 'scopes-cell', 'data-label': TEXTS.keys.columns.scopes}, scopeCell(key)),
            h('td', {'data-label': TEXTS.keys.columns.lastUsed}, timeElement(key.last_used_at)),
            usage,
            h('td', {class: 'action-cell'}, actionCell(key, redraw)),
        );
    }
    draw();
    return {key, row, redraw, drawUse: () => show(usage, useCell(useOf(key.id)))};
}

function keyTable(rows) {
    const heads = Object.entries(TEXTS.keys.columns).map(([name, text]) =>
        h(
            'th',
            {scope: 'col', class: `column-${name}`},
            name === 'actions' ? h('span', {class: 'unseen'}, text) : text,
        ),
    );

    return h(
        'table',
        {class: 'list keys'},
        h('caption', {class: 'unseen'}, TEXTS.keys.table),
        h('thead', null, h('tr', null, heads)),
        h('tbody', null, rows),
    );
}

// Loading

async function loadUse(keys) {
    const use = new Map();

    if (keys.length === 0) return use;
    const answer = await call(
        'GET',
        withQuery('/v1/console/usage', {days: SPARK_DAYS, key_ids: keys.map((key) => key.id).join(',')}),
    );
    for (const key of answer.keys) use.set(key.id, key.by_day);
    return use;
}

// A shorter part of an id would match too many keys.
const ID_PART_MIN = 8;

function wordMatches(key, word) {
    return (
        key.name.toLowerCase().includes(word) ||
        key.last4.toLowerCase() === word ||
        (word.length >= ID_PART_MIN && key.id.includes(word))
    );
}

const matches = (key, words) => words.every((word) => wordMatches(key, word));

// The server only lists keys. Searching happens here, in up to SEARCHED_MAX keys.
async function searchAll(filters, words) {
    const found = [];
    let searched = 0;
    let after;

    for (;;) {
        const page = await call(
            'GET',
            withQuery(PATH, {limit: BULK, mode: filters.mode, status: filters.status, starting_after: after}),
        );

        searched += page.data.length;
        found.push(...page.data.filter((key) => matches(key, words)));
        if (!page.has_more || searched >= SEARCHED_MAX)
            return {
                data: found.slice(0, BULK),
                total: found.length,
                searched,
                isCut: page.has_more,
                newer: false,
                older: false,
            };
        after = page.data.at(-1).id;
    }
}

async function listPage(filters, cursor) {
    const page = await call(
        'GET',
        withQuery(PATH, {limit: PAGE, mode: filters.mode, status: filters.status, ...cursor}),
    );
    const isBackward = 'ending_before' in cursor;

    return {
        data: page.data,
        newer: isBackward ? page.has_more : 'starting_after' in cursor,
        older: isBackward || page.has_more,
    };
}

function emptyList(state, create, clear) {
    if (state.text.trim() || state.filters.mode)
        return emptyState(
            'search',
            TEXTS.keys.emptyFilteredTitle,
            TEXTS.keys.emptyFiltered,
            h('button', {type: 'button', class: 'secondary', onclick: clear}, TEXTS.keys.clear),
        );
    if (state.filters.status === 'revoked')
        return emptyState('ban', TEXTS.keys.emptyRevokedTitle, TEXTS.keys.emptyRevoked);
    return emptyState(
        'key',
        TEXTS.keys.emptyTitle,
        TEXTS.keys.empty,
        h('button', {type: 'button', class: 'primary', onclick: create}, icon('plus'), TEXTS.keys.create),
    );
}

function pager(page, move) {
    if (!page.newer && !page.older) return null;
    return h(
        'nav',
        {'class': 'pager', 'aria-label': TEXTS.keys.table},
        h(
            'button',
            {
                type: 'button',
                class: 'secondary small',
                disabled: !page.newer,
                onclick: () => move({ending_before: page.data[0].id}),
            },
            icon('newer'),
            TEXTS.newer,
        ),
        h(
            'button',
            {
                type: 'button',
                class: 'secondary small',
                disabled: !page.older,
                onclick: () => move({starting_after: page.data.at(-1).id}),
            },
            TEXTS.older,
            icon('older'),
        ),
    );
}

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

// The state of the list according to the address.
function listState() {
    const cursorOf = (name) => (ID.test(wordsOf(name)) ? {[name]: wordsOf(name)} : null);
    const status = choice('status', ['revoked', ALL], 'active');

    return {
        filters: {mode: choice('mode', ['live', 'test'], ''), status: status === ALL ? '' : status},
        text: wordsOf('search'),
        cursor: cursorOf('starting_after') ?? cursorOf('ending_before') ?? {},
    };
}

function addressOf({filters, text, cursor}, path = PAGE_PATH) {
    const status = filters.status || ALL;

    return withState({search: text, mode: filters.mode, status: status === 'active' ? '' : status, ...cursor}, path);
}

function keyOfAddress() {
    const [, id] = location.pathname.split(KEY_PATH);

    return ID.test(id) ? id : null;
}

export function keysPage() {
    const state = listState();
    const content = h('div', {class: 'list-space'});
    const box = searchBox(() => {
        state.text = box.input.value;
        restart();
    });
    const create = () => openCreate(() => restart());
    const element = h('div');
    let rows = [];
    let useByKey = new Map();
    let detailsTurn = 0;

    const words = () => state.text.toLowerCase().split(/\s+/).filter(Boolean);
    function draw(page) {
        useByKey = new Map();
        rows = page.data.map((key) => keyRow(key, (id) => useByKey.get(id), open));

        show(
            content,
            page.data.length ? keyTable(rows.map(({row}) => row)) : emptyList(state, create, clear),
            page.total > page.data.length
                ? h('p', {class: 'hint'}, TEXTS.keys.foundCut(count(page.data.length), count(page.total)))
                : null,
            page.isCut ? h('p', {class: 'hint'}, TEXTS.keys.searchCut(count(page.searched))) : null,
            pager(page, move),
        );
        if (words().length) announce(TEXTS.keys.found(page.total));
        // The list is usable without usage figures, so a failure here is ignored.
        const drawn = rows;
        loadUse(page.data).then(
            (use) => {
                if (drawn !== rows) return;
                useByKey = use;
                rows.forEach(({drawUse}) => drawUse());
            },
            () => {},
        );
        if (detailsTurn === 0) showDetails();
    }
    const loader = loading(content, {
        placeholder: () => skeletonRows(6),
        draw,
        load: () => (words().length ? searchAll(state.filters, words()) : listPage(state.filters, state.cursor)),
    });
    // After a new search or filter, starts again with the newest keys.
    function restart() {
        state.cursor = {};
        if (!keyOfAddress()) replaceAddress(addressOf(state));
        loader.run();
    }
    function move(cursor) {
        state.cursor = cursor;
        pushAddress(addressOf(state));
        loader.run();
    }
    function clear() {
        Object.assign(state, {filters: {mode: '', status: 'active'}, text: ''});
        drawFilters();
        restart();
    }

    // Opens a key's details, which have their own address.
    function open(id) {
        pushAddress(addressOf(state, KEY_PATH + id), {isOver: true});
        showDetails();
    }
    async function showDetails() {
        const id = keyOfAddress();
        const listed = rows.find(({key}) => key.id === id);
        const mine = (detailsTurn += 1);
        const isAddress = () => currentAddress().split('?')[0] === KEY_PATH + id;
        const closed = () => isAddress() && leaveOver(addressOf(state));

        if (!id) return;
        try {
            const key = listed?.key ?? (await call('GET', `${PATH}/${id}`));
            const use = listed ? useByKey : await loadUse([key]).catch(() => new Map());

            if (mine === detailsTurn && isAddress())
                openDetails(key, use.get(id), {revoked: listed?.redraw ?? restart, closed});
        } catch (refusal) {
            if (mine === detailsTurn && isAddress() && refusal.kind !== 'cancelled')
                openDialog({title: TEXTS.detail.title, content: explain(refusal), closed});
        }
    }

    const filters = h('div', {class: 'filters'});
    function drawFilters() {
        const change = (name) => (value) => {
            state.filters[name] = value;
            restart();
        };

        box.input.value = state.text;
        show(
            filters,
            box.element,
            segments({
                label: TEXTS.keys.mode,
                value: state.filters.mode,
                change: change('mode'),
                options: [
                    ['', TEXTS.all],
                    ['live', TEXTS.live],
                    ['test', TEXTS.test],
                ],
            }),
            segments({
                label: TEXTS.keys.status,
                value: state.filters.status,
                change: change('status'),
                options: [
                    ['active', TEXTS.keys.active],
                    ['revoked', TEXTS.keys.revoked],
                    ['', TEXTS.keys.any],
                ],
            }),
        );
    }
    // The user went back or forward within this page.
    function moved() {
        const before = addressOf(state);

        Object.assign(state, listState());
        if (addressOf(state) !== before) {
            drawFilters();
            loader.run();
        }
        showDetails();
    }

    drawFilters();
    element.append(
        pageHead(
            TEXTS.keys.title,
            TEXTS.keys.lead,
            h('button', {type: 'button', class: 'primary', onclick: create}, icon('plus'), TEXTS.keys.create),
        ),
        filters,
        content,
    );
    loader.run();
    return {element, stop: loader.stop, shortcut: () => box.input.focus(), moved};
}
