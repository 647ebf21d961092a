// A key's own page: what it is, when it will be revoked, how it is used, what was refused, what happened to it.
import {redraw} from './action.js';
import {choice, replaceAddress, withState} from './address.js';
import {call, withQuery} from './api.js';
import {usageChart, whenResized} from './chart.js';
import {copyButton} from './copy.js';
import {announce, bullets, foreign, h, icon, newButton, show} from './dom.js';
import {eventsOver, eventTable} from './events.js';
import {saveFile} from './file.js';
import {notice} from './form.js';
import {count, exactTime, exactTimeWithZone, timeWithExact} from './format.js';
import {endInWords, endPart, pathOf, readEnd} from './key_end.js';
import {REPLACE, SCHEDULE} from './key_end_texts.js';
import {KEY, RENAME} from './key_texts.js';
import {sum} from './keybook.js';
import {addressOfList, loaded} from './keys.js';
import {makerElement} from './names.js';
import {explain, facts, listTable, loading, modeBadge, segments, skeletonRows} from './parts.js';
import {mayAs, mayGrant} from './permissions.js';
import {revokeKey} from './revoke.js';
import {SCOPE_GROUPS, TEXTS} from './texts.js';
import {readTrail} from './trail.js';

const USAGE = '/v1/console/usage';
const EVENT_COUNT = 8;
const REFUSALS_MAX = 100;
const ALL_DAYS = 366;
const STANDARD_DAYS = '30';
const STALE_MS = 60000;

const idOfAddress = () => location.pathname.split('/').at(-1);

// Loading

const load = (id) => Promise.all([call('GET', pathOf(id)), readEnd(id)]);

async function loadUse(key, days) {
    const answer = await call('GET', withQuery(USAGE, {days, key_ids: key.id}));
    const [use] = answer.keys;
    const dates = [...new Set(answer.data.map(({date}) => date))];

    return {
        days: dates.map((date, i) => ({date, [key.mode]: use.by_day[i]})),
        total: sum(use.by_day),
        refused: use.refused ?? 0,
        reasons: use.refused_reasons ?? {},
    };
}

// When requests with this key were last refused, by reason: {revoked: {time, ip}}. Not every node records that.
async function loadLastRefusals(key) {
    const last = {};
    const note = (reason, time, ip) => {
        if (time && !(last[reason]?.time >= time)) last[reason] = {time, ip};
    };

    for (const type of ['requests.refused', 'api_key.used_after_revocation']) {
        const page = await readTrail({target: key.id, type}, REFUSALS_MAX);

        for (const {data, created_at: time, ip} of page.data) {
            const reason = type === 'requests.refused' ? data?.reason?.replace(/^(api|device)_key_/, '') : 'revoked';

            note(reason, data?.last ?? time, ip ?? data?.network);
        }
    }
    return last;
}

// Parts

function scopeList(scopes) {
    const held = SCOPE_GROUPS.flatMap((group) => group.scopes).filter(([name]) => scopes.includes(name));

    return bullets(
        {class: 'scope-list'},
        held.map(([name, explained]) => [h('code', null, name), h('span', {class: 'faint'}, explained)]),
    );
}

function keyFacts(key) {
    const {detail} = TEXTS;

    return facts([
        [detail.id, h('code', {class: 'wrap'}, key.id), copyButton(key.id, TEXTS.copy, 'plain small')],
        [
            detail.secret,
            h('code', null, detail.secretText(`svc_sk_${key.mode}_`, key.last4)),
            h('p', {class: 'hint'}, detail.secretNote),
        ],
        [detail.created, exactTime(key.created_at)],
        key.created_by ? [detail.madeBy, makerElement(key.created_by)] : null,
        key.origin !== key.created_by
            ? [detail.origin, key.origin ? makerElement(key.origin) : detail.originUnknown]
            : null,
        [detail.lastUsed, key.last_used_at ? timeWithExact(key.last_used_at) : TEXTS.never],
        key.revoked_at ? [detail.revoked, exactTime(key.revoked_at)] : null,
        [detail.scopes, scopeList(key.scopes)],
    ]);
}

const chartPart = (key, use) =>
    usageChart(use.days, {
        hint: KEY.summary(use.total, count(use.total), use.refused ? count(use.refused) : ''),
        label: (title) => KEY.chartLabel(title, use.days.length, count(use.total)),
        series: [{name: key.mode, label: KEY.requests}],
    });

