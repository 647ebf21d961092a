// What the service has measured of its own promise: the canary's last run.
import {call} from './api.js';
import {serverNow} from './clock.js';
import {h, show} from './dom.js';
import {notice} from './form.js';
import {count, timeElement} from './format.js';
import {facts, loading, pageHead, skeletonRows} from './parts.js';
import {SYSTEM} from './system_texts.js';

const RUNS_MISSED = 5;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

const every = (ms) =>
    ms % MINUTE_MS === 0 ? SYSTEM.minutes(ms / MINUTE_MS) : SYSTEM.seconds(Math.round(ms / SECOND_MS));

const isLate = ({interval_ms: interval, last_run_at: at}) => serverNow() - Date.parse(at) > RUNS_MISSED * interval;

// The first of these that is so.
function verdict(canary) {
    const {nodes} = canary;

    if (canary.interval_ms === 0) return notice('info', SYSTEM.off);
    if (nodes.accepted > 0) return notice('error', SYSTEM.bad(nodes.accepted), ' ', SYSTEM.tell);
    if (canary.last_run_at === null) return notice('info', SYSTEM.none);
    if (isLate(canary)) return notice('warn', SYSTEM.late, ' ', SYSTEM.tell);
    if (canary.violations > 0) return notice('warn', SYSTEM.before, ' ', SYSTEM.tell);
    if (nodes.silent > 0) return notice('warn', SYSTEM.some(nodes.refused, nodes.silent));
    return notice('good', SYSTEM.good(nodes.refused));
}

function askedNodes(nodes) {
    const parts = ['refused', 'accepted', 'silent']
        .filter((name) => nodes[name] > 0)
        .map((name) => `${count(nodes[name])} ${SYSTEM[name]}`);

    return [`${count(nodes.asked)}`, parts.length ? `: ${parts.join(', ')}` : ''];
}

function lastRun(canary) {
    return canary.last_run_at === null
        ? []
        : [
              [SYSTEM.lastRun, timeElement(canary.last_run_at)],
              [SYSTEM.effect, SYSTEM.milliseconds(canary.effect_us)],
              [SYSTEM.asked, ...askedNodes(canary.nodes)],
          ];
}

function drawn(canary) {
    const {violations, last_violation_at: at} = canary;

    return h(
        'section',
        {class: 'panel canary'},
        verdict(canary),
        canary.interval_ms > 0 ? h('p', {class: 'faint'}, SYSTEM.how(every(canary.interval_ms))) : null,
        facts([
            ...lastRun(canary),
            [SYSTEM.violations, count(violations), at ? [` (${SYSTEM.lastViolation} `, timeElement(at), ')'] : null],
            [SYSTEM.runs, count(canary.runs), SYSTEM.unfinished(canary.unfinished_runs)],
        ]),
    );
}

export function systemPage() {
    const content = h('div');
    const loader = loading(content, {
        placeholder: () => skeletonRows(4),
        load: () => call('GET', '/v1/console/system'),
        draw: ({canary}) => show(content, drawn(canary)),
    });

    loader.run();
    return {element: h('div', null, pageHead(SYSTEM.title, SYSTEM.lead), content), stop: loader.stop};
}
