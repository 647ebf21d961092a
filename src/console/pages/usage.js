// Requests per day and by key, which add up.
import {choice, replaceAddress, withState, words} from './address.js';
import {call, withQuery} from './api.js';
import {share, usageChart, whenResized} from './chart.js';
import {serverNow} from './clock.js';
import {foreign, h, icon, newButton, show} from './dom.js';
import {csvOf, saveFile} from './file.js';
import {count, dayName} from './format.js';
import {addressOfId} from './names.js';
import {emptyState, listTable, loading, modeBadge, pageHead, segments} from './parts.js';
import {TEXTS} from './texts.js';
import {USAGE} from './usage_texts.js';

const PATH = '/v1/console/usage';
const STANDARD = '30';
const MONTH = 'month';
const DAYS_MAX = 366;
const CELLS_MAX = 9000; // days times keys, per request
const KEY_ID = /^(key|dev)_[0-9a-z]{26}$/;
const ALL_SERIES = ['live', 'test', 'refused'];

const modeOf = (key) => key.mode ?? 'live'; // device keys act in live mode
const daysOf = (period) => (period === MONTH ? new Date(serverNow()).getUTCDate() : Number(period));

// Loading

// Turns [{date, mode, requests, refused}] into [{date, live, test, refused}].
function byDay(rows) {
    const days = new Map();

    for (const {date, mode, requests, refused = 0} of rows) {
        const day = days.get(date) ?? {date, live: 0, test: 0, refused: 0};

        day[mode] += requests;
        day.refused += refused;
        days.set(date, day);
    }
    return [...days.values()];
}

const total = (days, name) => days.reduce((sum, day) => sum + day[name], 0);

// Twice the period, where the server has so many days, to compare with the time before.
const withBefore = (days) => Math.min(2 * days, DAYS_MAX);
const split = (all, days) => ({days: all.slice(-days), before: all.length === 2 * days ? all.slice(0, days) : null});

// The most used keys with their use in this period. The rest of the total belongs to other keys.
async function loadKeys(most, days, all) {
    if (most.length === 0) return [];
    const ids = most.slice(0, Math.floor(CELLS_MAX / days)).map((key) => key.id);
    const {keys} = await call('GET', withQuery(PATH, {days, key_ids: ids.join(',')}));
    const used = keys
        .filter((key) => key.requests > 0 || key.refused > 0)
        .sort((a, b) => b.requests - a.requests || b.refused - a.refused);
    const rest = (name) => all[name] - used.reduce((sum, key) => sum + (key[name] ?? 0), 0);
    const others = {requests: rest('requests'), refused: rest('refused')};

    return others.requests > 0 || others.refused > 0 ? [...used, others] : used;
}

async function loadAll(days) {
    const answer = await call('GET', withQuery(PATH, {days: withBefore(days)}));
    const periods = split(byDay(answer.data), days);
    const sum = (name) => total(periods.days, name);
    const sums = {requests: sum('live') + sum('test'), refused: sum('refused')};

    return {
        ...periods,
        series: ALL_SERIES,
        hasKeys: answer.keys.length > 0,
        keys: await loadKeys(answer.keys, days, sums),
    };
}

// One key. Its refused requests are known for the period alone, not for each day.
async function loadOne(id, days) {
    const [long, short] = await Promise.all(
        [withBefore(days), days].map((each) => call('GET', withQuery(PATH, {days: each, key_ids: id}))),
    );
    const [key] = short.keys;
    const dates = [...new Set(long.data.map(({date}) => date))];
    const mode = modeOf(key);
    const all = dates.map((date, i) => ({date, live: 0, test: 0, refused: 0, [mode]: long.keys[0].by_day[i]}));

    return {
        ...split(all, days),
        series: [mode],
        hasKeys: true,
        keys: [key],
        key,
    };
}

// The tiles

function comparison(days, before, name) {
    if (!before) return '';
    const now = total(days, name);
    const then = total(before, name);

    if (then === 0) return now === 0 ? '' : USAGE.none(count(before.length));
    const percent = Math.round((Math.abs(now - then) / then) * 100);
    if (percent === 0) return USAGE.same(before.length);
    return (now > then ? USAGE.more : USAGE.less)(count(percent), before.length);
}

