// Building blocks that several pages share.
import {countDown} from './clock.js';
import {h, icon, newButton, show} from './dom.js';
import {TEXTS} from './texts.js';
import {notice} from './form.js';
import {exactTime, timeInWords, wait} from './format.js';
import {mayAs} from './permissions.js';

const RETRY_FIRST_MS = 2000;
const RETRY_MAX_MS = 30000;

export function pageHead(title, lead, ...actions) {
    return h(
        'header',
        {class: 'page-head'},
        h('div', null, h('h1', {tabindex: '-1'}, title), h('p', {class: 'lead'}, lead)),
        h('div', {class: 'page-actions'}, actions),
    );
}

export function modeBadge(mode) {
    return h('span', {class: `badge ${mode}`}, mode === 'live' ? TEXTS.live : TEXTS.test);
}

export function emptyState(iconName, title, text, action) {
    return h(
        'div',
        {class: 'empty'},
        h('span', {class: 'empty-mark'}, icon(iconName)),
        h('h2', null, title),
        h('p', null, text),
        action,
    );
}

function textOf(refusal) {
    const texts = {offline: TEXTS.problem.offline, away: TEXTS.problem.away, busy: TEXTS.problem.busy};

    if (refusal.code === 'csrf_failed') return TEXTS.problem.foreignOrigin;
    if (refusal.code === 'role_not_permitted') return TEXTS.problem.role;
    if (refusal.code === 'account_suspended') return TEXTS.problem.suspended;
    if (refusal.status === 404) return TEXTS.problem.gone;
    return texts[refusal.kind] ?? TEXTS.problem.failed(refusal.message);
}

const reference = ({kind, requestId}) =>
    kind === 'refused' && requestId ? h('p', {class: 'reference'}, TEXTS.problem.reference(requestId)) : null;

// Explains in a form what went wrong and what to do.
export const explain = (refusal) =>
    notice(refusal.kind === 'refused' ? 'error' : 'warn', h('p', null, textOf(refusal)), reference(refusal));

function titleOf(refusal) {
    const titles = {
        offline: TEXTS.problem.offlineTitle,
        away: TEXTS.problem.awayTitle,
        busy: TEXTS.problem.busyTitle,
        throttled: TEXTS.problem.throttledTitle,
    };

    return titles[refusal.kind] ?? TEXTS.problem.failedTitle;
}

// The same, in place of a page's content. If waiting helps, it retries automatically, with growing pauses.
function errorState(refusal, again, attempt) {
    const isPassing = refusal.kind !== 'refused';
    const status = h('p', {'class': 'hint', 'aria-live': 'off'});
    const mark = icon(refusal.kind === 'offline' || refusal.kind === 'away' ? 'cloud' : 'warn');
    const element = h(
        'div',
        {class: 'empty problem', role: 'alert'},
        h('span', {class: 'empty-mark'}, mark),
        h('h2', null, titleOf(refusal)),
        h(
            'p',
            null,
            refusal.kind === 'throttled' ? TEXTS.problem.throttled(wait(refusal.retryAfterMs)) : textOf(refusal),
        ),
        reference(refusal),
        newButton('secondary', again, isPassing ? TEXTS.problem.retryNow : TEXTS.retry),
        status,
    );
    const endMs = Date.now() + Math.max(refusal.retryAfterMs, Math.min(RETRY_FIRST_MS * 2 ** attempt, RETRY_MAX_MS));
    const tick = (leftMs) => show(status, TEXTS.problem.retryIn(Math.ceil(leftMs / 1000)));

    return {element, stop: isPassing ? countDown(endMs, tick, again) : () => {}};
}

