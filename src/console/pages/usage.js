// Requests per day and by key.
import {choice, replaceAddress, withState} from './address.js';
import {call, withQuery} from './api.js';
import {share, usageChart} from './chart.js';
import {h, show} from './dom.js';
import {count, dayName} from './format.js';
import {emptyState, loading, modeBadge, pageHead, segments} from './parts.js';
import {TEXTS} from './texts.js';

// [{date, mode, requests}] as [{date, live, test}].
function byDay(rows) {
    const days = new Map();

    for (const {date, mode, requests} of rows)
        days.set(date, {date, live: 0, test: 0, ...days.get(date), [mode]: requests});
    return [...days.values()];
}

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
    const {columns} = TEXTS.usage;
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
        h('summary', null, TEXTS.usage.asTable),
        h(
            'div',
            {'class': 'numbers-space', 'tabindex': '0', 'role': 'region', 'aria-label': TEXTS.usage.chart},
            h(
                'table',
                {class: 'plain-table'},
                h('caption', {class: 'unseen'}, TEXTS.usage.chart),
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
    return h('span', {class: 'wrap', title: key.id}, key.name || key.id);
}

function keyTable(keys) {
    const {byKeyColumns: columns} = TEXTS.usage;
    const most = Math.max(...keys.map((key) => key.requests), 1);
    const rows = keys.map((key) =>
        h(
            'tr',
            null,
            h('th', {scope: 'row'}, keyName(key)),
            h(
                'td',
                {'data-label': columns.mode},
                key.id.startsWith('dev_')
                    ? h('span', {class: 'chip'}, TEXTS.usage.device)
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
        h('h2', null, TEXTS.usage.byKey),
        h('p', {class: 'hint'}, TEXTS.usage.byKeyNote),
        h(
            'table',
            {class: 'list usage-keys'},
            h('caption', {class: 'unseen'}, TEXTS.usage.byKey),
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

export function usagePage() {
    const content = h('div');
    const state = {days: Number(choice('days', Object.keys(TEXTS.usage.periods), '30'))};

    function draw(answer) {
        const days = byDay(answer.data);
        const live = total(days, 'live');
        const test = total(days, 'test');

        if (live + test === 0 && answer.keys.length === 0) {
            show(
                content,
                emptyState(
                    'usage',
                    TEXTS.usage.emptyTitle,
                    TEXTS.usage.empty,
                    h('a', {class: 'button secondary', href: '/console/'}, TEXTS.usage.emptyAction),
                ),
            );
            return;
        }
        show(
            content,
            h(
                'div',
                {class: 'tiles'},
                tile(TEXTS.usage.liveTotal, count(live), TEXTS.usage.billed, 'live'),
                tile(TEXTS.usage.testTotal, count(test), TEXTS.usage.notBilled, 'test'),
                tile(TEXTS.usage.perDay, count(Math.round((live + test) / days.length)), TEXTS.usage.perDayNote, ''),
            ),
            h(
                'section',
                {class: 'panel'},
                h('h2', null, TEXTS.usage.chart),
                live + test === 0 ? h('p', {class: 'hint'}, TEXTS.usage.noneInPeriod) : null,
                usageChart(days, TEXTS.usage.chartLabel(days.length, count(live), count(test))),
                dayTable(days),
            ),
            answer.keys.length ? keyTable(answer.keys) : null,
        );
    }
    const loader = loading(content, {
        placeholder,
        draw,
        load: () => call('GET', withQuery('/v1/console/usage', {days: state.days})),
    });
    const period = segments({
        label: TEXTS.usage.period,
        value: String(state.days),
        options: Object.entries(TEXTS.usage.periods),
        change: (value) => {
            state.days = Number(value);
            replaceAddress(withState({days: value === '30' ? '' : value}));
            loader.run();
        },
    });

    loader.run();
    return {element: h('div', null, pageHead(TEXTS.usage.title, TEXTS.usage.lead, period), content), stop: loader.stop};
}