function tile(label, value, kind, ...notes) {
    return h(
        'div',
        {class: `tile ${kind}`},
        h('span', {class: 'tile-label'}, kind ? h('i', {class: `swatch ${kind}`}) : null, label),
        h('span', {class: 'tile-value'}, count(value)),
        notes.filter(Boolean).map((note) => h('span', {class: 'hint'}, note)),
    );
}

function tiles({days, before, key}) {
    const isShown = (mode) => !key || modeOf(key) === mode;
    const tileOf = (kind, label, note) => tile(label, total(days, kind), kind, note, comparison(days, before, kind));

    return h(
        'div',
        {class: 'tiles'},
        isShown('live') && tileOf('live', USAGE.liveTotal, USAGE.billed),
        isShown('test') && tileOf('test', USAGE.testTotal, USAGE.notBilled),
        key
            ? tile(USAGE.refusedTotal, key.refused ?? 0, 'refused', USAGE.notBilled)
            : tileOf('refused', USAGE.refusedTotal, USAGE.notBilled),
    );
}

// The days

function dayTable({days, series}) {
    const {columns} = USAGE;
    const cells = (numbers) => series.map((name) => h('td', {class: 'number'}, count(numbers(name))));
    const rows = days
        .toReversed()
        .map((day) =>
            h(
                'tr',
                null,
                h('th', {scope: 'row'}, h('time', {datetime: day.date}, dayName(day.date))),
                cells((name) => day[name]),
            ),
        );
    const heads = series.map((name) => h('th', {scope: 'col', class: 'number'}, columns[name]));

    return h(
        'details',
        {class: 'numbers'},
        h('summary', null, USAGE.asTable),
        h(
            'div',
            {'class': 'numbers-space', 'tabindex': '0', 'role': 'region', 'aria-label': TEXTS.chart[1]},
            h(
                'table',
                {class: 'plain-table'},
                h('caption', {class: 'unseen'}, TEXTS.chart[1]),
                h('thead', null, h('tr', null, h('th', {scope: 'col'}, columns.date), heads)),
                h('tbody', null, rows),
                h('tfoot', null, h('tr', null, h('th', {scope: 'row'}, USAGE.total), cells((name) => total(days, name)))),
            ),
        ),
    );
}

function chartPanel({days, series, key}) {
    const refused = key ? (key.refused ?? 0) : total(days, 'refused');
    const sums = [total(days, 'live'), total(days, 'test'), refused];

    return usageChart(days, {
        hint: sums.every((sum) => sum === 0) && USAGE.noneInPeriod,
        label: (title) => USAGE.chartLabel(title, days.length, ...sums.map(count)),
        series: series.map((name) => ({name, label: USAGE.series[name]})),
    });
}

const csvButton = (text, name, rows) =>
    newButton('plain small', () => saveFile(name, csvOf(rows())), [icon('download'), text]);

const dayRows = ({days, series}) => [
    ['date', ...series],
    ...days.map((day) => [day.date, ...series.map((name) => day[name])]),
];

const keyRows = (keys) => [
    ['key', 'name', 'mode', 'requests', 'refused'],
    ...keys.map((key) => [
        key.id ?? '',
        key.id ? (key.name ?? '') : USAGE.otherKeys,
        key.id ? modeOf(key) : '',
        key.requests,
        key.refused ?? 0,
    ]),
];

// The keys

function keyName(key, linkOf) {
    if (!key.id) return h('span', {class: 'faint'}, USAGE.otherKeys);
    return h('a', {class: 'wrap', href: linkOf(key.id), title: key.id}, foreign(key.name || key.id));
}

function keyKind(key) {
    if (key.id?.startsWith('dev_')) return h('span', {class: 'chip'}, USAGE.device);
    return key.mode ? modeBadge(key.mode) : '–';
}