function refusedTable(reasons, last) {
    const {refusedColumns: columns} = KEY;
    const rows = Object.entries(KEY.reasons)
        .filter(([reason]) => reasons[reason] > 0)
        .map(([reason, [name, explained]]) =>
            h(
                'tr',
                null,
                h('th', {scope: 'row'}, h('strong', null, name), h('span', {class: 'hint block'}, explained)),
                h('td', {'class': 'number', 'data-label': columns.count}, count(reasons[reason])),
                h(
                    'td',
                    {'data-label': columns.last},
                    last[reason]
                        ? h(
                              'div',
                              null,
                              exactTime(last[reason].time),
                              last[reason].ip ? h('span', {class: 'mono faint block'}, last[reason].ip) : null,
                          )
                        : h('span', {class: 'faint'}, KEY.noLast),
                ),
            ),
        );

    return listTable('refused', KEY.refusedTitle, columns, rows);
}

function refusedPart(use, last) {
    const days = use.days.length;

    return [
        h('h2', null, KEY.refusedTitle),
        h('p', {class: 'hint'}, use.refused ? KEY.refusedNote(days) : KEY.refusedNone(days)),
        use.refused ? refusedTable(use.reasons, last) : null,
    ];
}

// Whether somebody still has the revoked key.
function knockNotice(knocks, last) {
    if (!knocks) return notice('good', h('p', null, KEY.quiet));
    return notice(
        'warn',
        h('p', null, h('strong', null, KEY.knocked(knocks, count(knocks)))),
        last ? h('p', null, KEY.lastKnock(exactTimeWithZone(last.time), last.ip)) : null,
    );
}

function head(key, actions) {
    return h(
        'header',
        {class: 'page-head key-head'},
        h(
            'div',
            null,
            h('nav', {'class': 'crumbs', 'aria-label': KEY.back}, h('a', {href: addressOfList()}, icon('newer'), KEY.back)),
            h('h1', {tabindex: '-1', class: 'wrap'}, key ? foreign(key.name) : TEXTS.detail.title),
            key
                ? h(
                      'p',
                      {class: 'lead key-line'},
                      modeBadge(key.mode),
                      h(
                          'span',
                          {class: key.revoked_at ? 'state ended' : 'state'},
                          key.revoked_at ? KEY.revoked : KEY.active,
                      ),
                      h('span', {class: 'mono'}, `…${key.last4}`),
                  )
                : null,
        ),
        h('div', {class: 'page-actions'}, actions),
    );
}

// The page

