// Charts as plain SVG. The same numbers are always also shown as text or in a table.
import {h, svg} from './dom.js';
import {count, countShort, dayName} from './format.js';
import {TEXTS} from './texts.js';

const SPARK = {width: 96, height: 24, gap: 0.2};

// One small bar per day. label describes them in words.
export function spark(values, label) {
    const most = Math.max(...values, 1);
    const step = SPARK.width / values.length;
    const bars = values.map((value, i) => {
        const height = value === 0 ? 1 : Math.max(2, (value / most) * SPARK.height);

        return svg('rect', {
            x: (i * step).toFixed(2),
            y: (SPARK.height - height).toFixed(2),
            width: (step * (1 - SPARK.gap)).toFixed(2),
            height: height.toFixed(2),
            class: value === 0 ? 'none' : 'some',
            rx: 0.6,
        });
    });

    return svg(
        'svg',
        {
            'class': 'spark',
            'viewBox': `0 0 ${SPARK.width} ${SPARK.height}`,
            'role': 'img',
            'aria-label': label,
            'preserveAspectRatio': 'none',
        },
        bars,
    );
}

// A bar for a fraction of the largest value.
export function share(part) {
    return svg(
        'svg',
        {'class': 'share', 'viewBox': '0 0 100 8', 'preserveAspectRatio': 'none', 'aria-hidden': 'true'},
        svg('rect', {width: Math.max(0.5, part * 100).toFixed(2), height: 8}),
    );
}

// In drawing units. The narrow drawing has fewer units, so that its text stays readable.
const WIDE = {width: 960, height: 260, left: 52, right: 8, top: 12, bottom: 28, labels: 8};
const NARROW = {width: 300, height: 220, left: 42, right: 2, top: 12, bottom: 28, labels: 3};
const NARROW_BARS = 14;
const GROUPS = [1, 7, 28];

// The number of days per bar. A narrow drawing has few bars, wide enough to tell apart.
export function daysPerBar(count, isNarrow) {
    return isNarrow ? (GROUPS.find((size) => count / size <= NARROW_BARS) ?? GROUPS.at(-1)) : 1;
}

// Groups that end with the newest day; the oldest group may be shorter.
function grouped(days, size) {
    const groups = [];

    for (let end = days.length; end > 0; end -= size) {
        const part = days.slice(Math.max(0, end - size), end);
        const sum = (mode) => part.reduce((total, day) => total + day[mode], 0);

        groups.unshift({first: part[0].date, date: part.at(-1).date, live: sum('live'), test: sum('test')});
    }
    return groups;
}

// Steps of 1, 2 or 5 times a power of ten, up to a round number above the largest value, at most five of them.
function niceScale(most) {
    const rough = Math.max(most, 4) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);

    return {step, top: Math.ceil(Math.max(most, 1) / step) * step};
}

function gridLines(plot, scale, y) {
    const lines = [];

    for (let value = 0; value <= scale.top; value += scale.step)
        lines.push(
            svg('line', {
                class: value === 0 ? 'axis' : 'grid',
                x1: plot.left,
                x2: plot.width - plot.right,
                y1: y(value),
                y2: y(value),
            }),
            svg(
                'text',
                {'class': 'tick', 'x': plot.left - 8, 'y': y(value) + 4, 'text-anchor': 'end'},
                countShort(value),
            ),
        );
    return lines;
}

function dayBars(plot, day, x, width, y) {
    const name =
        day.first === day.date ? dayName(day.date) : TEXTS.time.range(dayName(day.first), dayName(day.date));
    const title = svg(
        'title',
        null,
        `${name}: ${count(day.live)} ${TEXTS.live.toLowerCase()}, ${count(day.test)} ${TEXTS.test.toLowerCase()}`,
    );
    const bars = [
        svg('rect', {
            class: 'hit',
            x: x - width * 0.1,
            y: plot.top,
            width: width * 1.2,
            height: plot.height - plot.top - plot.bottom,
        }),
        svg('rect', {class: 'live', x, y: y(day.live), width, height: y(0) - y(day.live)}),
        svg('rect', {class: 'test', x, y: y(day.live + day.test), width, height: y(day.live) - y(day.live + day.test)}),
    ];

    return svg('g', {class: 'day'}, title, bars);
}

function dayLabel(plot, day, x, isLast) {
    return svg(
        'text',
        {
            'class': 'tick',
            'x': isLast ? plot.width - plot.right : x,
            'y': plot.height - 8,
            'text-anchor': isLast ? 'end' : 'middle',
        },
        dayName(day.date),
    );
}

// days: [{date, live, test}], oldest first.
export function usageChart(days, label, isNarrow) {
    const plot = isNarrow ? NARROW : WIDE;
    const groups = grouped(days, daysPerBar(days.length, isNarrow));
    const scale = niceScale(Math.max(...groups.map((day) => day.live + day.test)));
    const inner = plot.height - plot.top - plot.bottom;
    const y = (value) => Number((plot.top + inner * (1 - value / scale.top)).toFixed(2));
    const step = (plot.width - plot.left - plot.right) / groups.length;
    const labelled = Math.max(1, Math.ceil(groups.length / plot.labels));
    const parts = groups.map((day, i) => {
        const x = plot.left + i * step;
        const fromEnd = groups.length - 1 - i;

        return [
            dayBars(plot, day, x + step * 0.14, step * 0.72, y),
            fromEnd % labelled === 0 ? dayLabel(plot, day, x + step / 2, fromEnd === 0) : null,
        ];
    });

    return h(
        'div',
        {class: isNarrow ? 'chart narrow' : 'chart'},
        svg(
            'svg',
            {'viewBox': `0 0 ${plot.width} ${plot.height}`, 'role': 'img', 'aria-label': label},
            gridLines(plot, scale, y),
            parts,
        ),
    );
}