function keyTable(keys, linkOf) {
    const {byKeyColumns: columns} = USAGE;
    const most = Math.max(...keys.map((key) => key.requests), 1);
    const rows = keys.map((key) =>
        h(
            'tr',
            null,
            h('th', {scope: 'row'}, keyName(key, linkOf)),
            h('td', {'data-label': columns.mode}, keyKind(key)),
            h(
                'td',
                {'data-label': columns.requests, 'class': 'share-cell'},
                share(key.requests / most),
                h('span', {class: 'number'}, count(key.requests)),
            ),
            h('td', {'data-label': columns.refused, 'class': 'number refused-cell'}, count(key.refused ?? 0)),
        ),
    );

    return h(
        'section',
        {class: 'by-key'},
        h(
            'div',
            {class: 'part-head'},
            h('h2', null, USAGE.byKey),
            csvButton(USAGE.exportKeys, 'usage-by-key.csv', () => keyRows(keys)),
        ),
        h('p', {class: 'hint'}, USAGE.byKeyNote),
        listTable('usage-keys', USAGE.byKey, columns, rows),
    );
}

// Which key the page is narrowed to.
function keyChip(key, allAddress) {
    const page = addressOfId(key.id);

    return h(
        'p',
        {class: 'only-key'},
        h('strong', {class: 'wrap'}, USAGE.onlyKey(key.name || key.id)),
        keyKind(key),
        page ? h('a', {href: page}, USAGE.keyPage) : null,
        h('a', {href: allAddress}, USAGE.allKeys),
    );
}

// The page

function placeholder() {
    return h(
        'div',
        {class: 'skeleton'},
        h('p', {class: 'unseen', role: 'status'}, TEXTS.loading),
        h('div', {class: 'tiles'}, h('div', {class: 'tile'}), h('div', {class: 'tile'}), h('div', {class: 'tile'})),
        h('div', {class: 'skeleton-chart'}),
    );
}

function emptyUsage() {
    return emptyState(
        'usage',
        USAGE.emptyTitle,
        USAGE.empty,
        h('a', {class: 'button secondary', href: '/console/'}, USAGE.emptyAction),
    );
}

const stateOfAddress = () => ({
    period: choice('days', Object.keys(USAGE.periods), STANDARD),
    key: KEY_ID.test(words('key')) ? words('key') : '',
});

export function usagePage() {
    const content = h('div');
    const head = h('div');
    let state = stateOfAddress();
    let redraw = () => {};

    const addressOf = ({period, key}) => withState({days: period === STANDARD ? '' : period, key});
    const linkOf = (key) => addressOf({...state, key});
    function draw(usage) {
        const panel = h('div');

        if (!usage.hasKeys && ALL_SERIES.every((name) => total(usage.days, name) === 0)) {
            show(content, emptyUsage());
            return;
        }
        redraw = () => show(panel, chartPanel(usage));
        redraw();
        show(
            content,
            usage.key ? keyChip(usage.key, linkOf('')) : null,
            tiles(usage),
            h(
                'section',
                {class: 'panel'},
                panel,
                h(
                    'div',
                    {class: 'part-head'},
                    dayTable(usage),
                    csvButton(USAGE.exportDays, 'usage.csv', () => dayRows(usage)),
                ),
            ),
            usage.keys.length && !usage.key ? keyTable(usage.keys, linkOf) : null,
        );
    }
    const loader = loading(content, {
        placeholder,
        draw,
        load: () => {
            const days = daysOf(state.period);

            return state.key ? loadOne(state.key, days) : loadAll(days);
        },
    });
    function drawHead() {
        const period = segments({
            label: USAGE.period,
            value: state.period,
            options: Object.entries(USAGE.periods).sort(([a], [b]) => (a === MONTH) - (b === MONTH)),
            change: (value) => {
                state.period = value;
                replaceAddress(addressOf(state));
                loader.run();
            },
        });

        show(head, pageHead(USAGE.title, USAGE.lead, period));
    }

    const stopResizing = whenResized(() => redraw());
    drawHead();
    loader.run();
    return {
        element: h('div', null, head, content),
        stop() {
            stopResizing();
            loader.stop();
        },
        // The user went back or forward within this page.
        moved() {
            state = stateOfAddress();
            drawHead();
            loader.run();
        },
    };
}