export function keyPage() {
    const id = idOfAddress();
    const element = h('div');
    const chart = h('div');
    const refused = h('section', {class: 'key-part'});
    const knock = h('div');
    const top = h('div');
    const ending = h('div');
    const details = h('div');
    const problem = h('div', {'aria-live': 'polite'});
    const activity = h('div', {class: 'list-space small-list'});
    const state = {days: choice('days', Object.keys(KEY.periods), STANDARD_DAYS)};
    let key = null;
    let end = null; // its scheduled revocation
    let readMs = 0;
    let readings = 0; // only the last one is shown
    let events = [];
    let lastRefusals = {};
    let redrawChart = () => {};

    const address = (event) => withState({days: state.days === STANDARD_DAYS ? '' : state.days, event});
    const over = eventsOver(address, () => events);
    const part = (container, read, drawRead) =>
        loading(container, {placeholder: () => skeletonRows(3), load: read, draw: drawRead});
    const parts = {
        use: part(
            chart,
            () => loadUse(key, state.days),
            (use) => {
                redrawChart = () => show(chart, chartPart(key, use));
                redrawChart();
                show(refused, refusedPart(use, lastRefusals));
                loadLastRefusals(key).then(
                    (last) => {
                        lastRefusals = last;
                        show(refused, refusedPart(use, last));
                    },
                    () => {},
                );
            },
        ),
        activity: part(
            activity,
            () => readTrail({target: id}, EVENT_COUNT),
            (page) => {
                events = page.data;
                show(
                    activity,
                    events.length ? eventTable(events, over.open) : h('p', {class: 'hint'}, KEY.activityNone),
                );
                over.show();
            },
        ),
    };
    // What is missing here is not worth an error: the numbers are below, too.
    async function drawKnocks() {
        if (!key.revoked_at) return;
        try {
            const [all, last] = await Promise.all([loadUse(key, ALL_DAYS), loadLastRefusals(key).catch(() => ({}))]);

            show(knock, knockNotice(all.reasons.revoked, last.revoked));
        } catch {
            show(knock);
        }
    }
    const link = (path, parameters, text) => h('a', {href: withQuery(path, parameters)}, text);
    const revoke = () => revokeKey(key, revoked);
    const replace = async () => (await loaded(import('./replace.js'), REPLACE.title))?.openReplace(key, end, changed);
    const schedule = async () => (await loaded(import('./schedule.js'), SCHEDULE.title))?.openSchedule(key, end, changed);
    const keep = async () => (await loaded(import('./schedule.js'), SCHEDULE.title))?.openKeep(key, end, changed);
    const rename = async () => (await loaded(import('./rename.js'), RENAME.title))?.openRename(key, renamed);
    const renameButton = () => mayAs('developer') && newButton('secondary', rename, RENAME.button);
    function activeButtons() {
        if (key.revoked_at) return [];
        return [
            key.scopes.every(mayGrant) && newButton('secondary', replace, REPLACE.button),
            mayAs('responder') && !end && newButton('secondary', schedule, SCHEDULE.button),
            mayAs('responder') && newButton('danger-quiet', revoke, [icon('ban'), TEXTS.keys.revoke]),
        ];
    }
    async function saveCertificate() {
        show(problem);
        try {
            saveFile(`${id}.jws`, await call('GET', `${pathOf(id)}/revocation`, undefined, 'application/jose'));
        } catch (refusal) {
            if (refusal.kind !== 'cancelled') show(problem, explain(refusal));
        }
    }
    const certificateButton = () =>
        key.revoked_at &&
        newButton('secondary', saveCertificate, [icon('download'), KEY.certificate], {title: KEY.certificateNote});
    function revoked(record) {
        readings += 1;
        Object.assign(key, record);
        end = null;
        draw();
    }
    function renamed(record) {
        readings += 1;
        Object.assign(key, record);
        drawKey();
        parts.activity.run();
    }
    // The key as it is now; what else the page shows is as it was read. False if it could not be read, or if something
    // newer is known by then.
    async function readAgain() {
        const wasRevoked = key.revoked_at;
        const reading = ++readings;
        let read;

        show(problem);
        try {
            read = await load(id);
        } catch (refusal) {
            if (refusal.kind !== 'cancelled' && reading === readings) show(problem, explain(refusal));
            return false;
        }
        if (reading !== readings) return false;
        [key, end] = read;
        readMs = Date.now();
        if (key.revoked_at === wasRevoked) drawKey();
        else draw();
        return true;
    }
    async function changed() {
        if ((await readAgain()) && !key.revoked_at) parts.activity.run();
    }
    async function again() {
        if (!(await readAgain()) || !end) return;
        announce(endInWords(key, end));
        ending.querySelector('[data-again]')?.focus();
    }
    // What a new state of the key changes.
    function drawKey() {
        redraw(top, head(key, [certificateButton(), renameButton(), ...activeButtons()]));
        redraw(ending, end && !key.revoked_at ? endPart(key, end, {again, change: schedule, keep, revoke}) : null);
        show(details, keyFacts(key));
    }
    function draw() {
        const period = segments({
            label: KEY.period,
            value: state.days,
            options: Object.entries(KEY.periods),
            change: (value) => {
                state.days = value;
                replaceAddress(address(''));
                parts.use.run();
            },
        });

        document.title = TEXTS.title(KEY.title(key.last4)); // no name: it stays in the browser's history
        drawKey();
        show(
            element,
            top,
            problem,
            ending,
            knock,
            h('section', {class: 'panel'}, h('div', {class: 'panel-tools'}, period), chart),
            refused,
            h('section', {class: 'key-part'}, h('h2', null, KEY.details), details),
            h(
                'section',
                {class: 'key-part'},
                h('h2', null, KEY.activity),
                activity,
                h(
                    'p',
                    {class: 'links'},
                    link('/console/activity', {target: id}, KEY.activityAll),
                    link('/console/activity', {actor: id}, KEY.activityBy),
                    link('/console/usage', {key: id}, KEY.usageLink),
                ),
            ),
        );
        parts.use.run();
        parts.activity.run();
        drawKnocks();
    }
    const loader = loading(element, {
        placeholder: () => [head(null), skeletonRows(6)],
        load: () => load(id).catch(missing),
        draw: (found) => {
            if (!found) return;
            [key, end] = found;
            readMs = Date.now();
            draw();
        },
    });
    function missing(refusal) {
        if (refusal.status !== 404) throw refusal;
        show(element, head(null), explain(refusal));
        return null;
    }
    const stopResizing = whenResized(() => redrawChart());

    loader.run();
    return {
        element,
        stop() {
            stopResizing();
            loader.stop();
            Object.values(parts).forEach((each) => each.stop());
        },
        // Whether it has gone silent can be told by a fresh reading only.
        refresh() {
            if (end && Date.now() - readMs >= STALE_MS) readAgain();
        },
        moved() {
            const days = choice('days', Object.keys(KEY.periods), STANDARD_DAYS);

            if (days !== state.days) {
                state.days = days;
                if (key) draw();
            } else {
                over.show();
            }
        },
    };
}