// Draws what load() returns; shows a placeholder meanwhile and the reason on failure. run() starts again.
export function loading(container, {placeholder, load, draw}) {
    let turn = 0;
    let failure = null;

    async function attemptLoad(mine, attempt) {
        let result;

        try {
            result = await load();
        } catch (refusal) {
            if (mine !== turn || refusal.kind === 'cancelled') return;
            if (!('kind' in refusal)) throw refusal;
            failure = errorState(refusal, () => start(attempt + 1), attempt);
            show(container, failure.element);
            return;
        } finally {
            if (mine === turn) container.removeAttribute('aria-busy');
        }
        if (mine === turn) draw(result);
    }
    function start(attempt) {
        turn += 1;
        failure?.stop();
        failure = null;
        container.setAttribute('aria-busy', 'true');
        if (attempt === 0) show(container, placeholder());
        return attemptLoad(turn, attempt);
    }
    return {
        run: () => start(0),
        stop() {
            turn += 1;
            failure?.stop();
        },
    };
}

export function segments({label, options, value, change}) {
    const buttons = options.map(([key, text]) => {
        const choose = ({currentTarget}) => {
            for (const button of buttons) button.setAttribute('aria-pressed', String(button === currentTarget));
            change(key);
        };

        return newButton(null, choose, text, {'aria-pressed': String(key === value)});
    });

    return h('div', {'class': 'segments', 'role': 'group', 'aria-label': label}, buttons);
}

// One of many, where a row of buttons would be too long. options: [value, text]; a list of them under a name is a group.
export function chooser({label, options, value, change}) {
    const option = ([key, text]) => h('option', {value: key, selected: key === value}, text);
    const select = h(
        'select',
        {'class': 'chooser', 'aria-label': label, 'onchange': () => change(select.value)},
        options.map(([key, text]) =>
            Array.isArray(text) ? h('optgroup', {label: key}, text.map(option)) : option([key, text]),
        ),
    );

    return select;
}

export function skeletonRows(count) {
    const rows = Array.from({length: count}, () => h('div', {class: 'skeleton-row'}, h('span'), h('span'), h('span')));

    return h('div', {class: 'skeleton'}, h('p', {class: 'unseen', role: 'status'}, TEXTS.loading), rows);
}

// Columns whose heads only screen readers need.
const HEADS_UNSEEN = ['select', 'actions', 'more'];

// columns: their heads by name. The class of a list says how wide they are.
export function listTable(className, caption, columns, rows) {
    const heads = Object.entries(columns).map(([name, text]) =>
        h(
            'th',
            {scope: 'col', class: `column-${name}`},
            HEADS_UNSEEN.includes(name) ? h('span', {class: 'unseen'}, text) : text,
        ),
    );

    return h(
        'table',
        {class: `list ${className}`},
        h('caption', {class: 'unseen'}, caption),
        h('thead', null, h('tr', null, heads)),
        h('tbody', null, rows),
    );
}

// The end of a row: since when it is revoked, or the button that revokes it.
export function revokeCell({name, revoked_at: at}, revoke) {
    if (at) return h('span', {class: 'revoked-note', title: exactTime(at)}, TEXTS.keys.revokedAt(timeInWords(at)));
    if (!mayAs('responder')) return null;
    return newButton('danger-calm small', revoke, TEXTS.keys.revoke, {'aria-label': TEXTS.keys.revokeNamed(name)});
}

// A button that does one thing at a time and says so. work() may throw: the reason is shown in the problem.
export function workingButton({className, iconName, text, workingText, problem, title}, work) {
    const label = h('span', null, text);
    const button = newButton(className, run, [iconName && icon(iconName), label], {title});
    let isWorking = false;

    function setBusy(busy) {
        isWorking = busy;
        button.setAttribute('aria-disabled', String(busy));
        label.textContent = busy ? workingText : text;
    }
    async function run() {
        if (isWorking) return;
        setBusy(true);
        show(problem);
        try {
            await work();
        } catch (refusal) {
            if (refusal.kind !== 'cancelled') show(problem, explain(refusal));
        }
        setBusy(false);
    }
    return button;
}

// The button below a list that has more entries. load() fetches and draws them.
export function pagerMore(text, load) {
    const problem = h('div', {role: 'alert'});

    return h(
        'div',
        {class: 'pager'},
        problem,
        workingButton({className: 'secondary', text, workingText: TEXTS.loading, problem}, load),
    );
}

export function facts(rows) {
    return h(
        'dl',
        {class: 'facts'},
        rows.filter(Boolean).map(([name, ...value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
    );
}
