// Requests per day and by key.
import {choice, replaceAddress, withState} from './address.js';
import {call, withQuery} from './api.js';
import {daysPerBar, share, usageChart} from './chart.js';
import {h, show} from './dom.js';
import {count, dayName} from './format.js';
import {emptyState, loading, modeBadge, pageHead, segments} from './parts.js';
import {TEXTS} from './texts.js';
import {USAGE} from './usage_texts.js';

// Turns [{date, mode, requests}] into [{date, live, test}].
function byDay(rows) {
    const days = new Map();

    for (const {date, mode, requests} of rows)
        days.set(date, {date, live: 0, test: 0, ...days.get(date), [mode]: requests});
    return [...days.values()];
}

const KEY_DAYS_MAX = 9000; // per request
const narrow = matchMedia('(max-width: 760px)');

const total = (days, mode) => days.reduce((sum, day) => sum + day[mode], 0);

function tile(label, value, note, kind) {
    return h(
        'div',
        {class: `tile ${kind}`},
        h('span', {class: 'tile-label'}, kind ? h('i', {class: `swatch ${kind}`}) : null, label),
        h('span', {class: 'tile-value'}, value),
        h('span', {class: 'tile-note'}, note),
    );
}

function dayTable(days) {
    const {columns} = USAGE;
    const rows = days
        .toReversed()
        .map((day) =>
            h(
                'tr',
                null,
                h('th', {scope: 'row'}, h('time', {datetime: day.date}, dayName(day.date))),
                h('td', {class: 'number'}, count(day.live)),
                h('td', {class: 'number'}, count(day.test)),
            ),
        );

    return h(
        'details',
        {class: 'numbers'},
        h('summary', null, USAGE.asTable),
        h(
            'div',
            {'class': 'numbers-space', 'tabindex': '0', 'role': 'region', 'aria-label': USAGE.chart[1]},
            h(
                'table',
                {class: 'plain-table'},
                h('caption', {class: 'unseen'}, USAGE.chart[1]),
                h(
                    'thead',
                    null,
                    h(
                        'tr',
                        null,
                        h('th', {scope: 'col'}, columns.date),
                        h('th', {scope: 'col', class: 'number'}, columns.live),
                        h('th', {scope: 'col', class: 'number'}, columns.test),
                    ),
                ),
                h('tbody', null, rows),
            ),
        ),
    );
}

function keyName(key) {
    if (!key.id) return h('span', {class: 'faint'}, USAGE.otherKeys);
    return h('span', {class: 'wrap', title: key.id}, key.name || key.id);
}

function keyTable(keys) {
    const {byKeyColumns: columns} = USAGE;
    const most = Math.max(...keys.map((key) => key.requests), 1);
    const rows = keys.map((key) =>
        h(
            'tr',
            null,
            h('th', {scope: 'row'}, keyName(key)),
            h(
                'td',
                {'data-label': columns.mode},
                key.id?.startsWith('dev_')
                    ? h('span', {class: 'chip'}, USAGE.device)
                    : key.mode
                      ? modeBadge(key.mode)
                      : '–',
            ),
            h(
                'td',
                {'data-label': columns.requests, 'class': 'share-cell'},
                h('span', {class: 'number'}, count(key.requests)),
                share(key.requests / most),
            ),
        ),
    );

    return h(
        'section',
        {class: 'by-key'},
        h('h2', null, USAGE.byKey),
        h('p', {class: 'hint'}, USAGE.byKeyNote),
        h(
            'table',
            {class: 'list usage-keys'},
            h('caption', {class: 'unseen'}, USAGE.byKey),
            h(
                'thead',
                null,
                h(
                    'tr',
                    null,
                    h('th', {scope: 'col'}, columns.name),
                    h('th', {scope: 'col', class: 'column-mode'}, columns.mode),
                    h('th', {scope: 'col', class: 'column-share'}, columns.requests),
                ),
            ),
            h('tbody', null, rows),
        ),
    );
}

function placeholder() {
    return h(
        'div',
        {class: 'skeleton'},
        h('p', {class: 'unseen', role: 'status'}, TEXTS.loading),
        h('div', {class: 'tiles'}, h('div', {class: 'tile'}), h('div', {class: 'tile'}), h('div', {class: 'tile'})),
        h('div', {class: 'skeleton-chart'}),
    );
}

// The most used keys of all time, with their use in this period. The rest of the total belongs to other keys.
async function loadKeys(most, days, all) {
    if (most.length === 0) return [];
    const ids = most.slice(0, Math.floor(KEY_DAYS_MAX / days)).map((key) => key.id);
    const {keys} = await call('GET', withQuery('/v1/console/usage', {days, key_ids: ids.join(',')}));
    const used = keys.filter((key) => key.requests > 0).sort((a, b) => b.requests - a.requests);
    const others = all - used.reduce((sum, key) => sum + key.requests, 0);

    return others > 0 ? [...used, {requests: others}] : used;
}

async function loadUsage(days) {
    const answer = await call('GET', withQuery('/v1/console/usage', {days}));
    const all = answer.data.reduce((sum, {requests}) => sum + requests, 0);

    return {days: byDay(answer.data), hasKeys: answer.keys.length > 0, keys: await loadKeys(answer.keys, days, all)};
}

function chartPanel(days, live, test) {
    const chart = USAGE.chart[daysPerBar(days.length, narrow.matches)];

    return [
        h('h2', null, chart),
        live + test === 0 ? h('p', {class: 'hint'}, USAGE.noneInPeriod) : null,
        usageChart(days, USAGE.chartLabel(chart, days.length, count(live), count(test)), narrow.matches),
    ];
}

export function usagePage() {
    const content = h('div');
    const state = {days: Number(choice('days', Object.keys(USAGE.periods), '30'))};

    let redraw = () => {};

    function draw({days, hasKeys, keys}) {
        const panel = h('div');
        const live = total(days, 'live');
        const test = total(days, 'test');

        if (live + test === 0 && !hasKeys) {
            show(
                content,
                emptyState(
                    'usage',
                    USAGE.emptyTitle,
                    USAGE.empty,
                    h('a', {class: 'button secondary', href: '/console/'}, USAGE.emptyAction),
                ),
            );
            return;
        }
        redraw = () => show(panel, chartPanel(days, live, test));
        redraw();
        show(
            content,
            h(
                'div',
                {class: 'tiles'},
                tile(USAGE.liveTotal, count(live), USAGE.billed, 'live'),
                tile(USAGE.testTotal, count(test), USAGE.notBilled, 'test'),
                tile(USAGE.perDay, count(Math.round((live + test) / days.length)), USAGE.perDayNote, ''),
            ),
            h(
                'section',
                {class: 'panel'},
                panel,
                dayTable(days),
            ),
            keys.length ? keyTable(keys) : null,
        );
    }
    const loader = loading(content, {
        placeholder,
        draw,
        load: () => loadUsage(state.days),
    });
    const period = segments({
        label: USAGE.period,
        value: String(state.days),
        options: Object.entries(USAGE.periods),
        change: (value) => {
            state.days = Number(value);
            replaceAddress(withState({days: value === '30' ? '' : value}));
            loader.run();
        },
    });

    const resized = () => redraw();
    narrow.addEventListener('change', resized);
    loader.run();
    return {
        element: h('div', null, pageHead(USAGE.title, USAGE.lead, period), content),
        stop() {
            narrow.removeEventListener('change', resized);
            loader.stop();
        },
    };
}
